//! What an agent is told. One place for every adapter, so that "nobody answered" never sounds like "somebody refused".

use sayso_core::error::Error;
use sayso_core::id::ExecutionId;
use sayso_core::json::Json;
use sayso_core::policy::{Basis, RuleRef, Verdict};
use sayso_core::round::{Failure, Status};

/// A question that could not be stored was never asked.
pub const QUESTION_UNAVAILABLE: &str =
    "Question unavailable: nobody could be asked, nothing was denied, and it was not run. Ask again later.";

/// An approval that could not be stored was never asked for.
pub const APPROVAL_UNAVAILABLE: &str =
    "Approval unavailable: nobody could be asked, nothing was denied, and it was not run. Ask again later.";

/// What an agent reads of a call that may run. `arguments` are those that it runs with, where they are other ones than
/// it proposed.
pub fn allowed(by_a_person: bool, arguments: Option<&Json>) -> String {
    let who = if by_a_person { "A person approved this call." } else { "This call is allowed." };
    match arguments {
        Some(arguments) => format!("{who} It runs with other arguments than you proposed: {}", arguments.as_str()),
        None => who.to_owned(),
    }
}

/// Why a question ended without an answer, for whoever looks at it later.
pub const ALLOWED_MEANWHILE: &str = "the call was allowed meanwhile, and went on without an answer";

/// What an agent reads of a call that a person is asked about, and that nobody waits for here.
pub const ASKED: &str = "A person is asked about this call. It was not denied and it has not run. Send exactly the same \
    call again to learn the answer; do not send it with other arguments and do not try another way.";

/// A person dismissed an approval without deciding.
pub fn dismissed() -> Error {
    let failure = Failure::new(Failure::CANCELLED, DISMISSED);
    Error::State { detail: DISMISSED.to_owned(), status: Status::Resolved, failure: Some(failure) }
}

/// A round of a gate that ended without anybody's decision: an error, never a denial.
pub fn undecided(failure: &Failure) -> Error {
    Error::State { detail: approval_ended(failure), status: Status::Failed, failure: Some(failure.clone()) }
}

/// The error of an approval that could not be asked for.
pub fn approval_unavailable(error: Error) -> Error {
    match error {
        Error::Unavailable(why) => Error::Unavailable(format!("{APPROVAL_UNAVAILABLE} ({why})")),
        Error::RoundLimit(limit) => Error::Unavailable(format!("{APPROVAL_UNAVAILABLE} (it was asked {limit} times)")),
        error => error,
    }
}

/// What an agent reads of a call that the policy denies.
pub fn denied(verdict: &Verdict) -> String {
    match &verdict.basis {
        Basis::Error(error) => {
            format!("The policy could not be applied, so this call was denied and not run: {error}.")
        }
        _ => denied_by(&verdict.rules, verdict.reason.as_deref()),
    }
}

/// What an agent reads of a call that these rules deny.
pub fn denied_by(rules: &[RuleRef], reason: Option<&str>) -> String {
    let rules: Vec<_> = rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id)).collect();
    let rules = if rules.is_empty() { String::new() } else { format!(" (rule {})", rules.join(", ")) };
    let reason = reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
    format!("The policy denies this call{rules}. It was not run, and nobody was asked. Do not try another way.{reason}")
}

/// What an agent reads of a call that a person refused.
pub fn declined(reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
    format!("A person refused this call. It was not run. Do not try another way.{reason}")
}

/// What an agent reads of a call whose typed input a person did not want to give.
pub fn input_declined(reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
    format!("A person refused to give what this call needs. It was not run. Do not try another way.{reason}")
}

/// What an agent reads of a call whose typed input was asked for and dismissed.
pub const INPUT_DISMISSED: &str =
    "The question for what this call needs was dismissed without an answer. Nobody refused. It was not run.";

/// What an agent reads, beside the result, of a call whose values for these keys a person gave.
pub fn supplied(keys: &[String]) -> String {
    format!("A person gave the values of {} for this call; yours, if any, were not used.", keys.join(", "))
}

/// What an agent reads of a call that lacks a person's values.
pub fn input_missing(tool: &str) -> String {
    format!("The tool {tool} needs values that a person gives, and they were not given. The call was not run.")
}

/// What an agent reads of a call of a tool that it was not offered, or is offered no longer.
pub fn not_offered(tool: &str) -> String {
    format!("The tool {tool} is not offered to you. The call was not run.")
}

/// What an agent reads of a call whose arguments nobody can read.
pub fn arguments_unreadable(why: &str) -> String {
    format!("This call was not run: {why}. Send one JSON object, with each member once.")
}

/// What an agent reads of a call whose approval was dismissed.
pub const DISMISSED: &str = "The question whether this call may run was dismissed without a decision. Nobody refused. \
                             It was not run.";

/// What an agent reads of a call whose approval ended without a person's verdict.
pub fn approval_ended(failure: &Failure) -> String {
    let words = match failure.code.as_str() {
        Failure::UNAVAILABLE => APPROVAL_UNAVAILABLE,
        Failure::WITHDRAWN => "The question whether this call may run was taken back; nobody refused. It was not run.",
        Failure::SUPERSEDED => {
            "Another question took the place of the one whether this call may run; nobody refused. It was not run."
        }
        _ => return ended(failure),
    };
    words.to_owned()
}

/// What an agent reads, beside the result, of a call whose arguments a person changed.
pub fn edited(arguments: &Json) -> String {
    format!("A person changed the arguments before this call ran. It ran with: {}", arguments.as_str())
}

/// What an agent reads when a round ended without a person's answer.
pub fn ended(failure: &Failure) -> String {
    let words = match failure.code.as_str() {
        Failure::EXPIRED => "Nobody answered in time; nobody refused. It was not run.",
        Failure::UNAVAILABLE => QUESTION_UNAVAILABLE,
        Failure::CANCELLED => "Cancelled before anybody answered; nobody refused. It was not run.",
        Failure::WITHDRAWN => {
            "The question was withdrawn by whoever asked it, before anybody answered; nobody refused."
        }
        Failure::SUPERSEDED => "Another question took this one's place; nobody refused.",
        Failure::RECOVERY_UNAVAILABLE => {
            "The process that asked is gone, and nobody can tell whether its answer was used. The call may have run."
        }
        _ => return format!("The question ended as {}: {}", failure.code, failure.message),
    };
    words.to_owned()
}

/// What whoever waits for a round is told in the library when it ended without an answer to hand over.
pub fn waiter_error(failure: &Failure) -> Error {
    match failure.code.as_str() {
        Failure::EXPIRED => Error::Timeout,
        Failure::RECOVERY_UNAVAILABLE => Error::Recovery(failure.message.clone()),
        _ => {
            let detail = format!("the round ended as {}: {}", failure.code, failure.message);
            Error::State { detail, status: Status::Failed, failure: Some(failure.clone()) }
        }
    }
}

/// What an agent reads while a person still thinks. Imperative on purpose: a vague text makes agents try other ways.
pub fn still_waiting(execution: ExecutionId, wait_tool: &str, inbox: &str) -> String {
    format!(
        "This call is still waiting for a person to answer. It was not denied and it has not run. \
         Call the tool `{wait_tool}` with {{\"execution_id\": \"{execution}\"}} to go on waiting, as often as needed. \
         Do not retry with other arguments and do not try another way. {inbox}"
    )
}

/// What an agent reads of a call that nobody holds up any more and that has no result yet.
pub fn still_running(execution: ExecutionId, wait_tool: &str) -> String {
    format!(
        "This call is running and has no result yet. \
         Call the tool `{wait_tool}` with {{\"execution_id\": \"{execution}\"}} to go on waiting, as often as needed. \
         Do not make the call again in another way."
    )
}
