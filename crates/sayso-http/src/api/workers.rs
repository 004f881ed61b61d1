//! Workers: one name and one lease for everything a process holds, and what becomes known of it stored at once.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sayso::wire::{Renewed, Reviewed, Settled, Settlement, Worker};
use sayso::{Desk, Step};
use sayso_core::error::{Error, FieldError};
use sayso_core::limits::{COMMIT_COMMANDS_MAX, LEASE_MS, LEASE_RENEW_MS};

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::WithResult;
use crate::problem::Refusal;
use crate::query::{OwnerId, Query};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .post("/v1/workers", add)
        .post("/v1/workers/{owner}/renew", renew)
        .post("/v1/workers/{owner}/release", release)
        .post("/v1/settle", settle)
        .get("/v1/reviewed", reviewed)
}

/// Nothing is stored of a worker before it holds something.
async fn add(State(app): State<Shared>, caller: Caller) -> Result<Response, Refusal> {
    let owner_id = caller.worker(&app, None)?.owner_id().to_owned();
    let worker = Worker { owner_id, lease_ms: LEASE_MS, renew_every_ms: LEASE_RENEW_MS };
    Ok((StatusCode::CREATED, json(&worker)).into_response())
}

/// One write for everything the worker holds.
async fn renew(State(app): State<Shared>, caller: Caller, OwnerId(owner_id): OwnerId) -> Result<Response, Refusal> {
    let expires_at = caller.worker(&app, Some(&owner_id))?.renew_all().await?;
    Ok(json(&Renewed { owner_id, expires_at }))
}

async fn release(State(app): State<Shared>, caller: Caller, OwnerId(owner_id): OwnerId) -> Result<Response, Refusal> {
    caller.worker(&app, Some(&owner_id))?.leave().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn settle(
    State(app): State<Shared>,
    caller: Caller,
    WithResult(settlement): WithResult<Settlement>,
) -> Result<Response, Refusal> {
    let steps = settlement.steps.len();
    if steps > COMMIT_COMMANDS_MAX {
        return Err(Error::Limit(format!("at most {COMMIT_COMMANDS_MAX} steps are stored at once")).into());
    }
    let read =
        settlement.steps.into_iter().enumerate().map(|(at, step)| Step::try_from(step).map_err(|e| placed(at, e)));
    let read = read.collect::<Result<Vec<_>, _>>()?;
    caller.desk(&app).settle(read).await?;
    Ok(json(&Settled { steps }))
}

/// Of the caller's own: what one agent has reviewed is nothing to another.
async fn reviewed(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    let tool =
        Query::read(&uri, &["tool"])?.get("tool", "must be a tool, server:name", |text| Some(text.to_owned()))?;
    let tool = tool.ok_or_else(|| Error::field("/tool", "is required"))?;
    Ok(json(&Reviewed { definition: caller.desk(&app).reviewed(&tool).await? }))
}

/// The error of one step, with the step's place before its pointers.
fn placed(at: usize, error: Error) -> Error {
    let Error::Validation { fields, .. } = error else { return error };
    let place = |field: FieldError| FieldError { pointer: format!("/steps/{at}{}", field.pointer), ..field };
    Error::fields(fields.into_iter().map(place).collect())
}
