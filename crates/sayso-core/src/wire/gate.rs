use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Round;
use crate::id::{ExecutionId, GrantId};
use crate::json::Json;
use crate::policy::Decision;
use crate::round::Digest;

/// `POST /v1/gate`: may this call run?
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGate {
    /// The conversation that the call belongs to, by the caller's own name for it.
    pub session_id: String,
    /// The tool, `server:name`.
    pub tool: String,
    /// Its arguments, an object; kept as written.
    pub arguments: Json,
    /// The hints about the tool, as MCP has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Json>,
    /// What the tool says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The digest of the tool's definition; what was approved for a session ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// The JSON Schema that arguments which a person edits must fit; without it they cannot be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_schema: Option<Json>,
    /// The JSON Schema of what the person adds to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// A few lines that say what would happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<String>,
}

/// Arguments never appear in `Debug`.
impl std::fmt::Debug for NewGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewGate").field("session", &self.session_id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    /// The execution that waits.
    pub execution_id: ExecutionId,
    /// The tool.
    pub tool_path: String,
    /// What the person is asked.
    pub message: String,
    /// The arguments as they would run.
    pub args: Json,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gated {
    /// `allow`: run it now, once. `deny`: do not. `ask`: a person is asked.
    pub verdict: Decision,
    /// The rules that decided or asked, such as `operator pay`.
    pub rule: Option<String>,
    /// Deny: why, in the words of whoever denied it.
    pub reason: Option<String>,
    /// What the agent is told.
    pub message: String,
    /// Allow: the arguments to run it with.
    pub arguments: Option<Json>,
    /// Allow: the grant that was used.
    pub grant_id: Option<GrantId>,
    /// Ask: the round.
    pub round: Option<Round>,
    /// Ask: the call that waits.
    pub paused: Option<Paused>,
}
