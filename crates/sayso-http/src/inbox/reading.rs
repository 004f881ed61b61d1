//! From what a page's form posted to an answer. What cannot be read is named by its field; whether the rest will do is
//! for the library to say.

use sayso::wire::{Keyed, Response, responses_from_wire};
use sayso::{Error, FieldError, Json};
use sayso_core::json::pointer_to;
use sayso_core::request::{Choice, Form, Request, Requests};
use sayso_core::response::{Action, check};
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

use super::typed::{OTHER, Typed, action_id, answer_id, field_id, join_date_time, offset_id, other_id, reason_id};

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
            Request::Url(_) | Request::Approval(_) => Ok(Response::consent()),
            Request::Form(form) => {
                content(index, form, typed).map(Response::accept).map_err(|found| below("/content", found).collect())
            }
            Request::Choice(choice) => Ok(Response::accept(texts(&chosen(index, choice, typed)?))),
            Request::Text(_) => Ok(Response::accept(texts(&[typed.one(&answer_id(index)).unwrap_or_default()]))),
        },
    }
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

fn content(index: usize, form: &Form, typed: &Typed) -> Result<Json, Vec<FieldError>> {
    let mut members = Vec::new();
    let mut errors: Vec<FieldError> = Vec::new();
    for (at, field) in form.schema.fields().iter().enumerate() {
        match read(field, &field_id(index, at), typed) {
            Ok(Some(value)) => members.push(format!("{}:{}", Json::from_text(&field.name).as_str(), value.as_str())),
            Ok(None) => {}
            Err(found) => errors.push(found),
        }
    }
    let content = Json::parse(&format!("{{{}}}", members.join(",")))
        .map_err(|found| error("", &format!("cannot be read: {found}")))?;
    if errors.is_empty() {
        return Ok(content);
    }
    let others = form.schema.validate(&form.schema.fill_defaults(&content)).err().unwrap_or_default();
    let unread: Vec<String> = errors.iter().map(|found| found.pointer.clone()).collect();
    errors.extend(others.into_iter().filter(|other| !unread.contains(&other.pointer)));
    Err(errors)
}

fn read(field: &Field, id: &str, typed: &Typed) -> Result<Option<Json>, FieldError> {
    let text = typed.one(id).unwrap_or_default();
    match &field.kind {
        FieldKind::Choice { options } => match text {
            "" => left_out(field, options),
            index => option(field, options, index).map(Some),
        },
        FieldKind::MultiChoice { options, .. } => {
            let marked = typed.all(id).filter(|index| !index.is_empty());
            let values: Vec<Json> = marked.map(|index| option(field, options, index)).collect::<Result<_, _>>()?;
            if values.is_empty() {
                return left_out(field, options);
            }
            let items: Vec<&str> = values.iter().map(Json::as_str).collect();
            Json::parse(&format!("[{}]", items.join(","))).map(Some).map_err(|_| not_listed(field))
        }
        FieldKind::Text { format: Some(TextFormat::DateTime), .. } => {
            let offset = typed.one(&offset_id(id)).unwrap_or_default().to_owned();
            field.read(&[join_date_time(text, &offset)])
        }
        _ => field.read(&[text.to_owned()]),
    }
}

/// Options are posted by their number: two of them may have the same text.
fn option(field: &Field, options: &[ChoiceOption], index: &str) -> Result<Json, FieldError> {
    let found = index.parse().ok().and_then(|at: usize| options.get(at));
    found.map(|option| option.value.clone()).ok_or_else(|| not_listed(field))
}

fn not_listed(field: &Field) -> FieldError {
    FieldError { pointer: pointer_to("", &field.name), message: "must be one of the listed options".to_owned() }
}

/// Nothing was chosen: as a blank text, unless a blank text is itself an option.
fn left_out(field: &Field, options: &[ChoiceOption]) -> Result<Option<Json>, FieldError> {
    let blank_is_an_option = options.iter().any(|option| option.value_text().is_empty());
    if blank_is_an_option { field.read(&[]) } else { field.read(&[String::new()]) }
}
