//! From what a page's form posted to an answer. What cannot be read is named by its field; whether the rest will do is
//! for the library to say.

use sayso::wire::{Keyed, Response, responses_from_wire};
use sayso::{Error, FieldError, Json};
use sayso_core::json::pointer_to;
use sayso_core::request::{Approval, Choice, Request, Requests};
use sayso_core::response::{Action, Content, check};
use sayso_core::schema::InputSchema;

use super::typed::{OTHER, Part, Typed, action_id, answer_id, other_id, part_id, reason_id};
use super::{edits, entered};

/// The answer that was typed. Where something cannot be read, everything that is wrong with the rest is told too, so
/// that a person repairs all of it at once.
pub(super) fn answer(requests: &Requests, typed: &Typed) -> Result<Keyed<Response>, Vec<FieldError>> {
    let mut responses = Vec::new();
    let mut errors = Vec::new();
    for (index, (key, request)) in requests.iter().enumerate() {
        match response(index, request, typed) {
            Ok(response) => responses.push((key.to_owned(), response)),
            Err(found) => {
                errors.extend(below(&pointer_to("/responses", key), found));
                // Its place among the others, so that they are checked as an answer is.
                responses.push((key.to_owned(), Response::cancel()));
            }
        }
    }
    if errors.is_empty() {
        return Ok(Keyed(responses));
    }
    if let Err(Error::Validation { fields, .. }) = check(requests, &responses_from_wire(&Keyed(responses))) {
        errors.extend(fields);
    }
    Err(errors)
}

fn below(pointer: &str, errors: Vec<FieldError>) -> impl Iterator<Item = FieldError> {
    let pointer = pointer.to_owned();
    errors.into_iter().map(move |error| FieldError { pointer: format!("{pointer}{}", error.pointer), ..error })
}

fn error(pointer: &str, message: &str) -> Vec<FieldError> {
    vec![FieldError { pointer: pointer.to_owned(), message: message.to_owned() }]
}

fn response(index: usize, request: &Request, typed: &Typed) -> Result<Response, Vec<FieldError>> {
    match typed.one(&action_id(index)).and_then(Action::parse) {
        None => Err(error("/action", "needs your decision")),
        Some(Action::Cancel) => Ok(Response::cancel()),
        Some(Action::Decline) => {
            let reason = typed.one(&reason_id(index)).map(str::trim).filter(|reason| !reason.is_empty());
            Ok(Response::decline(reason.map(str::to_owned)))
        }
        Some(Action::Accept) => match request {
            Request::Url(_) => Ok(Response::consent()),
            Request::Form(form) => entered::content(&part_id(index, Part::Form), &form.schema, typed)
                .map(Response::accept)
                .map_err(|found| below("/content", found).collect()),
            Request::Approval(approval) => approved(index, approval, typed)
                .map(|content| Response { content: content.written(), ..Response::consent() })
                .map_err(|found| below("/content", found).collect()),
            Request::Choice(choice) => Ok(Response::accept(texts(&chosen(index, choice, typed)?))),
            Request::Text(_) => Ok(Response::accept(texts(&[typed.one(&answer_id(index)).unwrap_or_default()]))),
        },
    }
}

/// What comes with an approval: edited arguments and the person's input. Everything that is wrong with either is told.
fn approved(index: usize, approval: &Approval, typed: &Typed) -> Result<Content, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut take = |place: &str, found: Result<Option<Json>, Vec<FieldError>>| {
        found.unwrap_or_else(|found| {
            errors.extend(below(place, found));
            None
        })
    };
    let arguments = take("/arguments", edits::edited(index, approval, typed));
    let schema = approval.input.as_ref().map(InputSchema::form);
    let input = schema.map(|schema| entered::content(&part_id(index, Part::Input), schema, typed)).transpose();
    let content = Content { arguments, input: take("/input", input) };
    if errors.is_empty() { Ok(content) } else { Err(errors) }
}

fn texts(answer: &[&str]) -> Json {
    Json::from_value(&serde_json::json!({ "answer": answer }))
}

/// The labels that were chosen, and what was typed beside them.
fn chosen<'a>(index: usize, choice: &'a Choice, typed: &'a Typed) -> Result<Vec<&'a str>, Vec<FieldError>> {
    let fault = |message| Err(error("/content/answer", message));
    let other = typed.one(&other_id(index)).map(str::trim).filter(|text| !text.is_empty());
    let id = answer_id(index);
    let marked: Vec<&str> = typed.all(&id).filter(|value| !value.is_empty()).collect();
    let is_other = marked.contains(&OTHER);
    let mut labels = Vec::new();
    for value in marked.into_iter().filter(|value| *value != OTHER) {
        match value.parse().ok().and_then(|at: usize| choice.options.get(at)) {
            Some(option) => labels.push(option.label.as_str()),
            None => return fault("must be one of the options, or your own words"),
        }
    }
    match other {
        None if is_other => return fault("is missing: type your own words, or choose another option"),
        Some(_) if !choice.multi_select && !labels.is_empty() => {
            return fault("takes one answer: choose Other, or clear its text");
        }
        Some(text) if !labels.contains(&text) => labels.push(text),
        _ => {}
    }
    if labels.is_empty() && !choice.multi_select {
        return fault("is missing");
    }
    Ok(labels)
}
