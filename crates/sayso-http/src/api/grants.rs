use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sayso::gate::definition_of;
use sayso::policy::{Annotations, GrantScope, Pins, ToolName};
use sayso::wire::{Cleared, Grant, GrantDraft, GrantUse, GrantUsed, NewApproval};
use sayso::{Desk, GrantFilter, GrantId, GrantsOf, LocalPeople, NewGrant};
use sayso_core::error::Error;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, Query, SessionId};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .get("/v1/sessions/{session}/approvals", of_session)
        .post("/v1/sessions/{session}/approvals", approve)
        .delete("/v1/sessions/{session}/approvals", clear)
        .get("/v1/grants", list)
        .post("/v1/grants", add)
        .post("/v1/grants/use", use_one)
        .get("/v1/grants/{id}", show)
        .delete("/v1/grants/{id}", revoke)
}

fn filter(uri: &Uri, of: GrantsOf) -> Result<GrantFilter, Error> {
    let query = Query::read(uri, &["cursor", "limit"])?;
    Ok(GrantFilter { of, usable_at: None, before: query.id("cursor")?, limit: query.limit()? })
}

async fn list(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    let filter = filter(&uri, GrantsOf::All)?;
    Ok(json(&caller.people(&app).grant_page(filter).await?))
}

async fn of_session(
    State(app): State<Shared>,
    caller: Caller,
    SessionId(session): SessionId,
    uri: Uri,
) -> Result<Response, Refusal> {
    let filter = filter(&uri, GrantsOf::Session(session))?;
    Ok(json(&caller.people(&app).grant_page(filter).await?))
}

async fn approve(
    State(app): State<Shared>,
    caller: Caller,
    SessionId(session): SessionId,
    Strict(new): Strict<NewApproval>,
) -> Result<Response, Refusal> {
    let people = caller.people(&app);
    let good_for_ms = new.expires_in_seconds.map(|seconds| i64::from(seconds) * 1_000);
    let uses_max = new.uses_max;
    let grant = NewGrant { good_for_ms, uses_max, ..approval_of(&people, session, new).await? };
    let grant = people.grant(grant).await?;
    Ok((StatusCode::CREATED, json(&Grant::new(&grant))).into_response())
}

/// The grant for one tool, or the one that a round of this session asks about.
async fn approval_of(people: &LocalPeople, session: String, new: NewApproval) -> Result<NewGrant, Error> {
    let Some(round) = new.round_id else {
        let tool = new.tool.ok_or_else(|| Error::field("/tool", "is required, or round_id"))?;
        let tool = ToolName::parse(&tool).map_err(|error| Error::field("/tool", error.message))?;
        let annotations = new.annotations.as_ref().map(Annotations::read).unwrap_or_default();
        let definition = new.definition.unwrap_or_else(|| definition_of(&tool, annotations));
        let pins = new.arguments.map_or(Pins::Any, Pins::Exactly);
        let scope = GrantScope::Session { session, tool, definition, pins };
        return Ok(NewGrant { agent: new.agent, ..NewGrant::of(scope) });
    };
    let others = [
        new.tool.is_some(),
        new.arguments.is_some(),
        new.annotations.is_some(),
        new.definition.is_some(),
        new.agent.is_some(),
    ];
    if others.contains(&true) {
        return Err(Error::field("/round_id", "says the tool, its arguments and the agent itself"));
    }
    let grant = people.session_grant_of(round, new.pinned).await?;
    if grant.scope.session() != Some(&session) {
        return Err(Error::field("/round_id", "is about a call of another session"));
    }
    Ok(grant)
}

/// A grant of any kind.
async fn add(
    State(app): State<Shared>,
    caller: Caller,
    Strict(draft): Strict<GrantDraft>,
) -> Result<Response, Refusal> {
    let people = caller.people(&app);
    let grant = people.grant(people.drafted_grant(draft).await?).await?;
    Ok((StatusCode::CREATED, json(&Grant::new(&grant))).into_response())
}

/// The worker's side: a grant stands in for a person, and its use is stored before this answers.
async fn use_one(
    State(app): State<Shared>,
    caller: Caller,
    Strict(call): Strict<GrantUse>,
) -> Result<Response, Refusal> {
    Ok(json(&GrantUsed { grant_id: caller.desk(&app).use_grant(&call).await? }))
}

async fn clear(State(app): State<Shared>, caller: Caller, SessionId(session): SessionId) -> Result<Response, Refusal> {
    Ok(json(&Cleared { revoked: caller.people(&app).clear_session_approvals(&session).await? }))
}

async fn show(State(app): State<Shared>, caller: Caller, Id(id): Id<GrantId>, uri: Uri) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    Ok(json(&Grant::new(&caller.people(&app).show_grant(id).await?)))
}

async fn revoke(State(app): State<Shared>, caller: Caller, Id(id): Id<GrantId>) -> Result<Response, Refusal> {
    Ok(json(&Grant::new(&caller.people(&app).revoke_grant(id).await?)))
}
