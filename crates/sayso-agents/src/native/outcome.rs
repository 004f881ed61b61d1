//! What one call into the runtime comes to.

use sayso::{Error, Failure, Json, Outcome, wire};

use crate::tools::paused_calls;

/// What a run came to, this time.
#[derive(Debug, Clone, PartialEq)]
pub enum RunOutcome {
    /// The model has said its last word.
    Completed(Said),
    /// The run waits for verdicts on calls, in this round. It lives in no process.
    AwaitingApproval(Box<wire::Round>),
    /// The run waits for typed values for calls, in this round. It lives in no process.
    AwaitingInput(Box<wire::Round>),
    /// The run could not be stored as it was to wait: nobody is asked, nothing ran, and nothing can be resumed.
    SuspendFailed(Failure),
    /// It ended for this reason.
    Failed(Failure),
    /// Somebody stopped it.
    Cancelled,
    /// It could not go on now, for this reason, and nothing was consumed: it waits to be taken up again.
    Requeued(Failure),
    /// Another worker has taken the run, or its end was stored elsewhere; nothing more was run here.
    LeaseLost,
}

/// What a model said last, and what it took.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The text.
    pub text: String,
    /// Whether the run was ended because its turns were used up.
    pub truncated: bool,
    /// Answers of the model.
    pub iterations: u32,
    /// Tokens that it has read.
    pub prompt_tokens: u64,
    /// Tokens that it has written.
    pub completion_tokens: u64,
}

/// A model repeats what it was told: its words never appear in `Debug`.
impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Said")
            .field("truncated", &self.truncated)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

impl RunOutcome {
    /// The stable word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed(_) => "completed",
            Self::AwaitingApproval(_) => "awaiting_approval",
            Self::AwaitingInput(_) => "awaiting_input",
            Self::SuspendFailed(_) => "suspend_failed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Requeued(_) => "requeued",
            Self::LeaseLost => "lease_lost",
        }
    }

    /// The round that it waits in.
    pub fn round(&self) -> Option<&wire::Round> {
        match self {
            Self::AwaitingApproval(round) | Self::AwaitingInput(round) => Some(round),
            _ => None,
        }
    }

    /// The calls that it waits for, in the form in which every surface says so; none where it does not wait.
    pub fn paused(&self) -> Vec<wire::Paused> {
        self.round().map(paused_calls).unwrap_or_default()
    }

    /// How an execution that has finished ended, with its stored result.
    pub(super) fn of_finished(ended: &wire::ExecutionResult) -> Self {
        let Some(outcome) = &ended.execution.outcome else { return Self::LeaseLost };
        let failure = || {
            let code = outcome.code.clone().unwrap_or_else(|| outcome.status.clone());
            Failure::new(&code, outcome.message.clone().unwrap_or_default())
        };
        match outcome.status.as_str() {
            "completed" => Self::Completed(ended.result.as_ref().map(Said::read).unwrap_or_default()),
            "cancelled" => Self::Cancelled,
            _ if outcome.code.as_deref() == Some(SUSPEND_FAILED) => Self::SuspendFailed(failure()),
            _ => Self::Failed(failure()),
        }
    }
}

impl Said {
    /// What is stored as the execution's result.
    pub(super) fn written(&self) -> Json {
        Json::from_value(&serde_json::json!({
            "text": self.text,
            "truncated": self.truncated,
            "iterations": self.iterations,
            "usage": { "prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens },
        }))
    }

    fn read(result: &Json) -> Self {
        let result = result.value();
        let count = |value: &serde_json::Value, name: &str| value.get(name).and_then(serde_json::Value::as_u64);
        let usage = result.get("usage").cloned().unwrap_or_default();
        Self {
            text: result.get("text").and_then(|text| text.as_str()).unwrap_or_default().to_owned(),
            truncated: result.get("truncated").and_then(serde_json::Value::as_bool).unwrap_or_default(),
            iterations: count(&result, "iterations").and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
            prompt_tokens: count(&usage, "prompt_tokens").unwrap_or_default(),
            completion_tokens: count(&usage, "completion_tokens").unwrap_or_default(),
        }
    }
}

/// The code of a run that could not be stored as it was to wait.
pub(super) const SUSPEND_FAILED: &str = "suspend_failed";

/// Why a loop stops before its model has said its last word.
pub(super) enum Halt {
    Failed(Failure),
    SuspendFailed(Failure),
    Suspended(RunOutcome),
    Cancelled,
    LeaseLost,
}

impl Halt {
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::Failed(Failure::new(code, message))
    }

    /// How the execution ends by it; none where that is not for this process to say.
    pub fn ending(&self) -> Option<Outcome> {
        match self {
            Self::Failed(failure) | Self::SuspendFailed(failure) => Some(Outcome::Failed(failure.clone())),
            Self::Cancelled => Some(Outcome::Cancelled),
            Self::Suspended(_) | Self::LeaseLost => None,
        }
    }

    pub fn outcome(self) -> RunOutcome {
        match self {
            Self::Failed(failure) => RunOutcome::Failed(failure),
            Self::SuspendFailed(failure) => RunOutcome::SuspendFailed(failure),
            Self::Suspended(outcome) => outcome,
            Self::Cancelled => RunOutcome::Cancelled,
            Self::LeaseLost => RunOutcome::LeaseLost,
        }
    }
}

/// A store that cannot say how it stands ends the run: what it was at is in this process alone.
impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::failed(error.code().as_str(), error.to_string())
    }
}
