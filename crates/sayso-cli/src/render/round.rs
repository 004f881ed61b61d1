use std::fmt::Write as _;

use sayso::wire::{self, ResponseRecord};
use sayso::{Status, UnixMs};
use sayso_core::json::{visible, visible_multiline};
use sayso_core::request::{Request, Requests};
use sayso_core::response::Content;

use super::since::since;
use super::table::{start, table};

/// Characters of a message that a list shows.
const MESSAGE_CHARS_SHOWN: usize = 48;
/// Characters of a server's and a tool's names that a list shows.
const NAME_CHARS_SHOWN: usize = 36;

/// Rounds as a table, a line each.
pub fn rounds(rounds: &[wire::Round], now: UnixMs, with_status: bool) -> String {
    let row = |round: &wire::Round| {
        let mut row = vec![round.round_id.to_string(), since(round.created_at, now)];
        if with_status {
            row.push(round.failure.as_ref().map_or(round.status.as_str(), |failure| &failure.code).to_owned());
        }
        row.extend([kind(round), start(&asker(round), NAME_CHARS_SHOWN), start(&headline(round), MESSAGE_CHARS_SHOWN)]);
        row.into_iter().map(|cell| visible(&cell).into_owned()).collect()
    };
    let names: &[&str] = match with_status {
        true => &["id", "since", "state", "kind", "server · tool", "message"],
        false => &["id", "since", "kind", "server · tool", "message"],
    };
    table(names, &rounds.iter().map(row).collect::<Vec<_>>())
}

fn word(kind: wire::RequestKind) -> &'static str {
    match kind {
        wire::RequestKind::Form => "form",
        wire::RequestKind::Url => "url",
        wire::RequestKind::Approval => "approval",
        wire::RequestKind::Choice => "choice",
        wire::RequestKind::Text => "text",
    }
}

/// `form`, or `form +2` where two more requests stand beside it.
pub(super) fn kind(round: &wire::Round) -> String {
    match round.requests.0.as_slice() {
        [] => String::new(),
        [(_, only)] => word(only.kind).to_owned(),
        [(_, first), rest @ ..] => format!("{} +{}", word(first.kind), rest.len()),
    }
}

/// `server · tool`, made visible.
pub(super) fn asker(round: &wire::Round) -> String {
    format!("{} · {}", visible(&round.server), visible(&round.operation_name))
}

/// The first line of what is said to the person, made visible.
pub(super) fn headline(round: &wire::Round) -> String {
    let Some((_, first)) = round.requests.0.first() else { return String::new() };
    let text = [&first.message, &first.question, &first.tool].into_iter().flatten().next();
    let line = text.and_then(|text| text.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    visible(line.trim()).into_owned()
}

/// Who asks, through what, since when, until when.
pub fn heading(round: &wire::Round, now: UnixMs) -> String {
    let mut out = format!("{}\n", round.round_id);
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:<10} {text}");
    };
    line("asked by", &visible(&round.asked_by.to_string()));
    line("through", &format!("{} ({})", asker(round), round.operation_kind.as_str()));
    line("since", &format!("{} ({} ago)", round.created_at, since(round.created_at, now)));
    if let Some(deadline) = round.deadline {
        line("until", &deadline.to_string());
    }
    for call in &round.calls {
        let arguments = call.arguments.as_ref().map_or("", |arguments| arguments.as_str());
        line("call", &format!("{} {}", visible(&call.name), visible(arguments)));
    }
    out
}

/// A round, whole.
pub fn page(round: &wire::Round, requests: &Requests, answer_given: Option<&ResponseRecord>, now: UnixMs) -> String {
    let mut out = heading(round, now);
    let _ = writeln!(out, "{:<10} {}", "state", state(round));
    let _ = writeln!(out, "{:<10} {}", "digest", round.digest);
    if let Some(at) = round.url_completed_at {
        let _ = writeln!(out, "{:<10} {at}, says the asker", "visited");
    }
    for (key, request) in requests.iter() {
        let _ = write!(out, "\n{}", super::request(key, request, round.requests.get(key)));
    }
    if let Some(record) = answer_given {
        let _ = write!(out, "\nAnswer\n{}{}", answer(record), changes(requests, record));
    }
    if round.status == Status::Pending {
        let _ = write!(out, "\nAnswer it with:\n  {}\n", command(round, requests));
    }
    out
}

fn state(round: &wire::Round) -> String {
    let mut text = round.status.as_str().to_owned();
    if let Some(failure) = &round.failure {
        let _ = write!(text, ", {}: {}", visible(&failure.code), visible(&failure.message));
    }
    if let Some(won) = &round.answered {
        let action = won.action.map_or("several actions", |action| action.as_str());
        let who = won.principal.to_string();
        let _ = write!(text, ", {action} by {} through {} at {}", visible(&who), won.channel.as_str(), won.at);
    }
    text
}

/// The command that answers a round without a form. Names that a shell would read otherwise are left to the form.
fn command(round: &wire::Round, requests: &Requests) -> String {
    let mut line = format!("sayso answer {}", round.round_id);
    let mut all = requests.iter();
    let (Some((_, request)), None) = (all.next(), all.next()) else { return line };
    match request {
        Request::Form(form) => {
            let fields: Vec<_> = form.schema.fields().iter().filter(|field| field.required).collect();
            if fields.is_empty() {
                line.push_str(" --accept");
            } else if fields.iter().all(|field| is_plain(&field.name)) {
                fields.iter().for_each(|field| line.push_str(&format!(" --field {}=…", field.name)));
            }
        }
        Request::Url(_) => line.push_str(" --accept"),
        Request::Approval(approval) => {
            let input = if approval.input.is_some() { " --input '{…}'" } else { "" };
            line.push_str(&format!(" --approve{input} --digest {}", round.digest));
        }
        Request::Choice(_) | Request::Text(_) => line.push_str(" --text …"),
    }
    line
}

fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) && !name.starts_with('-')
}

/// What a round was answered with. For persons only.
pub fn answer(record: &ResponseRecord) -> String {
    let mut out = String::new();
    for (key, response) in &record.effective.0 {
        let _ = write!(out, "  {}: {}", visible(key), response.action.as_str());
        if let Some(content) = &response.content {
            let _ = write!(out, " {}", visible(content.as_str()));
        }
        if let Some(reason) = &response.reason {
            let _ = write!(out, ", because: {}", visible_multiline(reason));
        }
        out.push('\n');
    }
    if record.effective != record.submitted {
        out.push_str("  (with the asker's defaults filled in)\n");
    }
    out
}

/// What was changed in the arguments of the calls that were approved.
fn changes(requests: &Requests, record: &ResponseRecord) -> String {
    let mut out = String::new();
    for (key, request) in requests.iter() {
        let Request::Approval(approval) = request else { continue };
        let content = record.effective.get(key).and_then(|response| response.content.as_ref()).and_then(Content::read);
        if let Some(edited) = content.and_then(|content| content.arguments) {
            let _ =
                write!(out, "  {}: changed arguments\n{}", visible(key), super::changed_arguments(approval, &edited));
        }
    }
    out
}

/// What the person who answered reads.
pub fn accepted(round: &wire::Round) -> String {
    let Some(won) = &round.answered else { return format!("{} is {}.", round.round_id, round.status.as_str()) };
    let action = won.action.map_or("answer", |action| action.as_str());
    let who = won.principal.to_string();
    format!("{}: {action} accepted at {}, from {}.", round.round_id, won.at, visible(&who))
}
