//! The person's verbs on grants: what is allowed beforehand, listed and taken back. Agents have none of them.

use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::id::{GrantId, RoundId};
use sayso_core::limits::PAGE_ROWS_MAX;
use sayso_core::policy::{Grant, GrantScope, Pins, ToolName};
use sayso_core::principal::{Principal, PrincipalKind};
use sayso_core::wire::{self, Request, RequestKind};
use sayso_store::{GrantFilter, GrantsOf};

use crate::ids;
use crate::people::LocalPeople;

/// What a person grants.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// What it covers.
    pub scope: GrantScope,
    /// Whose calls it covers; without it those of every agent.
    pub agent: Option<Principal>,
    /// The round it was drafted from, if it was.
    pub round: Option<RoundId>,
    /// How long it is good for, in milliseconds.
    pub good_for_ms: Option<i64>,
    /// How many calls it covers.
    pub uses_max: Option<u32>,
}

impl NewGrant {
    /// A grant of this scope, for everybody and until it is taken back.
    pub fn of(scope: GrantScope) -> Self {
        Self { scope, agent: None, round: None, good_for_ms: None, uses_max: None }
    }
}

impl LocalPeople {
    fn check_person(&self) -> Result<(), Error> {
        if self.caller.kind == PrincipalKind::Person {
            return Ok(());
        }
        Err(Error::Forbidden("only a person grants, and sees and takes back what was granted"))
    }

    /// Allows calls to come. Where the round it was drafted from needs a second person, whoever started its execution
    /// grants nothing for it.
    pub async fn grant(&self, new: NewGrant) -> Result<Grant, Error> {
        self.check_person()?;
        let not_by_starter_of = match new.round {
            Some(round) => {
                let (row, question) = self.sayso.seen_round(&self.caller, round).await?;
                let needs_second = |(_, request): &(String, Request)| request.require_second_person == Some(true);
                question.requests.0.iter().any(needs_second).then_some(row.execution_id)
            }
            None => None,
        };
        let now = self.sayso.store().now().await?;
        let grant = Grant {
            id: ids::new_id(now, GrantId::from_parts)?,
            scope: new.scope,
            granted_by: self.caller.clone(),
            granted_at: now,
            expires_at: None,
            uses_max: new.uses_max,
            uses: 0,
            revoked_at: None,
            agent: new.agent,
            round: new.round,
        };
        let (good_for_ms, channel) = (new.good_for_ms, self.channel);
        self.one_grant(Command::AddGrant { grant: Box::new(grant), good_for_ms, channel, not_by_starter_of }).await
    }

    /// The approval for a session that a round asks about: the same tool as it is now, for its asker alone; pinned to the
    /// arguments that were shown where that is wanted. The round must hold one approval that names its session and tool.
    pub async fn session_grant_of(&self, round: RoundId, is_pinned: bool) -> Result<NewGrant, Error> {
        let (row, question) = self.sayso.seen_round(&self.caller, round).await?;
        let refuse =
            || Error::field("/round_id", "is no single approval that a grant for its session could be made of");
        let [(_, request)] = question.requests.0.as_slice() else { return Err(refuse()) };
        let (Some(session), Some(definition), Some(arguments), RequestKind::Approval) =
            (request.session.clone(), request.definition, request.arguments.clone(), request.kind)
        else {
            return Err(refuse());
        };
        // What is shown is the tool, where it is written as one; the round's operation may be a whole turn.
        let shown =
            request.tool.as_deref().filter(|tool| tool.contains(':')).and_then(|tool| ToolName::parse(tool).ok());
        let tool = match shown {
            Some(tool) => tool,
            None => ToolName::new(row.server.clone(), row.operation_name.clone()).map_err(|_| refuse())?,
        };
        let pins = if is_pinned { Pins::Exactly(arguments) } else { Pins::Any };
        let scope = GrantScope::Session { session, tool, definition, pins };
        Ok(NewGrant { agent: Some(row.asked_by), round: Some(round), ..NewGrant::of(scope) })
    }

    /// A grant, as it is now.
    pub async fn show_grant(&self, id: GrantId) -> Result<Grant, Error> {
        self.check_person()?;
        self.sayso.store().grant(id).await?.ok_or(Error::NotFound("grant"))
    }

    /// A page of grants, newest first, and where the next one begins. Ended ones are among them.
    pub async fn grants(&self, mut filter: GrantFilter) -> Result<(Vec<Grant>, Option<GrantId>), Error> {
        self.check_person()?;
        let rows = if filter.limit == 0 { PAGE_ROWS_MAX } else { filter.limit.min(PAGE_ROWS_MAX) };
        filter.limit = rows + 1;
        let mut found = self.sayso.store().grants(filter).await?;
        let more = found.len() > rows;
        found.truncate(rows);
        let next = found.last().filter(|_| more).map(|grant| grant.id);
        Ok((found, next))
    }

    /// A page of grants in wire form.
    pub async fn grant_page(&self, filter: GrantFilter) -> Result<wire::GrantPage, Error> {
        let (grants, next_cursor) = self.grants(filter).await?;
        Ok(wire::GrantPage { grants: grants.iter().map(wire::Grant::new).collect(), next_cursor })
    }

    /// Takes a grant back. A repeat changes nothing.
    pub async fn revoke_grant(&self, id: GrantId) -> Result<Grant, Error> {
        self.check_person()?;
        self.one_grant(Command::RevokeGrant { grant: id, by: self.caller.clone(), channel: self.channel }).await
    }

    /// Takes back every approval for a session that still stands; how many.
    pub async fn clear_session_approvals(&self, session: &str) -> Result<usize, Error> {
        let mut cleared = 0;
        loop {
            let now = self.sayso.store().now().await?;
            let of = GrantsOf::Session(session.to_owned());
            let (page, _) = self.grants(GrantFilter { of, usable_at: Some(now), ..GrantFilter::default() }).await?;
            let revoke = |grant: &Grant| Command::RevokeGrant {
                grant: grant.id,
                by: self.caller.clone(),
                channel: self.channel,
            };
            let unit: Vec<_> = page.iter().map(revoke).collect();
            if unit.is_empty() {
                return Ok(cleared);
            }
            cleared += unit.len();
            self.sayso.store().commit(unit).await?;
        }
    }

    async fn one_grant(&self, command: Command) -> Result<Grant, Error> {
        match self.sayso.store().commit(vec![command]).await?.into_iter().next() {
            Some(Reply::Grant(grant)) => Ok(*grant),
            _ => Err(Error::Corrupt("grant")),
        }
    }
}
