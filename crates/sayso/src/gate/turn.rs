//! Judging the calls of a whole turn, for whoever asks about all of them in one round of their own: nothing is asked and
//! nothing is opened here.

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::policy::{Basis, DEFAULT_RULE, Decision, Recheck, RuleRef, Verdict};
use sayso_core::wire::Request;

use super::reviewed::Judged;
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
    /// Judges a call before any of its turn runs. Nothing is used up: a grant that covers the call is only seen to. The first
    /// definition of a tool is stored by this, and so is the event of a denial.
    pub async fn weigh(&self, call: &Call) -> Result<Weighed, Error> {
        call.check()?;
        let judged = self.evaluate(call, &call.arguments).await?;
        let verdict = &judged.verdict;
        if verdict.decision == Decision::Deny {
            return Ok(Weighed::Deny(self.denied(call, judged.verdict).await));
        }
        let is_free = verdict.decision == Decision::Allow
            || is_waved_through(call, verdict)
            || self.is_granted(call, &judged).await?;
        self.store_before(judged.before_asking(&self.desk.caller, call).into_iter().collect()).await?;
        Ok(if is_free { Weighed::Free } else { Weighed::Ask(Box::new(asked(call, &call.arguments, &judged))) })
    }

    /// Lets a call run that nobody was asked about, right before it does.
    pub async fn admit(&self, call: &Call) -> Result<Admitted, Error> {
        let judged = self.evaluate(call, &call.arguments).await?;
        if judged.verdict.decision == Decision::Deny {
            return Ok(Admitted::Deny(self.denied(call, judged.verdict).await));
        }
        Ok(match self.permit(call, &judged, None).await? {
            Some(allowed) => Admitted::Allow(allowed),
            None => Admitted::Ask(Box::new(asked(call, &call.arguments, &judged))),
        })
    }

    /// Judges again, right before it runs, a call that somebody allowed while `asked_by` asked: with the arguments that
    /// it runs with. `shown` are those that would be shown, were it asked again. Where it may run, its tool's definition is
    /// stored as the reviewed one by this.
    pub async fn recheck(
        &self,
        call: &Call,
        runs_with: &Json,
        shown: &Json,
        asked_by: &[RuleRef],
    ) -> Result<Weighed, Error> {
        let judged = self.evaluate(call, runs_with).await?;
        Ok(match judged.verdict.recheck(asked_by) {
            Recheck::Go => {
                self.store_before(judged.before_running(&self.desk.caller, call).into_iter().collect()).await?;
                Weighed::Free
            }
            Recheck::Refuse => Weighed::Deny(self.denied(call, judged.verdict).await),
            Recheck::AskAgain => Weighed::Ask(Box::new(asked(call, shown, &judged))),
        })
    }

    /// What a person is asked about a call whose tool wants that, whatever the policy says.
    pub async fn ask_anyway(&self, call: &Call, shown: &Json) -> Result<Asked, Error> {
        Ok(asked(call, shown, &self.evaluate(call, shown).await?))
    }

    /// What the policy denies, on record. The denial stands whether or not its event could be stored.
    pub(super) async fn denied(&self, call: &Call, verdict: Verdict) -> Denied {
        drop(self.commit(vec![self.ruling(call, &verdict, false)]).await);
        Denied::by_policy(verdict)
    }

    async fn is_granted(&self, call: &Call, judged: &Judged) -> Result<bool, Error> {
        if judged.verdict.is_unsure {
            return Ok(false);
        }
        Ok(self.desk.covering_grant(&Self::wanted(call, judged)?).await?.is_some())
    }
}

/// Whether the program's own word is enough, because no rule is about the call.
pub(super) fn is_waved_through(call: &Call, verdict: &Verdict) -> bool {
    call.is_harmless && !verdict.is_unsure && verdict.rules.iter().all(|rule| rule.id == DEFAULT_RULE)
}

fn asked(call: &Call, shown: &Json, Judged { policy, verdict, .. }: &Judged) -> Asked {
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
