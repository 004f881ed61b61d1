//! The model behind an OpenAI-compatible endpoint: the messages go out whole, one answer comes back whole.

use std::time::Duration;

use sayso::kit::HttpServer;
use sayso::{Error, Json};
use sayso_core::json::{ObjectView, visible};
use sayso_core::limits::{CALL_ID_BYTES_MAX, NAME_BYTES_MAX, TURN_CALLS_MAX};
use serde_json::Value;

use super::offer::Offered;
use crate::jsonrpc::{Endpoint, HttpFault};

/// How long a model may take for an answer, unless somebody says otherwise.
pub const ANSWER_WITHIN_DEFAULT: Duration = Duration::from_secs(300);
/// What is waited before an endpoint that was busy or away is asked again.
const TRY_AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];
const PATH: &str = "/chat/completions";

/// A model and where it is reached: an endpoint with `/chat/completions`, over plain HTTP.
///
/// There is no TLS here: the endpoint is on this machine, or reached through a proxy or tunnel that is.
#[derive(Clone)]
pub struct ChatEndpoint {
    endpoint: Endpoint,
    model: String,
    limit: Duration,
}

/// The endpoint's headers may carry a key: they are not printed.
impl std::fmt::Debug for ChatEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatEndpoint").field("endpoint", &self.endpoint).field("model", &self.model).finish()
    }
}

/// What a model answered.
pub(super) struct Answered {
    /// The message, as it goes back to the model.
    pub message: Json,
    pub text: String,
    pub calls: Vec<ModelCall>,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// A call that a model wants made.
pub(super) struct ModelCall {
    pub id: String,
    pub function: String,
    /// The text that the model wrote; whether it is an object is not known yet.
    pub arguments: String,
}

/// Why there is no answer to go on with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ModelFault {
    #[error("the model cannot be reached: {0}")]
    Http(HttpFault),
    #[error("the model's endpoint answered {0}")]
    Status(u16),
    #[error("the model did not answer within {0} s")]
    Late(u64),
    #[error("the model's answer cannot be used: {0}")]
    Answer(&'static str),
}

impl ModelFault {
    /// The stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answer(_) => "model_answer_invalid",
            Self::Http(_) | Self::Status(_) | Self::Late(_) => "model_unavailable",
        }
    }

    fn is_passing(&self) -> bool {
        match self {
            Self::Http(HttpFault::Unreachable { .. } | HttpFault::Interrupted(_)) => true,
            Self::Status(status) => matches!(status, 408 | 429 | 500..),
            _ => false,
        }
    }
}

impl ChatEndpoint {
    /// The model `model` at `url`, such as `http://127.0.0.1:11434/v1`; `token` goes with every request as a bearer's.
    /// A URL that cannot be reached from here is an [`Error::Model`].
    pub fn new(url: &str, model: impl Into<String>, token: Option<&str>) -> Result<Self, Error> {
        Self::of(HttpServer::new("the model's endpoint", url), model.into(), token)
    }

    /// As [`Self::new`], also on another machine: whoever is on the way reads the token and every message.
    pub fn unencrypted_anywhere(url: &str, model: impl Into<String>, token: Option<&str>) -> Result<Self, Error> {
        Self::of(HttpServer::new("the model's endpoint", url).allow_plain_http(), model.into(), token)
    }

    fn of(mut server: HttpServer, model: String, token: Option<&str>) -> Result<Self, Error> {
        if model.trim().is_empty() || model.len() > NAME_BYTES_MAX {
            return Err(Error::Model(format!("a model's name has 1 to {NAME_BYTES_MAX} bytes")));
        }
        let (path, query) = match server.url.split_once('?') {
            Some((path, query)) => (path.to_owned(), format!("?{query}")),
            None => (server.url.clone(), String::new()),
        };
        let path = path.trim_end_matches('/');
        server.url = if path.ends_with(PATH) { format!("{path}{query}") } else { format!("{path}{PATH}{query}") };
        if let Some(token) = token {
            server = server.header("Authorization", format!("Bearer {token}"));
        }
        Ok(Self { endpoint: Endpoint::new(&server)?, model, limit: ANSWER_WITHIN_DEFAULT })
    }

    /// The same, with so long for an answer.
    #[must_use]
    pub fn answer_within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The same endpoint with another model.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Asks the model what comes next. An endpoint that is busy or away for a moment is asked again.
    pub(super) async fn ask(&self, messages: &[Json], offered: &[Offered]) -> Result<Answered, ModelFault> {
        let request = self.request(messages, offered);
        let mut pauses = TRY_AGAIN.into_iter();
        loop {
            let fault = match self.ask_once(request.clone()).await {
                Ok(answered) => return Ok(answered),
                Err(fault) => fault,
            };
            match pauses.next() {
                Some(pause) if fault.is_passing() => tokio::time::sleep(pause).await,
                _ => return Err(fault),
            }
        }
    }

    async fn ask_once(&self, request: String) -> Result<Answered, ModelFault> {
        let posted = tokio::time::timeout(self.limit, self.endpoint.post(request)).await;
        let posted = posted.map_err(|_| ModelFault::Late(self.limit.as_secs()))?.map_err(ModelFault::Http)?;
        if !(200..300).contains(&posted.status) {
            return Err(ModelFault::Status(posted.status));
        }
        read(&posted.text).map_err(ModelFault::Answer)
    }

    fn request(&self, messages: &[Json], offered: &[Offered]) -> String {
        let texts: Vec<_> = messages.iter().map(Json::as_str).collect();
        let tools: Vec<_> = offered.iter().map(function).collect();
        let tools = if tools.is_empty() { String::new() } else { format!(r#","tools":[{}]"#, tools.join(",")) };
        let model = Json::from_text(&self.model);
        format!(r#"{{"model":{},"stream":false,"messages":[{}]{tools}}}"#, model.as_str(), texts.join(","))
    }
}

fn function(offered: &Offered) -> String {
    let (name, about) = (Json::from_text(&offered.function), Json::from_text(offered.description()));
    format!(
        r#"{{"type":"function","function":{{"name":{},"description":{},"parameters":{}}}}}"#,
        name.as_str(),
        about.as_str(),
        offered.parameters.as_str()
    )
}

/// A message of somebody's.
pub(super) fn message(role: &str, text: &str) -> Json {
    Json::from_value(&serde_json::json!({ "role": role, "content": text }))
}

/// What came of a call.
pub(super) fn tool_message(id: &str, text: &str) -> Json {
    Json::from_value(&serde_json::json!({ "role": "tool", "tool_call_id": id, "content": text }))
}

fn read(text: &str) -> Result<Answered, &'static str> {
    let answer = Json::parse(text).map_err(|_| "it is no strict JSON")?;
    let view = answer.object().ok_or("it is no object")?;
    let choices = view.get("choices").and_then(|choices| Json::parse(choices).ok()).ok_or("it has no choices")?;
    let choice = choices.items().into_iter().next().ok_or("it has no choices")?;
    let message = choice.object().and_then(|choice| choice.get("message").map(str::to_owned));
    let message = message.ok_or("it has no message")?;
    let message = ObjectView::read(&message).ok_or("its message is no object")?;
    let content = message.get("content").filter(|content| *content != "null");
    let calls = message.get("tool_calls").filter(|calls| !matches!(*calls, "null" | "[]"));
    let used = |name: &str| {
        let count = view.get("usage").and_then(ObjectView::read).and_then(|usage| usage.get(name)?.parse().ok());
        count.unwrap_or(0)
    };
    let mut kept = vec![r#""role":"assistant""#.to_owned(), format!(r#""content":{}"#, content.unwrap_or("null"))];
    kept.extend(calls.map(|calls| format!(r#""tool_calls":{calls}"#)));
    Ok(Answered {
        message: Json::parse(&format!("{{{}}}", kept.join(","))).map_err(|_| "its message cannot be kept")?,
        text: content.map(text_of).unwrap_or_default(),
        calls: calls.map(read_calls).transpose()?.unwrap_or_default(),
        prompt_tokens: used("prompt_tokens"),
        completion_tokens: used("completion_tokens"),
    })
}

/// The text of a content: a text, or the texts of its parts.
fn text_of(content: &str) -> String {
    match serde_json::from_str(content) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn read_calls(text: &str) -> Result<Vec<ModelCall>, &'static str> {
    let calls = Json::parse(text).map_err(|_| "its calls are no list")?;
    if !calls.as_str().starts_with('[') {
        return Err("its calls are no list");
    }
    let mut read: Vec<ModelCall> = Vec::new();
    for call in calls.items() {
        let call = read_call(&call)?;
        if read.iter().any(|known| known.id == call.id) {
            return Err("two of its calls have the same id");
        }
        read.push(call);
    }
    if read.len() > TURN_CALLS_MAX {
        return Err("it has too many calls");
    }
    Ok(read)
}

fn read_call(call: &Json) -> Result<ModelCall, &'static str> {
    let text = |text: &str| serde_json::from_str::<String>(text).ok();
    let view = call.object().ok_or("a call of it is no object")?;
    let id = view.get("id").and_then(text).ok_or("a call of it has no id")?;
    // It is the key under which a person is asked.
    let is_plain = !id.is_empty() && id.len() <= CALL_ID_BYTES_MAX && visible(&id) == id;
    if !is_plain || id.trim() != id {
        return Err("a call of it has an id that is none");
    }
    let function = view.get("function").and_then(ObjectView::read).ok_or("a call of it names no function")?;
    let name = function.get("name").and_then(text).ok_or("a call of it names no function")?;
    let arguments = function.get("arguments").unwrap_or("{}");
    // Some endpoints send the object itself instead of its text.
    let arguments = if arguments.starts_with('"') { text(arguments).unwrap_or_default() } else { arguments.to_owned() };
    Ok(ModelCall { id, function: name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &str) -> String {
        format!(r#"{{"choices":[{{"message":{message}}}],"usage":{{"prompt_tokens":3,"completion_tokens":4}}}}"#)
    }

    #[test]
    fn an_answer_is_text_or_calls_with_ids_of_their_own() {
        let read_text =
            read(&answer(r#"{"role":"assistant","content":"Done.","refusal":null}"#)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((read_text.text.as_str(), read_text.calls.len(), read_text.prompt_tokens), ("Done.", 0, 3));
        assert_eq!(read_text.message.as_str(), r#"{"role":"assistant","content":"Done."}"#);
        let call = |id: &str, arguments: &str| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"pay","arguments":{arguments}}}}}"#)
        };
        let calls = format!(
            r#"{{"content":null,"tool_calls":[{},{}]}}"#,
            call("a", r#""{\"n\":1.50}""#),
            call("b", r#"{"n":2}"#)
        );
        let read_calls = read(&answer(&calls)).unwrap_or_else(|e| panic!("{e}")).calls;
        let texts: Vec<_> = read_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        assert_eq!(texts, [("a", r#"{"n":1.50}"#), ("b", r#"{"n":2}"#)]);
        for (message, words) in [
            (format!(r#"{{"tool_calls":[{},{}]}}"#, call("a", r#""{}""#), call("a", r#""{}""#)), "the same id"),
            (format!(r#"{{"tool_calls":[{}]}}"#, call("", r#""{}""#)), "an id that is none"),
            (format!(r#"{{"tool_calls":[{}]}}"#, call("\u{202e}x", r#""{}""#)), "an id that is none"),
            (r#"{"tool_calls":[{"id":"a"}]}"#.to_owned(), "names no function"),
            (r#"{"tool_calls":{"id":"a"}}"#.to_owned(), "no list"),
            ("7".to_owned(), "no object"),
        ] {
            assert!(read(&answer(&message)).err().is_some_and(|error| error.contains(words)), "{message}");
        }
    }

    #[test]
    fn an_endpoint_is_named_with_or_without_its_path_and_its_token_is_never_printed() {
        for url in ["http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1/chat/completions"] {
            let endpoint = ChatEndpoint::new(url, "m", Some("s3cret")).unwrap_or_else(|e| panic!("{e}"));
            assert!(!format!("{endpoint:?}").contains("s3cret"));
        }
        assert!(ChatEndpoint::new("https://api.example.com/v1", "m", None).is_err());
        assert!(ChatEndpoint::new("http://127.0.0.1:1/v1", " ", None).is_err());
    }
}
