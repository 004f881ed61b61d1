//! The tools of our own that agents call, the same for every adapter that offers them: ask a person, wait for a paused
//! call, report a person's verdict.

mod hold;
mod listed;
mod paused;
mod questions;
mod resume;

use sayso::wire::ExecutionResult;
use serde_json::json;

pub use hold::Hold;
pub(crate) use listed::{ASK_TOOL, RESUME_TOOL, WAIT_TOOL, ask_definition, resume_definition, wait_definition};
pub(crate) use paused::{TURN_PREFIX, paused_calls};
pub(crate) use questions::{answers, read_questions, under_keys};
pub(crate) use resume::{ASKED, Report, Resume, is_gates};

use crate::jsonrpc;

/// What a call has answered, as it was stored: `result` or `error`, and its text.
pub(crate) fn stored_answer(found: &ExecutionResult) -> Option<(&'static str, &str)> {
    let view = found.result.as_ref()?.object()?;
    ["result", "error"].into_iter().find_map(|name| Some((name, view.get(name)?)))
}

/// An error that the agent reads as the tool's own words.
pub(crate) fn tool_error(client_id: &str, text: &str) -> String {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    jsonrpc::result(client_id, &result.to_string())
}
