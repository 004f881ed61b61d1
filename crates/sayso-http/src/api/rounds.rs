use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sayso::{Ask, RoundFilter, RoundId, Status};
use sayso_core::error::Error;
use sayso_core::round::Delivery;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, Query, idempotency_key};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/v1/rounds", get(list).post(ask)).route("/v1/rounds/{id}", get(show))
}

async fn ask(
    State(app): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    Strict(ask): Strict<Ask>,
) -> Result<Response, Refusal> {
    if ask.delivery == Some(Delivery::Live) {
        // The opener of a live round holds its lease; over HTTP that would be this server.
        return Err(Error::field("/delivery", "must be resumable over HTTP").into());
    }
    let round = caller.desk(&app).ask(ask, idempotency_key(&headers)?).await?;
    let place = [(header::LOCATION, format!("/v1/rounds/{}", round.round_id))];
    Ok((StatusCode::CREATED, place, json(&round)).into_response())
}

async fn list(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["status", "execution", "cursor", "limit"])?;
    let words: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    let filter = RoundFilter {
        status: query.get("status", &format!("must be one of {}", words.join(", ")), Status::parse)?,
        execution: query.id("execution")?,
        before: query.id("cursor")?,
        limit: query.limit()?,
        ..RoundFilter::default()
    };
    Ok(json(&app.sayso.rounds(&caller.principal, filter).await?))
}

/// With `wait`, answers once the round's `rev` is past `after` (by default: past what it is now), or the wait is over.
async fn show(State(app): State<Shared>, caller: Caller, Id(id): Id<RoundId>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["wait", "after"])?;
    let after: Option<u32> = query.get("after", "must be a round's rev", |text| text.parse().ok())?;
    let wait = query.wait()?;
    let mut round = app.sayso.round(&caller.principal, id).await?;
    if let Some(wait) = wait {
        let waiting = app.sayso.round_after(&caller.principal, id, after.unwrap_or(round.rev), wait);
        if let Some(later) = app.stopping.or(waiting).await {
            round = later?;
        }
    }
    Ok(json(&round))
}
