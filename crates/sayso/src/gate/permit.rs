//! What lets a call run without a new question: the rules, the program's own word, or a grant whose use is recorded.

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::id::GrantId;
use sayso_core::limits::PAGE_ROWS_MAX;
use sayso_core::policy::{Basis, Decision, Grant, GrantedCall, Policy, Verdict};
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;
use sayso_store::{GrantFilter, GrantsOf};

use super::turn::is_waved_through;
use super::{Allowed, By, Call, Gate};
use crate::local_desk::to_json;

impl Gate {
    /// Whether the call may run without a person. A grant is used up by this, before the call runs.
    pub(super) async fn permit(
        &self,
        call: &Call,
        policy: &Policy,
        verdict: &Verdict,
    ) -> Result<Option<Allowed>, Error> {
        let allowed = |by| {
            let arguments = call.arguments.clone();
            Ok(Some(Allowed { arguments, is_changed: false, by, rules: verdict.rules.clone() }))
        };
        match verdict.decision {
            Decision::Deny => return Ok(None),
            Decision::Allow => return allowed(By::Policy { mode: verdict.basis == Basis::Mode }),
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

    /// Uses a grant that covers the call. One that somebody else has just used up or taken back is passed over.
    async fn use_grant(&self, call: &Call, policy: &Policy, verdict: &Verdict) -> Result<Option<GrantId>, Error> {
        if verdict.is_unsure {
            return Ok(None);
        }
        let store = self.desk.sayso.store();
        let now = store.now().await?;
        let mut grants = self.candidates(call, now).await?;
        if grants.is_empty() {
            return Ok(None);
        }
        while let Some(grant) = self.covering(call, policy, verdict, &grants, now)? {
            let by = self.desk.caller.clone();
            match store.commit(vec![Command::UseGrant { grant, by, execution: None }]).await {
                Ok(_) => return Ok(Some(grant)),
                Err(Error::Conflict { .. } | Error::NotFound(_)) => grants.retain(|other| other.id != grant),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The first of these grants that covers the call, where the verdict leaves it to one.
    pub(super) fn covering(
        &self,
        call: &Call,
        policy: &Policy,
        verdict: &Verdict,
        grants: &[Grant],
        now: UnixMs,
    ) -> Result<Option<GrantId>, Error> {
        let facts = policy.facts(&call.tool, call.annotations);
        let asked = to_json(&call.requests(&call.arguments, policy, verdict))?;
        let granted = GrantedCall {
            tool: &call.tool,
            arguments: &call.arguments,
            definition: call.definition(),
            round: Some(Digest::of_requests(&asked)),
            session: &call.session,
            started_by: Some(&self.desk.caller),
            facts: &facts,
            command_at: policy.command_at(&call.tool, &facts),
            work_folder: None,
        };
        match verdict.clone().with_grants(&granted, grants, now).basis {
            Basis::Grant(grant) => Ok(Some(grant)),
            _ => Ok(None),
        }
    }

    /// The grants that calls in this session may ask for.
    pub(super) async fn candidates(&self, call: &Call, now: UnixMs) -> Result<Vec<Grant>, Error> {
        let mut all: Vec<Grant> = Vec::new();
        loop {
            let filter = GrantFilter {
                of: GrantsOf::CallsIn(call.session.clone()),
                usable_at: Some(now),
                before: all.last().map(|grant| grant.id),
                limit: PAGE_ROWS_MAX,
            };
            let page = self.desk.sayso.store().grants(filter).await?;
            let is_last = page.len() < PAGE_ROWS_MAX;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}
