//! Every member of a record, by the name that callers know it by, read back by another process at each stop of its life.

use std::sync::Arc;

use sayso::clock::ManualClock;
use sayso::storage::{
    ElicitationRequest, ElicitationResponse, FormElicitationRequest, ManagedInputRecord, ManagedInputStatus,
    ManagedInputStore, NewLease, NewManagedInput, Options, PendingElicitationRound, PostgresManagedInputStore,
    SqliteManagedInputStore, UrlElicitationRequest,
};
use sayso::wire::{Keyed, LeaseToken};
use sayso::{Channel, ClaimOf, ExecutionId, Failure, FenceToken, OperationKind, Principal, RoundId, limits};
use sayso_core::round::Delivery;

use crate::LONG_AGO;
use crate::cluster::Cluster;
use crate::support::json;

enum Place {
    File(tempfile::TempDir),
    Database(String),
}

impl Place {
    /// The store as one more process has it.
    async fn open(&self, clock: &Arc<ManualClock>) -> Arc<dyn ManagedInputStore> {
        let options =
            Options { clock: Some(clock.clone()), person: Principal::person("local:ada"), ..Options::default() };
        match self {
            Self::File(folder) => {
                Arc::new(SqliteManagedInputStore::open(folder.path().join("executions.sqlite"), options).await.unwrap())
            }
            Self::Database(url) => Arc::new(PostgresManagedInputStore::open(url, options).await.unwrap()),
        }
    }
}

/// A record in one process, and whoever reads it in others.
struct Life {
    place: Place,
    clock: Arc<ManualClock>,
    store: Arc<dyn ManagedInputStore>,
}

impl Life {
    async fn at(place: Place) -> Self {
        let clock = Arc::new(ManualClock::at(LONG_AGO));
        Self { store: place.open(&clock).await, place, clock }
    }

    /// The record as a process that has just opened the store reads it: as `told`, whole. A millisecond goes by.
    async fn reread(&self, told: &ManagedInputRecord) -> ManagedInputRecord {
        let round = told.pending.round_id;
        let again = self.place.open(&self.clock).await;
        let read = again.get_round(round).await.unwrap().unwrap();
        // What delivery alone may read is in what delivery answers, and in no reading.
        let mut told = told.clone();
        told.pending.request_state = None;
        assert_eq!(parts(&read), parts(&told));
        assert_eq!(read, told);
        let listed = again.list_rounds(told.pending.execution_id).await.unwrap();
        assert_eq!(listed.into_iter().find(|record| record.pending.round_id == round).as_ref(), Some(&read));
        self.clock.advance_ms(1);
        read
    }
}

/// What `Debug` of a record leaves out, so that a difference can be seen.
fn parts(record: &ManagedInputRecord) -> [Option<String>; 8] {
    [
        record.harness_session_id.clone(),
        record.native_resume_token.clone(),
        record.delivery_idempotency_key.clone(),
        record.session_id.clone(),
        record.turn_id.clone(),
        record.response_idempotency_key.clone(),
        record.answered_by.as_ref().map(ToString::to_string),
        record.channel.map(|channel| channel.as_str().to_owned()),
    ]
}

fn form() -> ElicitationRequest {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"number","default":1.50}}}"#;
    ElicitationRequest::Form(FormElicitationRequest {
        request_key: "city".to_owned(),
        message: "Where to?".to_owned(),
        requested_schema: json(schema),
        meta: Some(json(r#"{"com.example/a":[1.0]}"#)),
        task: Some(json(r#"{"ttl":5}"#)),
        server: Some("shipping".to_owned()),
        operation_kind: Some(OperationKind::Prompt),
        operation_name: Some("greet".to_owned()),
    })
}

fn url() -> ElicitationRequest {
    ElicitationRequest::Url(UrlElicitationRequest {
        request_key: "login".to_owned(),
        message: "Log in.".to_owned(),
        url: "https://example.com/login".to_owned(),
        elicitation_id: Some("visit-1".to_owned()),
        meta: Some(json(r#"{"b":2}"#)),
        task: Some(json("{}")),
        server: Some("shipping".to_owned()),
        operation_kind: Some(OperationKind::Resource),
        operation_name: Some("demo://x".to_owned()),
    })
}

fn whole(n: u128, lease: Option<NewLease>) -> NewManagedInput {
    let text = |name: &str| Some(format!("{name} \u{1f511} {n}"));
    let pending = PendingElicitationRound {
        round_id: RoundId::from_parts(LONG_AGO.0, n),
        execution_id: ExecutionId::from_parts(LONG_AGO.0, n),
        logical_operation_id: format!("op-{n}"),
        server: "shipping".to_owned(),
        operation_kind: OperationKind::Resource,
        operation_name: "demo://x".to_owned(),
        requests: Keyed(vec![("city".to_owned(), form()), ("login".to_owned(), url())]),
        created_at: LONG_AGO,
        request_state: text("sealed"),
        deadline: Some(LONG_AGO.plus_ms(60_000)),
    };
    NewManagedInput {
        round_index: 2,
        round_limit: 7,
        lease,
        harness_session_id: text("harness"),
        native_resume_token: text("resume"),
        delivery_idempotency_key: text("delivery"),
        session_id: text("session"),
        turn_id: text("turn"),
        operation_parameters: Some(json(r#"{"n":1.0,"b":[]}"#)),
        ..NewManagedInput::first(pending)
    }
}

fn answer() -> Keyed<ElicitationResponse> {
    let city = ElicitationResponse::accept(json(r#"{"city":"Pune"}"#));
    Keyed(vec![("city".to_owned(), city), ("login".to_owned(), ElicitationResponse::decline(Some("no".to_owned())))])
}

/// What was said when it was created, under its names.
fn check_created(record: &ManagedInputRecord, n: u128, delivery: Delivery) {
    let new = whole(n, None);
    assert_eq!(record.pending, PendingElicitationRound { request_state: None, ..new.pending });
    assert_eq!((record.round_index, record.round_limit, record.delivery), (2, 7, delivery));
    assert_eq!(record.harness_session_id, new.harness_session_id);
    assert_eq!(record.native_resume_token, new.native_resume_token);
    assert_eq!(record.delivery_idempotency_key, new.delivery_idempotency_key);
    assert_eq!((&record.session_id, &record.turn_id), (&new.session_id, &new.turn_id));
    assert_eq!(record.operation_parameters.as_str(), r#"{"n":1.0,"b":[]}"#);
    assert_eq!(record.created_at, LONG_AGO);
}

async fn live(place: Place) {
    let life = Life::at(place).await;
    let token = LeaseToken(FenceToken(77));
    let new = whole(1, Some(NewLease { owner_id: "worker-1".to_owned(), lease_token: Some(token) }));
    let round = new.pending.round_id;
    let record = life.reread(&life.store.create_round(new).await.unwrap()).await;
    check_created(&record, 1, Delivery::Live);
    let lease = record.lease.clone().unwrap();
    let until = LONG_AGO.plus_ms(limits::LEASE_MS);
    assert_eq!((lease.owner_id.as_str(), lease.lease_token, lease.expires_at), ("worker-1", token, until));
    assert_eq!((record.status, record.delivery_attempts), (ManagedInputStatus::Pending, 0));
    assert_eq!((&record.answered_by, &record.channel, &record.responses), (&None, &None, &None));

    let record = life.reread(&life.store.submit_responses(round, answer(), "key-1", None).await.unwrap()).await;
    assert_eq!(record.status, ManagedInputStatus::ResponseValidated);
    assert_eq!(record.response_idempotency_key.as_deref(), Some("key-1"));
    assert_eq!(record.answered_by, Some(Principal::person("local:ada")));
    assert_eq!(record.channel, Some(Channel::Library));
    assert_eq!(record.response_validated_at, Some(LONG_AGO.plus_ms(1)));
    let responses = record.responses.as_ref().unwrap();
    let content = responses.get("city").and_then(|response| response.content.as_ref());
    assert_eq!(content.map(sayso::Json::as_str), Some(r#"{"city":"Pune","n":1.50}"#), "with what is filled in");
    assert_eq!(responses.get("login").and_then(|response| response.reason.as_deref()), Some("no"));

    let started = life.store.start_delivery(round, lease.fence()).await.unwrap();
    assert_eq!(started.pending.request_state, whole(1, None).pending.request_state);
    let record = life.reread(&started).await;
    assert_eq!((record.delivery_attempts, record.delivery_started_at), (1, Some(LONG_AGO.plus_ms(2))));
    let record = life.reread(&life.store.mark_delivered(round, lease.fence()).await.unwrap()).await;
    assert_eq!((record.status, record.delivered_at), (ManagedInputStatus::Delivered, Some(LONG_AGO.plus_ms(3))));
    let record = life.reread(&life.store.resolve(round, lease.fence()).await.unwrap()).await;
    assert_eq!((record.resolved_at, record.failed_at), (Some(LONG_AGO.plus_ms(4)), None));
    assert_eq!((record.updated_at, record.status), (LONG_AGO.plus_ms(4), ManagedInputStatus::Resolved));
    check_created(&record, 1, Delivery::Live);
}

async fn resumable(place: Place) {
    let life = Life::at(place).await;
    let new = whole(2, None);
    let round = new.pending.round_id;
    let record = life.reread(&life.store.create_round(new).await.unwrap()).await;
    check_created(&record, 2, Delivery::Resumable);
    assert_eq!(record.lease, None);
    life.reread(&life.store.submit_responses(round, answer(), "key-2", None).await.unwrap()).await;
    let record = life.store.claim_round(round, "worker-2", ClaimOf::default()).await.unwrap();
    let lease = life.reread(&record).await.lease.unwrap();
    assert_eq!((lease.owner_id.as_str(), lease.expires_at), ("worker-2", LONG_AGO.plus_ms(2 + limits::LEASE_MS)));
    let record = life.reread(&life.store.renew(round, lease.fence()).await.unwrap()).await;
    let renewed = record.lease.as_ref().unwrap();
    assert_eq!((renewed.lease_token, renewed.expires_at), (lease.lease_token, lease.expires_at.plus_ms(1)));
    assert_eq!(record.updated_at, LONG_AGO.plus_ms(3), "a renewal is a change");
    let failure = Failure::new("gave_up", "the harness is gone");
    let record = life.reread(&life.store.fail(round, Some(lease.fence()), failure).await.unwrap()).await;
    assert_eq!((record.failed_at, record.resolved_at), (Some(LONG_AGO.plus_ms(4)), None));
    assert_eq!(record.failure_code.as_deref(), Some("gave_up"));
    assert_eq!(record.failure_message.as_deref(), Some("the harness is gone"));
    assert!(record.responses.is_some(), "what was answered stays");
    check_created(&record, 2, Delivery::Resumable);
}

#[tokio::test]
async fn every_member_of_a_record_is_read_by_another_process_on_sqlite() {
    live(Place::File(tempfile::tempdir().unwrap())).await;
    resumable(Place::File(tempfile::tempdir().unwrap())).await;
}

#[tokio::test]
async fn every_member_of_a_record_is_read_by_another_process_on_postgresql() {
    live(Place::Database(Cluster::shared().fresh().await)).await;
    resumable(Place::Database(Cluster::shared().fresh().await)).await;
}
