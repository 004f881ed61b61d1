//! A run as it waits: everything that another process needs to go on with it.

use sayso::policy::{RuleRef, ToolName};
use sayso::{Digest, Error, GrantId, Json, RoundId};
use sayso_core::limits::TURN_CALLS_MAX;
use sayso_core::schema::InputSchema;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// What cannot be read is this.
const WHAT: &str = "state of the suspended run";

/// What a suspended run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// Verdicts on calls.
    Approval,
    /// Typed values for calls.
    Input,
}

/// A whole run, as it is stored with the round that it waits in. What it holds is never printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuspendedRunState {
    /// The version of this form.
    pub v: u8,
    /// What the round asks.
    pub waits_for: WaitsFor,
    /// The conversation with the model, each message as it goes to it.
    pub messages: Vec<Json>,
    /// The calls of the last turn, in the model's order.
    pub pending_calls: Vec<PendingCall>,
    /// Answers of the model so far.
    pub iterations: u32,
    /// Tokens that it has read.
    pub prompt_tokens: u64,
    /// Tokens that it has written.
    pub completion_tokens: u64,
    /// The tools that it was offered. Tools that came later are not called in this turn.
    pub offered_tools: Vec<ToolName>,
}

impl std::fmt::Debug for SuspendedRunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuspendedRunState")
            .field("waits_for", &self.waits_for)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

/// A call of the last turn, and what has become of it so far.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingCall {
    /// The model's id of it: the key under which a person is asked.
    pub id: String,
    /// The name that the model called.
    pub function: String,
    /// The tool that this is; none where it was not offered.
    pub tool: Option<ToolName>,
    /// Its arguments: the model's, or a person's where they were edited.
    pub arguments: Json,
    /// Whether a person has edited them.
    pub is_edited: bool,
    /// Digest of the tool's definition, as it was judged.
    pub definition: Option<Digest>,
    /// What the model reads in the place of a result; then it does not run.
    pub refusal: Option<String>,
    /// Whether a person has to approve it.
    pub is_asked: bool,
    /// The rules that ask; none where only the tool does.
    pub asked_by: Vec<RuleRef>,
    /// Whose word it may run on, once there is one.
    pub allowed_by: Option<AllowedBy>,
    /// The schema of the values that it needs from a person.
    pub input_schema: Option<Json>,
    /// Whether these come with the approval.
    pub is_input_on_card: bool,
    /// These values, once they were given.
    pub input: Option<Json>,
}

/// Whose word a call runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    /// A person's answer in this round.
    Person(RoundId),
    /// A grant, which has been used up for it.
    Grant(GrantId),
}

impl std::fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCall").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl PendingCall {
    /// Whether a person is still to be asked whether it may run.
    pub fn needs_approval(&self) -> bool {
        self.refusal.is_none() && self.is_asked && self.allowed_by.is_none()
    }

    /// Whether a person is still to be asked for values, beside any approval.
    pub fn needs_input(&self) -> bool {
        self.refusal.is_none() && self.input_schema.is_some() && self.input.is_none() && !self.is_input_on_card
    }

    /// How it is told of.
    pub fn tool_name(&self) -> String {
        self.tool.as_ref().map_or_else(|| self.function.clone(), ToString::to_string)
    }
}

impl SuspendedRunState {
    /// What a new state begins as.
    pub(super) const VERSION: u8 = VERSION;

    /// The first input that is waited for: the tool's name.
    pub fn input_tool_name(&self) -> Option<String> {
        self.pending_calls.iter().find(|call| call.needs_input()).map(PendingCall::tool_name)
    }

    /// The first input that is waited for: its schema.
    pub fn input_schema(&self) -> Option<&Json> {
        self.pending_calls.iter().find(|call| call.needs_input()).and_then(|call| call.input_schema.as_ref())
    }

    /// The text that is stored.
    pub fn written(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|_| Error::Corrupt(WHAT))
    }

    /// Reads what was stored, whole or not at all: a damaged call or list is not left out, and nothing of another form
    /// is guessed at (`corrupt_suspended_state`).
    pub fn read(text: &str) -> Result<Self, Error> {
        let state: Self = serde_json::from_str(text).map_err(|_| Error::Corrupt(WHAT))?;
        if state.is_sound() { Ok(state) } else { Err(Error::Corrupt(WHAT)) }
    }

    fn is_sound(&self) -> bool {
        let calls = &self.pending_calls;
        let is_usable = |call: &PendingCall| {
            let schema = call.input_schema.as_ref();
            let fits = |schema: &Json| match (InputSchema::open(schema), &call.input) {
                (Ok(schema), Some(input)) => schema.effective(input).is_ok(),
                (schema, None) => schema.is_ok(),
                (Err(_), Some(_)) => false,
            };
            !call.id.is_empty()
                && call.arguments.is_object()
                && (call.tool.is_some() || call.refusal.is_some())
                && schema.map_or(call.input.is_none() && !call.is_input_on_card, fits)
        };
        let is_waited_for = |call: &PendingCall| match self.waits_for {
            WaitsFor::Approval => call.needs_approval(),
            WaitsFor::Input => call.needs_input(),
        };
        let has_own_id = |(at, call): (usize, &PendingCall)| calls.iter().take(at).all(|other| other.id != call.id);
        self.v == VERSION
            && !self.messages.is_empty()
            && self.messages.iter().all(Json::is_object)
            && calls.len() <= TURN_CALLS_MAX
            && calls.iter().any(is_waited_for)
            && calls.iter().all(is_usable)
            && calls.iter().enumerate().all(has_own_id)
    }
}
