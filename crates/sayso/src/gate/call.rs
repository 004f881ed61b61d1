//! A call as it is judged and shown.

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::limits::NAME_BYTES_MAX;
use sayso_core::policy::{Annotations, Policy, ToolName, Verdict};
use sayso_core::round::Digest;
use sayso_core::wire::{Keyed, Request, RequestKind};
use sayso_store::GATE_PREFIX;

use super::CALL_KEY;

/// A call that wants to run.
#[derive(Clone)]
pub struct Call {
    /// The conversation it belongs to, as the agent names it.
    pub session: String,
    /// The tool.
    pub tool: ToolName,
    /// How a person is shown the tool, where that is not `server:name`.
    pub path: Option<String>,
    /// Its arguments.
    pub arguments: Json,
    /// The hints about the tool.
    pub annotations: Annotations,
    /// What the tool says of itself.
    pub description: Option<String>,
    /// The digest of its definition; without it that of its name and hints.
    pub definition: Option<Digest>,
    /// The JSON Schema that arguments which a person edits must fit; without it they cannot be edited.
    pub arguments_schema: Option<Json>,
    /// The JSON Schema of what the person adds to the call.
    pub input: Option<Json>,
    /// A few lines that say what would happen.
    pub preview: Vec<String>,
    /// Whether the program that has the tool says that it changes nothing: enough where no rule is about it.
    pub is_harmless: bool,
}

/// Arguments never appear in `Debug`.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("session", &self.session).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The digest that stands for a tool's definition where nothing but its name and hints is known.
pub fn definition_of(tool: &ToolName, annotations: Annotations) -> Digest {
    let hints = [annotations.read_only, annotations.destructive, annotations.idempotent, annotations.open_world];
    let name = if hints == [None; 4] { format!("tool {tool}") } else { format!("tool {tool} {hints:?}") };
    Digest::of_text(&name)
}

impl Call {
    /// A call of a tool of which nothing is known.
    pub fn new(session: impl Into<String>, tool: ToolName, arguments: Json) -> Self {
        Self {
            session: session.into(),
            tool,
            path: None,
            arguments,
            annotations: Annotations::default(),
            description: None,
            definition: None,
            arguments_schema: None,
            input: None,
            preview: Vec::new(),
            is_harmless: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.session.is_empty() || self.session.len() > NAME_BYTES_MAX {
            return Err(Error::field("/session_id", format!("must have 1 to {NAME_BYTES_MAX} bytes")));
        }
        if !self.arguments.is_object() {
            return Err(Error::field("/arguments", "must be an object"));
        }
        Ok(())
    }

    /// The tool as a person is shown it.
    pub fn path(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.tool.to_string())
    }

    /// The digest of the tool's definition.
    pub fn definition(&self) -> Digest {
        self.definition.unwrap_or_else(|| definition_of(&self.tool, self.annotations))
    }

    /// The operation that all rounds of this very call belong to.
    pub(super) fn operation(&self) -> String {
        let (tool, arguments) = (self.tool.to_string(), self.arguments.canonical());
        operation("call", &self.session, &[&tool, &arguments])
    }

    /// What a person is asked about it, with these arguments.
    pub(super) fn requests(&self, arguments: &Json, policy: &Policy, verdict: &Verdict) -> Keyed<Request> {
        let path = self.path();
        let message = match &self.description {
            Some(description) => format!("{path}: {description}"),
            None => path.clone(),
        };
        let effects = policy.facts(&self.tool, self.annotations).effects;
        let rules: Vec<_> = verdict.rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id)).collect();
        // What the rule says to whoever is asked stands first.
        let preview: Vec<_> = verdict.reason.iter().chain(&self.preview).cloned().collect();
        let request = Request {
            tool: Some(path),
            message: Some(message),
            arguments: Some(arguments.clone()),
            preview: (!preview.is_empty()).then_some(preview),
            effects: Some(effects.iter().collect()),
            definition: Some(self.definition()),
            rule: Some(rules.join(", ")),
            session: Some(self.session.clone()),
            arguments_schema: self.arguments_schema.clone(),
            schema: self.input.clone(),
            require_second_person: verdict.require_second_person.then_some(true),
            ..Request::empty(RequestKind::Approval)
        };
        Keyed(vec![(CALL_KEY.to_owned(), request)])
    }
}

/// The operation of what is asked in a session: found again by the same parts.
pub(crate) fn operation(kind: &str, session: &str, parts: &[&str]) -> String {
    let mut text = String::from(kind);
    for part in parts {
        text.push_str(&format!("\n{}\n{part}", part.len()));
    }
    format!("{}{}", session_prefix(session), short(&text))
}

/// What the operations of a session begin with.
pub(crate) fn session_prefix(session: &str) -> String {
    format!("{GATE_PREFIX}{}:", short(session))
}

/// 128 bits of a digest are enough to tell one's own calls apart.
fn short(text: &str) -> String {
    let digest = Digest::of_text(text).to_bytes();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
