//! A store that is a few maps: what core decides is written as told, and nothing else.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use sayso_core::command::{
    Command, Creation, DeliveryContent, NewRound, Operation, Reply, RoundExecution, Token, TokenUse, View, Write, apply,
};
use sayso_core::error::Error;
use sayso_core::event::NewEvent;
use sayso_core::execution::{Execution, ExecutionKind};
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Delivery, Digest, Fence, FenceToken, OperationKind, Round, Status, Submission};
use sayso_core::time::UnixMs;

pub const START: UnixMs = UnixMs(1_796_000_000_000);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    pub rounds: BTreeMap<RoundId, Round>,
    pub requests: BTreeMap<RoundId, (Json, Json)>,
    pub request_states: BTreeMap<RoundId, String>,
    pub answers: BTreeMap<RoundId, (Json, Json)>,
    pub creations: BTreeMap<(String, String), (RoundId, [u8; 32])>,
    pub executions: BTreeMap<ExecutionId, Arc<Execution>>,
    pub results: BTreeMap<ExecutionId, Json>,
    pub owners: BTreeMap<String, UnixMs>,
    pub tokens: BTreeMap<TokenId, Token>,
    pub grants: BTreeMap<GrantId, Grant>,
    pub reviewed: BTreeMap<(String, String), Digest>,
    pub events: Vec<NewEvent>,
}

impl Memory {
    /// Applies one command. What is written once is written once: a second answer or result is a fault of core.
    pub fn run(&mut self, command: &Command, now: UnixMs) -> Result<Reply, Error> {
        let Ok(applied) = apply(self, command, now);
        for write in applied.writes {
            self.write(write);
        }
        applied.reply
    }

    /// Does what core decided.
    pub fn write(&mut self, write: Write) {
        match write {
            Write::Round(round) => drop(self.rounds.insert(round.id, Arc::unwrap_or_clone(round))),
            Write::NewRound { round, requests, calls, request_state, .. } => {
                assert!(self.requests.insert(round.id, (requests, calls)).is_none(), "requests are written once");
                if let Some(state) = request_state {
                    self.request_states.insert(round.id, state);
                }
                self.rounds.insert(round.id, Arc::unwrap_or_clone(round));
            }
            // Kept beside the rules: nothing is decided by it.
            Write::Details { .. } => {}
            Write::EraseRequestState(round) => drop(self.request_states.remove(&round)),
            Write::Answer { round, submitted, effective } => {
                assert!(self.answers.insert(round, (submitted, effective)).is_none(), "one answer wins");
            }
            Write::Creation { principal, creation: Creation { key, fingerprint }, round } => {
                assert!(self.creations.insert((principal.to_string(), key), (round, fingerprint)).is_none());
            }
            Write::NewExecution(execution) | Write::Execution(execution) => {
                self.executions.insert(execution.id, execution);
            }
            Write::Result { execution, result } => {
                assert!(self.results.insert(execution, result).is_none(), "a result is written once");
            }
            Write::Owner { owner, expires_at: Some(until) } => drop(self.owners.insert(owner, until)),
            Write::Owner { owner, expires_at: None } => drop(self.owners.remove(&owner)),
            Write::Token(token) => drop(self.tokens.insert(token.id, *token)),
            Write::Grant(grant) => drop(self.grants.insert(grant.id, *grant)),
            Write::Reviewed { by, tool, definition, .. } => {
                self.reviewed.insert((by.to_string(), tool), definition);
            }
            Write::Event(event) => self.events.push(event),
        }
    }

    /// Everything but the events, for "it left an event and nothing else".
    pub fn without_events(&self) -> Self {
        Self { events: Vec::new(), ..self.clone() }
    }
}

impl View for Memory {
    type Error = Infallible;
    fn round(&self, id: RoundId) -> Result<Option<Arc<Round>>, Infallible> {
        Ok(self.rounds.get(&id).cloned().map(Arc::new))
    }
    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, Infallible> {
        let unfinished = |round: &&Round| round.execution_id == execution && !round.status.is_finished();
        Ok(self.rounds.values().filter(unfinished).cloned().collect())
    }
    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, Infallible> {
        let of_it = |round: &&Round| round.execution_id == execution && round.logical_operation_id == operation;
        Ok(self.rounds.values().filter(of_it).max_by_key(|round| round.index).map(|round| Operation {
            last_index: round.index,
            server: round.server.clone(),
            operation_kind: round.operation_kind,
            operation_name: round.operation_name.clone(),
        }))
    }
    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<(RoundId, [u8; 32])>, Infallible> {
        Ok(self.creations.get(&(principal.to_string(), key.to_owned())).copied())
    }
    fn execution(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, Infallible> {
        Ok(self.executions.get(&id).cloned())
    }
    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, Infallible> {
        Ok(self.owners.get(owner).copied())
    }
    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, Infallible> {
        let request_state = self.request_states.get(&id).cloned();
        Ok(self.answers.get(&id).map(|(_, effective)| DeliveryContent { responses: effective.clone(), request_state }))
    }
    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, Infallible> {
        Ok(self.tokens.values().find(|token| token.hash == *hash).cloned())
    }
    fn token(&self, id: TokenId) -> Result<Option<Token>, Infallible> {
        Ok(self.tokens.get(&id).cloned())
    }
    fn grant(&self, id: GrantId) -> Result<Option<Grant>, Infallible> {
        Ok(self.grants.get(&id).cloned())
    }
    fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Infallible> {
        Ok(self.reviewed.get(&(by.to_string(), tool.to_owned())).copied())
    }
    fn tools_reviewed(&self, by: &Principal) -> Result<usize, Infallible> {
        Ok(self.reviewed.keys().filter(|(agent, _)| *agent == by.to_string()).count())
    }
    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, Infallible> {
        let is_its =
            |token: &&Token| token.principal == *principal && token.use_ != TokenUse::Api && token.revoked_at.is_none();
        Ok(self.tokens.values().filter(is_its).cloned().collect())
    }
}

pub fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

pub fn round_id(n: u128) -> RoundId {
    RoundId::from_parts(START.0, n)
}

pub fn execution_id(n: u128) -> ExecutionId {
    ExecutionId::from_parts(START.0, n)
}

pub fn fence(owner: &str, token: u128) -> Fence {
    Fence { owner: owner.to_owned(), token: FenceToken(token) }
}

/// A round numbered `n` in a new execution of that number, which ends with it where it is resumable.
pub fn new_round(n: u128, fence: Option<Fence>) -> NewRound {
    let delivery = if fence.is_some() { Delivery::Live } else { Delivery::Resumable };
    let requests = json(r#"{"note":{"kind":"text","question":"?"}}"#);
    NewRound {
        id: round_id(n),
        execution: RoundExecution::New {
            id: execution_id(n),
            kind: ExecutionKind::Operation,
            ends_with_round: delivery == Delivery::Resumable,
        },
        logical_operation_id: "main".to_owned(),
        server: "shipping".to_owned(),
        operation_kind: OperationKind::Tool,
        operation_name: "book".to_owned(),
        asked_by: Principal::agent("a"),
        delivery,
        fence,
        deadline: None,
        limit: 10,
        digest: Digest::of_requests(&requests),
        has_approval: false,
        requests,
        calls: json("[]"),
        suggestion_of: None,
        request_state: Some("sealed".to_owned()),
        creation: None,
    }
}

pub fn submission(key: &str, hash: u8, principal: &Principal) -> Submission {
    Submission {
        key: key.to_owned(),
        answer_hash: [hash; 32],
        principal: principal.clone(),
        channel: Channel::Library,
        digest: None,
        action: None,
        approves: false,
        needs_second_person: false,
    }
}

pub fn submit(round: RoundId, submission: Submission) -> Command {
    Command::Submit {
        round,
        submission: Box::new(submission),
        verdicts: Vec::new(),
        submitted: json(r#"{"note":{"action":"accept"}}"#),
        effective: json(r#"{"note":{"action":"accept"}}"#),
    }
}

pub fn pending_of(memory: &Memory, execution: ExecutionId, approvals: bool) -> usize {
    let pending = |round: &&Round| {
        round.execution_id == execution && round.status == Status::Pending && round.has_approval == approvals
    };
    memory.rounds.values().filter(pending).count()
}
