//! The recorded steps, and the values in them.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::HashMap;

use sayso::storage::{ElicitationRequest, ElicitationResponse};
use sayso::wire::Keyed;
use sayso::{Error, ErrorCode, Json};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub struct Sequence {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
pub struct Step {
    pub op: String,
    pub args: HashMap<String, Box<RawValue>>,
    #[serde(default)]
    pub at_ms: i64,
    pub outcome: String,
    pub error_code: Option<String>,
    pub error_kind: Option<String>,
    pub state_after: Option<Value>,
    pub result: Option<Value>,
    pub follow: String,
    pub rule: Option<String>,
    pub should: Option<Value>,
    #[serde(default)]
    pub diverges: bool,
}

pub fn read(lines: &str) -> Vec<Sequence> {
    lines.lines().map(|line| serde_json::from_str(line).expect("a vector")).collect()
}

impl Step {
    /// An argument's text, with the marked values put in.
    pub fn raw(&self, name: &str) -> Option<String> {
        let text = self.args.get(name)?.get();
        let deep = format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70));
        let marked = [
            ("\"@inf\"", "Infinity"),
            ("\"@nan\"", "NaN"),
            ("\"@huge\"", "1e18"),
            ("@surrogate", r"\ud800"),
            ("\"@deep70\"", &deep),
        ];
        let text = marked.iter().fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value));
        (text != "null").then_some(text)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(&self.raw(name)?).ok()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.raw(name).as_deref() == Some("true")
    }

    /// An argument as its type reads it; what the type cannot hold is refused, as the reference's models do.
    pub fn typed<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let text = self.raw(name).unwrap_or_else(|| "null".to_owned());
        serde_json::from_str(&text).map_err(|_| Error::field(format!("/{name}"), "is not of its type"))
    }

    pub fn json(&self, name: &str) -> Result<Option<Json>, Error> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        Json::parse(&text).map(Some).map_err(|_| Error::field(format!("/{name}"), "is no JSON"))
    }

    pub fn requests(&self) -> Result<Keyed<ElicitationRequest>, Error> {
        #[derive(Deserialize)]
        struct Request {
            mode: String,
            message: String,
            schema: Option<Json>,
            url: Option<String>,
        }
        let requests: Keyed<Request> = self.typed("requests")?;
        let read = |(key, request): (String, Request)| {
            let Request { mode, message, schema, url } = request;
            let read = match mode.as_str() {
                "form" => ElicitationRequest::form(&key, message, schema.expect("a schema")),
                _ => ElicitationRequest::url(&key, message, url.expect("a URL")),
            };
            (key, read)
        };
        Ok(Keyed(requests.0.into_iter().map(read).collect()))
    }

    pub fn responses(&self) -> Result<Keyed<ElicitationResponse>, Error> {
        self.typed("responses")
    }

    /// What the reference said: nothing, or the code of its error. What its models refused before the store was called
    /// has none, and is read as a validation error.
    pub fn recorded(&self) -> Option<ErrorCode> {
        if self.outcome == "ok" {
            return None;
        }
        Some(match self.error_code.as_deref() {
            Some(code) => *ErrorCode::ALL.iter().find(|known| known.as_str() == code).expect("a code"),
            None => ErrorCode::ManagedInputInvalid,
        })
    }

    /// The word of the error that the reference gave, if it did.
    pub fn recorded_word(&self) -> Option<&str> {
        (self.outcome != "ok").then_some(self.error_code.as_deref()).flatten()
    }
}
