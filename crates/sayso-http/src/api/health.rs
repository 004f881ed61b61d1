use axum::extract::State;
use axum::response::Response;

use super::json;
use crate::app::Shared;
use crate::problem::Refusal;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/healthz", alive).get("/readyz", ready)
}

/// `ok`, or there is no such answer.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// The process answers.
async fn alive() -> Response {
    json(&Health { status: "ok" })
}

/// The store answers too.
async fn ready(State(app): State<Shared>) -> Result<Response, Refusal> {
    app.sayso.last_event().await?;
    Ok(json(&Health { status: "ok" }))
}
