//! How MCP (2025-06-18 and 2025-11-25) puts a question and its answer into JSON-RPC.

use sayso::wire::{Request, RequestKind, Response};
use sayso_core::json::Json;
use sayso_core::response::Action;

use super::Message;

/// What an `elicitation/create` asks. The error is a sentence for the asker.
pub fn read_elicitation(message: &Message) -> Result<Request, String> {
    let text = message.string_param("message").ok_or("params.message must be a text")?;
    match message.string_param("mode").as_deref() {
        None | Some("form") => {
            let schema = message.param("requestedSchema").ok_or("params.requestedSchema is required")?;
            let json = |text: &str| Json::parse(text).map_err(|error| error.to_string());
            let meta = message.param("_meta").map(json).transpose()?;
            Ok(Request { meta, ..Request::form(text, json(schema)?) })
        }
        Some("url") => {
            let url = message.string_param("url").ok_or("params.url must be a text")?;
            let elicitation_id = message.string_param("elicitationId");
            Ok(Request { message: Some(text), url: Some(url), elicitation_id, ..Request::empty(RequestKind::Url) })
        }
        Some(_) => Err("params.mode must be form or url".to_owned()),
    }
}

/// An answer as MCP has it; none is a dismissal. A decline's reason, for which MCP has no place, goes under a key of ours.
pub fn elicit_result(response: Option<&Response>) -> String {
    let Some(response) = response else { return r#"{"action":"cancel"}"#.to_owned() };
    let mut members = vec![format!(r#""action":"{}""#, response.action.as_str())];
    if response.action == Action::Accept
        && let Some(content) = &response.content
    {
        members.push(format!(r#""content":{}"#, content.as_str()));
    }
    if let Some(reason) = &response.reason {
        members.push(format!(r#""_meta":{{"dev.sayso/reason":{}}}"#, Json::from_text(reason).as_str()));
    }
    format!("{{{}}}", members.join(","))
}
