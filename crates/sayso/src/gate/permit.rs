//! What lets a call run without a new question: the rules, the program's own word, or a grant whose use is recorded.

use sayso_core::command::{Command, PolicyRuling};
use sayso_core::error::Error;
use sayso_core::id::GrantId;
use sayso_core::policy::{Basis, DEFINITION, Decision, Policy, Verdict};
use sayso_core::round::Digest;
use sayso_core::wire::GrantUse;

use super::turn::is_waved_through;
use super::{Allowed, By, Call, Gate};
use crate::new_round::to_json;
use crate::words;

impl Gate {
    /// Whether the call may run without a person. A grant is used up by this, before the call runs.
    pub(super) async fn permit(
        &self,
        call: &Call,
        policy: &Policy,
        verdict: &Verdict,
    ) -> Result<Option<Allowed>, Error> {
        let allowed = |by| {
            self.reviewed.review(&self.desk.caller, call);
            let arguments = call.arguments.clone();
            Ok(Some(Allowed { arguments, is_changed: false, by, rules: verdict.rules.clone() }))
        };
        // What a person must give is given by a person, whatever allows the call.
        if call.input.is_some() {
            return Ok(None);
        }
        match verdict.decision {
            Decision::Deny => return Ok(None),
            Decision::Allow => {
                let mode = verdict.basis == Basis::Mode;
                if mode {
                    self.record(call, verdict, true).await.map_err(words::approval_unavailable)?;
                }
                return allowed(By::Policy { mode });
            }
            Decision::Ask => {}
        }
        if is_waved_through(call, verdict) {
            return allowed(By::Program);
        }
        match self.use_grant(call, policy, verdict).await? {
            Some(grant) => allowed(By::Grant(grant)),
            None => Ok(None),
        }
    }

    /// Leaves the event of what the policy decided in a person's place.
    pub(super) async fn record(&self, call: &Call, verdict: &Verdict, approved: bool) -> Result<(), Error> {
        let ruling = PolicyRuling { tool: call.tool.to_string(), approved, rule: verdict.decided_by() };
        self.commit(vec![Command::RecordRuling { by: self.desk.caller.clone(), ruling }]).await
    }

    /// Uses a grant that covers the call, where the verdict leaves it to one.
    async fn use_grant(&self, call: &Call, policy: &Policy, verdict: &Verdict) -> Result<Option<GrantId>, Error> {
        if verdict.is_unsure {
            return Ok(None);
        }
        self.desk.used_grant(&Self::wanted(call, policy, verdict)?).await
    }

    /// What a grant must cover.
    pub(super) fn wanted(call: &Call, policy: &Policy, verdict: &Verdict) -> Result<GrantUse, Error> {
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
        })
    }
}
