//! A round and how it moves: the states, the fences, and the one function per row of the table in
//! `docs/rounds.md`.

mod digest;
mod transition;

pub use digest::Digest;
pub use transition::{Claim, Evidence, FailureRequest, SECOND_PERSON, Submission};

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Error;
use crate::id::{ExecutionId, RoundId};
use crate::principal::{Channel, Principal};
use crate::response::Action;
use crate::time::UnixMs;

/// Where a round stands. `pending → response_validated → delivery_started → delivered → resolved`; any but
/// `resolved` may become `failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waiting for a person.
    Pending,
    /// An answer was accepted; it waits to be handed over.
    ResponseValidated,
    /// A worker is handing it over; a crash here cannot be told from success.
    DeliveryStarted,
    /// The receipt is in hand.
    Delivered,
    /// The operation has gone on.
    Resolved,
    /// Over, with a reason.
    Failed,
}

impl Status {
    /// Every status, in the order of a round's life.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::ResponseValidated, Self::DeliveryStarted, Self::Delivered, Self::Resolved, Self::Failed];
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::ResponseValidated => "response_validated",
            Self::DeliveryStarted => "delivery_started",
            Self::Delivered => "delivered",
            Self::Resolved => "resolved",
            Self::Failed => "failed",
        }
    }
    /// The status that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
    /// Whether nothing can change any more.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Resolved | Self::Failed)
    }
}

/// How the answer of a round can be handed over; fixed when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Only by the process that opened it, which holds a lease while it lives.
    Live,
    /// By whoever claims it.
    Resumable,
}

impl Delivery {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Resumable => "resumable",
        }
    }
    /// The mode that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Live, Self::Resumable].into_iter().find(|mode| mode.as_str() == word)
    }
}

/// The kind of MCP operation that asked.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A tool call.
    #[default]
    Tool,
    /// A prompt.
    Prompt,
    /// A resource read.
    Resource,
}

impl OperationKind {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Tool, Self::Prompt, Self::Resource].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Why a round ended without going on: a code of ours or the worker's own, and a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// A stable word, such as `expired`.
    pub code: String,
    /// A sentence a person can read.
    pub message: String,
}

impl Failure {
    /// Nobody can hand the answer over any more, and nobody can prove whether it was.
    pub const RECOVERY_UNAVAILABLE: &'static str = "recovery_unavailable";
    /// The deadline passed before an answer came.
    pub const EXPIRED: &'static str = "expired";
    /// The execution was cancelled.
    pub const CANCELLED: &'static str = "cancelled";
    /// Another question took its place.
    pub const SUPERSEDED: &'static str = "superseded";
    /// Nobody could be asked.
    pub const UNAVAILABLE: &'static str = "unavailable";
    /// The asker took the question back.
    pub const WITHDRAWN: &'static str = "withdrawn";

    /// A failure with its sentence.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Who answered, through which channel, and when; what a loser of the race is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The person or policy.
    pub principal: Principal,
    /// The surface.
    pub channel: Channel,
    /// When it was accepted, by the store's clock.
    pub at: UnixMs,
    /// What all requests of the round were answered with, if it was the same.
    pub action: Option<Action>,
}

/// A random number that only one holder of a round knows; it fences off whoever held it before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FenceToken(pub u128);

/// The token is a capability: it is never printed.
impl std::fmt::Debug for FenceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FenceToken(..)")
    }
}

/// Who holds a round: the worker process and the token of this holding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The worker process; its lease is one row that it renews.
    pub owner: String,
    /// The token of this holding.
    pub token: FenceToken,
}

/// What the clock says of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Nobody holds the round.
    None,
    /// The holder lives.
    Live,
    /// The holder has not renewed in time.
    Expired,
}

/// What never changes of a round. Every later state of it shares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its id.
    pub id: RoundId,
    /// The execution it belongs to.
    pub execution_id: ExecutionId,
    /// The operation that asks; its rounds are numbered by `index`.
    pub logical_operation_id: String,
    /// The server that asks.
    pub server: String,
    /// Tool, prompt or resource.
    pub operation_kind: OperationKind,
    /// The tool's or prompt's name, or the resource's URI.
    pub operation_name: String,
    /// Who opened it.
    pub asked_by: Principal,
    /// Live or resumable.
    pub delivery: Delivery,
    /// From 0, within its operation.
    pub index: u32,
    /// How many rounds the operation may have.
    pub limit: u32,
    /// When it was stored.
    pub created_at: UnixMs,
    /// Until when an answer is accepted.
    pub deadline: Option<UnixMs>,
    /// What an answer binds to.
    pub digest: Digest,
    /// Whether a call waits for a verdict in it.
    pub has_approval: bool,
}

/// A round's narrow row: everything but what is asked and what was answered, which are written once beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// What never changes.
    pub facts: Arc<Facts>,
    /// Where it stands.
    pub status: Status,
    /// Counts the changes, from 1.
    pub rev: u32,
    /// Who holds it, if anybody.
    pub fence: Option<Fence>,
    /// How often a delivery was started.
    pub delivery_attempts: u32,
    /// The idempotency key and the hash of the answer that was accepted under it.
    pub answer_key: Option<(String, [u8; 32])>,
    /// Who answered.
    pub answered: Option<Answered>,
    /// Under which key it was collected, for a caller that is its own agent.
    pub collect_key: Option<String>,
    /// When a delivery was last started.
    pub delivery_started_at: Option<UnixMs>,
    /// When the receipt came.
    pub delivered_at: Option<UnixMs>,
    /// When it was resolved or failed.
    pub finished_at: Option<UnixMs>,
    /// When the asker said that the visit to the URL is complete.
    pub url_completed_at: Option<UnixMs>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl Deref for Round {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Round {
    /// Whether its deadline has passed. The last millisecond still counts.
    pub fn is_overdue(&self, now: UnixMs) -> bool {
        self.deadline.is_some_and(|deadline| now > deadline)
    }

    /// The state error for an operation that this state does not allow.
    pub(crate) fn state_error(&self, what: &str) -> Error {
        let detail = match &self.failure {
            Some(failure) => format!("{what}: the round ended as {}: {}", failure.code, failure.message),
            None => format!("{what}: the round is {}", self.status.as_str()),
        };
        Error::State { detail, status: self.status, failure: self.failure.clone() }
    }
}
