use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Keyed, LeaseToken, Request};
use crate::id::{ExecutionId, RoundId};
use crate::json::Json;
use crate::principal::{Channel, Principal};
use crate::response::Action;
use crate::round::{self, Delivery, Digest, Failure, OperationKind, Status};
use crate::time::UnixMs;

/// A call that a round is about: what the agent wanted done when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's or prompt's name, or the resource's URI.
    pub name: String,
    /// Its arguments, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
}

/// A round whose place another or a grant takes, and the token its holder has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Superseded {
    /// The round.
    pub round_id: RoundId,
    /// The holder's token; the holder is whoever puts something else in its place.
    pub lease_token: LeaseToken,
}

/// `POST /v1/rounds`: only `requests` is required.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRound {
    /// The execution that asks; without it one is started for the round.
    #[serde(default)]
    pub execution_id: Option<ExecutionId>,
    /// The operation that asks; its rounds are numbered.
    #[serde(default)]
    pub logical_operation_id: Option<String>,
    /// The server that asks; by default the caller's name.
    #[serde(default)]
    pub server: Option<String>,
    /// Tool, prompt or resource.
    #[serde(default)]
    pub operation_kind: Option<OperationKind>,
    /// Its name; by default the caller's.
    #[serde(default)]
    pub operation_name: Option<String>,
    /// `resumable` unless said otherwise.
    #[serde(default)]
    pub delivery: Option<Delivery>,
    /// Live, over HTTP: the worker that will hold the round; without it one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// Until when an answer is accepted.
    #[serde(default)]
    pub deadline: Option<UnixMs>,
    /// In the place of `deadline`: for how long from now, in milliseconds of the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_in_ms: Option<i64>,
    /// How many rounds the operation may have.
    #[serde(default)]
    pub round_limit: Option<u32>,
    /// Opaque text that is handed back with the answer.
    #[serde(default)]
    pub request_state: Option<String>,
    /// The calls that the round may be about, shown to the person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// An earlier round of the same asker whose answer is suggested to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion_of: Option<RoundId>,
    /// A round of the same worker's that ends as `superseded` in the same transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Superseded>,
    /// What is asked.
    pub requests: Keyed<Request>,
}

/// The opaque state never appears in `Debug`.
impl std::fmt::Debug for NewRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewRound")
            .field("execution_id", &self.execution_id)
            .field("logical_operation_id", &self.logical_operation_id)
            .field("server", &self.server)
            .field("operation_name", &self.operation_name)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl NewRound {
    /// Asks one thing, under one key.
    pub fn one(key: impl Into<String>, request: Request) -> Self {
        Self { requests: Keyed(vec![(key.into(), request)]), ..Self::default() }
    }
}

/// Who answered, through which channel, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The person or policy.
    pub principal: Principal,
    /// The surface.
    pub channel: Channel,
    /// When it was accepted.
    pub at: UnixMs,
    /// What all requests were answered with, if it was the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

impl From<&round::Answered> for Answered {
    fn from(answered: &round::Answered) -> Self {
        let round::Answered { principal, channel, at, action } = answered.clone();
        Self { principal, channel, at, action }
    }
}

/// A round, whole, without tokens, opaque state or answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its id.
    pub round_id: RoundId,
    /// The execution it belongs to.
    pub execution_id: ExecutionId,
    /// The operation that asks.
    pub logical_operation_id: String,
    /// The server that asks.
    pub server: String,
    /// Tool, prompt or resource.
    pub operation_kind: OperationKind,
    /// Its name.
    pub operation_name: String,
    /// Who opened it.
    pub asked_by: Principal,
    /// Where it stands.
    pub status: Status,
    /// Live or resumable.
    pub delivery: Delivery,
    /// From 0, within its operation.
    pub round_index: u32,
    /// How many rounds the operation may have.
    pub round_limit: u32,
    /// When it was stored.
    pub created_at: UnixMs,
    /// Until when an answer is accepted.
    pub deadline: Option<UnixMs>,
    /// What an answer binds to.
    pub digest: Digest,
    /// Counts the changes, from 1.
    pub rev: u32,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Who answered.
    pub answered: Option<Answered>,
    /// When the asker said that the visit to the URL is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_completed_at: Option<UnixMs>,
    /// The calls that it may be about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// An earlier round of the same asker whose answer is suggested to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion_of: Option<RoundId>,
    /// What is asked.
    pub requests: Keyed<Request>,
}

impl Round {
    /// A round as others see it.
    pub fn new(row: &round::Round, requests: Keyed<Request>, calls: Vec<Call>) -> Self {
        Self {
            round_id: row.id,
            execution_id: row.execution_id,
            logical_operation_id: row.logical_operation_id.clone(),
            server: row.server.clone(),
            operation_kind: row.operation_kind,
            operation_name: row.operation_name.clone(),
            asked_by: row.asked_by.clone(),
            status: row.status,
            delivery: row.delivery,
            round_index: row.index,
            round_limit: row.limit,
            created_at: row.created_at,
            deadline: row.deadline,
            digest: row.digest,
            rev: row.rev,
            failure: row.failure.clone(),
            answered: row.answered.as_ref().map(Answered::from),
            url_completed_at: row.url_completed_at,
            calls,
            suggestion_of: None,
            requests,
        }
    }
}

/// One page of rounds, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundPage {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Where the next page starts, if there is one.
    pub next_cursor: Option<RoundId>,
}
