use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{GrantId, RoundId};
use crate::json::Json;
use crate::policy::{self, Effect, GrantScope, Pins};
use crate::principal::Principal;
use crate::round::Digest;
use crate::time::UnixMs;

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// The one call that was shown.
    Once,
    /// One tool in one session.
    Session,
    /// Whatever a rule is about, in every session.
    Rule,
}

/// A person's word that covers calls to come, flat: `kind` says which members it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// Its id.
    pub grant_id: GrantId,
    /// How far it reaches.
    pub kind: GrantKind,
    /// Session: which.
    pub session: Option<String>,
    /// Session: the tool, `server:name`. Rule: a pattern of that form.
    pub tool: Option<String>,
    /// Session: digest of the tool's definition as it was shown.
    pub definition: Option<Digest>,
    /// Once: digest of the round that asked.
    pub digest: Option<Digest>,
    /// Rule: all that a tool may do for the rule to cover it; null for anything.
    pub effects: Option<Vec<Effect>>,
    /// The arguments that it is pinned to; null where it is not.
    pub arguments: Option<Json>,
    /// Conditions that the arguments must meet, as in a policy's rule; null where there are none.
    pub when: Option<Json>,
    /// Whose calls it covers; null for those of every agent.
    pub agent: Option<Principal>,
    /// The round it was drafted from.
    pub round_id: Option<RoundId>,
    /// Whose word it is.
    pub granted_by: Principal,
    /// When it was given.
    pub granted_at: UnixMs,
    /// When it ends by itself.
    pub expires_at: Option<UnixMs>,
    /// How many calls it covers.
    pub uses_max: Option<u32>,
    /// How many it has covered.
    pub uses: u32,
    /// When it was taken back.
    pub revoked_at: Option<UnixMs>,
}

impl Grant {
    /// A grant as people see it.
    pub fn new(grant: &policy::Grant) -> Self {
        let mut seen = Self {
            grant_id: grant.id,
            kind: GrantKind::Once,
            session: None,
            tool: None,
            definition: None,
            digest: None,
            effects: None,
            arguments: None,
            when: None,
            agent: grant.agent.clone(),
            round_id: grant.round,
            granted_by: grant.granted_by.clone(),
            granted_at: grant.granted_at,
            expires_at: grant.expires_at,
            uses_max: grant.uses_limit(),
            uses: grant.uses,
            revoked_at: grant.revoked_at,
        };
        let pins = match &grant.scope {
            GrantScope::Once { digest } => {
                seen.digest = Some(*digest);
                return seen;
            }
            GrantScope::Session { session, tool, definition, pins } => {
                seen.kind = GrantKind::Session;
                (seen.session, seen.tool) = (Some(session.clone()), Some(tool.to_string()));
                seen.definition = Some(*definition);
                pins
            }
            GrantScope::Rule { tools, effects, pins } => {
                seen.kind = GrantKind::Rule;
                seen.tool = Some(tools.clone());
                seen.effects = effects.map(|effects| effects.iter().collect());
                pins
            }
        };
        match pins {
            Pins::Any => {}
            Pins::Exactly(arguments) => seen.arguments = Some(arguments.clone()),
            // Written by ourselves, and so readable.
            Pins::When(when) => seen.when = serde_json::to_string(when).ok().and_then(|text| Json::parse(&text).ok()),
        }
        seen
    }
}

/// One page of grants, newest first; ended ones are among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantPage {
    /// The grants.
    pub grants: Vec<Grant>,
    /// The cursor of the next page; null on the last.
    pub next_cursor: Option<GrantId>,
}

/// `POST /v1/sessions/{id}/approvals`: one tool, or what a round of this session asks about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApproval {
    /// The tool, `server:name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments to pin it to, whole; without them any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// The hints that the tool was judged with, where it has any; see `POST /v1/gate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Json>,
    /// The digest of the tool's definition, where the caller of the gate names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Whose calls, such as `agent booking`; without it those of every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Principal>,
    /// Instead of all these: the round that asks about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_id: Option<RoundId>,
    /// With `round_id`: whether it is for the arguments that were shown alone.
    #[serde(default)]
    pub pinned: bool,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
    /// How many calls it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
}

/// What was taken back at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleared {
    /// How many grants.
    pub revoked: usize,
}
