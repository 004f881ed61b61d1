//! A round that no longer waits: who answered it and with what, or why it ended; and what was typed too late.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::{Answered, Keyed, ResponseRecord, Round};
use sayso::{Json, People, Response as Given, UnixMs};
use sayso_core::error::Error;
use sayso_core::json::pretty;
use sayso_core::policy::Grant;
use sayso_core::request::{Approval, Request, Requests};
use sayso_core::response::{Action, Content};
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

use super::layout::{Page, Place};
use super::problems::label;
use super::typed::{
    OTHER, Part, Typed, answer_id, arguments_id, child_id, field_id, join_date_time, offset_id, other_id, part_id,
    reason_id, top_id,
};
use super::{changes, covers, edits, list, question, words};
use crate::app::App;
use crate::auth::Session;

/// A value that is not shown again.
const NOT_SHOWN: &str = "(not shown)";

/// The page of a round that is answered or over. `typed` is what came too late for it.
pub(super) async fn respond(
    app: &std::sync::Arc<App>,
    session: &Session,
    round: &Round,
    requests: &Requests,
    typed: Option<&Typed>,
    granted: Option<&Grant>,
) -> Result<Response, Error> {
    let now = app.sayso.now().await?;
    let answer = session.people(app).responses(round.round_id).await?;
    let next = changes::successor(&app.sayso, &session.person, round).await?;
    let (waiting, _) = list::pending(&app.sayso, &session.person).await?;
    let title = words::asks(round, requests);
    let main = html! {
        p.back { a href="/" { "← All waiting questions" } }
        h1 { (title) }
        (outcome(round, requests, next.as_ref(), typed.is_some(), now))
        @if let Some(next) = &next { (replaced(round, next)) }
        @if let Some(typed) = typed { (too_late(requests, typed)) }
        @if let Some(grant) = granted {
            p.patience { "More calls like it run from now on without a question: " a href=(format!("/grants/{}", grant.id)) { (covers::title(&grant.scope)) } "." }
        }
        p.actions {
            @if let Some(next) = waiting.first() {
                a.button.primary href=(format!("/rounds/{}", next.round_id)) { "Next question" }
                span { (waiting.len()) " waiting" }
            } @else {
                span { "Nothing else is waiting." }
            }
        }
        @if let Some(answer) = &answer { (values(requests, answer)) }
        section aria-labelledby="asked" {
            h2 id="asked" { "What was asked" }
            (question::facts(round, now))
            @for (_, request) in requests.iter() { (question::asked(request, &round.server)) }
            @if let Some(at) = round.url_completed_at {
                p { "The visit to the address was called complete " (words::moment(at, now)) "." }
            }
        }
        (question::calls(&round.calls))
    };
    let page = Page { title, person: Some(&session.person), place: Place::History, live: None, main };
    Ok(page.respond(if typed.is_some() { StatusCode::CONFLICT } else { StatusCode::OK }))
}

/// The part that an open form's page takes over when its round ends meanwhile.
fn outcome(round: &Round, requests: &Requests, next: Option<&Round>, is_late: bool, now: UnixMs) -> Markup {
    let tone = if round.failure.is_some() { "outcome bad" } else { "outcome good" };
    html! {
        section id="outcome" class=(tone) role=[is_late.then_some("alert")] aria-labelledby="outcome-title" {
            @match (&round.failure, &round.answered) {
                (Some(failure), answered) => {
                    h2 id="outcome-title" { (words::status(round)) }
                    p { (words::ended(failure)) }
                    p.multiline.hint { "Recorded as " span.code { (words::line(&failure.code)) } ": " (words::lines(&failure.message)) }
                    @if let Some(next) = next { p { a href=(format!("/rounds/{}", next.round_id)) { "Look at the question as it is now" } } }
                    @if let Some(answered) = answered { p { (who_answered(answered, requests, now)) } }
                }
                (None, Some(answered)) => {
                    h2 id="outcome-title" { (who_answered(answered, requests, now)) }
                    @if let Some(delivery) = words::delivery(round.status) { p { (delivery) } }
                }
                (None, None) => h2 id="outcome-title" { (words::status(round)) }
            }
        }
    }
}

/// What is asked in this one's place.
fn replaced(round: &Round, next: &Round) -> Markup {
    html! {
        section.calls aria-labelledby="replaced" {
            h2 id="replaced" { "What is asked instead" }
            (changes::of_rounds(round, next))
            p.actions { a.button href=(format!("/rounds/{}", next.round_id)) { "Open the new question" } }
        }
    }
}

fn who_answered(answered: &Answered, requests: &Requests, now: UnixMs) -> Markup {
    html! {
        (words::deed(answered, Some(requests))) " by " strong { (words::who(&answered.principal)) }
        " via " (answered.channel.as_str()) ", " (words::moment(answered.at, now))
    }
}

/// What came too late, to be copied.
fn too_late(requests: &Requests, typed: &Typed) -> Markup {
    let kept = kept(requests, typed);
    html! {
        section.too-late aria-labelledby="too-late" {
            h2 id="too-late" { "What you typed was not used" }
            @if kept.is_empty() {
                p { "There was nothing typed to keep." }
            } @else {
                p { "Nothing of it was stored. Copy it if you need it." }
                (pairs(&kept))
            }
        }
    }
}

/// What was typed for another question than the one that is asked now, to be copied.
pub(super) fn left_behind(requests: &Requests, typed: &Typed) -> Option<Markup> {
    (!kept(requests, typed).is_empty()).then(|| too_late(requests, typed))
}

fn pairs(pairs: &[(String, String)]) -> Markup {
    html! {
        dl.values { @for (name, text) in pairs { dt { (name) } dd.multiline { (words::lines(text)) } } }
    }
}

/// What was typed, under the names of its controls.
fn kept(requests: &Requests, typed: &Typed) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let text_of = |id: String| typed.one(&id).unwrap_or_default().to_owned();
    for (index, (_, request)) in requests.iter().enumerate() {
        match request {
            Request::Form(form) => {
                kept_fields(&mut all, form.schema.fields(), &|at| field_id(index, at), "", typed);
            }
            Request::Choice(choice) => {
                let id = answer_id(index);
                let marked = typed.all(&id).filter(|value| *value != OTHER);
                let labels = marked.filter_map(|value| choice.options.get(value.parse::<usize>().ok()?));
                let mut said: Vec<String> = labels.map(|option| option.label.clone()).collect();
                said.push(text_of(other_id(index)));
                said.retain(|text| !text.is_empty());
                all.push(("Your answer".to_owned(), said.join(", ")));
            }
            Request::Text(_) => all.push(("Your answer".to_owned(), text_of(answer_id(index)))),
            Request::Approval(approval) => {
                if let Ok(Some(edited)) = edits::edited(index, approval, typed) {
                    all.push(("Arguments".to_owned(), pretty(&edited)));
                } else if edits::edited(index, approval, typed).is_err() {
                    all.push(("Arguments".to_owned(), text_of(arguments_id(index))));
                }
                let fields = approval.input.as_ref().map_or(&[][..], |input| input.form().fields());
                kept_fields(&mut all, fields, &|at| top_id(&part_id(index, Part::Input), at), "", typed);
            }
            Request::Url(_) => {}
        }
        all.push(("Reason".to_owned(), text_of(reason_id(index))));
    }
    all.retain(|(_, text)| !text.is_empty());
    all
}

fn kept_fields(
    all: &mut Vec<(String, String)>,
    fields: &[Field],
    id_of: &dyn Fn(usize) -> String,
    around: &str,
    typed: &Typed,
) {
    for (at, field) in fields.iter().enumerate() {
        let (id, name) = (id_of(at), format!("{around}{}", label(field)));
        match &field.kind {
            FieldKind::Group { fields } => {
                kept_fields(all, fields, &|at| child_id(&id, at), &format!("{name}: "), typed);
            }
            FieldKind::Rows { fields, .. } => {
                for row in 0..typed.rows(&id).unwrap_or_default() {
                    let row_id = child_id(&id, row);
                    let around = format!("{name} {}: ", row + 1);
                    kept_fields(all, fields, &|at| child_id(&row_id, at), &around, typed);
                }
            }
            _ => all.push((name, kept_field(field, &id, typed))),
        }
    }
}

fn kept_field(field: &Field, id: &str, typed: &Typed) -> String {
    match &field.kind {
        FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => {
            let marked = typed.all(id).filter_map(|value| options.get(value.parse::<usize>().ok()?));
            marked.map(|option| option.label.clone()).collect::<Vec<_>>().join(", ")
        }
        FieldKind::Text { format: Some(TextFormat::Password), .. } => {
            typed.one(id).filter(|text| !text.is_empty()).map_or(String::new(), |_| NOT_SHOWN.to_owned())
        }
        FieldKind::Text { format: Some(TextFormat::DateTime), .. } => {
            join_date_time(typed.one(id).unwrap_or_default(), typed.one(&offset_id(id)).unwrap_or_default())
        }
        _ => typed.one(id).unwrap_or_default().to_owned(),
    }
}

/// What was answered, as it took effect.
fn values(requests: &Requests, answer: &ResponseRecord) -> Markup {
    let several = requests.len() > 1;
    html! {
        section aria-labelledby="answer-given" {
            h2 id="answer-given" { "The answer" }
            @for (key, request) in requests.iter() {
                @if several { h3 { (words::line(key)) } }
                @if let Some(given) = answer.effective.get(key) {
                    (one(request, given, submitted(&answer.submitted, key)))
                }
            }
        }
    }
}

fn submitted<'a>(answers: &'a Keyed<Given>, key: &str) -> Option<&'a Json> {
    answers.get(key).and_then(|response| response.content.as_ref())
}

fn one(request: &Request, given: &Given, submitted: Option<&Json>) -> Markup {
    let reason = given.reason.as_deref();
    match (given.action, request) {
        (Action::Decline, _) => html! {
            p { @if matches!(request, Request::Approval(_)) { "Denied" } @else { "Declined" }
                @match reason {
                    Some(reason) => { ", because:" blockquote.multiline { (words::lines(reason)) } }
                    None => ", without a reason."
                }
            }
        },
        (Action::Cancel, _) => html! { p { "Dismissed: nobody decided." } },
        (Action::Accept, Request::Approval(approval)) => approved(approval, given, submitted),
        (Action::Accept, Request::Url(_)) => html! { p { "Consent to open the address was recorded." } },
        (Action::Accept, Request::Form(form)) => members(form.schema.fields(), given.content.as_ref(), submitted),
        (Action::Accept, Request::Choice(_) | Request::Text(_)) => {
            let value = given.content.as_ref().map(Json::value);
            let texts = value.as_ref().and_then(|value| value.get("answer")).and_then(serde_json::Value::as_array);
            html! { ul.given { @for text in texts.into_iter().flatten().filter_map(serde_json::Value::as_str) { li.multiline { (words::lines(text)) } } } }
        }
    }
}

fn approved(approval: &Approval, given: &Given, submitted: Option<&Json>) -> Markup {
    let content = given.content.as_ref().and_then(Content::read).unwrap_or_default();
    let submitted = submitted.and_then(Content::read).unwrap_or_default();
    html! {
        @match &content.arguments {
            Some(edited) => {
                p { "Approved, with changed arguments:" }
                (changes::between(&pretty(&approval.arguments), &pretty(edited)))
            }
            None => p { "Approved, as shown." }
        }
        @if let (Some(schema), Some(input)) = (&approval.input, &content.input) {
            h3 { "What was added" }
            (members(schema.form().fields(), Some(input), submitted.input.as_ref()))
        }
    }
}

/// The members of an object under the names of their fields. Those that were not submitted are marked as defaults.
fn members(fields: &[Field], effective: Option<&Json>, submitted: Option<&Json>) -> Markup {
    let Some(view) = effective.and_then(Json::object) else { return html! {} };
    let typed = |name: &str| Json::parse(submitted.and_then(Json::object)?.get(name)?).ok();
    let member = |name: &str| Json::parse(view.get(name)?).ok();
    html! {
        @if view.members.is_empty() { p { "Accepted; there was nothing to fill in, or nothing was." } }
        @else {
            dl.values {
                @for found in &view.members {
                    @let field = fields.iter().find(|field| field.name == found.name);
                    @let typed = typed(&found.name);
                    dt { @match field { Some(field) => (label(field)), None => (words::line(&found.name)) } }
                    dd {
                        @if let Some(value) = member(&found.name) { (shown(field, &value, typed.as_ref())) }
                        @if typed.is_none() { " " span.need { "(the default)" } }
                    }
                }
            }
        }
    }
}

fn shown(field: Option<&Field>, value: &Json, submitted: Option<&Json>) -> Markup {
    match field.map(|field| &field.kind) {
        Some(FieldKind::Group { fields }) if value.is_object() => members(fields, Some(value), submitted),
        Some(FieldKind::Rows { fields, .. }) if value.as_str().starts_with('[') => html! {
            @let rows = value.items();
            @if rows.is_empty() { "None" }
            ol.rows { @for row in &rows { li { (members(fields, Some(row), Some(row))) } } }
        },
        _ => html! { span.multiline { (said(field, value)) } },
    }
}

/// A value in the words that the form used for it.
fn said(field: Option<&Field>, value: &Json) -> String {
    let option = |options: &[ChoiceOption], value: &serde_json::Value| {
        options
            .iter()
            .find(|option| option.value.value() == *value)
            .map(|option| words::line(&option.label).into_owned())
    };
    let plain = value.value();
    let in_words = match field.map(|field| &field.kind) {
        Some(FieldKind::Text { format: Some(TextFormat::Password), .. }) => Some(NOT_SHOWN.to_owned()),
        Some(FieldKind::Boolean) => plain.as_bool().map(|truth| if truth { "Yes" } else { "No" }.to_owned()),
        Some(FieldKind::Choice { options }) => option(options, &plain),
        Some(FieldKind::MultiChoice { options, .. }) => plain.as_array().and_then(|items| {
            let labels: Option<Vec<String>> = items.iter().map(|item| option(options, item)).collect();
            labels.map(|labels| if labels.is_empty() { "None".to_owned() } else { labels.join(", ") })
        }),
        _ => None,
    };
    in_words
        .or_else(|| plain.as_str().map(|text| words::lines(text).into_owned()))
        .unwrap_or_else(|| words::pretty(value))
}
