//! `--field`, `--text`, `--accept`, `--approve`, `--decline`, `--deny` and `--cancel` as a response map.

use sayso::wire::{Keyed, Response};
use sayso::{Error, Json};
use sayso_core::json::{pointer_to, visible};
use sayso_core::request::{Request, Requests};
use sayso_core::response::{Content, text_answer};
use sayso_core::schema::{FormSchema, InputSchema};

use super::nested::{Texts, object};
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
    /// `--approve`.
    pub approve: bool,
    /// `--arguments`: what an approved call runs with instead.
    pub arguments: Option<&'a Json>,
    /// `--input`: what a call is approved with.
    pub input: Option<&'a Json>,
    /// `--deny`, and with it perhaps `--reason`.
    pub deny: Option<Option<&'a str>>,
    /// `--decline`, and with it perhaps `--reason`.
    pub decline: Option<Option<&'a str>>,
    /// `--cancel`.
    pub cancel: bool,
}

/// The texts given for the fields of one request, in the order in which they first came.
struct FormTexts<'a> {
    key: &'a str,
    schema: &'a FormSchema,
    texts: Vec<Texts<'a>>,
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
    let calls = Calls::of(requests, given)?;
    for (key, request) in requests.iter() {
        let response = if let Request::Approval(_) = request {
            calls.response(key, forms.iter().find(|found| found.key == key))?
        } else if let Some(found) = forms.iter().find(|found| found.key == key) {
            Some(Response::accept(content(found, "/content")?))
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

/// What is decided of the calls of a round.
struct Calls<'g> {
    given: &'g Given<'g>,
    /// The call that arguments and input are for.
    target: Option<&'g str>,
}

impl<'g> Calls<'g> {
    fn of(requests: &'g Requests, given: &'g Given<'g>) -> Result<Self, Error> {
        let decides = given.approve || given.deny.is_some();
        let is_call = |key: &str| matches!(requests.get(key), Some(Request::Approval(_)));
        if let Some(key) = given.request.filter(|key| decides && requests.get(key).is_some() && !is_call(key)) {
            return Err(Error::field(pointer_to("/responses", key), "is no call to approve or deny"));
        }
        let mut calls = requests.iter().filter(|(key, _)| is_call(key)).map(|(key, _)| key);
        let target = match (given.request, calls.next(), calls.next()) {
            (Some(key), ..) => Some(key),
            (None, only, None) => only,
            (None, ..) => None,
        };
        if decides && !requests.has_approval() {
            return Err(Error::field(
                "/responses",
                "holds no call to approve or deny; --accept and --decline are for the rest",
            ));
        }
        if (given.arguments.is_some() || given.input.is_some()) && target.is_none() {
            let message = "holds several calls; say which --arguments and --input are for with --request KEY";
            return Err(Error::field("/responses", message));
        }
        Ok(Self { given, target })
    }

    fn response(&self, key: &str, texts: Option<&FormTexts<'_>>) -> Result<Option<Response>, Error> {
        let given = self.given;
        let is_meant = given.request.is_none_or(|request| request == key);
        if let Some(reason) = given.deny.filter(|_| is_meant) {
            return Ok(Some(Response::decline(reason.map(str::to_owned))));
        }
        let is_approved = given.accept || (given.approve && is_meant);
        if !is_approved {
            return Ok(None);
        }
        let is_target = self.target == Some(key);
        let input = match (given.input.filter(|_| is_target), texts) {
            (Some(_), Some(_)) => {
                return Err(Error::field(pointer_to("/responses", key), "has its input by --input and by --field"));
            }
            (Some(input), None) => Some(input.clone()),
            (None, Some(texts)) => Some(content(texts, "/content/input")?),
            (None, None) => None,
        };
        let content = Content { arguments: given.arguments.filter(|_| is_target).cloned(), input };
        Ok(Some(Response { content: content.written(), ..Response::consent() }))
    }
}

/// What `--accept` alone means for a request; a question needs words.
fn accepted(request: &Request) -> Option<Response> {
    match request {
        Request::Form(_) => Some(Response::accept(Json::from_value(&serde_json::Value::Object(Default::default())))),
        Request::Url(_) => Some(Response::consent()),
        Request::Approval(_) | Request::Choice(_) | Request::Text(_) => None,
    }
}

fn sorted_by_form<'a>(requests: &'a Requests, given: &Given<'a>) -> Result<Vec<FormTexts<'a>>, Error> {
    let mut forms: Vec<FormTexts<'a>> = Vec::new();
    for (name, value) in given.fields {
        let (key, request, name) = target(requests, given.request, name)?;
        let schema = match request {
            Request::Form(form) => Some(&form.schema),
            Request::Approval(approval) => approval.input.as_ref().map(InputSchema::form),
            _ => None,
        };
        let Some(schema) = schema else {
            let message = format!("is a request of the kind {}, which takes no --field", request.kind());
            return Err(Error::field(pointer_to("/responses", key), message));
        };
        let place = match forms.iter().position(|known| known.key == key) {
            Some(place) => place,
            None => {
                forms.push(FormTexts { key, schema, texts: Vec::new() });
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

/// `part` is where in the response the object stands.
fn content(found: &FormTexts<'_>, part: &str) -> Result<Json, Error> {
    object(found.schema.fields(), &found.texts, &format!("{}{part}", pointer_to("/responses", found.key)))
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

    const NOTHING: Given<'static> = Given {
        fields: &[],
        text: None,
        request: None,
        accept: false,
        approve: false,
        arguments: None,
        input: None,
        deny: None,
        decline: None,
        cancel: false,
    };

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

    const CALLS: &str = r#"{
        "a":{"kind":"approval","tool":"x:pay","arguments":{"n":1},"arguments_schema":{"type":"object"}},
        "b":{"kind":"approval","tool":"x:ask","arguments":{},"schema":{"type":"object","properties":{"pin":{"type":"integer"}},"required":["pin"]}}}"#;

    #[test]
    fn calls_are_approved_with_their_arguments_and_input_and_denied_with_a_reason() {
        let (requests, two) = (requests(CALLS), requests(TWO));
        let edited = Json::parse(r#"{"n":2.0}"#).unwrap();
        let pin = fields(&[("b.pin", "7")]);
        let given = Given { approve: true, fields: &pin, ..NOTHING };
        let found = responses_of_flags(&requests, &given).unwrap();
        assert_eq!(
            shown(&found),
            [("a".to_owned(), "-".to_owned()), ("b".to_owned(), r#"{"input":{"pin":7}}"#.to_owned())]
        );
        let given = Given { approve: true, request: Some("a"), arguments: Some(&edited), ..NOTHING };
        let found = responses_of_flags(&requests, &given).unwrap();
        assert_eq!(shown(&found), [("a".to_owned(), r#"{"arguments":{"n":2.0}}"#.to_owned())]);
        let given = Given { deny: Some(Some("no")), ..NOTHING };
        let found = responses_of_flags(&requests, &given).unwrap();
        assert!(found.0.iter().all(|(_, response)| response.reason.as_deref() == Some("no")) && found.0.len() == 2);
        let given = Given { approve: true, arguments: Some(&edited), ..NOTHING };
        assert!(responses_of_flags(&requests, &given).unwrap_err().to_string().contains("--request KEY"));
        let given = Given { approve: true, request: Some("q"), ..NOTHING };
        assert!(responses_of_flags(&two, &given).unwrap_err().to_string().contains("no call"));
    }
}
