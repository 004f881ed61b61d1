use std::future::Future;

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sayso::wire::{Lease, Leased};
use sayso::{Ask, Desk, LATE_PREFIX, Opened, RoundFilter, RoundId, Status};
use sayso_core::error::Error;
use sayso_core::limits::LEASE_MS;
use sayso_core::round::Delivery;
use serde::Serialize;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, IdempotencyKey, Query};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/v1/rounds", list).post("/v1/rounds", ask).get("/v1/rounds/{id}", show)
}

async fn ask(
    State(app): State<Shared>,
    caller: Caller,
    key: IdempotencyKey,
    Strict(ask): Strict<Ask>,
) -> Result<Response, Refusal> {
    let key = key.given()?;
    if ask.delivery == Some(Delivery::Live) {
        let worker = caller.worker(&app, ask.owner_id.as_deref())?;
        let leased = leased(&app, worker.open(ask, key)).await?;
        return Ok(created(leased.round.round_id, &leased));
    }
    let round = caller.desk(&app).ask(ask, key).await?;
    Ok(created(round.round_id, &round))
}

fn created<T: Serialize>(id: RoundId, body: &T) -> Response {
    let place = [(header::LOCATION, format!("/v1/rounds/{id}"))];
    (StatusCode::CREATED, place, json(body)).into_response()
}

/// The round that `opened` leaves in the caller's hands, with its lease: the only answers that carry a token.
pub(super) async fn leased(app: &Shared, opened: impl Future<Output = Result<Opened, Error>>) -> Result<Leased, Error> {
    // The time before the write: a worker should sooner renew early than late.
    let now = app.sayso.now().await?;
    let Opened { round, fence } = opened.await?;
    Ok(Leased { round, lease: fence.map(|fence| Lease::new(fence, now.plus_ms(LEASE_MS))) })
}

async fn list(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["status", "execution", "late", "cursor", "limit"])?;
    let words: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    let filter = RoundFilter {
        status: query.get("status", &format!("must be one of {}", words.join(", ")), Status::parse)?,
        execution: query.id("execution")?,
        unfinished_late: query.get("late", &format!("must begin with {LATE_PREFIX}"), |text| {
            text.starts_with(LATE_PREFIX).then(|| text.to_owned())
        })?,
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
