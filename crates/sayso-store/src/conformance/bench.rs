//! What the cases share: a store under a hand-moved clock, and the shortest way to each command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sayso_core::command::{Command, DeliveryContent, NewRound, Reply, RoundExecution, Verdict};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::event::Event;
use sayso_core::execution::{Execution, ExecutionKind};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits::LEASE_MS;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{
    Claim, Delivery, Digest, Failure, FailureRequest, Fence, FenceToken, OperationKind, Round, Status, Submission,
};
use sayso_core::time::UnixMs;

use super::Subject;
use crate::Store;

/// Where every subject's clock starts: 2026-11-30, a Monday.
pub const START: UnixMs = UnixMs(1_796_000_000_000);

/// What a person types here; it must never turn up in an event.
pub(super) const TYPED: &str = "hunter2";
/// The opaque state of every round here: bytes that JSON would write differently.
pub(super) const SEALED: &str = "sealed \u{1f511} \"state\"\n\\u0041";

pub(super) const BOTH: [Delivery; 2] = [Delivery::Live, Delivery::Resumable];

/// A store on trial.
pub struct Bench<S> {
    subject: S,
    pub(super) store: Arc<dyn Store>,
    drawn: AtomicU32,
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

pub(super) fn ada() -> Principal {
    Principal::person("local:ada")
}

pub(super) fn agent() -> Principal {
    Principal::agent("booking")
}

/// The code of a refusal.
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.expect_err("is refused").code()
}

pub(super) const CONFLICT: ErrorCode = ErrorCode::ManagedInputConflict;
pub(super) const STATE: ErrorCode = ErrorCode::ManagedInputState;
pub(super) const INVALID: ErrorCode = ErrorCode::ManagedInputInvalid;
pub(super) const RECOVERY: ErrorCode = ErrorCode::ManagedInputRecoveryUnavailable;

/// The frame of an answer under `key`; `hash` stands for what was typed.
pub(super) fn submission(key: &str, hash: u8) -> Submission {
    Submission {
        key: key.to_owned(),
        answer_hash: [hash; 32],
        principal: ada(),
        channel: Channel::Library,
        digest: None,
        action: None,
        approves: false,
        needs_second_person: false,
    }
}

pub(super) fn submit(round: RoundId, submission: Submission) -> Command {
    Command::Submit {
        round,
        submission: Box::new(submission),
        verdicts: vec![Verdict { request_key: "note".to_owned(), is_approval: false, accepted: true }],
        submitted: json(&format!(r#"{{"note":{{"action":"accept","content":{{"answer":["{TYPED}"]}}}}}}"#)),
        effective: json(&format!(r#"{{ "note":{{"action":"accept","content":{{"answer":["{TYPED}"]}}}}}}"#)),
    }
}

pub(super) fn claim_by(fence: &Fence) -> Claim {
    Claim { fence: fence.clone(), expected: None, evidence: None }
}

pub(super) fn failure_of(round: &Round) -> Option<&str> {
    round.failure.as_ref().map(|failure| failure.code.as_str())
}

impl<S: Subject> Bench<S> {
    pub(super) async fn new() -> Self {
        let subject = S::fresh().await;
        Self { store: subject.store(), subject, drawn: AtomicU32::new(1) }
    }

    pub(super) async fn reopen(&self) -> Arc<dyn Store> {
        self.subject.reopen().await
    }

    /// A number that was not drawn before.
    pub(super) fn draw(&self) -> u128 {
        u128::from(self.drawn.fetch_add(1, Ordering::SeqCst))
    }

    pub(super) fn advance_ms(&self, ms: i64) {
        self.subject.clock().advance_ms(ms);
    }

    pub(super) async fn now(&self) -> UnixMs {
        self.store.now().await.expect("the time")
    }

    pub(super) fn fence(&self, owner: &str) -> Fence {
        Fence { owner: owner.to_owned(), token: FenceToken(self.draw()) }
    }

    /// A question in a new execution, which ends with it where it is resumable; a live one is held by `own_opener`.
    pub(super) fn asking(&self, delivery: Delivery) -> NewRound {
        let requests = json(r#"{ "note":{"kind":"text","question":"Anything else?"}}"#);
        let n = self.draw();
        NewRound {
            id: RoundId::from_parts(START.0, n),
            execution: RoundExecution::New {
                id: ExecutionId::from_parts(START.0, n),
                kind: ExecutionKind::Operation,
                ends_with_round: delivery == Delivery::Resumable,
            },
            logical_operation_id: "main".to_owned(),
            server: "shipping".to_owned(),
            operation_kind: OperationKind::Tool,
            operation_name: "book".to_owned(),
            asked_by: agent(),
            delivery,
            fence: (delivery == Delivery::Live).then(|| self.fence("own_opener")),
            deadline: None,
            limit: 10,
            digest: Digest::of_requests(&requests),
            has_approval: false,
            requests,
            calls: json(r#"[{"name":"book","arguments":{"n":0.10}}]"#),
            suggestion_of: None,
            request_state: Some(SEALED.to_owned()),
            creation: None,
        }
    }

    pub(super) async fn run(&self, command: Command) -> Result<Reply, Error> {
        let mut replies = self.store.commit(vec![command]).await?;
        assert_eq!(replies.len(), 1, "one reply a command");
        Ok(replies.remove(0))
    }

    /// The round that a command answers with; what it answers is what is stored.
    pub(super) async fn moved(&self, command: Command) -> Result<Round, Error> {
        let round = match self.run(command).await? {
            Reply::Round(round) | Reply::Created { round, .. } | Reply::Handed { round, .. } => {
                Arc::unwrap_or_clone(round)
            }
            other => panic!("no round: {other:?}"),
        };
        assert_eq!(self.row(round.id).await, round);
        Ok(round)
    }

    pub(super) async fn handed(&self, command: Command) -> Result<DeliveryContent, Error> {
        match self.run(command).await? {
            Reply::Handed { content, .. } => Ok(content),
            other => panic!("nothing handed over: {other:?}"),
        }
    }

    pub(super) async fn ended(&self, command: Command) -> Result<Execution, Error> {
        match self.run(command).await? {
            Reply::Execution(execution) => {
                assert_eq!(self.execution(execution.id).await, *execution);
                Ok(Execution::clone(&execution))
            }
            other => panic!("no execution: {other:?}"),
        }
    }

    pub(super) async fn create(&self, new: NewRound) -> Result<Round, Error> {
        self.moved(Command::CreateRound(Box::new(new))).await
    }

    pub(super) async fn asked(&self, delivery: Delivery) -> Round {
        self.create(self.asking(delivery)).await.expect("stored")
    }

    pub(super) async fn answer(&self, id: RoundId) -> Round {
        self.moved(submit(id, submission("key", 1))).await.expect("accepted")
    }

    pub(super) async fn answered(&self, delivery: Delivery) -> Round {
        self.answer(self.asked(delivery).await.id).await
    }

    /// An answered round with whoever may deliver it: the opener, or `own_claimer`.
    pub(super) async fn deliverable(&self, delivery: Delivery) -> (RoundId, Fence) {
        let round = self.answered(delivery).await;
        let fence = match &round.fence {
            Some(fence) => fence.clone(),
            None => self.claim(round.id, "own_claimer").await,
        };
        (round.id, fence)
    }

    pub(super) async fn claim(&self, round: RoundId, owner: &str) -> Fence {
        let fence = self.fence(owner);
        self.moved(Command::Claim { round, claim: claim_by(&fence) }).await.expect("claimed");
        fence
    }

    pub(super) async fn start(&self, round: RoundId, fence: &Fence) -> Result<Round, Error> {
        self.moved(Command::StartDelivery { round, fence: fence.clone() }).await
    }

    pub(super) async fn delivered(&self, round: RoundId, fence: &Fence) -> Result<Round, Error> {
        self.moved(Command::MarkDelivered { round, fence: fence.clone() }).await
    }

    pub(super) async fn resolve(&self, round: RoundId, fence: &Fence) -> Result<Round, Error> {
        self.moved(Command::Resolve { round, fence: fence.clone() }).await
    }

    pub(super) async fn collect(&self, round: RoundId, key: &str) -> Result<DeliveryContent, Error> {
        self.handed(Command::Collect { round, key: key.to_owned(), fence: self.fence("own_collector") }).await
    }

    pub(super) async fn fail(&self, round: RoundId, fence: Option<&Fence>, failure: Failure) -> Result<Round, Error> {
        let request = FailureRequest { fence: fence.cloned(), principal: agent(), failure, only_pending: false };
        self.moved(Command::Fail { round, request }).await
    }

    pub(super) async fn fail_recovery(&self, round: RoundId, expected: FenceToken) -> Result<Round, Error> {
        self.moved(Command::FailRecovery { round, expected }).await
    }

    pub(super) async fn renew(&self, owner: &str) {
        let reply = self.run(Command::RenewOwner { owner: owner.to_owned() }).await;
        assert_eq!(reply, Ok(Reply::Done));
    }

    /// Moves the clock to where every lease taken until now has just run out.
    pub(super) fn expire_leases(&self) {
        self.advance_ms(LEASE_MS);
    }

    pub(super) async fn row(&self, id: RoundId) -> Round {
        self.store.round(id).await.expect("is read").expect("is stored").row
    }

    pub(super) async fn status(&self, id: RoundId) -> Status {
        self.row(id).await.status
    }

    pub(super) async fn execution(&self, id: ExecutionId) -> Execution {
        self.store.execution(id).await.expect("is read").expect("is stored").0
    }

    pub(super) async fn events(&self) -> Vec<Event> {
        self.store.events_after(0, usize::MAX).await.expect("events")
    }

    /// Checks that the events are numbered without gaps and linked by their hashes.
    pub(super) async fn check_chain(&self) {
        let mut previous = [0; 32];
        for (event, seq) in self.events().await.iter().zip(1..) {
            assert_eq!((event.seq, event.previous_hash), (seq, previous));
            assert!(event.is_intact(), "{event:?}");
            previous = event.hash;
        }
    }

    /// The names of the events after the first `skipped`.
    pub(super) async fn event_names(&self, skipped: usize) -> Vec<&'static str> {
        self.events().await.iter().skip(skipped).map(|event| event.event.body.name()).collect()
    }
}
