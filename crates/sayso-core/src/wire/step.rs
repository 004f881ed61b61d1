//! `POST /v1/settle`: what became known, stored in one transaction.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ExecutionOutcome, LeaseToken};
use crate::id::{ExecutionId, RoundId};
use crate::json::Json;
use crate::limits::{JSON_DEPTH_CEILING, RESULT_BYTES_MAX};
use crate::round::{Digest, Failure};

/// Which kind of step a flat [`Step`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The receipt is in hand: `round_id`, `owner_id`, `lease_token`.
    Delivered,
    /// The operation has gone on: `round_id`, `owner_id`, `lease_token`.
    Resolved,
    /// The round ends with a reason: `round_id`, `failure`, and the holder's `owner_id` and `lease_token` if there is
    /// one.
    Failed,
    /// The execution ended: `execution_id`, `outcome`, `result?`.
    Finished,
    /// The stored result was handed to whoever asked: `execution_id`.
    Collected,
    /// The asker called the visit to the URL complete: `round_id`.
    UrlCompleted,
    /// The policy decided about a call of which nobody was asked: `tool`, `approved`, `rule`.
    Ruled,
    /// The definition of a tool counts as reviewed from now on, for this agent: `tool`, `definition`.
    Reviewed,
}

/// One step, flat: `step` says which members it has. A member that its kind does not have is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Which kind it is.
    pub step: StepKind,
    /// The round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_id: Option<RoundId>,
    /// The execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The holder's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// The holder's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_token: Option<LeaseToken>,
    /// Why the round failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// How the execution ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ExecutionOutcome>,
    /// What the operation answered, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "result")]
    pub result: Option<Json>,
    /// The tool, `server:name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The digest of the tool's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Whether the mode let the call run, or the rules denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// The rule that denied, or that would have asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl Step {
    /// A step of this kind without any of its members.
    pub fn empty(step: StepKind) -> Self {
        Self {
            step,
            round_id: None,
            execution_id: None,
            owner_id: None,
            lease_token: None,
            failure: None,
            outcome: None,
            result: None,
            tool: None,
            definition: None,
            approved: None,
            rule: None,
        }
    }

    /// A member that its kind does not have, by name.
    pub fn stray_member(&self) -> Option<&'static str> {
        let allowed: &[&str] = match self.step {
            StepKind::Delivered | StepKind::Resolved => &["round_id", "owner_id", "lease_token"],
            StepKind::Failed => &["round_id", "owner_id", "lease_token", "failure"],
            StepKind::Finished => &["execution_id", "outcome", "result"],
            StepKind::Collected => &["execution_id"],
            StepKind::UrlCompleted => &["round_id"],
            StepKind::Ruled => &["tool", "approved", "rule"],
            StepKind::Reviewed => &["tool", "definition"],
        };
        [
            ("round_id", self.round_id.is_some()),
            ("execution_id", self.execution_id.is_some()),
            ("owner_id", self.owner_id.is_some()),
            ("lease_token", self.lease_token.is_some()),
            ("failure", self.failure.is_some()),
            ("outcome", self.outcome.is_some()),
            ("result", self.result.is_some()),
            ("tool", self.tool.is_some()),
            ("definition", self.definition.is_some()),
            ("approved", self.approved.is_some()),
            ("rule", self.rule.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_present)| (is_present && !allowed.contains(&name)).then_some(name))
    }
}

/// `POST /v1/settle`: all of it is stored, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// In this order.
    pub steps: Vec<Step>,
}

/// `GET /v1/reviewed`: what counts as reviewed of one tool, for the agent that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    /// The digest of the definition under which it was last reviewed. Null for a tool that it has not called yet.
    pub definition: Option<Digest>,
}

/// A result: what an operation answers may be larger and deeper than what people are asked.
pub(super) fn result<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    let Some(raw) = Option::<Box<serde_json::value::RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    Json::parse_within(raw.get(), RESULT_BYTES_MAX, JSON_DEPTH_CEILING).map(Some).map_err(serde::de::Error::custom)
}
