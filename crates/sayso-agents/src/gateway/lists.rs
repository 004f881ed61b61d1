//! The tools of the upstream, as the gateway has read them itself, and those it adds.

use std::collections::HashMap;

use sayso::Digest;
use sayso::policy::Annotations;
use sayso_core::json::{Json, ObjectView, splice};
use sayso_core::limits::JSON_DEPTH_CEILING;

use crate::jsonrpc::Message;
use crate::tools::{ASK_TOOL, RESUME_TOOL, WAIT_TOOL, ask_definition, resume_definition, wait_definition};

/// What the gateway's own tools can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnTools {
    /// Whether the agent may ask.
    pub ask_user: bool,
    /// Whether its word counts as the person's.
    pub relays: bool,
}

/// What is known of the upstream's tools. What a client lists is never trusted for that.
#[derive(Default)]
pub(super) struct Lists {
    /// What the tools say of themselves, by name.
    tools: HashMap<String, Definition>,
    reading: HashMap<String, Definition>,
    /// The client's requests for the first page that wait until the reading is done.
    pub waiting: Vec<Message>,
    pub state: Reading,
}

/// What one tool says of itself. Its words, not facts.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    has_output_schema: bool,
    pub annotations: Annotations,
    /// Of all that it says.
    pub digest: Digest,
    pub description: Option<String>,
    pub input_schema: Option<Json>,
}

impl Definition {
    /// Reads a tool of a list, with its name.
    fn read(text: &str) -> Option<(String, Self)> {
        let tool = Json::parse_within(text, usize::MAX, JSON_DEPTH_CEILING).ok()?;
        let view = tool.object()?;
        let text_of = |name: &str| serde_json::from_str::<String>(view.get(name)?).ok();
        let json_of = |name: &str| Json::parse(view.get(name)?).ok();
        let definition = Self {
            has_output_schema: view.get("outputSchema").is_some(),
            annotations: json_of("annotations").map(|hints| Annotations::read(&hints)).unwrap_or_default(),
            digest: Digest::of_text(&tool.canonical()),
            description: text_of("description"),
            input_schema: json_of("inputSchema"),
        };
        Some((text_of("name")?, definition))
    }

    /// One that stands in the list twice: nobody can tell which of the two a client believes, so no good word counts.
    fn and(self, other: Self) -> Self {
        Self {
            has_output_schema: self.has_output_schema || other.has_output_schema,
            annotations: Annotations::default(),
            digest: Digest::of_text(&format!("{} {}", self.digest, other.digest)),
            description: other.description,
            input_schema: None,
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
    /// It was of an upstream that has ended, and another one may define its tools otherwise.
    Stale,
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
        let tools = Json::parse_within(result.get("tools")?, usize::MAX, JSON_DEPTH_CEILING).ok()?;
        for (name, read) in tools.items().iter().filter_map(|tool| Definition::read(tool.as_str())) {
            let definition = match self.reading.remove(&name) {
                Some(earlier) => earlier.and(read),
                None => read,
            };
            self.reading.insert(name, definition);
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
        self.tools.get(tool).is_some_and(|tool| tool.has_output_schema)
    }

    /// Whether the tool says that calling it again does no harm. A tool that says nothing may do harm.
    pub fn may_repeat(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|tool| {
            let Annotations { read_only, idempotent, .. } = tool.annotations;
            read_only == Some(true) || idempotent == Some(true)
        })
    }

    /// What a tool says of itself; none of one that is not listed.
    pub fn definition(&self, tool: &str) -> Option<&Definition> {
        self.tools.get(tool)
    }

    /// The name of the tool that goes on waiting: another one where the upstream has it already.
    pub fn wait_tool(&self) -> String {
        self.free_name(WAIT_TOOL)
    }

    /// The name of the tool by which the agent asks, likewise.
    pub fn ask_tool(&self) -> String {
        self.free_name(ASK_TOOL)
    }

    fn free_name(&self, wanted: &str) -> String {
        let taken = |name: &str| self.tools.contains_key(name) || self.reading.contains_key(name);
        if !taken(wanted) {
            return wanted.to_owned();
        }
        (2..).map(|n| format!("{wanted}_{n}")).find(|name| !taken(name)).unwrap_or_else(|| wanted.to_owned())
    }

    /// The name of the tool that reports a person's verdict, likewise.
    pub fn resume_tool(&self) -> String {
        self.free_name(RESUME_TOOL)
    }

    /// The first page as the client gets it, with the gateway's own tools at its end.
    pub fn with_own_tools(&self, line: &str, own: OwnTools) -> String {
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
        let ask = if own.ask_user { format!(",{}", ask_definition(&self.ask_tool())) } else { String::new() };
        let wait = wait_definition(&self.wait_tool());
        let resume = resume_definition(&self.resume_tool(), own.relays);
        splice(line, vec![(end..end, format!("{comma}{wait}{ask},{resume}"))])
    }
}
