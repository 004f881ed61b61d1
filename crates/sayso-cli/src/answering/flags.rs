//! `--field`, `--text`, `--accept`, `--decline` and `--cancel` as a response map.

use sayso::wire::{Keyed, Response};
use sayso::{Error, Json};
use sayso_core::json::{pointer_to, visible};
use sayso_core::request::{Form, Request, Requests};
use sayso_core::response::text_answer;
use sayso_core::schema::{Field, FieldKind};

use crate::typed;

/// What the flags say.
pub struct Given<'a> {
    /// `--field`, in order.
    pub fields: &'a [(String, String)],
    /// `--text`.
    pub text: Option<&'a str>,
    /// `--request`.
    pub request: Option<&'a str>,
    /// `--accept`.
    pub accept: bool,
    /// `--decline`, and with it perhaps `--reason`.
    pub decline: Option<Option<&'a str>>,
    /// `--cancel`.
    pub cancel: bool,
}

/// The texts given for the fields of one form, in the order in which they first came.
struct FormTexts<'a> {
    key: &'a str,
    form: &'a Form,
    texts: Vec<(&'a str, Vec<&'a str>)>,
}

/// The response map that the flags stand for. Requests that no flag is about are left out, and refused as unanswered.
pub fn responses_of_flags(requests: &Requests, given: &Given<'_>) -> Result<Keyed<Response>, Error> {
    if let Some(reason) = given.decline {
        let decline = Response::decline(reason.map(str::to_owned));
        return Ok(Keyed(requests.iter().map(|(key, _)| (key.to_owned(), decline.clone())).collect()));
    }
    if given.cancel {
        return Ok(Keyed(requests.iter().map(|(key, _)| (key.to_owned(), Response::cancel())).collect()));
    }
    let forms = sorted_by_form(requests, given)?;
    let texted = given.text.map(|text| text_target(requests, given.request).map(|key| (key, text))).transpose()?;
    let mut responses = Vec::new();
    for (key, request) in requests.iter() {
        let response = if let Some(found) = forms.iter().find(|found| found.key == key) {
            Some(Response::accept(content(found)?))
        } else if let Some((_, text)) = texted.filter(|(target, _)| *target == key) {
            Some(Response::accept(text_content(key, request, text)?))
        } else if given.accept {
            accepted(request)
        } else {
            None
        };
        responses.extend(response.map(|response| (key.to_owned(), response)));
    }
    Ok(Keyed(responses))
}

/// What `--accept` alone means for a request; a question needs words.
fn accepted(request: &Request) -> Option<Response> {
    match request {
        Request::Form(_) => Some(Response::accept(Json::from_value(&serde_json::Value::Object(Default::default())))),
        Request::Url(_) | Request::Approval(_) => Some(Response::consent()),
        Request::Choice(_) | Request::Text(_) => None,
    }
}

fn sorted_by_form<'a>(requests: &'a Requests, given: &Given<'a>) -> Result<Vec<FormTexts<'a>>, Error> {
    let mut forms: Vec<FormTexts<'a>> = Vec::new();
    for (name, value) in given.fields {
        let (key, request, name) = target(requests, given.request, name)?;
        let Request::Form(form) = request else {
            let message = format!("is a request of the kind {}, which takes no --field", request.kind());
            return Err(Error::field(pointer_to("/responses", key), message));
        };
        let place = match forms.iter().position(|known| known.key == key) {
            Some(place) => place,
            None => {
                forms.push(FormTexts { key, form, texts: Vec::new() });
                forms.len() - 1
            }
        };
        let Some(known) = forms.get_mut(place) else { continue };
        match known.texts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push(value),
            None => known.texts.push((name, vec![value])),
        }
    }
    Ok(forms)
}

/// Which request a `--field` is for, and the field's own name.
fn target<'a>(
    requests: &'a Requests,
    request: Option<&'a str>,
    name: &'a str,
) -> Result<(&'a str, &'a Request, &'a str), Error> {
    if let Some(key) = request {
        return Ok((key, known(requests, key)?, name));
    }
    let mut all = requests.iter();
    if let (Some((key, only)), None) = (all.next(), all.next()) {
        return Ok((key, only, name));
    }
    let prefixed = requests.iter().filter_map(|(key, request)| {
        let rest = name.strip_prefix(key)?.strip_prefix('.')?;
        Some((key, request, rest))
    });
    prefixed.max_by_key(|(key, ..)| key.len()).ok_or_else(|| {
        let keys: Vec<_> = requests.iter().map(|(key, _)| visible(key)).collect();
        let message = format!(
            "{} names no request: this round has several, so write KEY.NAME=VALUE with one of the keys {}",
            visible(name),
            keys.join(", ")
        );
        Error::field("/responses", message)
    })
}

fn known<'a>(requests: &'a Requests, key: &str) -> Result<&'a Request, Error> {
    requests.get(key).ok_or_else(|| Error::field(pointer_to("/responses", key), "is not a request of this round"))
}

fn content(found: &FormTexts<'_>) -> Result<Json, Error> {
    let at = pointer_to(&pointer_to("/responses", found.key), "content");
    let fields = found.form.schema.fields();
    let mut members = Vec::new();
    for (name, texts) in &found.texts {
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            let names: Vec<_> = fields.iter().map(|field| visible(&field.name)).collect();
            let message = format!("is not a field of this form; its fields are: {}", names.join(", "));
            return Err(Error::field(pointer_to(&at, name), message));
        };
        members.push((field.name.clone(), value(field, texts, &at)?));
    }
    typed::object(&members).map_err(|message| Error::field(at, message))
}

fn value(field: &Field, texts: &[&str], at: &str) -> Result<Json, Error> {
    match (texts, &field.kind) {
        (_, FieldKind::MultiChoice { options, .. }) => Ok(typed::several(options, texts)),
        ([text], _) => Ok(typed::value(field, text)),
        _ => Err(Error::field(pointer_to(at, &field.name), "is given more than once and takes one value")),
    }
}

/// Which request `--text` is for: the one named, else the only one that takes words.
fn text_target<'a>(requests: &'a Requests, request: Option<&'a str>) -> Result<&'a str, Error> {
    if let Some(key) = request {
        return known(requests, key).map(|_| key);
    }
    let takes_words = |(_, request): &(&str, &Request)| matches!(request, Request::Choice(_) | Request::Text(_));
    let mut fitting = requests.iter().filter(takes_words);
    match (fitting.next(), fitting.next()) {
        (Some((key, _)), None) => Ok(key),
        (None, _) => Err(Error::field("/responses", "holds no choice and no question, which alone take --text")),
        _ => Err(Error::field("/responses", "holds several questions; say which with --request KEY")),
    }
}

fn text_content(key: &str, request: &Request, text: &str) -> Result<Json, Error> {
    let answer = match request {
        Request::Choice(choice) => text_answer(choice, text).unwrap_or_default(),
        Request::Text(_) => vec![text.to_owned()],
        _ => {
            let message = format!("is a request of the kind {}, which takes no --text", request.kind());
            return Err(Error::field(pointer_to("/responses", key), message));
        }
    };
    Ok(typed::answer(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso::wire;

    fn requests(members: &str) -> Requests {
        serde_json::from_str::<Keyed<wire::Request>>(members).unwrap().check().unwrap()
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const NOTHING: Given<'static> =
        Given { fields: &[], text: None, request: None, accept: false, decline: None, cancel: false };

    const TWO: &str = r#"{
        "a":{"kind":"form","message":"m","schema":{"type":"object","properties":{"n":{"type":"number"},"b.c":{"type":"string"}}}},
        "a.b":{"kind":"form","message":"m","schema":{"type":"object","properties":{"c":{"type":"string"}}}},
        "q":{"kind":"choice","question":"?","options":[{"label":"red"},{"label":"blue"}]}}"#;

    fn shown(responses: &Keyed<Response>) -> Vec<(String, String)> {
        let text = |response: &Response| response.content.as_ref().map_or("-", Json::as_str).to_owned();
        responses.0.iter().map(|(key, response)| (key.clone(), text(response))).collect()
    }

    #[test]
    fn a_field_goes_to_the_request_with_the_longest_key_or_to_the_one_named() {
        let requests = requests(TWO);
        let given = fields(&[("a.n", "1.50"), ("a.b.c", "x")]);
        let found = responses_of_flags(&requests, &Given { fields: &given, text: Some("2"), ..NOTHING }).unwrap();
        let expected = [("a", r#"{"n":1.50}"#), ("a.b", r#"{"c":"x"}"#), ("q", r#"{"answer":["blue"]}"#)];
        assert_eq!(shown(&found), expected.map(|(key, text)| (key.to_owned(), text.to_owned())));

        let given = fields(&[("b.c", "x")]);
        let found = responses_of_flags(&requests, &Given { fields: &given, request: Some("a"), ..NOTHING }).unwrap();
        assert_eq!(shown(&found), [("a".to_owned(), r#"{"b.c":"x"}"#.to_owned())]);
    }

    #[test]
    fn what_cannot_be_placed_names_where_it_could_go() {
        let requests = requests(TWO);
        for (name, words) in [("z.n", "KEY.NAME"), ("a.m", "its fields are: n, b.c"), ("q.x", "takes no --field")] {
            let given = fields(&[(name, "1")]);
            let error = responses_of_flags(&requests, &Given { fields: &given, ..NOTHING }).unwrap_err();
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
        let given = fields(&[("a.n", "1"), ("a.n", "2")]);
        assert!(responses_of_flags(&requests, &Given { fields: &given, ..NOTHING }).is_err());
    }

    #[test]
    fn decline_and_cancel_are_for_every_request_and_accept_for_what_needs_no_words() {
        let requests = requests(TWO);
        let declined = responses_of_flags(&requests, &Given { decline: Some(Some("no")), ..NOTHING }).unwrap();
        assert_eq!(declined.0.len(), 3);
        assert!(declined.0.iter().all(|(_, response)| response.reason.as_deref() == Some("no")));
        assert_eq!(responses_of_flags(&requests, &Given { cancel: true, ..NOTHING }).unwrap().0.len(), 3);
        let accepted = responses_of_flags(&requests, &Given { accept: true, ..NOTHING }).unwrap();
        assert_eq!(shown(&accepted).into_iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "a.b"]);
    }
}
