//! Recorded answers of another system (`tests/data/m3_validation.jsonl`), as far as they are about keys, actions and URLs
//! and not about the content of a form, which is `schema_oracle.rs`'s.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use sayso_core::error::Error;
use sayso_core::response::check;
use sayso_core::wire::{Keyed, Request, RequestKind, Response, responses_from_wire};
use serde::Deserialize;
use serde_json::value::RawValue;

const VECTORS: &str = include_str!("data/m3_validation.jsonl");

#[derive(Deserialize)]
struct Vector {
    name: String,
    schema: Option<sayso_core::json::Json>,
    response: Option<Box<RawValue>>,
    requests: Option<Keyed<Asked>>,
    responses: Option<Box<RawValue>>,
    valid: bool,
    kind: String,
    follow: String,
}

#[derive(Deserialize)]
struct Asked {
    mode: String,
    schema: Option<sayso_core::json::Json>,
}

impl Asked {
    fn request(self) -> Request {
        match (self.mode.as_str(), self.schema) {
            ("form", Some(schema)) => Request::form("m", schema),
            _ => Request {
                message: Some("m".to_owned()),
                url: Some("https://example.com/".to_owned()),
                ..Request::empty(RequestKind::Url)
            },
        }
    }
}

impl Vector {
    /// Whether it is about more than content.
    fn is_ours(&self) -> bool {
        let Some(response) = &self.response else { return true };
        let response: Result<Response, _> = serde_json::from_str(response.get());
        response.map_or(true, |response| response.content.is_none_or(|content| content.is_null()))
            || self.kind == "refused_by_model"
    }

    /// The words of a refusal, if it is one.
    fn judged(self) -> Option<String> {
        let asked = match (self.requests, self.schema) {
            (Some(requests), _) => requests.0.into_iter().map(|(key, asked)| (key, asked.request())).collect(),
            (None, Some(schema)) => vec![("k".to_owned(), Request::form("m", schema))],
            (None, None) => panic!("{}", self.name),
        };
        let requests = Keyed(asked).check().expect("can be asked");
        let answered = match (self.responses, self.response) {
            (Some(responses), _) => responses.get().to_owned(),
            (None, Some(response)) => format!(r#"{{"k":{}}}"#, response.get()),
            (None, None) => panic!("{}", self.name),
        };
        let answered: Keyed<Response> = match serde_json::from_str(&answered) {
            Ok(answered) => answered,
            Err(error) => return Some(error.to_string()),
        };
        match check(&requests, &responses_from_wire(&answered)) {
            Ok(_) => None,
            Err(Error::Validation { fields, .. }) => Some(fields[0].to_string()),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn keys_actions_and_urls_are_judged_as_recorded() {
    let mut judged = 0;
    for line in VECTORS.lines() {
        let vector: Vector = serde_json::from_str(line).expect("a vector");
        if !vector.is_ours() {
            continue;
        }
        let (name, valid, kind) = (vector.name.clone(), vector.valid, vector.kind.clone());
        assert_eq!(vector.follow, "yes", "{name}");
        let refused = vector.judged();
        // The reference's answers may carry members of their own; ours have three, and no other (`docs/http.md`).
        let valid = valid && name != "action/meta";
        assert_eq!(refused.is_none(), valid, "{name}: {refused:?}");
        // What was not asked is told before what is missing.
        let told = match kind.as_str() {
            "keys_unexpected" => "is not a request of this round",
            "keys_missing" => "is not answered",
            "accept_without_content" => "must be an object",
            "url_with_content" => "is not taken",
            _ => "",
        };
        assert!(refused.unwrap_or_default().contains(told), "{name}: expected was \"{told}\"");
        judged += 1;
    }
    assert_eq!(judged, 24, "vectors, four of which schema_oracle.rs has too");
}
