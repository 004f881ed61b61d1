//! One run of an agent, or of one operation, that a record is kept of.

use crate::id::ExecutionId;
use crate::principal::Principal;
use crate::round::{Delivery, Failure, Round, Status};
use crate::time::UnixMs;

/// What kind of run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// A whole agent run.
    Agent,
    /// One MCP operation.
    Operation,
    /// One gated call.
    Gate,
    /// One turn of a thread.
    Turn,
}

impl ExecutionKind {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operation => "operation",
            Self::Gate => "gate",
            Self::Turn => "turn",
        }
    }
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Agent, Self::Operation, Self::Gate, Self::Turn].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Where an execution stands. It waits while any round of it is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Going on.
    Running,
    /// A person is asked for data.
    WaitingForInput,
    /// A person is asked for a verdict.
    WaitingForApproval,
    /// Over.
    Finished,
}

impl Lifecycle {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingForInput => "waiting_for_input",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::Finished => "finished",
        }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It went through.
    Completed,
    /// It did not, for this reason.
    Failed(Failure),
    /// Somebody stopped it.
    Cancelled,
    /// Its worker is gone and nobody can tell.
    Lost,
}

impl Outcome {
    /// The word used on the wire and in stores.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// How what was started only for `round` has ended with it; nothing while the round goes on.
    pub(crate) fn with_round(round: &Round) -> Option<Self> {
        match &round.failure {
            Some(failure) if failure.code == Failure::CANCELLED => Some(Self::Cancelled),
            Some(failure) => Some(Self::Failed(failure.clone())),
            None if round.status == Status::Resolved => Some(Self::Completed),
            None => None,
        }
    }
}

/// An execution's row. Its result, if any, is written once beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// What kind of run it is.
    pub kind: ExecutionKind,
    /// Who started it; an agent sees only its own.
    pub started_by: Principal,
    /// The worker process it lives in, if it dies with one.
    pub owner: Option<String>,
    /// Whether it was started only for its round and ends with it.
    pub ends_with_round: bool,
    /// Pending rounds without an approval.
    pub pending_inputs: u32,
    /// Pending rounds with one.
    pub pending_approvals: u32,
    /// When it started.
    pub created_at: UnixMs,
    /// When it ended.
    pub finished_at: Option<UnixMs>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// When the stored result was handed to whoever asked.
    pub collected_at: Option<UnixMs>,
}

impl Execution {
    /// The execution that was started with `round`, for as long as nothing but the round has changed it: a store need not keep
    /// what the round says. That of a resumable round is in no worker, whoever claims the round, and ends with it; that of a
    /// live one goes on until its worker ends it.
    pub fn only_for(round: &Round, kind: ExecutionKind) -> Self {
        let ends_with_round = round.delivery == Delivery::Resumable;
        let outcome = Outcome::with_round(round).filter(|_| ends_with_round);
        let pending = u32::from(round.status == Status::Pending);
        let (pending_inputs, pending_approvals) = if round.has_approval { (0, pending) } else { (pending, 0) };
        Self {
            id: round.execution_id,
            kind,
            started_by: round.asked_by.clone(),
            owner: round.fence.as_ref().filter(|_| !ends_with_round).map(|fence| fence.owner.clone()),
            ends_with_round,
            pending_inputs,
            pending_approvals,
            created_at: round.created_at,
            finished_at: outcome.as_ref().and(round.finished_at),
            outcome,
            collected_at: None,
        }
    }

    /// Where it stands, from what is pending.
    pub fn lifecycle(&self) -> Lifecycle {
        match self {
            Self { outcome: Some(_), .. } => Lifecycle::Finished,
            Self { pending_approvals: 1.., .. } => Lifecycle::WaitingForApproval,
            Self { pending_inputs: 1.., .. } => Lifecycle::WaitingForInput,
            _ => Lifecycle::Running,
        }
    }
}
