//! What is in flight: calls, the questions asked in them, and who waits for them.

use sayso::policy::RuleRef;
use sayso::wire::{self, Call as ShownCall};
use sayso::{ExecutionId, Fence, Json, Request, RoundId, Step};
use sayso_core::round::OperationKind;
use tokio::time::Instant;

use crate::jsonrpc::Message;

/// A client's request that is open, under its id as written.
#[derive(Debug, Clone)]
pub(super) enum Open {
    /// It waits for the answer to our upstream request of this number.
    Forwarded(u64),
    /// It waits for a stored result that another process, or an earlier call of ours, provides.
    Elsewhere,
}

/// A request of ours at the upstream.
pub(super) enum Pending {
    /// The stored `initialize`; the client's id where it still waits for the answer.
    Initialize { client_id: Option<String> },
    /// A page of our own reading of the tools.
    ListTools,
    /// Anything that is only passed on; to the first page of the tools one of ours is added.
    Plain { client_id: String, progress_token: Option<String>, is_first_tools_page: bool },
    /// An operation, which may ask.
    Call(Box<Call>),
    /// A ping whose answer proves that the upstream has read the answer of this ask.
    Receipt { ask: u64 },
}

/// One upstream operation: one execution, once it has paused.
pub(super) struct Call {
    pub kind: OperationKind,
    /// The tool's or prompt's name, or the resource's URI.
    pub name: String,
    pub arguments: Option<Json>,
    pub key: CallKey,
    pub waiter: Option<Waiter>,
    /// Set once it has paused; the agent's handle.
    pub execution: Option<ExecutionId>,
    /// Whether a client leg of it has ended while it was paused.
    pub was_parked: bool,
    /// Whether a question of it goes on without it, so that its failure is no answer to a call that is made again.
    pub goes_on_late: bool,
    /// Whether it is at the upstream, or still before the gate.
    pub stage: Stage,
    /// What it ran with, where a person had changed the arguments.
    pub ran_with: Option<Json>,
    /// The last progress value written to whoever waits.
    pub progress: f64,
    /// The request as it came, for making it again.
    pub message: Message,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the gate: not judged yet, or a person is asked whether it may run. The upstream knows nothing of it.
    Held,
    /// Written to the upstream.
    Sent,
}

/// Identical calls have equal keys: the method, the name, and the canonical arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    pub method: String,
    pub name: String,
    pub arguments: String,
}

/// The client's request that will get the answer of a call.
#[derive(Debug, Clone)]
pub(super) struct Waiter {
    pub client_id: String,
    pub progress_token: Option<String>,
    pub hold_until: Instant,
    /// What it is.
    pub by: WaitsBy,
}

/// How somebody waits for a call. All but the call itself are let go at their hold, whatever the call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsBy {
    /// The call itself, or one identical to it.
    Call,
    /// `sayso_wait`, which gets the call's own result.
    WaitTool,
    /// `resume`, which gets a report.
    Resume,
}

impl Call {
    pub fn shown(&self) -> ShownCall {
        ShownCall { name: self.name.clone(), arguments: self.arguments.clone() }
    }
}

/// Who asks a person.
pub(super) enum Asker {
    /// The upstream, under its id for the question, as written.
    Upstream(String),
    /// The gate: may this call run?
    Gate(Box<Approval>),
    /// The agent, with its questions as it put them.
    Agent(Vec<String>),
}

/// What a person is asked to approve.
pub(super) struct Approval {
    /// The rules that asked.
    pub rules: Vec<RuleRef>,
    /// The arguments that were shown.
    pub arguments: Json,
    /// Whether a person has answered; a call that was approved waits here until somebody waits for its result.
    pub is_answered: bool,
}

/// A question that is a stored round.
pub(super) struct Ask {
    pub asker: Asker,
    pub round: RoundId,
    /// Under which it is delivered; none while it is a late round that nobody has claimed.
    pub fence: Option<Fence>,
    /// What is asked.
    pub request: Request,
    /// The calls that may have asked it, by our upstream numbers; empty where the session asked.
    pub candidates: Vec<u64>,
    /// Its own execution, where it is not the only candidate's.
    pub own_execution: Option<ExecutionId>,
    /// Whether the answer has been written to the upstream; of an approval, whether its call has.
    pub answered: bool,
}

impl Ask {
    /// What the person is shown first.
    pub fn text(&self) -> String {
        let message = self.request.message.as_deref().or(self.request.question.as_deref()).unwrap_or_default();
        match &self.request.tool {
            Some(tool) if message.is_empty() => tool.clone(),
            Some(tool) => format!("{tool}: {message}"),
            None => message.to_owned(),
        }
    }

    /// What is to be approved, where that is the question.
    pub fn approval(&self) -> Option<&Approval> {
        match &self.asker {
            Asker::Gate(approval) => Some(approval),
            Asker::Upstream(_) | Asker::Agent(_) => None,
        }
    }

    /// Its round, for what takes its place, where this worker holds it.
    pub fn held(&self) -> Option<wire::Superseded> {
        let lease_token = wire::LeaseToken(self.fence.as_ref()?.token);
        Some(wire::Superseded { round_id: self.round, lease_token })
    }

    /// Whether its call goes on whatever becomes of the upstream: that has not heard of it yet, or never will.
    pub fn outlives_upstream(&self) -> bool {
        match &self.asker {
            Asker::Upstream(_) => false,
            Asker::Gate(approval) => !approval.is_answered,
            Asker::Agent(_) => true,
        }
    }

    /// The steps that store its receipt; none before it was claimed.
    pub fn arrived(self) -> Vec<Step> {
        let Some(fence) = self.fence else { return Vec::new() };
        vec![Step::Delivered(self.round, fence.clone()), Step::Resolved(self.round, fence)]
    }

    /// Whether call `number` cannot go on before this is answered, as far as is known.
    pub fn pauses(&self, number: u64) -> bool {
        !self.answered && self.candidates.contains(&number)
    }
}
