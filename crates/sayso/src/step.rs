//! What becomes known about deliveries, a step each: bounded, turned into a command, and recognised where it is stored
//! already.

use sayso_core::command::{Command, PolicyRuling};
use sayso_core::error::Error;
use sayso_core::execution::{Execution, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::policy::ToolName;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Failure, FailureRequest, Fence, Round, Status};
use sayso_core::wire::{self, ExecutionOutcome, LeaseToken, StepKind};

/// One thing that became known about a delivery. Several may be stored in one transaction.
#[derive(Debug, Clone)]
pub enum Step {
    /// The receipt is in hand.
    Delivered(RoundId, Fence),
    /// The operation has gone on.
    Resolved(RoundId, Fence),
    /// The round ends with a reason.
    Failed(RoundId, Option<Fence>, Failure),
    /// The execution ended, with what it answered.
    Finished(ExecutionId, Outcome, Option<Json>),
    /// The stored result was handed to whoever asked.
    Collected(ExecutionId),
    /// The asker called the visit to the URL complete.
    UrlCompleted(RoundId),
    /// The policy decided about a call of which nobody was asked.
    Ruled(PolicyRuling),
    /// This definition of a tool counts as reviewed from now on, for the caller.
    Reviewed {
        /// The tool, `server:name`.
        tool: String,
        /// The digest of its definition.
        definition: Digest,
    },
}

/// What a step is about.
pub(crate) enum Subject {
    Round(RoundId),
    Execution(ExecutionId),
    /// A call of which nothing else is stored, or its tool.
    Call,
}

impl Step {
    /// The round that is over with it.
    pub(crate) fn ended(&self) -> Option<RoundId> {
        match self {
            Self::Resolved(round, _) | Self::Failed(round, ..) => Some(*round),
            _ => None,
        }
    }

    /// What it is about.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Delivered(round, _)
            | Self::Resolved(round, _)
            | Self::Failed(round, ..)
            | Self::UrlCompleted(round) => Subject::Round(*round),
            Self::Finished(execution, ..) | Self::Collected(execution) => Subject::Execution(*execution),
            Self::Ruled(_) | Self::Reviewed { .. } => Subject::Call,
        }
    }

    /// Bounds what a worker says in its own words, and what it stores.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let failure = match self {
            Self::Failed(_, _, failure) | Self::Finished(_, Outcome::Failed(failure), _) => Some(failure),
            _ => None,
        };
        if let Some(Failure { code, message }) = failure {
            if code.is_empty() || code.len() > limits::NAME_BYTES_MAX {
                let message = format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX);
                return Err(Error::field("/failure/code", message));
            }
            if message.len() > limits::MESSAGE_BYTES_MAX {
                let message = format!("must have at most {} bytes", limits::MESSAGE_BYTES_MAX);
                return Err(Error::field("/failure/message", message));
            }
        }
        match self {
            Self::Ruled(PolicyRuling { tool, rule, .. }) => {
                let name_max = limits::NAME_BYTES_MAX;
                // A tool has two names and a colon, a rule its layer and its name.
                let is_wrong = |text: &str| text.is_empty() || text.len() > 2 * name_max + 1;
                match [("/tool", tool), ("/rule", rule)].into_iter().find(|(_, text)| is_wrong(text)) {
                    Some((pointer, _)) => Err(Error::field(pointer, "has a server and a tool, or a layer and a rule")),
                    None => Ok(()),
                }
            }
            Self::Reviewed { tool, .. } => {
                ToolName::parse(tool).map(drop).map_err(|error| Error::field("/tool", error.message))
            }
            Self::Finished(_, _, Some(result)) if result.as_str().len() > limits::RESULT_BYTES_MAX => {
                Err(Error::Limit(format!("a result may have at most {} bytes", limits::RESULT_BYTES_MAX)))
            }
            _ => Ok(()),
        }
    }

    /// The change that stores it.
    pub(crate) fn command(&self, caller: &Principal) -> Command {
        match self.clone() {
            Self::Delivered(round, fence) => Command::MarkDelivered { round, fence },
            Self::Resolved(round, fence) => Command::Resolve { round, fence },
            Self::Failed(round, fence, failure) => {
                let request = FailureRequest { fence, principal: caller.clone(), failure, only_pending: false };
                Command::Fail { round, request }
            }
            Self::Finished(execution, outcome, result) => Command::Finish { execution, outcome, result },
            Self::Collected(execution) => Command::MarkCollected { execution },
            Self::UrlCompleted(round) => Command::CompleteUrl { round },
            Self::Ruled(ruling) => Command::RecordRuling { by: caller.clone(), ruling },
            Self::Reviewed { tool, definition } => Command::RecordReview { by: caller.clone(), tool, definition },
        }
    }

    /// Whether `round` says what this step says, by the same holder.
    pub(crate) fn is_in_round(&self, round: &Round) -> bool {
        match self {
            Self::Delivered(_, fence) => {
                matches!(round.status, Status::Delivered | Status::Resolved) && round.fence.as_ref() == Some(fence)
            }
            Self::Resolved(_, fence) => round.status == Status::Resolved && round.fence.as_ref() == Some(fence),
            Self::Failed(_, fence, failure) => round.failure.as_ref() == Some(failure) && round.fence == *fence,
            Self::UrlCompleted(_) => round.url_completed_at.is_some(),
            Self::Finished(..) | Self::Collected(_) | Self::Ruled(_) | Self::Reviewed { .. } => false,
        }
    }

    /// Whether `execution`, with its stored result, says what this step says.
    pub(crate) fn is_in_execution(&self, execution: &Execution, stored: Option<&Json>) -> bool {
        match self {
            Self::Finished(_, outcome, result) => {
                execution.outcome.as_ref() == Some(outcome) && stored == result.as_ref()
            }
            Self::Collected(_) => execution.collected_at.is_some(),
            _ => false,
        }
    }
}

/// The step as it is sent.
impl From<&Step> for wire::Step {
    fn from(step: &Step) -> Self {
        let held = |kind, round: &RoundId, fence: Option<&Fence>| Self {
            round_id: Some(*round),
            owner_id: fence.map(|fence| fence.owner.clone()),
            lease_token: fence.map(|fence| LeaseToken(fence.token)),
            ..Self::empty(kind)
        };
        match step {
            Step::Delivered(round, fence) => held(StepKind::Delivered, round, Some(fence)),
            Step::Resolved(round, fence) => held(StepKind::Resolved, round, Some(fence)),
            Step::Failed(round, fence, failure) => {
                Self { failure: Some(failure.clone()), ..held(StepKind::Failed, round, fence.as_ref()) }
            }
            Step::UrlCompleted(round) => held(StepKind::UrlCompleted, round, None),
            Step::Finished(execution, outcome, result) => Self {
                execution_id: Some(*execution),
                outcome: Some(ExecutionOutcome::from(outcome)),
                result: result.clone(),
                ..Self::empty(StepKind::Finished)
            },
            Step::Collected(execution) => Self { execution_id: Some(*execution), ..Self::empty(StepKind::Collected) },
            Step::Ruled(PolicyRuling { tool, approved, rule }) => Self {
                tool: Some(tool.clone()),
                approved: Some(*approved),
                rule: Some(rule.clone()),
                ..Self::empty(StepKind::Ruled)
            },
            Step::Reviewed { tool, definition } => {
                Self { tool: Some(tool.clone()), definition: Some(*definition), ..Self::empty(StepKind::Reviewed) }
            }
        }
    }
}

/// Reads the flat form; pointers in the errors start at the step.
impl TryFrom<wire::Step> for Step {
    type Error = Error;

    fn try_from(step: wire::Step) -> Result<Self, Error> {
        if let Some(stray) = step.stray_member() {
            return Err(Error::field(format!("/{stray}"), "does not belong to this kind of step"));
        }
        let fence = wire::fence_of(step.owner_id.as_ref(), step.lease_token).map_err(required)?;
        let round = || step.round_id.ok_or_else(|| required("/round_id"));
        let execution = || step.execution_id.ok_or_else(|| required("/execution_id"));
        let held = || fence.clone().ok_or_else(|| required("/lease_token"));
        Ok(match step.step {
            StepKind::Delivered => Self::Delivered(round()?, held()?),
            StepKind::Resolved => Self::Resolved(round()?, held()?),
            StepKind::Failed => {
                let failure = step.failure.clone().ok_or_else(|| required("/failure"))?;
                Self::Failed(round()?, fence.clone(), failure)
            }
            StepKind::UrlCompleted => Self::UrlCompleted(round()?),
            StepKind::Collected => Self::Collected(execution()?),
            StepKind::Ruled => Self::Ruled(PolicyRuling {
                tool: step.tool.clone().ok_or_else(|| required("/tool"))?,
                approved: step.approved.ok_or_else(|| required("/approved"))?,
                rule: step.rule.clone().ok_or_else(|| required("/rule"))?,
            }),
            StepKind::Reviewed => Self::Reviewed {
                tool: step.tool.clone().ok_or_else(|| required("/tool"))?,
                definition: step.definition.ok_or_else(|| required("/definition"))?,
            },
            StepKind::Finished => {
                let outcome = step.outcome.as_ref().ok_or_else(|| required("/outcome"))?;
                Self::Finished(execution()?, outcome_of(outcome)?, step.result.clone())
            }
        })
    }
}

fn required(pointer: &str) -> Error {
    Error::field(pointer, "is required")
}

fn outcome_of(wire: &ExecutionOutcome) -> Result<Outcome, Error> {
    let failure = |code: &Option<String>| {
        let code = code.as_deref().ok_or_else(|| required("/outcome/code"))?;
        Ok::<_, Error>(Failure::new(code, wire.message.clone().unwrap_or_default()))
    };
    match wire.status.as_str() {
        "failed" => Ok(Outcome::Failed(failure(&wire.code)?)),
        _ if wire.code.is_some() || wire.message.is_some() => {
            Err(Error::field("/outcome/code", "belongs to a failed outcome only"))
        }
        "completed" => Ok(Outcome::Completed),
        "cancelled" => Ok(Outcome::Cancelled),
        "lost" => Ok(Outcome::Lost),
        _ => Err(Error::field("/outcome/status", "must be completed, failed, cancelled or lost")),
    }
}
