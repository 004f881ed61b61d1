//! Which calls run, which wait for a person, and which never run (`docs/policy.md`).
//!
//! [`Policy::evaluate`] judges a call by the rules of its layers; [`Grant::covers`] says whether somebody's earlier word
//! stands in for a new one. Everything here is a function of what it is handed: no files, no clock, no chance.

mod condition;
mod effects;
mod error;
mod evaluate;
mod explain;
mod glob;
mod grant;
mod layers;
mod number;
mod path;
mod rule;
mod shell;
mod tool;
mod verdict;

pub use condition::{Condition, ConditionText};
pub use effects::{Annotations, Effect, Effects, ToolFacts};
pub use error::PolicyError;
pub use evaluate::Context;
pub use explain::{Considered, Explanation, Outcome};
pub use glob::Glob;
pub use grant::{Grant, GrantNeeds, GrantScope, GrantedCall, NotCovered, Pins};
pub use layers::{Layer, LayerText, Mode, Policy, ToolText};
pub use rule::{DEFAULT as DEFAULT_RULE, DEFINITION, Decision, Rule, RuleText};
pub use shell::{CommandPattern, Opaque, Segment, WorkFolder, split};
pub use tool::{ToolName, ToolPattern};
pub use verdict::{Basis, Recheck, RuleRef, Verdict};
