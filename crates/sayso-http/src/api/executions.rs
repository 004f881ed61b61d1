use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post};
use sayso::{ExecutionFilter, ExecutionId, People};
use sayso_core::error::Error;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::problem::Refusal;
use crate::query::{Id, Query};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/executions", get(list))
        .route("/v1/executions/{id}", get(show))
        .route("/v1/executions/{id}/result", get(result))
        .route("/v1/executions/{id}/cancel", post(cancel))
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
