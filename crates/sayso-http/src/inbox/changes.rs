//! What differs between two texts, line by line, and the question that took another's place.

use maud::{Markup, html};
use sayso::wire::{Keyed, Request, Round};
use sayso::{Json, Principal, RoundFilter, Sayso, Status};
use sayso_core::error::Error;
use sayso_core::json::{DiffLine, line_diff, pretty};
use sayso_core::round::Failure;

use super::words;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// What differs, said in words for those who see no colours.
pub(super) fn between(before: &str, after: &str) -> Markup {
    let lines = line_diff(before, after);
    let is_changed = |line: &DiffLine<'_>| !matches!(line, DiffLine::Same(_));
    let is_near = |at: usize| {
        let near = lines.iter().skip(at.saturating_sub(CONTEXT_LINES)).take(2 * CONTEXT_LINES + 1);
        near.into_iter().any(is_changed)
    };
    html! {
        @if !lines.iter().any(is_changed) { p { "Nothing differs." } }
        @else {
            div.diff tabindex="0" role="group" aria-label="What changed, line by line" {
                @for (at, line) in lines.iter().enumerate() {
                    @if is_near(at) {
                        @match line {
                            DiffLine::Same(text) => p { "  " (words::lines(text)) },
                            DiffLine::Removed(text) => p.removed { span.visually-hidden { "Removed: " } del { "− " (words::lines(text)) } },
                            DiffLine::Added(text) => p.added { span.visually-hidden { "Added: " } ins { "+ " (words::lines(text)) } },
                        }
                    } @else if at == 0 || is_near(at - 1) {
                        p.left-out { "  …" }
                    }
                }
            }
        }
    }
}

/// What a round asks, as text that can be compared: everything that an answer binds to.
fn text(requests: &Keyed<Request>) -> String {
    let whole = match requests.0.as_slice() {
        [(_, only)] => serde_json::to_string(only),
        _ => serde_json::to_string(requests),
    };
    whole.ok().and_then(|text| Json::parse(&text).ok()).map(|json| pretty(&json)).unwrap_or_default()
}

/// What differs between what two rounds ask.
pub(super) fn of_rounds(before: &Round, after: &Round) -> Markup {
    between(&text(&before.requests), &text(&after.requests))
}

/// The pending question that took the place of one that ended as superseded: the next of the same operation.
pub(super) async fn successor(sayso: &Sayso, person: &Principal, ended: &Round) -> Result<Option<Round>, Error> {
    if ended.failure.as_ref().is_none_or(|failure| failure.code != Failure::SUPERSEDED) {
        return Ok(None);
    }
    let filter =
        RoundFilter { execution: Some(ended.execution_id), status: Some(Status::Pending), ..RoundFilter::default() };
    let pending = sayso.rounds(person, filter).await?.rounds;
    let is_next = |round: &Round| {
        round.logical_operation_id == ended.logical_operation_id && round.round_index > ended.round_index
    };
    Ok(pending.into_iter().filter(is_next).max_by_key(|round| round.round_index))
}

/// The round of the same operation that the person was shown, by the digest that their page sent.
pub(super) async fn shown(
    sayso: &Sayso,
    person: &Principal,
    now: &Round,
    digest: &str,
) -> Result<Option<Round>, Error> {
    let filter = RoundFilter { execution: Some(now.execution_id), ..RoundFilter::default() };
    let rounds = sayso.rounds(person, filter).await?.rounds;
    let is_it =
        |round: &Round| round.logical_operation_id == now.logical_operation_id && round.digest.to_string() == digest;
    Ok(rounds.into_iter().find(is_it))
}
