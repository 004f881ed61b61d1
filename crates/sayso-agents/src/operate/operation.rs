//! What is to be done, and what came of it.

use sayso::plan::Elicitation;
use sayso::{Json, OperationKind, Response};
use serde_json::Value;

use super::error::OperateError;
use crate::jsonrpc::Message;

/// One operation, and what its answer must be like.
#[derive(Debug, Clone)]
pub struct Operation {
    /// A tool call, a prompt, or the reading of a resource.
    pub kind: OperationKind,
    /// The tool's or prompt's name; the resource's URI.
    pub name: String,
    /// The arguments, an object; none for a resource.
    pub arguments: Option<Json>,
    /// What the text of the answer must contain.
    pub expect_text: Option<String>,
    /// Whether the answer must be an error, instead of must not be.
    pub expect_error: bool,
}

impl Operation {
    /// An operation that must succeed, without arguments.
    pub fn new(kind: OperationKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), arguments: None, expect_text: None, expect_error: false }
    }

    /// MCP's method for it, and its parameters as JSON text.
    pub(crate) fn request(&self) -> (&'static str, String) {
        let name = Json::from_text(&self.name);
        let arguments = self.arguments.as_ref().map_or("{}", Json::as_str);
        match self.kind {
            OperationKind::Tool => ("tools/call", format!(r#"{{"name":{},"arguments":{arguments}}}"#, name.as_str())),
            OperationKind::Prompt => {
                ("prompts/get", format!(r#"{{"name":{},"arguments":{arguments}}}"#, name.as_str()))
            }
            OperationKind::Resource => ("resources/read", format!(r#"{{"uri":{}}}"#, name.as_str())),
        }
    }

    /// What is wrong with an answer.
    pub(super) fn judge(&self, reply: &Reply) -> Vec<OperateError> {
        let came = || reply.text.clone();
        let mut failures = Vec::new();
        match (self.expect_error, reply.is_error) {
            (false, true) => failures.push(OperateError::AnsweredError { came: came() }),
            (true, false) => failures.push(OperateError::NoError { came: came() }),
            _ => {}
        }
        if let Some(expected) = self.expect_text.as_ref().filter(|text| !reply.text.contains(text.as_str())) {
            failures.push(OperateError::OtherText { expected: expected.clone(), came: came() });
        }
        failures
    }
}

/// How a server answered an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether it was an error: of the protocol, or a tool's own.
    pub is_error: bool,
    /// All text in it, a line or more for each piece.
    pub text: String,
}

impl Reply {
    pub(crate) fn read(answer: &Message) -> Self {
        let member = |name: &str| answer.member(name).and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(error) = member("error") {
            let words = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
            return Self { is_error: true, text: words.to_owned() };
        }
        let result = member("result").unwrap_or_default();
        let pieces = |list: &str, inner: Option<&str>| -> Vec<String> {
            let entries = result.get(list).and_then(Value::as_array).into_iter().flatten();
            let inside = |entry: &Value| inner.and_then(|inner| entry.get(inner)).unwrap_or(entry).get("text").cloned();
            entries.filter_map(inside).filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let mut text =
            [pieces("content", None), pieces("messages", Some("content")), pieces("contents", None)].concat();
        if let (true, Some(structured)) = (text.is_empty(), result.get("structuredContent")) {
            text.push(structured.to_string());
        }
        let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
        Self { is_error, text: text.join("\n") }
    }
}

/// One question of the server's, and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What was asked.
    pub asked: Elicitation,
    /// What was answered, defaults filled in; none where the plan had no answer.
    pub answer: Option<Response>,
}

/// What came of an operation.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was asked and answered, in order.
    pub exchanges: Vec<Exchange>,
    /// The answer, if it came to one.
    pub reply: Option<Reply>,
    /// Everything that went wrong; none if the operation passed.
    pub failures: Vec<OperateError>,
}

impl Report {
    /// Whether everything was as expected.
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> (bool, String) {
        let Reply { is_error, text } = Reply::read(&Message::parse(line).unwrap());
        (is_error, text)
    }

    #[test]
    fn the_text_of_every_kind_of_answer_is_read() {
        for (line, is_error, text) in [
            (
                r#"{"id":1,"result":{"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}}"#,
                false,
                "a\nb",
            ),
            (r#"{"id":1,"result":{"content":[{"text":"no"}],"isError":true}}"#, true, "no"),
            (r#"{"id":1,"result":{"content":[],"structuredContent":{"n":1}}}"#, false, r#"{"n":1}"#),
            (r#"{"id":1,"result":{"messages":[{"role":"user","content":{"text":"hi"}}]}}"#, false, "hi"),
            (r#"{"id":1,"result":{"contents":[{"uri":"x:y","text":"body"}]}}"#, false, "body"),
            (r#"{"id":1,"error":{"code":-32602,"message":"unknown"}}"#, true, "unknown"),
            (r#"{"id":1,"result":null}"#, false, ""),
        ] {
            assert_eq!(reply(line), (is_error, text.to_owned()), "{line}");
        }
    }
}
