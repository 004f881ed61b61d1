use std::fmt::Write as _;

use super::{Action, Response, Responses};
use crate::error::{Error, FieldError};
use crate::json::{Json, pointer_to};
use crate::limits;
use crate::request::{Choice, Request, Requests};

/// Answers that fit their requests exactly, with what was submitted and what takes effect both kept.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckedResponses {
    /// As submitted, in the order of the requests.
    pub submitted: Responses,
    /// With defaults filled in.
    pub effective: Responses,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for CheckedResponses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckedResponses").field("keys", &self.submitted.0.len()).finish_non_exhaustive()
    }
}

/// Checks a response map against the requests of its round: exactly the keys (extra ones are reported before missing
/// ones), then each content. Nothing is rewritten; on any fault nothing is accepted (invariant 2).
pub fn check(requests: &Requests, responses: &Responses) -> Result<CheckedResponses, Error> {
    let keys = key_faults(requests, responses);
    if !keys.is_empty() {
        return Err(Error::fields(keys));
    }
    let size: usize = responses.0.iter().map(|(key, response)| key.len() + size_of_response(response)).sum();
    if size > limits::ANSWER_BYTES_MAX {
        return Err(Error::Limit(format!("an answer may have at most {} bytes", limits::ANSWER_BYTES_MAX)));
    }
    let mut faults = Vec::new();
    let (mut submitted, mut effective) = (Vec::new(), Vec::new());
    for (key, request) in requests.iter() {
        let Some(response) = responses.get(key) else { continue };
        match check_one(request, response) {
            Ok(fitting) => {
                submitted.push((key.to_owned(), response.clone()));
                effective.push((key.to_owned(), fitting));
            }
            Err(found) => faults.extend(found.into_iter().map(|fault| FieldError {
                pointer: format!("{}{}", pointer_to("/responses", key), fault.pointer),
                message: fault.message,
            })),
        }
    }
    if !faults.is_empty() {
        return Err(Error::fields(faults));
    }
    Ok(CheckedResponses { submitted: Responses(submitted), effective: Responses(effective) })
}

fn size_of_response(response: &Response) -> usize {
    response.content.as_ref().map_or(0, |content| content.as_str().len())
        + response.reason.as_ref().map_or(0, String::len)
}

fn key_faults(requests: &Requests, responses: &Responses) -> Vec<FieldError> {
    let fault =
        |key: &str, message: &str| FieldError { pointer: pointer_to("/responses", key), message: message.to_owned() };
    let mut seen = std::collections::HashSet::new();
    let mut faults: Vec<_> = Vec::new();
    for (key, _) in &responses.0 {
        if requests.get(key).is_none() {
            faults.push(fault(&key.chars().take(64).collect::<String>(), "is not a request of this round"));
        } else if !seen.insert(key.as_str()) {
            faults.push(fault(key, "is answered twice"));
        }
    }
    if faults.is_empty() {
        let missing = requests.iter().filter(|(key, _)| responses.get(key).is_none());
        faults.extend(missing.map(|(key, _)| fault(key, "is not answered")));
    }
    faults.truncate(limits::REQUESTS_MAX);
    faults
}

fn check_one(request: &Request, response: &Response) -> Result<Response, Vec<FieldError>> {
    let fault =
        |pointer: &str, message: &str| vec![FieldError { pointer: pointer.to_owned(), message: message.to_owned() }];
    let content = response.content.as_ref().filter(|content| !content.is_null());
    if let Some(reason) = &response.reason {
        if response.action != Action::Decline {
            return Err(fault("/reason", "is for a decline only"));
        }
        crate::request::check_text("/reason", reason, limits::REASON_BYTES_MAX).map_err(|error| vec![error])?;
    }
    if response.action != Action::Accept {
        return match content {
            Some(_) => Err(fault("/content", "is for an accept only")),
            None => Ok(Response { content: None, ..response.clone() }),
        };
    }
    let effective = match (request, content) {
        (Request::Form(form), Some(content)) if content.is_object() => {
            let filled = form.schema.fill_defaults(content);
            form.schema.validate(&filled).map_err(inside_content)?;
            Some(filled)
        }
        (Request::Form(_), _) => {
            return Err(fault("/content", "must be an object; send {} if there is nothing to give"));
        }
        (Request::Url(_), Some(_)) => return Err(fault("/content", "is not taken with consent to a URL")),
        (Request::Url(_), None) => None,
        (Request::Approval(approval), content) => approval.effective(content).map_err(inside_content)?,
        (Request::Choice(choice), content) => Some(check_answer(content, !choice.multi_select, Some(choice))?),
        (Request::Text(_), content) => Some(check_answer(content, true, None)?),
    };
    Ok(Response { action: Action::Accept, content: effective, reason: None })
}

fn inside_content(faults: Vec<FieldError>) -> Vec<FieldError> {
    faults.into_iter().map(|fault| FieldError { pointer: format!("/content{}", fault.pointer), ..fault }).collect()
}

/// A choice and a text take `{"answer": [..]}`: texts, exactly one where only one may be given; of several options none
/// may be taken, too.
fn check_answer(content: Option<&Json>, single: bool, choice: Option<&Choice>) -> Result<Json, Vec<FieldError>> {
    let fault = |message: String| vec![FieldError { pointer: "/content/answer".to_owned(), message }];
    let shape = || fault("must be a list of texts, as in {\"answer\": [\"…\"]}".to_owned());
    let content = content.ok_or_else(shape)?;
    let value = content.value();
    let members = value.as_object().filter(|members| members.len() == 1).ok_or_else(shape)?;
    let answer = members.get("answer").and_then(serde_json::Value::as_array).ok_or_else(shape)?;
    let texts: Vec<&str> = answer.iter().map(|entry| entry.as_str().ok_or_else(shape)).collect::<Result<_, _>>()?;
    if texts.iter().any(|text| text.trim().is_empty()) || (texts.is_empty() && choice.is_none_or(|c| !c.multi_select)) {
        return Err(fault("must not be empty".to_owned()));
    }
    if single && texts.len() > 1 {
        return Err(fault("takes one answer only".to_owned()));
    }
    let mut seen = std::collections::HashSet::new();
    if !texts.iter().all(|text| seen.insert(*text)) {
        return Err(fault("must not repeat an answer".to_owned()));
    }
    Ok(content.clone())
}

impl CheckedResponses {
    /// The canonical text of what was submitted: equal texts are the same answer (`docs/rounds.md`, "Idempotency").
    pub fn canonical(&self) -> String {
        let mut entries: Vec<_> = self.submitted.0.iter().collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut text = String::new();
        for (key, response) in entries {
            let content = response.content.as_ref().map(Json::canonical);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key:?} {} {content:?} {:?}", response.action.as_str(), response.reason);
        }
        text
    }
}
