//! How things are said to a person: times, states, foreign texts and JSON. Whatever others wrote goes through here, so
//! that no text can pose as another.

use std::borrow::Cow;
use std::time::Duration;

use maud::{Markup, html};
use sayso::wire::{Answered, Round};
use sayso::{Principal, PrincipalKind, Status, UnixMs};
use sayso_core::json::{Json, visible, visible_multiline};
use sayso_core::policy::Effect;
use sayso_core::request::{Request, Requests};
use sayso_core::response::Action;
use sayso_core::round::{Failure, OperationKind};

/// Characters of a message that a list shows.
const EXCERPT_CHARS_MAX: usize = 180;
/// A foreign text of one line.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// A foreign text of several lines.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    visible_multiline(text)
}

/// The beginning of a foreign text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    let on_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = on_one_line.chars().take(EXCERPT_CHARS_MAX).collect();
    if shown.len() < on_one_line.len() {
        shown.push('…');
    }
    visible(&shown).into_owned()
}

/// `2026-11-29 21:39:05 UTC`.
pub(super) fn exact(at: UnixMs) -> String {
    let text = at.to_string();
    match (text.get(..10), text.get(11..19)) {
        (Some(date), Some(time)) => format!("{date} {time} UTC"),
        _ => text,
    }
}

/// `5 minutes ago`, `in 2 hours`.
pub(super) fn relative(at: UnixMs, now: UnixMs) -> String {
    let seconds = now.since_ms(at) / 1000;
    let said = length(seconds.unsigned_abs());
    match seconds {
        -9..=9 => "just now".to_owned(),
        10.. => format!("{said} ago"),
        _ => format!("in {said}"),
    }
}

fn length(seconds: u64) -> String {
    let counted = |number: u64, unit: &str| format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3600 => counted(seconds / 60, "minute"),
        3600..86_400 => counted(seconds / 3600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// How long something took, as in `42 seconds`.
pub(super) fn duration(time: Duration) -> String {
    length(time.as_secs().max(1))
}

/// A moment, relative and exact. The page's script keeps the relative part true.
pub(super) fn moment(at: UnixMs, now: UnixMs) -> Markup {
    html! {
        time datetime=(at) data-relative { (relative(at, now)) }
        " " span.exact { "(" (exact(at)) ")" }
    }
}

/// Whoever it is, by kind and name.
pub(super) fn who(principal: &Principal) -> String {
    let name = visible(&principal.name);
    match principal.kind {
        PrincipalKind::Person => name.into_owned(),
        kind => format!("{} {name}", kind.as_str()),
    }
}

/// What the round's operation is called in a sentence.
pub(super) fn operation(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Tool => "Tool",
        OperationKind::Prompt => "Prompt",
        OperationKind::Resource => "Resource",
    }
}

/// What kind of request it is, in a word.
pub(super) fn kind(request: &Request) -> &'static str {
    match request {
        Request::Form(_) => "Form",
        Request::Url(_) => "Link",
        Request::Approval(_) => "Approval",
        Request::Choice(_) => "Choice",
        Request::Text(_) => "Question",
    }
}

/// Our own sentence for what is asked; the asker's words stand apart from it.
pub(super) fn asks(round: &Round, requests: &Requests) -> String {
    let server = visible(&round.server);
    let mut all = requests.iter();
    match (all.next(), all.next()) {
        (Some((_, only)), None) => match only {
            Request::Form(_) => format!("{server} asks for information"),
            Request::Url(_) => format!("{server} asks you to open a link"),
            Request::Approval(_) => format!("{server} asks to run a tool"),
            Request::Choice(_) | Request::Text(_) => format!("{server} has a question"),
        },
        _ => format!("{server} asks for {} things", requests.len()),
    }
}

/// What a person did, in a word.
pub(super) fn deed(answered: &Answered, requests: Option<&Requests>) -> &'static str {
    let is = |wanted: fn(&Request) -> bool| requests.is_some_and(|all| all.iter().all(|(_, request)| wanted(request)));
    match answered.action {
        Some(Action::Accept) if is(|request| matches!(request, Request::Approval(_))) => "Approved",
        Some(Action::Accept) if is(|request| matches!(request, Request::Url(_))) => "Consented to",
        Some(Action::Decline) if is(|request| matches!(request, Request::Approval(_))) => "Denied",
        Some(Action::Decline) => "Declined",
        Some(Action::Cancel) => "Dismissed",
        Some(Action::Accept) | None => "Answered",
    }
}

/// How far an accepted answer has come, as a sentence; none where it is not on its way.
pub(super) fn delivery(status: Status) -> Option<&'static str> {
    match status {
        Status::Pending | Status::Failed => None,
        Status::ResponseValidated => Some("The agent has not taken it yet."),
        Status::DeliveryStarted => Some("It is being handed to the agent."),
        Status::Delivered => Some("It was handed to the agent."),
        Status::Resolved => Some("The agent has it and went on."),
    }
}

/// Where a round stands, in a word.
pub(super) fn status(round: &Round) -> &'static str {
    match round.status {
        Status::Pending => "Waiting",
        Status::ResponseValidated | Status::DeliveryStarted | Status::Delivered | Status::Resolved => {
            round.answered.as_ref().map_or("Answered", |answered| deed(answered, None))
        }
        Status::Failed => match round.failure.as_ref().map(|failure| failure.code.as_str()) {
            Some(Failure::EXPIRED) => "Expired",
            Some(Failure::WITHDRAWN) => "Withdrawn",
            Some(Failure::CANCELLED) => "Cancelled",
            Some(Failure::SUPERSEDED) => "Superseded",
            Some(Failure::UNAVAILABLE) => "Unavailable",
            Some(Failure::RECOVERY_UNAVAILABLE) => "Agent lost",
            _ => "Failed",
        },
    }
}

/// Why a question ended, told to a person; nobody refused anything by any of these.
pub(super) fn ended(failure: &Failure) -> &'static str {
    match failure.code.as_str() {
        Failure::EXPIRED => "Nobody answered before the deadline.",
        Failure::WITHDRAWN => "This question was withdrawn by whoever asked it.",
        Failure::CANCELLED => "The work that asked this was cancelled.",
        Failure::SUPERSEDED => "Another question took this one's place.",
        Failure::UNAVAILABLE => "Nobody could be asked.",
        Failure::RECOVERY_UNAVAILABLE => "The agent is not connected any more, so an answer cannot reach it.",
        _ => "This question ended with an error.",
    }
}

/// The class by which an effect is told apart.
pub(super) fn effect_tone(effect: Effect) -> &'static str {
    if effect == Effect::Read { "mild" } else { "strong" }
}

/// JSON laid out for reading, numbers and escapes as they were written.
pub(super) fn pretty(json: &Json) -> String {
    visible_multiline(&sayso_core::json::pretty(json)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_hides_nothing() {
        assert_eq!(pretty(&Json::parse("\"a\u{202e}b\"").unwrap()), "\"a⟦U+202E⟧b\"");
    }

    #[test]
    fn a_moment_is_told_relative_and_exact() {
        let at = UnixMs(1_796_000_000_123);
        assert_eq!(exact(at), "2026-11-30 00:53:20 UTC");
        for (later_ms, said) in [
            (5_000, "just now"),
            (59_000, "59 seconds ago"),
            (60_000, "1 minute ago"),
            (7_200_000, "2 hours ago"),
            (86_400_000, "1 day ago"),
            (-120_000, "in 2 minutes"),
        ] {
            assert_eq!(relative(at, at.plus_ms(later_ms)), said);
        }
    }

    #[test]
    fn an_excerpt_is_one_line_and_hides_nothing() {
        assert_eq!(excerpt("a\n  b\u{200b}"), "a b⟦U+200B⟧");
        assert_eq!(excerpt(&"x".repeat(500)).chars().count(), EXCERPT_CHARS_MAX + 1);
    }
}
