//! Approving a call and allowing more like it. A page shows exactly what would be covered, with limits that can be
//! changed, before anything is sent; approval and grant are stored together or not at all.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use sayso::policy::{GrantScope, Pins};
use sayso::wire::{Keyed, Response as Given};
use sayso::{Answer, Digest, GrantId, NewGrant, Status};
use sayso_core::error::Error;
use sayso_core::limits::GRANT_MS_MAX;
use sayso_core::request::{Approval, Request};

use super::controls::Drawn;
use super::layout::{Page, Place};
use super::problems::Problems;
use super::question::Notice;
use super::round::AnswerPage;
use super::typed::{DIGEST, KEY, Typed};
use super::{card, covers, edits, round, words};

/// The buttons that lead here, and what is to be allowed.
pub(super) const ALLOW: &str = "allow";
/// The button that sends it.
const CONFIRMED: &str = "allow-confirmed";
/// The hidden control with the id that the grant will have.
const GRANT: &str = "allow-grant";
/// The hidden control with the digest of the scope that was shown.
const SCOPE: &str = "allow-scope";
/// How long it is good for: a number, and its unit.
const LENGTH: &str = "allow-length";
const UNIT: &str = "allow-unit";
/// The arguments that may have any value, by their numbers.
const FREE: &str = "allow-free";
/// How many calls it covers.
const USES: &str = "allow-uses";

/// What stands in the form at first: a working day.
const LENGTH_DEFAULT: &str = "8";
const UNITS: [(&str, i64); 3] = [("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)];
const UNIT_DEFAULT: &str = "hours";

/// How far it is to reach.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Session,
    Pinned,
    Rule,
}

impl Reach {
    const ALL: [(Self, &str, &str); 3] = [
        (Self::Session, "session", "Approve for this session"),
        (Self::Pinned, "pinned", "Approve with these arguments for this session"),
        (Self::Rule, "rule", "Approve by a rule drafted from this call"),
    ];

    /// Whether a grant of this reach can be made of a call: one for a session needs to know which, and the tool's
    /// definition. None can where a person adds to each call.
    fn is_possible(self, approval: &Approval) -> bool {
        let has_session = approval.session.is_some() && approval.definition.is_some();
        approval.input.is_none() && (has_session || self == Self::Rule)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known, _)| *known == word).map(|(reach, ..)| reach)
    }

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(reach, ..)| *reach == self).map_or("", |(_, word, _)| word)
    }
}

/// The ways to approve more than the one call.
pub(super) fn offer(approval: &Approval) -> Markup {
    html! {
        @if Reach::Rule.is_possible(approval) {
            details.allow {
                summary { "Approve, and allow more calls like it" }
                p.hint { "You see first exactly what would be covered, and until when." }
                div.actions {
                    @for (_, word, said) in Reach::ALL.into_iter().filter(|(reach, ..)| reach.is_possible(approval)) {
                        button type="submit" name=(ALLOW) value=(word) formnovalidate { (said) }
                    }
                }
            }
        }
    }
}

/// The one call of a round that more calls like it can be allowed of.
fn only_call<'p>(page: &'p AnswerPage<'_>, reach: Reach) -> Result<(&'p str, &'p Approval), Error> {
    let mut all = page.requests.iter();
    match (all.next(), all.next()) {
        (Some((key, Request::Approval(approval))), None) if reach.is_possible(approval) => Ok((key, approval)),
        _ => Err(Error::field("/allow", "cannot be said of this question")),
    }
}

/// Shows what would be allowed, or allows it.
pub(super) async fn take(page: &AnswerPage<'_>, wanted: &str) -> Result<Response, Error> {
    let is_confirmed = page.typed.has(CONFIRMED);
    // What was sent once may be sent again, and is the same answer.
    if page.round.status != Status::Pending && !is_confirmed {
        return page.ended(&page.round).await;
    }
    let reach = Reach::parse(wanted).ok_or_else(|| Error::field("/allow", "must be session, pinned or rule"))?;
    let (key, approval) = only_call(page, reach)?;
    if !matches!(edits::edited(0, approval, page.typed), Ok(None)) {
        let text = "More calls are allowed only as they were shown. Put the arguments back, or approve the changed call by itself.";
        let notice = Notice { title: "Nothing was sent yet", text: text.to_owned(), more: None };
        return page.again(&Problems::default(), Some(notice), StatusCode::OK).await;
    }
    let people = page.session.people(page.app);
    let drafted = match reach {
        Reach::Session => people.session_grant_of(page.round.round_id, false).await,
        Reach::Pinned => people.session_grant_of(page.round.round_id, true).await,
        Reach::Rule => people.rule_grant_of(page.round.round_id, &freed(approval, page.typed)).await,
    };
    let drafted = match drafted {
        Ok(drafted) => drafted,
        Err(error) => return page.refused(&error).await,
    };
    let id = match page.typed.one(GRANT).and_then(|text| GrantId::parse(text).ok()) {
        Some(id) => id,
        None => people.new_grant_id().await?,
    };
    let offered = Offered { page, reach, approval, drafted, id };
    let limits = Limits::read(page.typed);
    let (true, Ok(limits)) = (is_confirmed, &limits) else {
        let problems = if page.typed.has(LENGTH) { limits.err() } else { None };
        return offered.draw(&Problems::at(problems.unwrap_or_default()), false);
    };
    if page.typed.one(SCOPE) != Some(digest_of(&offered.drafted.scope)?.as_str()) {
        return offered.draw(&Problems::default(), true);
    }
    let new = NewGrant {
        good_for_ms: limits.good_for_ms,
        uses_max: limits.uses_max,
        id: Some(id),
        ..offered.drafted.clone()
    };
    let responses = Keyed(vec![(key.to_owned(), Given::consent())]);
    let answer = Answer { digest: page.typed.one(DIGEST).and_then(Digest::parse), responses };
    let idempotency_key = page.typed.one(KEY).unwrap_or_default();
    let id_of_round = page.round.round_id;
    match people.approve_and_grant(id_of_round, answer, idempotency_key, new).await {
        Ok(_) => Ok(Redirect::to(&format!("/rounds/{id_of_round}?granted={id}")).into_response()),
        Err(error) => page.refused(&error).await,
    }
}

/// The names of a call's arguments, in its order.
fn members(approval: &Approval) -> Vec<String> {
    let view = approval.arguments.object();
    view.map_or_else(Vec::new, |view| view.members.into_iter().map(|member| member.name.to_string()).collect())
}

/// The arguments that may have any value, of those the call has; they are numbered in the form.
fn freed(approval: &Approval, typed: &Typed) -> Vec<String> {
    let marked: Vec<usize> = typed.all(FREE).filter_map(|at| at.parse().ok()).collect();
    let all = members(approval).into_iter().enumerate();
    all.filter(|(at, _)| marked.contains(at)).map(|(_, name)| name).collect()
}

/// A scope as it was shown: what is drafted again must be the same.
fn digest_of(scope: &GrantScope) -> Result<String, Error> {
    let text = serde_json::to_string(scope).map_err(|_| Error::Corrupt("grant"))?;
    Ok(Digest::of_text(&text).to_string())
}

/// The limits that a person set.
struct Limits {
    good_for_ms: Option<i64>,
    uses_max: Option<u32>,
}

impl Limits {
    /// Reads them; what is left empty is no limit. The errors are controls, each with a sentence.
    fn read(typed: &Typed) -> Result<Self, Vec<(&'static str, String)>> {
        let text = |id: &str| typed.one(id).map(str::trim).filter(|text| !text.is_empty());
        let unit = text(UNIT).and_then(|unit| UNITS.into_iter().find(|(known, _)| *known == unit));
        let (_, unit_ms) = unit.unwrap_or(UNITS[1]);
        let mut problems = Vec::new();
        let good_for_ms = text(LENGTH).map(|text| {
            let length = text.parse::<i64>().ok().filter(|length| *length > 0);
            length.and_then(|length| length.checked_mul(unit_ms)).filter(|ms| *ms <= GRANT_MS_MAX)
        });
        if good_for_ms == Some(None) {
            let days = GRANT_MS_MAX / 86_400_000;
            problems
                .push((LENGTH, format!("The time must be a whole number, more than nothing and at most {days} days")));
        }
        let uses_max = text(USES).map(|text| text.parse::<u32>().ok().filter(|uses| *uses > 0));
        if uses_max == Some(None) {
            problems.push((USES, "The number of calls must be a whole number of at least 1".to_owned()));
        }
        if problems.is_empty() {
            return Ok(Self { good_for_ms: good_for_ms.flatten(), uses_max: uses_max.flatten() });
        }
        Err(problems)
    }
}

/// What a person is shown before they allow it.
struct Offered<'o> {
    page: &'o AnswerPage<'o>,
    reach: Reach,
    approval: &'o Approval,
    drafted: NewGrant,
    id: GrantId,
}

impl Offered<'_> {
    fn draw(&self, problems: &Problems, is_changed: bool) -> Result<Response, Error> {
        let address = format!("/rounds/{}", self.page.round.round_id);
        let title = "Allow more calls like this one?";
        let prefix = if problems.is_empty() { "" } else { "Error: " };
        let main = html! {
            p.back { a href=(address) { "← Back to the question" } }
            h1 { (title) }
            @if is_changed {
                div.problems role="alert" tabindex="-1" id="problems" autofocus {
                    h2 { "Look again before you allow it" }
                    p { "What would be covered is another than you were shown. Nothing was sent." }
                }
            }
            @if !problems.is_empty() { (problems.summary()) }
            section.calls aria-labelledby="call-now" {
                h2 id="call-now" { "This call is approved now" }
                p.call-name { code { (words::line(&self.approval.tool)) } }
                (card::arguments(self.approval))
            }
            section.calls aria-labelledby="covered" {
                h2 id="covered" { "These calls run from now on without a question" }
                dl.facts { (covers::facts(&self.drafted.scope, self.drafted.agent.as_ref())) }
                p.hint { "What the rules deny stays denied. You can take it back at any time, under Grants." }
            }
            (self.form(&address, problems)?)
        };
        let person = Some(&self.page.session.person);
        let title = format!("{prefix}{title}");
        let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
        Ok(Page { title, person, place: Place::Waiting, live: None, main }.respond(status))
    }

    /// Which arguments a rule leaves open.
    fn free(&self, drawn: Drawn<'_>) -> Markup {
        let names = members(self.approval);
        html! {
            @if !names.is_empty() {
                fieldset.field role="group" id=(FREE) aria-describedby=(format!("{FREE}-hint")) {
                    legend { "May have any value " span.need { "(optional)" } }
                    p.hint id=(format!("{FREE}-hint")) { "What is not marked must be as it is in this call." }
                    @for (at, name) in names.iter().enumerate() {
                        @let id = format!("{FREE}-{at}");
                        div.option {
                            input type="checkbox" id=(id) name=(FREE) value=(at) checked[drawn.is_marked(FREE, &at.to_string(), false)];
                            label for=(id) { code { (words::line(name)) } }
                        }
                    }
                    div { button type="submit" { "Show what that covers" } }
                }
            }
        }
    }

    fn form(&self, address: &str, problems: &Problems) -> Result<Markup, Error> {
        let typed = Some(self.page.typed).filter(|typed| typed.has(LENGTH));
        let drawn = Drawn { typed, problems, focus: None };
        let key = self.page.typed.one(KEY).filter(|key| !key.is_empty());
        let key = key.map_or_else(round::new_key, |key| Ok(key.to_owned()))?;
        let hidden = [
            (DIGEST, self.page.typed.one(DIGEST).unwrap_or_default().to_owned()),
            (KEY, key),
            (ALLOW, self.reach.word().to_owned()),
            (GRANT, self.id.to_string()),
            (SCOPE, digest_of(&self.drafted.scope)?),
        ];
        Ok(html! {
            form.answer method="post" action=(address) novalidate {
                @for (name, value) in &hidden { input type="hidden" name=(name) value=(value); }
                // Enter in a control looks again: browsers press a form's first button.
                button.visually-hidden type="submit" tabindex="-1" aria-hidden="true" {}
                section.request aria-label="How far, how long, and how often" {
                    @if matches!(self.drafted.scope, GrantScope::Rule { pins: Pins::When(_), .. }) { (self.free(drawn)) }
                    div.field.(wrong(drawn, LENGTH)) {
                        label for=(LENGTH) { "Ends after " span.need { "(optional)" } }
                        p.hint id=(format!("{LENGTH}-hint")) { "Left empty, it ends when you take it back." }
                        (drawn.errors(LENGTH))
                        div.date-time {
                            input.number type="text" inputmode="numeric" id=(LENGTH) name=(LENGTH) autocomplete="off" value=(drawn.text(LENGTH, || LENGTH_DEFAULT.to_owned()))
                                aria-invalid=[drawn.invalid(LENGTH)] aria-describedby=[drawn.described(LENGTH, true)];
                            div {
                                label for=(UNIT) { "Unit" }
                                select id=(UNIT) name=(UNIT) {
                                    @for (unit, _) in UNITS { option value=(unit) selected[drawn.is_marked(UNIT, unit, unit == UNIT_DEFAULT)] { (unit) } }
                                }
                            }
                        }
                    }
                    div.field.(wrong(drawn, USES)) {
                        label for=(USES) { "Number of calls " span.need { "(optional)" } }
                        p.hint id=(format!("{USES}-hint")) { "Left empty, any number. The call above is not counted." }
                        (drawn.errors(USES))
                        input.number type="text" inputmode="numeric" id=(USES) name=(USES) autocomplete="off" value=(drawn.text(USES, String::new))
                            aria-invalid=[drawn.invalid(USES)] aria-describedby=[drawn.described(USES, true)];
                    }
                    div.actions {
                        button.primary type="submit" name=(CONFIRMED) value="1" { "Approve and allow" }
                        a.button href=(address) { "Back to the question" }
                    }
                }
            }
        })
    }
}

fn wrong(drawn: Drawn<'_>, id: &str) -> &'static str {
    drawn.invalid(id).map_or("", |_| "wrong")
}
