//! Grants being given by people, and used by agents' calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GrantKind, Superseded};
use crate::id::{GrantId, RoundId};
use crate::json::Json;
use crate::policy::Effect;
use crate::principal::Principal;
use crate::round::Digest;

/// `POST /v1/grants`: a grant of any kind, drafted from a round that asks about a call or written out. A member that its
/// kind does not have is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantDraft {
    /// How far it reaches.
    pub kind: GrantKind,
    /// The round to draft it from. Then the round says the tool, the arguments and the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_id: Option<RoundId>,
    /// Session, from a round: whether it is for the arguments that were shown alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Rule, from a round: the members of the arguments that may have any value. Without it all are as they were shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<String>,
    /// Session: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Session: the tool, `server:name`. Rule: a pattern of that form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Session: the hints that the tool was judged with, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Json>,
    /// Session: the digest of the tool's definition, where whoever judges names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Rule: all that a tool may do for the rule to cover it; without it anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// Session and rule: the arguments to pin it to, whole; without them any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Rule: conditions that the arguments must meet, as in a policy's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Json>,
    /// Session and rule: whose calls, such as `agent booking`; without it those of every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Principal>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
    /// How many calls it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
}

impl GrantDraft {
    /// A draft of this kind that says nothing else.
    pub fn empty(kind: GrantKind) -> Self {
        Self {
            kind,
            round_id: None,
            pinned: None,
            free: Vec::new(),
            session: None,
            tool: None,
            annotations: None,
            definition: None,
            effects: None,
            arguments: None,
            when: None,
            agent: None,
            expires_in_seconds: None,
            uses_max: None,
        }
    }

    /// A member that its kind does not have, drafted from a round or not, by name.
    pub fn stray_member(&self) -> Option<&'static str> {
        let allowed: &[&str] = match (self.kind, self.round_id.is_some()) {
            (GrantKind::Once, _) => &[],
            (GrantKind::Session, true) => &["pinned"],
            (GrantKind::Rule, true) => &["free"],
            (GrantKind::Session, false) => &["session", "tool", "annotations", "definition", "arguments", "agent"],
            (GrantKind::Rule, false) => &["tool", "effects", "arguments", "when", "agent"],
        };
        [
            ("pinned", self.pinned.is_some()),
            ("free", !self.free.is_empty()),
            ("session", self.session.is_some()),
            ("tool", self.tool.is_some()),
            ("annotations", self.annotations.is_some()),
            ("definition", self.definition.is_some()),
            ("effects", self.effects.is_some()),
            ("arguments", self.arguments.is_some()),
            ("when", self.when.is_some()),
            ("agent", self.agent.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_present)| (is_present && !allowed.contains(&name)).then_some(name))
    }
}

/// `POST /v1/grants/use`: a call that the rules of a worker ask about. Whether somebody has granted it is looked up, and
/// its use stored, before this answers; what the rules deny is never sent here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantUse {
    /// The session that the call belongs to.
    pub session_id: String,
    /// The tool, `server:name`.
    pub tool: String,
    /// The arguments, exactly as they would run.
    pub arguments: Json,
    /// The digest of the tool's definition as it is now.
    pub definition: Digest,
    /// What the tool may do, at most.
    pub effects: Vec<Effect>,
    /// Pointer to the argument that is a shell command, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_at: Option<String>,
    /// The digest of what a person would be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether the rules ask for somebody else than whoever started it.
    #[serde(default)]
    pub require_second_person: bool,
    /// Whether the tool is another than was reviewed.
    #[serde(default)]
    pub changed_definition: bool,
    /// The digest of the definition that counts as reviewed once the use is stored: both are, or neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Digest>,
    /// The caller's pending question about the call, which ends with the use. Once somebody has answered it, no grant is
    /// used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Superseded>,
}

/// Arguments never appear in `Debug`.
impl std::fmt::Debug for GrantUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrantUse").field("session", &self.session_id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// What became of a [`GrantUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantUsed {
    /// The grant whose use is stored: the call may run, once. Null where a person has to be asked.
    pub grant_id: Option<GrantId>,
}
