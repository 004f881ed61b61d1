use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventBody};
use crate::execution::{self, ExecutionKind, Lifecycle, Outcome};
use crate::id::{ExecutionId, RoundId};
use crate::json::Json;
use crate::principal::{Channel, Principal};
use crate::time::UnixMs;

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionOutcome {
    /// `completed`, `failed`, `cancelled` or `lost`.
    pub status: String,
    /// The failure's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The failure's sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl From<&Outcome> for ExecutionOutcome {
    fn from(outcome: &Outcome) -> Self {
        let failure = match outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        Self {
            status: outcome.as_str().to_owned(),
            code: failure.as_ref().map(|failure| failure.code.clone()),
            message: failure.map(|failure| failure.message),
        }
    }
}

/// A snapshot of an execution; never its suspended state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Its id.
    pub execution_id: ExecutionId,
    /// What kind of run it is.
    pub kind: ExecutionKind,
    /// Where it stands.
    pub lifecycle: Lifecycle,
    /// How it ended.
    pub outcome: Option<ExecutionOutcome>,
    /// Its pending rounds.
    pub pending: Vec<RoundId>,
    /// When it started.
    pub created_at: UnixMs,
    /// When it ended.
    pub finished_at: Option<UnixMs>,
}

impl Execution {
    /// An execution as others see it.
    pub fn new(row: &execution::Execution, pending: Vec<RoundId>) -> Self {
        Self {
            execution_id: row.id,
            kind: row.kind,
            lifecycle: row.lifecycle(),
            outcome: row.outcome.as_ref().map(ExecutionOutcome::from),
            pending,
            created_at: row.created_at,
            finished_at: row.finished_at,
        }
    }
}

/// `GET /v1/executions/{id}/result`: the terminal result, once there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionResult {
    /// The finished execution.
    pub execution: Execution,
    /// What the operation answered, as it came.
    #[serde(default, deserialize_with = "super::step::result")]
    pub result: Option<Json>,
}

/// One page of executions, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionPage {
    /// The executions.
    pub executions: Vec<Execution>,
    /// Where the next page starts, if there is one.
    pub next_cursor: Option<ExecutionId>,
}

/// An event of the audit trail, as streamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredEvent {
    /// From 1, without gaps: the cursor of the stream.
    pub seq: u64,
    /// When.
    pub at: UnixMs,
    /// The execution concerned.
    pub execution_id: Option<ExecutionId>,
    /// The round concerned.
    pub round_id: Option<RoundId>,
    /// Who did it.
    pub principal: Option<Principal>,
    /// By which surface.
    pub channel: Option<Channel>,
    /// What happened; never a value.
    pub body: EventBody,
}

impl From<&Event> for StoredEvent {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            at: event.event.at,
            execution_id: event.event.execution_id,
            round_id: event.event.round_id,
            principal: event.event.principal.clone(),
            channel: event.event.channel,
            body: event.event.body.clone(),
        }
    }
}
