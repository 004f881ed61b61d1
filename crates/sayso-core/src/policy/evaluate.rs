//! Judging a call.

use super::condition::{Fit, Side};
use super::effects::{Annotations, ToolFacts};
use super::explain::{Considered, Explanation, Outcome};
use super::layers::{Layer, Mode, Policy};
use super::rule::{DEFAULT, DEFINITION, Decision, Rule};
use super::shell::WorkFolder;
use super::tool::ToolName;
use super::verdict::{Basis, RuleRef, Verdict};
use crate::json::{Json, Tree};
use crate::round::Digest;

/// What is known beside the call itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The server's hints about the tool.
    pub annotations: Annotations,
    /// The mode of the session, where it has one of its own.
    pub mode: Option<Mode>,
    /// The digest of the tool's definition, where it is not the one that was last reviewed: then the call is asked at least.
    pub changed_definition: Option<Digest>,
    /// The folder the agent works in, where that is known.
    pub work_folder: Option<&'a WorkFolder<'a>>,
}

/// What one layer says.
struct Opinion<'p> {
    decision: Decision,
    by: By<'p>,
    layer: Layer,
    /// Whether the rule denies, and only could not be ruled out.
    is_unsure: bool,
}

/// Who says so.
#[derive(Clone, Copy)]
enum By<'p> {
    Rule(&'p Rule),
    Default,
    Definition(Digest),
}

/// Told of every rule that was looked at.
type Witness<'w> = &'w mut dyn FnMut(Layer, &Rule, Outcome);

impl Policy {
    /// Judges a call. Total: what cannot be judged is denied, with [`Basis::Error`].
    pub fn evaluate(&self, tool: &ToolName, arguments: &Json, context: &Context<'_>) -> Verdict {
        self.judge(tool, arguments, context, &mut |_, _, _| ())
    }

    /// Judges a call, and says what each rule had to do with it.
    pub fn explain(&self, tool: &ToolName, arguments: &Json, context: &Context<'_>) -> Explanation {
        let mut considered = Vec::new();
        let verdict = self.judge(tool, arguments, context, &mut |layer, rule, outcome| {
            let (rule, decision) = (rule.text().id.clone(), rule.text().decision);
            considered.push(Considered { layer, rule, decision, outcome });
        });
        let facts = self.facts(tool, context.annotations);
        let mode = self.mode_of(context);
        let is_open = !considered.iter().any(|rule| rule.layer == Layer::Operator && rule.outcome == Outcome::Matched);
        let outcome = if is_open { Outcome::Matched } else { Outcome::NotReached };
        let after = considered.iter().filter(|rule| rule.layer == Layer::Operator).count();
        let standing = |rule: &str, decision, outcome| Considered {
            layer: Layer::Operator,
            rule: rule.to_owned(),
            decision,
            outcome,
        };
        considered.insert(after, standing(DEFAULT, default(mode, &facts), outcome));
        if context.changed_definition.is_some() {
            considered.insert(0, standing(DEFINITION, Decision::Ask, Outcome::Matched));
        }
        Explanation { verdict, mode, facts, considered }
    }

    fn mode_of(&self, context: &Context<'_>) -> Mode {
        context.mode.or(self.mode).unwrap_or_default()
    }

    fn judge(&self, tool: &ToolName, arguments: &Json, context: &Context<'_>, witness: Witness<'_>) -> Verdict {
        let mode = self.mode_of(context);
        if !arguments.is_object() {
            return Verdict::error("the arguments are no JSON object");
        }
        if mode == Mode::Guarded && self.is_empty() {
            return Verdict::error("the mode `guarded` needs a policy, and there is none");
        }
        let facts = self.facts(tool, context.annotations);
        let tree = arguments.tree();
        let mut opinions = Vec::new();
        for (layer, rules) in &self.layers {
            let mut is_decided = false;
            for rule in rules {
                if is_decided {
                    witness(*layer, rule, Outcome::NotReached);
                    continue;
                }
                let outcome = outcome(rule, tool, &facts, &tree, context);
                is_decided = outcome == Outcome::Matched;
                let is_unsure = matches!(outcome, Outcome::CannotBeRuledOut { .. });
                witness(*layer, rule, outcome);
                if is_decided || is_unsure {
                    let decision = if is_unsure { Decision::Ask } else { rule.text().decision };
                    opinions.push(Opinion { decision, by: By::Rule(rule), layer: *layer, is_unsure });
                }
            }
        }
        if !opinions.iter().any(|opinion| opinion.layer == Layer::Operator && !opinion.is_unsure) {
            let decision = default(mode, &facts);
            opinions.insert(0, Opinion { decision, by: By::Default, layer: Layer::Operator, is_unsure: false });
        }
        opinions.extend(context.changed_definition.map(|digest| {
            let by = By::Definition(digest);
            Opinion { decision: Decision::Ask, by, layer: Layer::Operator, is_unsure: false }
        }));
        let verdict = combined(&opinions, mode);
        match self.faults.as_slice() {
            [] => verdict,
            _ if verdict.decision == Decision::Deny => verdict,
            faults => Verdict::error(faults.join("; ")),
        }
    }
}

/// What holds without a rule.
fn default(mode: Mode, facts: &ToolFacts) -> Decision {
    match mode {
        Mode::Guarded => Decision::Deny,
        Mode::Approval | Mode::Autonomous if facts.trusted && facts.read_only => Decision::Allow,
        Mode::Approval | Mode::Autonomous => Decision::Ask,
    }
}

/// What a rule has to do with a call. An allowing rule needs every condition to hold for sure, an asking one only that
/// none fails, and a denying one that is not sure asks.
fn outcome(rule: &Rule, tool: &ToolName, facts: &ToolFacts, arguments: &Tree<'_>, context: &Context<'_>) -> Outcome {
    if !rule.is_about(tool) {
        return Outcome::OtherTool;
    }
    if !rule.is_about_effects(facts.effects) {
        return Outcome::OtherEffects;
    }
    let decision = rule.text().decision;
    let side = if decision == Decision::Allow { Side::Permits } else { Side::Restricts };
    let mut unsure = None;
    for condition in &rule.text().when {
        let at = || condition.at().to_owned();
        match condition.fit(arguments, side, context.work_folder) {
            Fit::Yes => {}
            Fit::No => return Outcome::OtherArguments { at: at(), why: "is not as the condition says".to_owned() },
            Fit::Unknown(why) if decision == Decision::Allow => return Outcome::OtherArguments { at: at(), why },
            Fit::Unknown(why) => unsure = unsure.or(Some((at(), why))),
        }
    }
    match unsure {
        Some((at, why)) if decision == Decision::Deny => Outcome::CannotBeRuledOut { at, why },
        _ => Outcome::Matched,
    }
}

/// The most restrictive opinion, with all that share it.
fn combined(opinions: &[Opinion<'_>], mode: Mode) -> Verdict {
    let decision = opinions.iter().map(|opinion| opinion.decision).max().unwrap_or(Decision::Deny);
    let deciding: Vec<_> = opinions.iter().filter(|opinion| opinion.decision == decision).collect();
    let texts = || {
        deciding.iter().filter_map(|opinion| match opinion.by {
            By::Rule(rule) => Some(rule.text()),
            By::Default | By::Definition(_) => None,
        })
    };
    let is_unsure = decision == Decision::Ask && opinions.iter().any(|opinion| opinion.is_unsure);
    let require_second_person = texts().any(|text| text.require_second_person);
    // Somebody wrote that two people are needed: no mode makes that none.
    let needs_person = is_unsure || require_second_person;
    let is_allowed_by_mode = mode == Mode::Autonomous && decision == Decision::Ask && !needs_person;
    Verdict {
        decision: if is_allowed_by_mode { Decision::Allow } else { decision },
        basis: if is_allowed_by_mode { Basis::Mode } else { Basis::Rules },
        is_unsure,
        rules: deciding.iter().map(|opinion| reference(opinion, mode)).collect(),
        require_second_person,
        deadline_ms: texts().filter_map(|text| text.deadline_ms).min(),
        reason: texts().find_map(|text| text.reason.clone()),
    }
}

fn reference(opinion: &Opinion<'_>, mode: Mode) -> RuleRef {
    let (id, digest) = match opinion.by {
        By::Rule(rule) => (rule.text().id.clone(), rule.digest()),
        By::Definition(digest) => (DEFINITION.to_owned(), digest),
        By::Default => {
            let says = format!("{DEFAULT} {}", if mode == Mode::Guarded { "guarded" } else { "approval" });
            (DEFAULT.to_owned(), Digest::of_text(&says))
        }
    };
    RuleRef { layer: opinion.layer, id, digest }
}
