//! One rule of a policy.

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::effects::Effects;
use super::error::PolicyError;
use super::tool::{ToolName, ToolPattern};
use crate::json::Json;
use crate::limits::{CONDITIONS_MAX, DEADLINE_MS_MAX, NAME_BYTES_MAX, REASON_BYTES_MAX, TOOL_PATTERNS_MAX};
use crate::round::Digest;

/// What becomes of a call, from the least restrictive to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl Decision {
    /// The word as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule as it is written and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// Its stable name, unique in its layer. An approval remembers it.
    pub id: String,
    /// What it decides.
    pub decision: Decision,
    /// The tools it is about, each a [`ToolPattern`].
    pub tools: Vec<String>,
    /// What those tools may do: an allowing rule needs all of a tool's effects to be listed, any other rule one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Conditions on the arguments; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    /// Whoever started the execution cannot approve. Only for a rule that asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_second_person: bool,
    /// How long a person has, in milliseconds; after that the round is `expired`. Only for a rule that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// Why the rule is there, for whoever reads its decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RuleText {
    /// A rule about these tools and nothing else.
    pub fn new(id: impl Into<String>, decision: Decision, tools: &[&str]) -> Self {
        Self {
            id: id.into(),
            decision,
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            effects: None,
            when: Vec::new(),
            require_second_person: false,
            deadline_ms: None,
            reason: None,
        }
    }
}

/// A rule that can be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    text: RuleText,
    tools: Vec<ToolPattern>,
    digest: Digest,
}

/// What stands in a rule's place where none decides.
pub const DEFAULT: &str = "default";
/// What stands in a rule's place where a tool is another than was reviewed.
pub const DEFINITION: &str = "definition";
/// Names of rules that are nobody's.
const RESERVED: [&str; 2] = [DEFAULT, DEFINITION];

impl Rule {
    /// Checks and compiles a rule. The error names the key that is wrong.
    pub fn new(text: RuleText) -> Result<Self, PolicyError> {
        let is_name = |next: char| next.is_ascii_alphanumeric() || "-_.".contains(next);
        if text.id.is_empty() || text.id.len() > NAME_BYTES_MAX || !text.id.chars().all(is_name) {
            return Err(PolicyError::new("id", "is made of letters, digits, -, _ and ."));
        }
        if RESERVED.contains(&text.id.as_str()) {
            return Err(PolicyError::new("id", format!("`{}` is taken for what decides without a rule", text.id)));
        }
        let decision = text.decision.as_str();
        if text.tools.is_empty() || text.tools.len() > TOOL_PATTERNS_MAX {
            return Err(PolicyError::new(decision, format!("lists 1 to {TOOL_PATTERNS_MAX} tools")));
        }
        let tools = text.tools.iter().map(|tool| ToolPattern::parse(tool)).collect::<Result<_, _>>();
        let tools = tools.map_err(|error| error.under(decision))?;
        if text.effects.is_some_and(|effects| effects == Effects::default()) {
            return Err(PolicyError::new("effects", "lists at least one effect"));
        }
        if text.when.len() > CONDITIONS_MAX {
            return Err(PolicyError::new("when", format!("lists at most {CONDITIONS_MAX} conditions")));
        }
        if text.decision != Decision::Ask && text.require_second_person {
            return Err(PolicyError::new("require_second_person", "belongs to a rule that asks"));
        }
        match text.deadline_ms {
            Some(_) if text.decision != Decision::Ask => {
                return Err(PolicyError::new("deadline_seconds", "belongs to a rule that asks"));
            }
            Some(ms) if !(1..=DEADLINE_MS_MAX).contains(&ms) => {
                let days = DEADLINE_MS_MAX / 86_400_000;
                return Err(PolicyError::new(
                    "deadline_seconds",
                    format!("is more than nothing and at most {days} days"),
                ));
            }
            _ => {}
        }
        if text.reason.as_ref().is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
            return Err(PolicyError::new("reason", format!("has at most {REASON_BYTES_MAX} bytes")));
        }
        let digest = digest(&text);
        Ok(Self { text, tools, digest })
    }

    /// The rule as it is written.
    pub fn text(&self) -> &RuleText {
        &self.text
    }

    /// What the rule permits or restricts, as a digest. Its reason and its deadline do not count: changing them makes no
    /// approval wrong that was given before.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) fn is_about(&self, tool: &ToolName) -> bool {
        self.tools.iter().any(|pattern| pattern.matches(tool))
    }

    /// Whether a tool of these effects is meant: to permit, all must be listed; to restrict, one is enough.
    pub(super) fn is_about_effects(&self, effects: Effects) -> bool {
        match (self.text.effects, self.text.decision) {
            (None, _) => true,
            (Some(listed), Decision::Allow) => effects.is_within(listed),
            (Some(listed), _) => effects.meets(listed),
        }
    }
}

fn digest(text: &RuleText) -> Digest {
    Digest::of_text(&canonical(&RuleText { deadline_ms: None, reason: None, ..text.clone() }))
}

/// The canonical text of a part of a policy.
pub(super) fn canonical<T: Serialize>(part: &T) -> String {
    // Only maps with other keys than texts cannot be written, and there are none.
    let text = serde_json::to_string(part).unwrap_or_default();
    Json::parse(&text).map(|json| json.canonical()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused_under_its_key() {
        let ask = || RuleText::new("r", Decision::Ask, &["a:b"]);
        let allow = || RuleText::new("r", Decision::Allow, &["a:b"]);
        for (text, key) in [
            (RuleText { id: "a b".to_owned(), ..ask() }, "id"),
            (RuleText { id: "default".to_owned(), ..ask() }, "id"),
            (RuleText { tools: Vec::new(), ..ask() }, "ask"),
            (RuleText { tools: vec!["*".to_owned()], ..allow() }, "allow"),
            (RuleText { effects: Some(Effects::default()), ..ask() }, "effects"),
            (RuleText { require_second_person: true, ..allow() }, "require_second_person"),
            (RuleText { deadline_ms: Some(5), ..allow() }, "deadline_seconds"),
            (RuleText { deadline_ms: Some(0), ..ask() }, "deadline_seconds"),
        ] {
            assert_eq!(Rule::new(text).unwrap_err().key, key);
        }
    }

    #[test]
    fn a_rules_digest_is_what_it_permits() {
        let of = |text| Rule::new(text).unwrap().digest();
        let ask = || RuleText::new("r", Decision::Ask, &["a:b"]);
        let said = RuleText { reason: Some("why".to_owned()), deadline_ms: Some(5), ..ask() };
        assert_eq!(of(ask()), of(said));
        assert_ne!(of(ask()), of(RuleText { require_second_person: true, ..ask() }));
        assert_ne!(of(ask()), of(RuleText::new("r", Decision::Ask, &["a:c"])));
    }
}
