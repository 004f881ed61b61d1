use sayso_core::id::ExecutionId;
use sayso_core::json::Json;
use sayso_core::wire::{self, Paused, Request, RequestKind};

/// What is asked of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElicitationType {
    /// Yes or no.
    #[default]
    Approval,
    /// Data.
    Form,
}

/// A tool of the program's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDef {
    /// Its path, such as `github.issues.create`; `server:name` where it has a server.
    pub path: String,
    /// Whether it may change or lose something.
    pub destructive: bool,
    /// What it does.
    pub description: Option<String>,
}

impl ToolDef {
    /// A tool that may change or lose something.
    pub fn destructive(path: impl Into<String>) -> Self {
        Self { path: path.into(), destructive: true, description: None }
    }

    /// A tool that changes nothing.
    pub fn safe(path: impl Into<String>) -> Self {
        Self { destructive: false, ..Self::destructive(path) }
    }

    /// The same tool, with a sentence about it.
    #[must_use]
    pub fn described(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }
}

/// What a handler wants to know of a person.
#[derive(Clone)]
pub struct Elicit {
    /// The tool that asks.
    pub tool_path: String,
    /// What the person reads.
    pub message: String,
    /// The arguments that it is about.
    pub args: Option<Json>,
    /// Yes or no, or data.
    pub kind: ElicitationType,
    /// Form: the JSON Schema of the data.
    pub schema: Option<Json>,
}

impl Elicit {
    /// A yes or no.
    pub fn approval(tool_path: impl Into<String>, message: impl Into<String>) -> Self {
        let (tool_path, message) = (tool_path.into(), message.into());
        Self { tool_path, message, args: None, kind: ElicitationType::Approval, schema: None }
    }

    /// Data, as the schema describes it.
    pub fn form(tool_path: impl Into<String>, message: impl Into<String>, schema: Json) -> Self {
        Self { kind: ElicitationType::Form, schema: Some(schema), ..Self::approval(tool_path, message) }
    }

    /// The same question, about these arguments.
    #[must_use]
    pub fn about(self, args: Json) -> Self {
        Self { args: Some(args), ..self }
    }
}

/// Arguments never appear in `Debug`.
impl std::fmt::Debug for Elicit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elicit").field("tool_path", &self.tool_path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingElicitation {
    /// The execution that waits, which names this one elicitation.
    pub execution_id: ExecutionId,
    /// The tool that asks.
    pub tool_path: String,
    /// What the person reads.
    pub message: String,
    /// The arguments that it is about, an object.
    pub args: Json,
    /// Yes or no, or data.
    pub kind: ElicitationType,
}

impl PendingElicitation {
    /// The one that a round is; none where it is no engine's.
    pub(super) fn of(round: &wire::Round) -> Option<Self> {
        let [(_, request)] = round.requests.0.as_slice() else { return None };
        let (kind, args) = match request.kind {
            RequestKind::Approval => (ElicitationType::Approval, request.arguments.clone()),
            RequestKind::Form => (ElicitationType::Form, round.calls.first().and_then(|call| call.arguments.clone())),
            RequestKind::Url | RequestKind::Choice | RequestKind::Text => return None,
        };
        Some(Self {
            execution_id: round.execution_id,
            tool_path: tool_path(round, request),
            message: request.message.clone().unwrap_or_default(),
            args: args.or_else(|| Json::parse("{}").ok())?,
            kind,
        })
    }
}

fn tool_path(round: &wire::Round, request: &Request) -> String {
    request.tool.clone().unwrap_or_else(|| round.operation_name.clone())
}

/// The form in which a call that waits is handed to whoever drives the program.
impl From<PendingElicitation> for Paused {
    fn from(pending: PendingElicitation) -> Self {
        let PendingElicitation { execution_id, tool_path, message, args, .. } = pending;
        Self { execution_id, tool_path, message, args }
    }
}

/// What a person answered.
#[derive(Clone, PartialEq, Eq)]
pub struct ElicitationResponse {
    /// The execution that asked.
    pub execution_id: ExecutionId,
    /// Whether the person approved, or gave the data.
    pub approved: bool,
    /// Form: the data.
    pub data: Option<Json>,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for ElicitationResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElicitationResponse").field("approved", &self.approved).finish_non_exhaustive()
    }
}

/// What came of a gated call.
#[derive(Clone, PartialEq, Eq)]
pub enum Gated {
    /// It may run, once, with these arguments.
    Approved {
        /// What it runs with.
        arguments: Json,
    },
    /// It must not run.
    Denied {
        /// Why, in the words of whoever denied it.
        reason: Option<String>,
    },
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Approved { .. }) { "Approved(..)" } else { "Denied(..)" })
    }
}

/// How an execution of a program's script stands, for whoever drives it: it ended with a value or an error, or it is
/// paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionResult {
    /// The execution.
    pub execution_id: ExecutionId,
    /// How it ended, if it did.
    pub outcome: Option<sayso_core::execution::Outcome>,
    /// What it answered.
    pub value: Option<Json>,
    /// Why it failed.
    pub error: Option<String>,
    /// What it waits for.
    pub paused: Option<Paused>,
}

impl ExecutionResult {
    /// The result of an execution that waits.
    pub fn paused(pending: PendingElicitation) -> Self {
        let execution_id = pending.execution_id;
        Self { execution_id, outcome: None, value: None, error: None, paused: Some(pending.into()) }
    }
}
