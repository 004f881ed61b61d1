//! A store that the recorded steps are carried out on.

use std::collections::HashMap;
use std::sync::Arc;

use sayso::clock::ManualClock;
use sayso::kit::{ExecutionHandle, Kit};
use sayso::storage::{
    ElicitationRequest, ManagedInputRecord, ManagedInputStatus, ManagedInputStore, NewLease, NewManagedInput, Options,
    PendingElicitationRound, PostgresExecutionStore, SqliteExecutionStore,
};
use sayso::wire::{Evidence, LeaseToken};
use sayso::{ClaimOf, Error, ExecutionId, Failure, Fence, FenceToken, OperationKind, RoundId, UnixMs};
use serde_json::{Value, json};

use super::vectors::Step;

/// 2026-01-01T00:00:00Z, where the recorded clock begins.
pub const START: UnixMs = UnixMs(1_767_225_600_000);

pub enum Place {
    File(tempfile::TempDir),
    Database(String),
}

/// How the rounds of a sequence are delivered: the reference knows one kind only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Live,
    /// The reference's owner holds such a round from its creation on. Here it claims, as of then, once it is answered.
    Resumable,
}

pub struct World {
    place: Place,
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn ManagedInputStore>,
    pub kit: Kit,
    mode: Mode,
    /// Tokens by their symbols.
    tokens: HashMap<String, FenceToken>,
    claims: usize,
    created_at: HashMap<RoundId, UnixMs>,
}

/// What a step answered beside its state.
#[derive(Debug, Default)]
pub struct Got {
    pub result: Value,
}

pub fn execution_id(symbol: &str) -> ExecutionId {
    ExecutionId::from_parts(START.0, number(symbol))
}

fn number(symbol: &str) -> u128 {
    symbol.bytes().fold(0, |number, byte| number << 8 | u128::from(byte)) & ((1 << 62) - 1)
}

/// The reference keys rounds by execution and round.
pub fn round_id(execution: &str, round: &str) -> RoundId {
    RoundId::from_parts(START.0, number(round) ^ (number(execution) << 40 & ((1 << 62) - 1)))
}

impl World {
    pub async fn new(place: Place, mode: Mode) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let (store, kit) = open(&place, &clock).await.expect("opens");
        Self { place, clock, store, kit, mode, tokens: HashMap::new(), claims: 0, created_at: HashMap::new() }
    }

    pub fn folder(&self) -> Option<&std::path::Path> {
        match &self.place {
            Place::File(folder) => Some(folder.path()),
            Place::Database(_) => None,
        }
    }

    pub async fn reopen(&mut self) {
        (self.store, self.kit) = open(&self.place, &self.clock).await.expect("opens");
    }

    pub fn at(&self, at_ms: i64) {
        let now = sayso::clock::Clock::now(self.clock.as_ref());
        self.clock.advance_ms(START.plus_ms(at_ms).since_ms(now));
    }

    pub fn execution(step: &Step) -> String {
        step.text("execution_id").unwrap_or_else(|| "exec-1".to_owned())
    }

    pub fn round(step: &Step) -> RoundId {
        round_id(&Self::execution(step), &step.text("round_id").unwrap_or_else(|| "round-1".to_owned()))
    }

    pub fn handle(&self, step: &Step) -> ExecutionHandle {
        self.kit.handle(execution_id(&Self::execution(step))).expect("a handle")
    }

    /// A token as a caller writes it: of a text that is none, nothing comes.
    fn token(&self, symbol: &str) -> Result<FenceToken, Error> {
        let text = match self.tokens.get(symbol) {
            Some(token) => format!("{:032x}", token.0),
            None if symbol.is_empty() => String::new(),
            None => format!("{:032x}", number(symbol)),
        };
        let token: Result<LeaseToken, _> = serde_json::from_value(json!(text));
        token.map(|token| token.0).map_err(|_| Error::field("/lease_token", "is no token"))
    }

    fn holder(&self, step: &Step) -> Result<Fence, Error> {
        let owner = step.text("owner").unwrap_or_default();
        // A holder without a name is told apart before its token is.
        let token = if owner.is_empty() { FenceToken(0) } else { self.token(&step.text("token").unwrap_or_default())? };
        Ok(Fence { owner, token })
    }

    fn symbol(&self, token: FenceToken) -> String {
        let known = self.tokens.iter().find(|(_, known)| **known == token).map(|(symbol, _)| symbol.clone());
        let written = ["tok-a", "tok-b", "tok-c", "tok-d", "tok-x"].into_iter().find(|s| number(s) == token.0);
        known.or(written.map(str::to_owned)).unwrap_or_else(|| "?".to_owned())
    }

    fn new_round(&self, step: &Step) -> Result<NewManagedInput, Error> {
        let round = Self::round(step);
        let now = sayso::clock::Clock::now(self.clock.as_ref());
        let moment = |name: &str| step.typed::<Option<i64>>(name).map(|ms| ms.map(|ms| START.plus_ms(ms)));
        let pending = PendingElicitationRound {
            round_id: round,
            execution_id: execution_id(&Self::execution(step)),
            logical_operation_id: "op-1".to_owned(),
            server: "shipping".to_owned(),
            operation_kind: OperationKind::Tool,
            operation_name: "book".to_owned(),
            requests: step.requests()?,
            created_at: moment("created_at_ms")?.unwrap_or(*self.created_at.get(&round).unwrap_or(&now)),
            request_state: step.text("request_state"),
            deadline: moment("deadline_ms")?,
        };
        let owner = step.text("owner").unwrap_or_default();
        let lease_token = Some(LeaseToken(self.token(&step.text("token").unwrap_or_default())?));
        let lease = (self.mode == Mode::Live).then_some(NewLease { owner_id: owner, lease_token });
        Ok(NewManagedInput {
            round_index: step.typed("round_index")?,
            round_limit: step.typed("round_limit")?,
            lease,
            harness_session_id: step.text("harness_session_id"),
            native_resume_token: step.text("resume_token"),
            delivery_idempotency_key: step.text("delivery_key"),
            session_id: step.text("session_id"),
            turn_id: step.text("turn_id"),
            operation_parameters: step.json("operation_parameters")?,
            ..NewManagedInput::first(pending)
        })
    }

    /// Carries one step out. Nothing is said of steps that this store has no words for.
    pub async fn run(&mut self, step: &Step) -> Result<Got, Error> {
        let round = Self::round(step);
        let record = match step.op.as_str() {
            "create_round" => {
                let new = self.new_round(step)?;
                let created_at = new.pending.created_at;
                let record = self.store.create_round(new).await?;
                self.created_at.entry(round).or_insert(created_at);
                record
            }
            "submit_responses" => {
                let key = step.text("key").unwrap_or_default();
                let record = self.store.submit_responses(round, step.responses()?, &key, None).await?;
                self.hold_as_of_creation(step, round, record.status).await;
                record
            }
            "claim_round" => self.claim(step, round).await?,
            "renew" => self.store.renew(round, self.holder(step)?).await?,
            "start_delivery" => self.store.start_delivery(round, self.holder(step)?).await?,
            "mark_delivered" => self.store.mark_delivered(round, self.holder(step)?).await?,
            "resolve" => self.store.resolve(round, self.holder(step)?).await?,
            "fail" => {
                let word = |name: &str| step.text(name).unwrap_or_default();
                let failure = Failure { code: word("code"), message: word("message") };
                self.store.fail(round, Some(self.holder(step)?), failure).await?
            }
            "fail_recovery" => {
                let expected = self.token(&step.text("expected").unwrap_or_default())?;
                self.store.fail_recovery(round, expected).await?
            }
            _ => return self.read(step, round).await,
        };
        assert_eq!(record.pending.round_id, round);
        Ok(Got::default())
    }

    async fn hold_as_of_creation(&mut self, step: &Step, round: RoundId, status: ManagedInputStatus) {
        let (Some(token), Some(owner)) = (step.text("token"), step.text("owner")) else { return };
        let is_held = self.tokens.contains_key(&token);
        if self.mode == Mode::Live || is_held || status != ManagedInputStatus::ResponseValidated {
            return;
        }
        let now = sayso::clock::Clock::now(self.clock.as_ref());
        let back = self.created_at.get(&round).map_or(0, |at| at.since_ms(now));
        self.clock.advance_ms(back);
        let record = self.store.claim_round(round, &owner, ClaimOf::default()).await.expect("is claimed");
        self.clock.advance_ms(-back);
        self.tokens.insert(token, record.lease.expect("a lease").lease_token.0);
    }

    async fn claim(&mut self, step: &Step, round: RoundId) -> Result<ManagedInputRecord, Error> {
        let evidence = match step.text("evidence").as_deref() {
            None | Some("not_started") => None,
            Some(word) => {
                let evidence = json!({"delivery": word, "idempotent": step.flag("idempotent")});
                let evidence: Result<Evidence, _> = serde_json::from_value(evidence);
                Some(evidence.map_err(|_| Error::field("/evidence", "is no evidence"))?.into())
            }
        };
        let expected = step.text("expected").map(|symbol| self.token(&symbol)).transpose()?;
        let owner = step.text("owner").unwrap_or_default();
        let record = self.store.claim_round(round, &owner, ClaimOf { expected, evidence }).await?;
        self.claims += 1;
        let token = record.lease.as_ref().expect("a lease").lease_token.0;
        self.tokens.insert(format!("auto-{}", self.claims), token);
        Ok(record)
    }

    async fn read(&mut self, step: &Step, round: RoundId) -> Result<Got, Error> {
        let result = match step.op.as_str() {
            "get_round" => match self.store.get_round(round).await? {
                Some(record) => self.state(&record),
                None => Value::Null,
            },
            "list_rounds" => {
                let records = self.store.list_rounds(execution_id(&Self::execution(step))).await?;
                let ids: HashMap<RoundId, String> = (1..10)
                    .map(|n| format!("round-{n}"))
                    .map(|round| (round_id(&Self::execution(step), &round), round))
                    .collect();
                let line = |record: &ManagedInputRecord| {
                    json!([ids[&record.pending.round_id], record.round_index, record.status.as_str()])
                };
                records.iter().map(line).collect()
            }
            "redacted_responses" => json!(self.store.redacted_responses(round).await?),
            "handle.pending_elicitation" => {
                let pending = self.handle(step).pending_elicitation().await?;
                pending.map_or(Value::Null, |pending| self.shown(&Self::execution(step), &pending))
            }
            "handle.respond_elicitation" => {
                let key = step.text("key").unwrap_or_default();
                self.handle(step).respond_elicitation(round, step.responses()?.0, &key).await?;
                Value::Null
            }
            "reopen" => {
                self.reopen().await;
                Value::Null
            }
            other => panic!("{other}"),
        };
        Ok(Got { result })
    }

    fn shown(&self, execution: &str, pending: &PendingElicitationRound) -> Value {
        let symbol = (1..10).map(|n| format!("round-{n}")).find(|n| round_id(execution, n) == pending.round_id);
        let keys: Vec<_> = pending
            .requests
            .0
            .iter()
            .map(|(key, request)| {
                assert!(
                    matches!(request, ElicitationRequest::Form(form) if form.request_key == *key)
                        || request.mode() == "url"
                );
                key
            })
            .collect();
        json!({
            "round_id": symbol, "request_keys": keys, "server": pending.server,
            "operation_kind": pending.operation_kind.as_str(), "operation_name": pending.operation_name,
            "logical_operation_id": pending.logical_operation_id, "request_state": pending.request_state,
            "deadline_ms": pending.deadline.map(|at| at.since_ms(START)),
        })
    }

    /// A record as the vectors write it.
    pub fn state(&self, record: &ManagedInputRecord) -> Value {
        let ms = |at: Option<UnixMs>| at.map(|at| at.since_ms(START));
        let mut state = json!({
            "status": record.status.as_str(), "round_index": record.round_index, "round_limit": record.round_limit,
            "owner": record.lease.as_ref().map(|lease| lease.owner_id.clone()),
            "token": record.lease.as_ref().map(|lease| self.symbol(lease.lease_token.0)),
            "lease_expires_ms": ms(record.lease.as_ref().map(|lease| lease.expires_at)),
            "delivery_attempts": record.delivery_attempts,
            "responses": record.responses, "response_key": record.response_idempotency_key,
            "delivery_key": record.delivery_idempotency_key, "native_resume_token": record.native_resume_token,
            "operation_parameters": record.operation_parameters,
            "created_ms": ms(Some(record.created_at)), "updated_ms": ms(Some(record.updated_at)),
            "validated_ms": ms(record.response_validated_at), "started_ms": ms(record.delivery_started_at),
            "delivered_ms": ms(record.delivered_at), "resolved_ms": ms(record.resolved_at),
            "failed_ms": ms(record.failed_at), "failure_code": record.failure_code,
            "failure_message": record.failure_message,
        });
        let members = state.as_object_mut().expect("an object");
        let says_nothing =
            |name: &str, value: &Value| value.is_null() || (name == "operation_parameters" && *value == json!({}));
        members.retain(|name, value| !says_nothing(name, value));
        state
    }
}

async fn open(place: &Place, clock: &Arc<ManualClock>) -> Result<(Arc<dyn ManagedInputStore>, Kit), Error> {
    let options = Options { clock: Some(clock.clone()), ..Options::default() };
    match place {
        Place::File(folder) => {
            let store = SqliteExecutionStore::open_with(folder.path().join("executions.sqlite"), options).await?;
            Ok((Arc::new(store.managed_input_store()), Kit::new(store)))
        }
        Place::Database(url) => {
            let store = PostgresExecutionStore::open_with(url, options).await?;
            Ok((Arc::new(store.managed_input_store()), Kit::new(store)))
        }
    }
}
