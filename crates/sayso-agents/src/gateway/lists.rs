//! The tools of the upstream, as the gateway has read them itself, and the one it adds.

use std::collections::HashMap;

use sayso_core::json::{Json, ObjectView, splice};
use sayso_core::limits::JSON_DEPTH_CEILING;

use crate::jsonrpc::Message;

const WAIT_TOOL: &str = "sayso_wait";

/// What is known of the upstream's tools. What a client lists is never trusted for that.
#[derive(Default)]
pub(super) struct Lists {
    /// What the tools say of themselves, by name.
    tools: HashMap<String, ToolFacts>,
    reading: HashMap<String, ToolFacts>,
    /// The client's requests for the first page that wait until the reading is done.
    pub waiting: Vec<Message>,
    pub state: Reading,
}

/// What one tool says of itself.
#[derive(Debug, Clone, Copy)]
struct ToolFacts {
    has_output_schema: bool,
    may_repeat: bool,
}

impl ToolFacts {
    fn of(tool: &serde_json::Value) -> Self {
        let says = |hint: &str| tool.pointer(&format!("/annotations/{hint}")) == Some(&serde_json::Value::Bool(true));
        Self {
            has_output_schema: tool.get("outputSchema").is_some(),
            may_repeat: says("readOnlyHint") || says("idempotentHint"),
        }
    }
}

/// How far the gateway's own reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reading {
    /// It has not begun.
    #[default]
    Unread,
    /// A page is on its way.
    Underway,
    /// The list changed while a page was on its way.
    Outdated,
    /// It is done.
    Read,
}

impl Lists {
    /// A new reading begins.
    pub fn begin(&mut self) {
        self.reading.clear();
        self.state = Reading::Underway;
    }

    /// Takes in a page. The next page's cursor as JSON text, if there is one.
    pub fn take_page(&mut self, answer: &Message) -> Option<String> {
        let result = ObjectView::read(answer.member("result")?)?;
        let tools = Json::parse_within(result.get("tools")?, usize::MAX, JSON_DEPTH_CEILING).ok()?.value();
        for tool in tools.as_array()? {
            if let Some(name) = tool.get("name").and_then(serde_json::Value::as_str) {
                self.reading.insert(name.to_owned(), ToolFacts::of(tool));
            }
        }
        result.get("nextCursor").filter(|cursor| *cursor != "null").map(str::to_owned)
    }

    /// The last page is in.
    pub fn done(&mut self) {
        self.tools = std::mem::take(&mut self.reading);
        self.state = Reading::Read;
    }

    /// Whether a result of this tool must carry what its output schema says, unless it is an error.
    pub fn has_output_schema(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|facts| facts.has_output_schema)
    }

    /// Whether the tool says that calling it again does no harm. A tool that says nothing may do harm.
    pub fn may_repeat(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|facts| facts.may_repeat)
    }

    /// The name of the tool that goes on waiting: another one where the upstream has it already.
    pub fn wait_tool(&self) -> String {
        let taken = |name: &str| self.tools.contains_key(name) || self.reading.contains_key(name);
        if !taken(WAIT_TOOL) {
            return WAIT_TOOL.to_owned();
        }
        (2..).map(|n| format!("{WAIT_TOOL}_{n}")).find(|name| !taken(name)).unwrap_or_else(|| WAIT_TOOL.to_owned())
    }

    /// The first page as the client gets it, with the wait tool at its end.
    pub fn with_wait_tool(&self, line: &str) -> String {
        let place = || {
            let outer = ObjectView::read(line)?;
            let result_at = outer.get_range("result")?;
            let result = ObjectView::read(line.get(result_at.clone())?)?;
            let tools = result.get_range("tools")?;
            let array = line.get(result_at.start + tools.start..result_at.start + tools.end)?;
            let inside = array.strip_prefix('[')?.strip_suffix(']')?;
            let end = result_at.start + tools.end - 1;
            Some((end, inside.trim().is_empty()))
        };
        let Some((end, is_empty)) = place() else { return line.to_owned() };
        let comma = if is_empty { "" } else { "," };
        splice(line, vec![(end..end, format!("{comma}{}", self.wait_tool_definition()))])
    }

    fn wait_tool_definition(&self) -> String {
        let definition = serde_json::json!({
            "name": self.wait_tool(),
            "title": "Wait for a person",
            "description": "Go on waiting for a call that is paused because a person has to answer first. Give the \
                execution_id that the paused call returned. Returns the call's own result once it is there. Call it \
                again, as often as needed, while it says that the call is still waiting.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "execution_id": {"type": "string", "description": "The handle of the paused call, exe_…"}
                },
                "required": ["execution_id"],
                "additionalProperties": false
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false}
        });
        definition.to_string()
    }
}
