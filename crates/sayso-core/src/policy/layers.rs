//! The layers of a policy: the operator's, the project's, the session's.

use serde::{Deserialize, Serialize};

use super::effects::{Annotations, Effects, ToolFacts};
use super::error::PolicyError;
use super::rule::{Rule, RuleText, canonical};
use super::tool::{ToolName, ToolPattern};
use crate::json::pointer_segments;
use crate::limits::{POLICY_RULES_MAX, POLICY_TOOLS_MAX};
use crate::round::Digest;

/// Whose rules they are. Layers combine so that the most restrictive wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Whoever runs this machine. This layer is always there, and what none of its rules is about is decided by the
    /// mode; the others only take away.
    Operator,
    /// The project an agent works in.
    Project,
    /// One session.
    Session,
}

impl Layer {
    /// Every layer, the operator's first.
    pub const ALL: [Self; 3] = [Self::Operator, Self::Project, Self::Session];

    /// The word as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Project => "project",
            Self::Session => "session",
        }
    }
}

/// How much an agent may do without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What no rule is about is asked, unless it only reads and its server is trusted.
    #[default]
    Approval,
    /// What would be asked is allowed, by the policy; what is denied stays denied.
    Autonomous,
    /// What no rule is about is denied. Needs a policy.
    Guarded,
}

impl Mode {
    /// The word as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Autonomous => "autonomous",
            Self::Guarded => "guarded",
        }
    }
}

/// What the operator says of tools, instead of their server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolText {
    /// The tools, each a [`ToolPattern`].
    pub tools: Vec<String>,
    /// All they may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// JSON pointer to the argument that is a shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// One layer as it is written and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerText {
    /// Whose it is.
    pub layer: Layer,
    /// The mode where the caller names none; the operator's only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Servers whose hints are believed; the operator's only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// What tools may do; the operator's only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolText>,
    /// The rules in order.
    pub rules: Vec<RuleText>,
}

impl LayerText {
    /// A layer of rules alone.
    pub fn new(layer: Layer, rules: Vec<RuleText>) -> Self {
        Self { layer, mode: None, trusted: Vec::new(), tools: Vec::new(), rules }
    }
}

/// The rules of all layers, checked. [`Policy::default`] has none.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub(super) layers: Vec<(Layer, Vec<Rule>)>,
    pub(super) mode: Option<Mode>,
    pub(super) faults: Vec<String>,
    trusted: Vec<String>,
    tools: Vec<Described>,
    texts: Vec<LayerText>,
}

#[derive(Debug, Clone)]
struct Described {
    tools: Vec<ToolPattern>,
    effects: Option<Effects>,
    command: Option<String>,
}

impl Policy {
    /// The policy of these layers, at most one of each. The error's key says where in a layer something is wrong:
    /// `rule.3.id` is the fourth rule's.
    pub fn new(layers: Vec<LayerText>) -> Result<Self, PolicyError> {
        layers.into_iter().try_fold(Self::default(), Self::with_layer)
    }

    /// The policy with one more layer. It can only become more restrictive by it, unless it is the operator's.
    pub fn with_layer(mut self, text: LayerText) -> Result<Self, PolicyError> {
        let layer = text.layer;
        if self.layers.iter().any(|(known, _)| *known == layer) {
            return Err(PolicyError::new("layer", format!("there is a layer of the {} already", layer.as_str())));
        }
        let owned =
            [("mode", text.mode.is_some()), ("server", !text.trusted.is_empty()), ("tool", !text.tools.is_empty())];
        if let Some((key, _)) = owned.iter().find(|(_, is_said)| *is_said && layer != Layer::Operator) {
            return Err(PolicyError::new(*key, "can be said in the operator's layer only"));
        }
        if text.rules.len() > POLICY_RULES_MAX {
            return Err(PolicyError::new("rule", format!("there are more than {POLICY_RULES_MAX} rules")));
        }
        if text.trusted.len() > POLICY_TOOLS_MAX || text.tools.len() > POLICY_TOOLS_MAX {
            return Err(PolicyError::new("tool", format!("there are more than {POLICY_TOOLS_MAX} entries")));
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(text.rules.len());
        for (at, rule) in text.rules.iter().enumerate() {
            let rule = Rule::new(rule.clone()).map_err(|error| in_list("rule", at, &error))?;
            if rules.iter().any(|known| known.text().id == rule.text().id) {
                return Err(PolicyError::new(format!("rule.{at}.id"), "names an earlier rule of this layer"));
            }
            rules.push(rule);
        }
        for (at, tool) in text.tools.iter().enumerate() {
            self.tools.push(described(tool).map_err(|error| in_list("tool", at, &error))?);
        }
        self.trusted.extend(text.trusted.iter().cloned());
        self.mode = text.mode.or(self.mode);
        self.layers.push((layer, rules));
        self.layers.sort_by_key(|(layer, _)| *layer);
        self.texts.push(text);
        self.texts.sort_by_key(|text| text.layer);
        Ok(self)
    }

    /// The policy, knowing that a part of it could not be read: from now on it denies everything, and says why.
    #[must_use]
    pub fn with_fault(mut self, fault: impl Into<String>) -> Self {
        self.faults.push(fault.into());
        self
    }

    /// The layers as they are written, the operator's first.
    pub fn layers(&self) -> &[LayerText] {
        &self.texts
    }

    /// What could not be read; empty if all is well.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The digest of the canonical text. It changes with every change of meaning, and not with comments or order of keys.
    pub fn version(&self) -> Digest {
        Digest::of_text(&canonical(&(&self.texts, &self.faults)))
    }

    /// Whether nobody has written anything.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.faults.is_empty()
    }

    /// What is believed of a tool.
    pub fn facts(&self, tool: &ToolName, annotations: Annotations) -> ToolFacts {
        let trusted = self.trusted.iter().any(|server| server == tool.server());
        ToolFacts::of(annotations, trusted, self.described(tool).find_map(|described| described.effects))
    }

    /// The pointer to a tool's shell command, as the operator says, else `/command` for a tool that may run programs.
    pub fn command_at(&self, tool: &ToolName, facts: &ToolFacts) -> Option<&str> {
        let said = self.described(tool).find_map(|described| described.command.as_deref());
        said.or(facts.effects.has(super::Effect::Exec).then_some("/command"))
    }

    /// What the operator says of a tool, the first entry first.
    fn described(&self, tool: &ToolName) -> impl Iterator<Item = &Described> {
        self.tools.iter().filter(|known| known.tools.iter().any(|pattern| pattern.matches(tool)))
    }
}

fn in_list(list: &str, at: usize, error: &PolicyError) -> PolicyError {
    PolicyError::new(format!("{list}.{at}.{}", error.key), error.message.clone())
}

fn described(text: &ToolText) -> Result<Described, PolicyError> {
    let tools = text.tools.iter().map(|tool| ToolPattern::parse(tool)).collect::<Result<Vec<_>, _>>();
    let tools = tools.map_err(|error| error.under("tools"))?;
    if tools.is_empty() {
        return Err(PolicyError::new("tools", "lists at least one tool"));
    }
    if text.command.as_deref().is_some_and(|pointer| pointer_segments(pointer).is_none()) {
        return Err(PolicyError::new("command", "is no JSON pointer such as /command"));
    }
    Ok(Described { tools, effects: text.effects, command: text.command.clone() })
}
