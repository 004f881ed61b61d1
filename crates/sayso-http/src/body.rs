//! Bodies: bounded, then read by the strict reader, then by shape. What is wrong is named, never quoted.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use sayso_core::error::Error;
use sayso_core::json::{Json, ObjectView, pointer_to};
use sayso_core::limits;
use serde::de::DeserializeOwned;

use crate::app::Shared;
use crate::problem::Refusal;

/// A body of the API: a whole round as asked, its opaque state with every byte escaped, and its frame.
pub(crate) const BODY_BYTES_MAX: usize = limits::ROUND_BYTES_MAX + 6 * limits::REQUEST_STATE_BYTES_MAX + 64 * 1024;

/// The form of a page: an answer with every byte as `%XX`, and its frame.
pub(crate) const FORM_BYTES_MAX: usize = 3 * limits::ANSWER_BYTES_MAX + 64 * 1024;

/// A JSON body of the shape `T`.
pub(crate) struct Strict<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Strict<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Refusal> {
        Ok(Self(read(request, BODY_BYTES_MAX, limits::JSON_DEPTH_MAX).await?))
    }
}

/// A JSON body that may hold the result of an operation.
pub(crate) struct WithResult<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for WithResult<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Refusal> {
        let bytes_max = limits::RESULT_BYTES_MAX + BODY_BYTES_MAX;
        Ok(Self(read(request, bytes_max, limits::JSON_DEPTH_CEILING).await?))
    }
}

async fn read<T: DeserializeOwned>(request: Request, bytes_max: usize, depth_max: usize) -> Result<T, Refusal> {
    let (parts, body) = request.into_parts();
    if media_type(&parts.headers) != Some("application/json") {
        return Err(Refusal::media_type("application/json"));
    }
    let bytes = bounded(body, bytes_max).await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::field("", "must be UTF-8"))?;
    Ok(parse(text, bytes_max, depth_max)?)
}

/// The media type of a body, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim())
}

async fn bounded(body: Body, bytes_max: usize) -> Result<Bytes, Error> {
    // A body that cannot be read to its end has lost its sender, who reads no answer either.
    to_bytes(body, bytes_max).await.map_err(|_| Error::Limit(format!("a body may have at most {bytes_max} bytes")))
}

/// The pairs of a page's form, in order.
pub(crate) async fn form(request: Request) -> Result<Vec<(String, String)>, Refusal> {
    let (parts, body) = request.into_parts();
    let wanted = "application/x-www-form-urlencoded";
    if media_type(&parts.headers) != Some(wanted) {
        return Err(Refusal::media_type(wanted));
    }
    let bytes = bounded(body, FORM_BYTES_MAX).await?;
    Ok(form_urlencoded::parse(&bytes).into_owned().collect())
}

fn parse<T: DeserializeOwned>(text: &str, bytes_max: usize, depth_max: usize) -> Result<T, Error> {
    let json = Json::parse_within(text, bytes_max, depth_max)
        .map_err(|error| Error::field("", format!("cannot be read: {error}")))?;
    serde_json::from_str(json.as_str()).map_err(|error| shape_error(json.as_str(), &error))
}

/// What the shape lacks, without the reader's own words: they quote values.
fn shape_error(text: &str, error: &serde_json::Error) -> Error {
    let pointer = place(text, offset(text, error.line(), error.column()));
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    if let Some(name) = said.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Error::field(pointer_to(&pointer, name), "is required");
    }
    if said.starts_with("unknown field `") {
        return Error::field(pointer, "is not a member that is known here");
    }
    match said.rsplit_once(", expected ") {
        Some((_, wanted)) => Error::field(pointer, format!("is not {}", wanted.replace('`', ""))),
        None => Error::field(pointer, "has not the form that is documented"),
    }
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column
}

/// The pointer to the innermost member of an object that the byte `at` belongs to.
fn place(text: &str, at: usize) -> String {
    let (mut pointer, mut inside, mut at) = (String::new(), text, at);
    while let Some(view) = ObjectView::read(inside) {
        let covers = |member: &&sayso_core::json::Member| member.name_range.start < at && at <= member.value_range.end;
        let Some(member) = view.members.iter().find(covers) else { break };
        pointer = pointer_to(&pointer, &member.name);
        let Some(value) = inside.get(member.value_range.clone()).filter(|_| at > member.value_range.start) else {
            break;
        };
        at -= member.value_range.start;
        inside = value;
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso::{Answer, Ask};

    fn fault<T: DeserializeOwned>(text: &str) -> (String, String) {
        match parse::<T>(text, BODY_BYTES_MAX, limits::JSON_DEPTH_MAX) {
            Err(Error::Validation { fields, .. }) => (fields[0].pointer.clone(), fields[0].message.clone()),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("{text} was read"),
        }
    }

    #[test]
    fn a_wrong_member_is_named_and_its_value_is_not_repeated() {
        for (text, pointer, message) in [
            ("{}", "/requests", "is required"),
            (r#"{"requests":{},"frist":1}"#, "/frist", "is not a member that is known here"),
            (r#"{"requests":{"a":{"kind":"form","hue":"s3cret"}}}"#, "/requests/a/hue", "is not a member"),
            (r#"{"requests":{"a":{"kind":"s3cret"}}}"#, "/requests/a/kind", "is not one of form, url"),
            (r#"{"requests":"s3cret"}"#, "/requests", "is not an object"),
            ("{\n \"server\": 5,\n \"requests\":{}}", "/server", "is not a string"),
            (r#"{"execution_id":"s3cret","requests":{}}"#, "/execution_id", "has not the form"),
            (r#"{"requests":{},"requests":{}}"#, "", "cannot be read: an object has two members of the same name"),
        ] {
            let (at, said) = fault::<Ask>(text);
            assert_eq!(at, pointer, "{text}: {said}");
            assert!(said.starts_with(message), "{text}: {said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
        assert_eq!(
            fault::<Answer>(r#"{"responses":{"a":{"action":"accept","contents":1}}}"#).0,
            "/responses/a/contents"
        );
    }
}
