//! What lets a call run without a new question: the rules, the program's own word, or a grant whose use is recorded.

use sayso_core::command::{Command, PolicyRuling};
use sayso_core::error::Error;
use sayso_core::id::{GrantId, RoundId};
use sayso_core::policy::{Basis, DEFINITION, Decision, Verdict};
use sayso_core::round::Digest;
use sayso_core::wire::GrantUse;

use super::reviewed::Judged;
use super::turn::is_waved_through;
use super::{Allowed, By, Call, Gate};
use crate::new_round::to_json;

impl Gate {
    /// Whether the call may run without a person. A grant is used up by this, and what must be on record is, before the
    /// call runs. A pending question about it, `asked`, ends with the use of a grant, and stands where an answer came first.
    pub(super) async fn permit(
        &self,
        call: &Call,
        judged: &Judged,
        asked: Option<RoundId>,
    ) -> Result<Option<Allowed>, Error> {
        let verdict = &judged.verdict;
        // What a person must give is given by a person, whatever allows the call.
        if call.input.is_some() {
            return Ok(None);
        }
        let by = match verdict.decision {
            Decision::Deny => return Ok(None),
            Decision::Allow => By::Policy { mode: verdict.basis == Basis::Mode },
            Decision::Ask if is_waved_through(call, verdict) => By::Program,
            Decision::Ask => match self.use_grant(call, judged, asked).await? {
                Some(grant) => By::Grant(grant),
                None => return Ok(None),
            },
        };
        let ruling = (by == By::Policy { mode: true }).then(|| self.ruling(call, verdict, true));
        // A grant's use has been stored together with it.
        let reviewed = judged.before_running(&self.desk.caller, call).filter(|_| !matches!(by, By::Grant(_)));
        self.store_before(ruling.into_iter().chain(reviewed).collect()).await?;
        let arguments = call.arguments.clone();
        Ok(Some(Allowed { arguments, is_changed: false, by, rules: verdict.rules.clone() }))
    }

    /// The event of what the policy decided in a person's place.
    pub(super) fn ruling(&self, call: &Call, verdict: &Verdict, approved: bool) -> Command {
        let ruling = PolicyRuling { tool: call.tool.to_string(), approved, rule: verdict.decided_by() };
        Command::RecordRuling { by: self.desk.caller.clone(), ruling }
    }

    /// Uses a grant that covers the call, where the verdict leaves it to one.
    async fn use_grant(&self, call: &Call, judged: &Judged, asked: Option<RoundId>) -> Result<Option<GrantId>, Error> {
        if judged.verdict.is_unsure {
            return Ok(None);
        }
        let reviewed = judged.before_running(&self.desk.caller, call);
        let dropped = asked.map(|round| self.desk.question_dropped(round, None));
        self.desk.used_grant(&Self::wanted(call, judged)?, reviewed.into_iter().chain(dropped).collect()).await
    }

    /// What a grant must cover.
    pub(super) fn wanted(call: &Call, Judged { policy, verdict, .. }: &Judged) -> Result<GrantUse, Error> {
        let facts = policy.facts(&call.tool, call.annotations);
        let asked = to_json(&call.requests(&call.arguments, policy, verdict))?;
        Ok(GrantUse {
            session_id: call.session.clone(),
            tool: call.tool.to_string(),
            arguments: call.arguments.clone(),
            definition: call.definition(),
            effects: facts.effects.iter().collect(),
            command_at: policy.command_at(&call.tool, &facts).map(str::to_owned),
            digest: Some(Digest::of_requests(&asked)),
            require_second_person: verdict.require_second_person,
            changed_definition: verdict.rules.iter().any(|rule| rule.id == DEFINITION),
            reviewed: None,
            instead_of: None,
        })
    }
}
