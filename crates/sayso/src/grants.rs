//! The person's verbs on grants: what is allowed beforehand, listed and taken back. Agents have none of them.

use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::id::{GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits::PAGE_ROWS_MAX;
use sayso_core::policy::{Annotations, Effects, Grant, GrantScope, Pins, ToolName};
use sayso_core::principal::{Principal, PrincipalKind};
use sayso_core::round::Round;
use sayso_core::wire::{self, GrantKind, Request, RequestKind};
use sayso_store::{GrantFilter, GrantsOf};

use crate::gate::definition_of;
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
    /// Its id, made by [`LocalPeople::new_grant_id`], where a repeat must be known for one; else it gets a new one.
    pub id: Option<GrantId>,
}

impl NewGrant {
    /// A grant of this scope, for everybody and until it is taken back.
    pub fn of(scope: GrantScope) -> Self {
        Self { scope, agent: None, round: None, good_for_ms: None, uses_max: None, id: None }
    }
}

/// The scope that a draft for a session or of a rule writes out.
fn written_scope(draft: wire::GrantDraft) -> Result<GrantScope, Error> {
    let tools = draft.tool.ok_or_else(|| Error::field("/tool", "is required, or round_id"))?;
    let pins = match (draft.arguments, draft.when) {
        (Some(_), Some(_)) => return Err(Error::field("/when", "stands in the place of arguments")),
        (Some(arguments), None) => Pins::Exactly(arguments),
        (None, Some(when)) => {
            let read = serde_json::from_str(when.as_str());
            Pins::When(read.map_err(|_| Error::field("/when", "is no list of conditions as a policy has them"))?)
        }
        (None, None) => Pins::Any,
    };
    if draft.kind == GrantKind::Rule {
        return Ok(GrantScope::Rule { tools, effects: draft.effects.map(Effects::from_iter), pins });
    }
    let tool = ToolName::parse(&tools).map_err(|error| Error::field("/tool", error.message))?;
    let session = draft.session.ok_or_else(|| Error::field("/session", "is required, or round_id"))?;
    let annotations = draft.annotations.as_ref().map(Annotations::read).unwrap_or_default();
    let definition = draft.definition.unwrap_or_else(|| definition_of(&tool, annotations));
    Ok(GrantScope::Session { session, tool, definition, pins })
}

/// A call that a round asks about.
struct Approval {
    row: Round,
    tool: ToolName,
    request: Request,
    arguments: Json,
}

impl LocalPeople {
    pub(crate) fn check_person(&self) -> Result<(), Error> {
        if self.caller.kind == PrincipalKind::Person {
            return Ok(());
        }
        Err(Error::Forbidden("only a person grants, and sees and takes back what was granted"))
    }

    /// Allows calls to come. Where the round it was drafted from needs a second person, whoever started its execution
    /// grants nothing for it.
    pub async fn grant(&self, new: NewGrant) -> Result<Grant, Error> {
        let command = self.granting(new).await?;
        self.one_grant(command).await
    }

    /// An id for a grant that is going to be given.
    pub async fn new_grant_id(&self) -> Result<GrantId, Error> {
        ids::new_id(self.sayso.store().now().await?, GrantId::from_parts)
    }

    pub(crate) async fn granting(&self, new: NewGrant) -> Result<Command, Error> {
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
            id: match new.id {
                Some(id) => id,
                None => ids::new_id(now, GrantId::from_parts)?,
            },
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
        Ok(Command::AddGrant { grant: Box::new(grant), good_for_ms, channel, not_by_starter_of })
    }

    /// The approval for a session that a round asks about: the same tool as it is now, for its asker alone; pinned to the
    /// arguments that were shown where that is wanted. The round must hold one approval that names its session and tool.
    pub async fn session_grant_of(&self, round: RoundId, is_pinned: bool) -> Result<NewGrant, Error> {
        let Approval { row, tool, request, arguments } = self.approval_in(round).await?;
        let (Some(session), Some(definition)) = (request.session, request.definition) else {
            return Err(Error::field("/round_id", "names no session and tool that a grant could be made of"));
        };
        let pins = if is_pinned { Pins::Exactly(arguments) } else { Pins::Any };
        let scope = GrantScope::Session { session, tool, definition, pins };
        Ok(NewGrant { agent: Some(row.asked_by.clone()), round: Some(round), ..NewGrant::of(scope) })
    }

    /// The narrowest rule for calls like the one that a round asks about, in every session of its asker: the same tool
    /// with the same effects, the same members with the same values. The members named in `free` may have any value.
    pub async fn rule_grant_of(&self, round: RoundId, free: &[String]) -> Result<NewGrant, Error> {
        let Approval { row, tool, request, arguments } = self.approval_in(round).await?;
        let effects = request.effects.map_or(Effects::ALL, Effects::from_iter);
        let drafted = GrantScope::drafted_for(&tool, effects, &arguments, None).with_free(free);
        let scope = drafted.map_err(|error| Error::field(format!("/{}", error.key), error.message))?;
        Ok(NewGrant { agent: Some(row.asked_by.clone()), round: Some(round), ..NewGrant::of(scope) })
    }

    /// The grant for the very call that a round asks about, once: for when it is made again after its round has ended.
    pub async fn once_grant_of(&self, round: RoundId) -> Result<NewGrant, Error> {
        let row = self.approval_in(round).await?.row;
        let scope = GrantScope::Once { digest: row.digest };
        Ok(NewGrant { agent: Some(row.asked_by.clone()), round: Some(round), ..NewGrant::of(scope) })
    }

    /// What a draft says, drafted from its round or written out: for [`LocalPeople::grant`].
    pub async fn drafted_grant(&self, draft: wire::GrantDraft) -> Result<NewGrant, Error> {
        if let Some(stray) = draft.stray_member() {
            return Err(Error::field(format!("/{stray}"), "is not a member of such a grant"));
        }
        let good_for_ms = draft.expires_in_seconds.map(|seconds| i64::from(seconds) * 1_000);
        let uses_max = draft.uses_max;
        let grant = match (draft.kind, draft.round_id) {
            (GrantKind::Once, Some(round)) => self.once_grant_of(round).await?,
            (GrantKind::Session, Some(round)) => self.session_grant_of(round, draft.pinned.unwrap_or_default()).await?,
            (GrantKind::Rule, Some(round)) => self.rule_grant_of(round, &draft.free).await?,
            (GrantKind::Once, None) => return Err(Error::field("/round_id", "is required")),
            (GrantKind::Session | GrantKind::Rule, None) => {
                let agent = draft.agent.clone();
                NewGrant { agent, ..NewGrant::of(written_scope(draft)?) }
            }
        };
        Ok(NewGrant { good_for_ms, uses_max, ..grant })
    }

    /// The one call that a round asks about. What the gateway asks about prompts and resources has the names by which
    /// rules know them.
    async fn approval_in(&self, round: RoundId) -> Result<Approval, Error> {
        let (row, question) = self.sayso.seen_round(&self.caller, round).await?;
        let refuse = || Error::field("/round_id", "is no single approval that a grant could be made of");
        let [(_, request)] = question.requests.0.as_slice() else { return Err(refuse()) };
        let (RequestKind::Approval, Some(arguments)) = (request.kind, request.arguments.clone()) else {
            return Err(refuse());
        };
        // What is shown is the tool, where it is written as one; the round's operation may be a whole turn.
        let shown =
            request.tool.as_deref().filter(|tool| tool.contains(':')).and_then(|tool| ToolName::parse(tool).ok());
        let tool = match shown {
            Some(tool) => tool,
            None => {
                ToolName::of_operation(&row.server, row.operation_kind, &row.operation_name).map_err(|_| refuse())?
            }
        };
        Ok(Approval { row, tool, request: request.clone(), arguments })
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
