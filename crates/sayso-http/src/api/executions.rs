use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sayso::wire::NewExecution;
use sayso::{Desk, ExecutionFilter, ExecutionId, ExecutionKind, People};
use sayso_core::error::Error;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, Query};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .get("/v1/executions", list)
        .post("/v1/executions", start)
        .get("/v1/executions/{id}", show)
        .get("/v1/executions/{id}/result", result)
        .post("/v1/executions/{id}/cancel", cancel)
}

/// Starts a record that lives in one of the caller's workers.
async fn start(
    State(app): State<Shared>,
    caller: Caller,
    Strict(new): Strict<NewExecution>,
) -> Result<Response, Refusal> {
    let worker = caller.worker(&app, Some(&new.owner_id))?;
    let id = worker.begin_as(new.kind.unwrap_or(ExecutionKind::Operation)).await?;
    let place = [(header::LOCATION, format!("/v1/executions/{id}"))];
    Ok((StatusCode::CREATED, place, json(&worker.execution(id).await?)).into_response())
}

async fn list(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["cursor", "limit"])?;
    let filter = ExecutionFilter { before: query.id("cursor")?, limit: query.limit()?, ..ExecutionFilter::default() };
    Ok(json(&app.sayso.executions(&caller.principal, filter).await?))
}

async fn show(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<ExecutionId>,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    Ok(json(&app.sayso.execution(&caller.principal, id).await?))
}

/// Without a wait, a run that goes on is a timeout at once.
async fn result(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<ExecutionId>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let wait = Query::read(&uri, &["wait"])?.wait()?.unwrap_or(Duration::ZERO);
    let result = app.stopping.or(app.sayso.execution_result(&caller.principal, id, wait)).await;
    Ok(json(&result.unwrap_or(Err(Error::Timeout))?))
}

async fn cancel(State(app): State<Shared>, caller: Caller, Id(id): Id<ExecutionId>) -> Result<Response, Refusal> {
    Ok(json(&caller.people(&app).cancel(id).await?))
}
