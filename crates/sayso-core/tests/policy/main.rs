//! Policies and grants as a whole: who wins, what a verdict rests on, and what can never come of adding something.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod evaluating;
mod granting;
mod recorded;
mod shells;
mod shown;
mod widening;

use sayso_core::json::Json;
use sayso_core::policy::{
    Annotations, Condition, Context, Decision, Layer, LayerText, Policy, RuleText, ToolName, Verdict,
};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn tool(text: &str) -> ToolName {
    ToolName::parse(text).unwrap()
}

/// Conditions from their written form, a JSON list.
fn when(text: &str) -> Vec<Condition> {
    serde_json::from_str(text).unwrap()
}

fn rule(id: &str, decision: Decision, tools: &str) -> RuleText {
    RuleText::new(id, decision, &[tools])
}

fn policy(layers: Vec<(Layer, Vec<RuleText>)>) -> Policy {
    Policy::new(layers.into_iter().map(|(layer, rules)| LayerText::new(layer, rules)).collect()).unwrap()
}

/// The verdict on a call whose server gives no hints.
fn judge(policy: &Policy, name: &str, arguments: &str) -> Verdict {
    policy.evaluate(&tool(name), &json(arguments), &Context::default())
}

fn hints(text: &str) -> Annotations {
    Annotations::read(&json(text))
}
