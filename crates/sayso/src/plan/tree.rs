//! The tree of a plan, as its author writes it.

use super::compare::normalized;
use super::error::PlanError;
use super::expect::Leaf;
use super::run::Run;

/// What an operation is expected to ask, and what it is answered. Made by [`super::expect_form`] and its siblings and the
/// combinators; whether it is a valid plan is said by [`Plan::begin`].
#[derive(Debug, Clone)]
pub struct Plan(pub(super) Node);

#[derive(Debug, Clone)]
pub(super) enum Node {
    Nothing,
    Leaf(Leaf),
    Sequence(Vec<Plan>),
    Optional(Box<Plan>),
    OneOf(Vec<Plan>),
    RoundOf(Vec<Plan>),
}

/// These, in this order; at least two.
pub fn sequence(plans: impl IntoIterator<Item = Plan>) -> Plan {
    Plan(Node::Sequence(plans.into_iter().collect()))
}

/// This, or nothing.
pub fn optional(plan: Plan) -> Plan {
    Plan(Node::Optional(Box::new(plan)))
}

/// One of these; at least two, none the same as another, and none that also holds where nothing is asked.
pub fn one_of(plans: impl IntoIterator<Item = Plan>) -> Plan {
    Plan(Node::OneOf(plans.into_iter().collect()))
}

/// One round that asks all of these at once; at least two that must come, each under a key of its own.
pub fn round_of(plans: impl IntoIterator<Item = Plan>) -> Plan {
    Plan(Node::RoundOf(plans.into_iter().collect()))
}

impl Plan {
    /// Nothing may be asked.
    pub fn nothing() -> Self {
        Self(Node::Nothing)
    }

    /// Begins to follow the plan, with the limit of [`sayso_core::limits::ROUND_LIMIT_DEFAULT`] rounds.
    pub fn begin(&self) -> Result<Run, PlanError> {
        Run::begin(self)
    }

    /// Whether the plan also holds where nothing is asked.
    pub(super) fn is_nullable(&self) -> bool {
        match &self.0 {
            Node::Nothing | Node::Optional(_) => true,
            Node::Leaf(leaf) => !leaf.is_required,
            Node::Sequence(parts) => parts.iter().all(Self::is_nullable),
            Node::OneOf(parts) => parts.iter().any(Self::is_nullable),
            Node::RoundOf(_) => false,
        }
    }

    /// The same text for the same plan. `Debug` quotes and so delimits every part that an author chooses.
    pub(super) fn fingerprint(&self) -> String {
        let all = |parts: &[Self]| parts.iter().map(Self::fingerprint).collect::<Vec<_>>().join(",");
        match &self.0 {
            Node::Nothing => "nothing".to_owned(),
            Node::Leaf(leaf) => leaf.fingerprint(),
            Node::Sequence(parts) => format!("sequence({})", all(parts)),
            Node::Optional(part) => format!("optional({})", part.fingerprint()),
            Node::OneOf(parts) => format!("one_of({})", all(parts)),
            Node::RoundOf(parts) => format!("round_of({})", all(parts)),
        }
    }

    /// How a sentence names it.
    pub(super) fn described(&self) -> String {
        let all = |parts: &[Self]| parts.iter().map(Self::described).collect::<Vec<_>>().join(", ");
        match &self.0 {
            Node::Nothing => "nothing".to_owned(),
            Node::Leaf(leaf) if leaf.is_required => leaf.described(),
            Node::Leaf(leaf) => format!("perhaps {}", leaf.described()),
            Node::Sequence(parts) => format!("a sequence of {}", all(parts)),
            Node::Optional(part) => format!("optionally {}", part.described()),
            Node::OneOf(parts) => format!("one of {}", all(parts)),
            Node::RoundOf(parts) => format!("a round of {}", all(parts)),
        }
    }
}

/// A response as a text that is equal for equal answers.
pub(super) fn answer_fingerprint(response: &sayso_core::wire::Response) -> String {
    let content = response.content.as_ref().map(normalized);
    format!("{} {content:?} {:?}", response.action.as_str(), response.reason)
}
