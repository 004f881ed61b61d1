//! Judging the calls of a whole turn, for whoever asks about all of them in one round of their own: nothing is asked and
//! nothing is opened here.

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::policy::{Basis, DEFAULT_RULE, Decision, Policy, Recheck, RuleRef, Verdict};
use sayso_core::wire::Request;

use super::{Allowed, Call, Denied, Gate};

/// What the gate says of one call of a turn.
#[derive(Debug, Clone)]
pub enum Weighed {
    /// It may run.
    Free,
    /// It must not run.
    Deny(Denied),
    /// A person is to be asked.
    Ask(Box<Asked>),
}

/// What a person is to be asked about a call.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The approval, with everything that it is bound to.
    pub request: Request,
    /// The rules that ask; none where only the tool itself does.
    pub rules: Vec<RuleRef>,
    /// How long a person has, in milliseconds.
    pub deadline_ms: Option<i64>,
}

/// Whether a call that nobody was asked about may run now.
#[derive(Debug, Clone)]
pub enum Admitted {
    /// It may. A grant that it rests on has been used up by this.
    Allow(Allowed),
    /// It must not run.
    Deny(Denied),
    /// A person is to be asked.
    Ask(Box<Asked>),
}

impl Gate {
    /// Judges a call before any of its turn runs. Nothing is used up: a grant that covers the call is only seen to.
    pub async fn weigh(&self, call: &Call) -> Result<Weighed, Error> {
        call.check()?;
        let (policy, verdict) = self.evaluate(call, &call.arguments);
        Ok(match verdict.decision {
            Decision::Deny => Weighed::Deny(Denied::by_policy(verdict)),
            Decision::Allow => Weighed::Free,
            Decision::Ask if is_waved_through(call, &verdict) => Weighed::Free,
            Decision::Ask if self.is_granted(call, &policy, &verdict).await? => Weighed::Free,
            Decision::Ask => Weighed::Ask(Box::new(asked(call, &call.arguments, &policy, &verdict))),
        })
    }

    /// Lets a call run that nobody was asked about, right before it does.
    pub async fn admit(&self, call: &Call) -> Result<Admitted, Error> {
        let (policy, verdict) = self.evaluate(call, &call.arguments);
        if verdict.decision == Decision::Deny {
            return Ok(Admitted::Deny(Denied::by_policy(verdict)));
        }
        Ok(match self.permit(call, &policy, &verdict).await? {
            Some(allowed) => Admitted::Allow(allowed),
            None => Admitted::Ask(Box::new(asked(call, &call.arguments, &policy, &verdict))),
        })
    }

    /// Judges again, right before it runs, a call that somebody allowed while `asked_by` asked: with the arguments that
    /// it runs with. `shown` are those that would be shown, were it asked again.
    pub fn recheck(&self, call: &Call, runs_with: &Json, shown: &Json, asked_by: &[RuleRef]) -> Weighed {
        let (policy, verdict) = self.evaluate(call, runs_with);
        match verdict.recheck(asked_by) {
            Recheck::Go => Weighed::Free,
            Recheck::Refuse => Weighed::Deny(Denied::by_policy(verdict)),
            Recheck::AskAgain => Weighed::Ask(Box::new(asked(call, shown, &policy, &verdict))),
        }
    }

    /// What a person is asked about a call whose tool wants that, whatever the policy says.
    pub fn ask_anyway(&self, call: &Call, shown: &Json) -> Asked {
        let (policy, verdict) = self.evaluate(call, shown);
        asked(call, shown, &policy, &verdict)
    }

    async fn is_granted(&self, call: &Call, policy: &Policy, verdict: &Verdict) -> Result<bool, Error> {
        if verdict.is_unsure {
            return Ok(false);
        }
        Ok(self.desk.covering_grant(&Self::wanted(call, policy, verdict)?).await?.is_some())
    }
}

/// Whether the program's own word is enough, because no rule is about the call.
pub(super) fn is_waved_through(call: &Call, verdict: &Verdict) -> bool {
    call.is_harmless && !verdict.is_unsure && verdict.rules.iter().all(|rule| rule.id == DEFAULT_RULE)
}

fn asked(call: &Call, shown: &Json, policy: &Policy, verdict: &Verdict) -> Asked {
    let asks = verdict.decision == Decision::Ask && verdict.basis == Basis::Rules;
    let mut request = call.requests(shown, policy, verdict).0.pop().map(|(_, request)| request);
    if let Some(request) = &mut request
        && !asks
    {
        request.rule = None;
    }
    Asked {
        // There is always the one request of the call.
        request: request.unwrap_or_else(|| Request::empty(sayso_core::wire::RequestKind::Approval)),
        rules: if asks { verdict.rules.clone() } else { Vec::new() },
        deadline_ms: verdict.deadline_ms,
    }
}
