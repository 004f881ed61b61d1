//! Grants as calls use them: found, and their use stored, before the call runs.

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::id::{GrantId, RoundId};
use sayso_core::limits::{NAME_BYTES_MAX, PAGE_ROWS_MAX};
use sayso_core::policy::{Effects, Grant, GrantNeeds, GrantedCall, ToolFacts, ToolName};
use sayso_core::round::{Failure, FailureRequest, Fence};
use sayso_core::time::UnixMs;
use sayso_core::wire::{GrantUse, Superseded};
use sayso_store::{GrantFilter, GrantsOf};

use crate::local_desk::LocalDesk;
use crate::words;

impl LocalDesk {
    /// Uses a grant that covers the call, and stores what goes with it in the same transaction: a use that is counted is
    /// the use of a call that runs. A grant that somebody else has just used up or taken back is passed over; where what
    /// goes with it is in conflict, so are all.
    pub(crate) async fn used_grant(&self, call: &GrantUse, also: Vec<Command>) -> Result<Option<GrantId>, Error> {
        let (tool, mut grants, now) = self.considered(call).await?;
        let store = self.sayso.store();
        while let Some(grant) = self.covering(call, &tool, &grants, now) {
            let by = self.caller.clone();
            let using = Command::UseGrant { grant, by, execution: None };
            match store.commit([using].into_iter().chain(also.clone()).collect()).await {
                Ok(_) => return Ok(Some(grant)),
                Err(Error::Conflict { .. } | Error::NotFound(_)) => grants.retain(|other| other.id != grant),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// What is stored together with the use of a grant for this call.
    pub(crate) async fn beside_its_use(&self, call: &GrantUse) -> Result<Vec<Command>, Error> {
        let mut also = Vec::new();
        if let Some(definition) = call.reviewed {
            also.push(Command::RecordReview { by: self.caller.clone(), tool: call.tool.clone(), definition });
        }
        if let Some(Superseded { round_id, lease_token }) = &call.instead_of {
            self.own_row(*round_id).await?;
            let fence = Fence { owner: self.owner.name().to_owned(), token: lease_token.0 };
            also.push(self.question_dropped(*round_id, Some(fence)));
        }
        Ok(also)
    }

    /// What ends a question whose call goes on without an answer, while there is none.
    pub(crate) fn question_dropped(&self, round: RoundId, fence: Option<Fence>) -> Command {
        let failure = Failure::new(Failure::WITHDRAWN, words::ALLOWED_MEANWHILE);
        let request = FailureRequest { fence, principal: self.caller.clone(), failure, only_pending: true };
        Command::Fail { round, request }
    }

    /// A grant that covers the call, without using it.
    pub(crate) async fn covering_grant(&self, call: &GrantUse) -> Result<Option<GrantId>, Error> {
        let (tool, grants, now) = self.considered(call).await?;
        Ok(self.covering(call, &tool, &grants, now))
    }

    /// The call's tool, the grants it may ask for, and when they were read.
    async fn considered(&self, call: &GrantUse) -> Result<(ToolName, Vec<Grant>, UnixMs), Error> {
        self.check_may_collect()?;
        let tool = ToolName::parse(&call.tool).map_err(|error| Error::field("/tool", error.message))?;
        if call.session_id.is_empty() || call.session_id.len() > NAME_BYTES_MAX {
            return Err(Error::field("/session_id", format!("must have 1 to {NAME_BYTES_MAX} bytes")));
        }
        let now = self.sayso.store().now().await?;
        let grants = self.grants_for(&call.session_id, now).await?;
        Ok((tool, grants, now))
    }

    /// The first of these grants that covers the call.
    fn covering(&self, call: &GrantUse, tool: &ToolName, grants: &[Grant], now: UnixMs) -> Option<GrantId> {
        // Of what is believed of the tool a grant looks at its effects alone.
        let facts = ToolFacts { effects: Effects::from_iter(call.effects.iter().copied()), ..ToolFacts::UNKNOWN };
        let granted = GrantedCall {
            tool,
            arguments: &call.arguments,
            definition: call.definition,
            round: call.digest,
            session: &call.session_id,
            started_by: Some(&self.caller),
            facts: &facts,
            command_at: call.command_at.as_deref(),
            work_folder: None,
        };
        let needs =
            GrantNeeds { second_person: call.require_second_person, changed_definition: call.changed_definition };
        granted.grant_among(grants, needs, now).map(|grant| grant.id)
    }

    /// The grants that calls in this session may ask for.
    async fn grants_for(&self, session: &str, now: UnixMs) -> Result<Vec<Grant>, Error> {
        let mut all: Vec<Grant> = Vec::new();
        loop {
            let filter = GrantFilter {
                of: GrantsOf::CallsIn(session.to_owned()),
                usable_at: Some(now),
                before: all.last().map(|grant| grant.id),
                limit: PAGE_ROWS_MAX,
            };
            let page = self.sayso.store().grants(filter).await?;
            let is_last = page.len() < PAGE_ROWS_MAX;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}
