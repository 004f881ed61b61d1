//! What became of a run, as it is printed.

use sayso::wire::Paused;
use sayso::{Error, ExecutionId, Failure, RoundId};
use sayso_agents::native::RunOutcome;
use sayso_core::json::{visible, visible_multiline};
use serde::Serialize;

use crate::error::CommandError;
use crate::exit::Exit;

/// `--json` of a resume.
#[derive(Serialize)]
pub struct Lines<'a> {
    pub runs: &'a [Line],
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    execution_id: ExecutionId,
    /// The outcome's word; `refused` where the run could not be taken up and nothing was consumed.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_id: Option<RoundId>,
    /// The calls that wait there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paused: Vec<Paused>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Line {
    /// Of what a run came to.
    pub fn of(execution_id: ExecutionId, outcome: &RunOutcome) -> Self {
        let mut line = Self {
            round_id: outcome.round().map(|round| round.round_id),
            paused: outcome.paused(),
            ..Self::bare(execution_id, outcome.as_str())
        };
        match outcome {
            RunOutcome::Completed(said) => {
                line.text = Some(said.text.clone());
                line.truncated = Some(said.truncated);
                line.iterations = Some(said.iterations);
            }
            RunOutcome::Failed(failure) | RunOutcome::SuspendFailed(failure) | RunOutcome::Requeued(failure) => {
                line.because(failure);
            }
            RunOutcome::AwaitingApproval(_) | RunOutcome::AwaitingInput(_) | RunOutcome::Cancelled => {}
            RunOutcome::LeaseLost => line.message = Some("another worker has taken the run".to_owned()),
        }
        line
    }

    /// Of a run that could not be taken up.
    pub fn refused(execution_id: ExecutionId, error: &Error) -> Self {
        let (code, message) = (error.code().as_str().to_owned(), error.to_string());
        Self { code: Some(code), message: Some(message), ..Self::bare(execution_id, "refused") }
    }

    fn bare(execution_id: ExecutionId, outcome: &'static str) -> Self {
        Self {
            execution_id,
            outcome,
            text: None,
            truncated: None,
            iterations: None,
            round_id: None,
            paused: Vec::new(),
            code: None,
            message: None,
        }
    }

    fn because(&mut self, failure: &Failure) {
        self.code = Some(failure.code.clone());
        self.message = Some(failure.message.clone());
    }

    /// For a person: the model's words, or what became of the run.
    pub fn text(&self, with_id: bool) -> String {
        let id = if with_id { format!("{}  ", self.execution_id) } else { String::new() };
        if let Some(text) = &self.text {
            return format!("{id}{}", visible_multiline(text));
        }
        let word = self.outcome.replace('_', " ");
        let round = self.round_id.map(|round| format!(" in {round}")).unwrap_or_default();
        let why = match (&self.code, &self.message) {
            (Some(code), Some(message)) => format!(" ({}): {}", visible(code), visible_multiline(message)),
            (None, Some(message)) => format!(": {}", visible_multiline(message)),
            _ => String::new(),
        };
        format!("{id}{word}{round}{why}")
    }

    /// What to do about a run that waits.
    pub fn help(&self) -> Option<String> {
        let round = self.round_id?;
        let id = self.execution_id;
        Some(format!("Answer with `sayso answer {round}` or in the inbox, then `sayso agent resume {id}`."))
    }

    /// How the command ends, where that is not well.
    pub fn failure(&self) -> Option<CommandError> {
        let exit = match self.outcome {
            "completed" => return None,
            "awaiting_approval" | "awaiting_input" => Exit::Asks,
            "requeued" => Exit::Unavailable,
            "lease_lost" => Exit::Conflict,
            "refused" => Exit::Unexpected,
            _ => Exit::RunEnded,
        };
        Some(CommandError::Run { outcome: self.outcome, exit })
    }
}
