use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use super::json;
use crate::app::Shared;
use crate::problem::Refusal;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

#[derive(serde::Serialize)]
struct Health {
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
