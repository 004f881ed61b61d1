//! The worker's side of a round: claimed, renewed, and handed over under owner and token.

use axum::extract::State;
use axum::response::Response;
use sayso::wire::{Collected, ExpectedToken, Holding, NewClaim, NewFailure, Renewed, Round, Withdrawal, fence_of};
use sayso::{ClaimOf, Claimed, Desk, Failure, Handed, LocalDesk, Opened, RoundId, Step};
use sayso_core::error::Error;

use super::json;
use super::rounds::leased;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, IdempotencyKey};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .post("/v1/rounds/{id}/claim", claim)
        .post("/v1/rounds/{id}/renew", renew)
        .post("/v1/rounds/{id}/start_delivery", start_delivery)
        .post("/v1/rounds/{id}/delivered", delivered)
        .post("/v1/rounds/{id}/resolve", resolve)
        .post("/v1/rounds/{id}/fail", fail)
        .post("/v1/rounds/{id}/fail_recovery", fail_recovery)
        .post("/v1/rounds/{id}/withdraw", withdraw)
}

async fn claim(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    key: IdempotencyKey,
    Strict(claim): Strict<NewClaim>,
) -> Result<Response, Refusal> {
    let key = key.given()?;
    let worker = caller.worker(&app, claim.owner_id.as_deref()).map_err(|error| Refusal::about(&error, id))?;
    let of = ClaimOf { expected: claim.expected_token.map(|token| token.0), evidence: claim.evidence.map(Into::into) };
    let claimed = async {
        let Claimed { round, fence } = worker.claim(id, of, key).await?;
        Ok(Opened { round, fence: Some(fence) })
    };
    answered(id, leased(&app, claimed).await)
}

async fn renew(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(holding): Strict<Holding>,
) -> Result<Response, Refusal> {
    let renewed = caller.desk(&app).renew(id, holding.fence()).await;
    answered(id, renewed.map(|expires_at| Renewed { owner_id: holding.owner_id, expires_at }))
}

async fn start_delivery(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(holding): Strict<Holding>,
) -> Result<Response, Refusal> {
    let started = caller.desk(&app).start(id, holding.fence()).await;
    let wire = |Handed { round, request_state, responses }| Collected { round, request_state, responses };
    answered(id, started.map(wire))
}

async fn delivered(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(holding): Strict<Holding>,
) -> Result<Response, Refusal> {
    answered(id, stored(&app, &caller, id, Step::Delivered(id, holding.fence())).await)
}

async fn resolve(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(holding): Strict<Holding>,
) -> Result<Response, Refusal> {
    answered(id, stored(&app, &caller, id, Step::Resolved(id, holding.fence())).await)
}

async fn fail(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(failure): Strict<NewFailure>,
) -> Result<Response, Refusal> {
    let NewFailure { owner_id, lease_token, code, message } = failure;
    let fence = fence_of(owner_id.as_ref(), lease_token).map_err(|missing| Error::field(missing, "is required"))?;
    answered(id, stored(&app, &caller, id, Step::Failed(id, fence, Failure { code, message })).await)
}

async fn fail_recovery(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(expected): Strict<ExpectedToken>,
) -> Result<Response, Refusal> {
    answered(id, caller.desk(&app).fail_recovery(id, expected.expected_token.0).await)
}

async fn withdraw(
    State(app): State<Shared>,
    caller: Caller,
    Id(id): Id<RoundId>,
    Strict(withdrawal): Strict<Withdrawal>,
) -> Result<Response, Refusal> {
    let Withdrawal { owner_id, lease_token, successor } = withdrawal;
    let fence = Holding { owner_id, lease_token }.fence();
    answered(id, caller.desk(&app).withdraw(id, fence, successor).await)
}

/// Stores one step; the round as it is then.
async fn stored(app: &Shared, caller: &Caller, id: RoundId, step: Step) -> Result<Round, Error> {
    let desk: LocalDesk = caller.desk(app);
    desk.settle(vec![step]).await?;
    app.sayso.round(&caller.principal, id).await
}

fn answered<T: serde::Serialize>(id: RoundId, outcome: Result<T, Error>) -> Result<Response, Refusal> {
    outcome.map(|body| json(&body)).map_err(|error| Refusal::about(&error, id))
}
