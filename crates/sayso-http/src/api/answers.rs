use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use sayso::{Answer, Desk, People, RoundId};
use sayso_core::error::Error;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, IdempotencyKey, Query};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .get("/v1/rounds/{id}/responses", read)
        .post("/v1/rounds/{id}/responses", answer)
        .post("/v1/rounds/{id}/relay", relay)
        .post("/v1/rounds/{id}/collect", collect)
}

async fn answer(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    key: IdempotencyKey,
    Strict(answer): Strict<Answer>,
) -> Result<Response, Refusal> {
    let key = key.required()?;
    let answered = caller.people(&app).answer(id, answer, &key).await;
    Ok(json(&answered.map_err(|error| Refusal::about(&error, id))?))
}

/// What a person told the agent, where this server trusts agents to pass that on.
async fn relay(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    key: IdempotencyKey,
    Strict(answer): Strict<Answer>,
) -> Result<Response, Refusal> {
    let key = key.required()?;
    let relayed = caller.desk(&app).relay(id, answer, &key).await;
    Ok(json(&relayed.map_err(|error| Refusal::about(&error, id))?))
}

/// Values for persons, a redacted projection for everybody else, `null` before an answer.
async fn read(State(app): State<Shared>, caller: Caller, Id(id): Id<RoundId>, uri: Uri) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    Ok(json(&caller.people(&app).responses(id).await?))
}

/// The key of a caller that sends none: what it collected once it may read again.
const UNKEYED: &str = "unkeyed";

async fn collect(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    key: IdempotencyKey,
    uri: Uri,
) -> Result<Response, Refusal> {
    let wait = Query::read(&uri, &["wait"])?.wait()?.unwrap_or(Duration::ZERO);
    let key = key.given()?.unwrap_or_else(|| UNKEYED.to_owned());
    let desk = caller.desk(&app);
    let collected = app.stopping.or(desk.collect(id, &key, wait)).await.unwrap_or(Err(Error::Timeout));
    Ok(json(&collected.map_err(|error| Refusal::about(&error, id))?))
}
