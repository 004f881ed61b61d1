//! Why a verdict is what it is.

use serde::Serialize;

use super::effects::ToolFacts;
use super::layers::{Layer, Mode};
use super::rule::Decision;
use super::verdict::Verdict;

/// A verdict, and what each rule had to do with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The verdict.
    pub verdict: Verdict,
    /// The mode that was in force.
    pub mode: Mode,
    /// What is believed of the tool.
    pub facts: ToolFacts,
    /// The rules, in the order in which they were looked at.
    pub considered: Vec<Considered>,
}

/// One rule, or what stands in its place, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Considered {
    /// The layer it is in.
    pub layer: Layer,
    /// The rule's id, or what stands in its place: `default`, or `definition` for a tool that is another than was reviewed.
    pub rule: String,
    /// What it decides.
    pub decision: Decision,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Outcome {
    /// It is about the call: this is what its layer says.
    Matched,
    /// It denies something that this call may be, and nobody can tell: its layer says at least `ask`.
    CannotBeRuledOut {
        /// Pointer to the argument.
        at: String,
        /// What about it.
        why: String,
    },
    /// It is about other tools.
    OtherTool,
    /// It is about tools with other effects.
    OtherEffects,
    /// A condition does not hold.
    OtherArguments {
        /// Pointer to the argument.
        at: String,
        /// What about it.
        why: String,
    },
    /// An earlier rule of its layer matched.
    NotReached,
}
