//! The HTTP API (`docs/http.md`), a file a resource.

mod answers;
mod deliveries;
mod executions;
mod gate;
mod grants;
pub(crate) mod health;
mod rounds;
mod tokens;
mod workers;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sayso_core::error::Error;
use serde::Serialize;

use crate::problem::Refusal;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .merge(rounds::routes())
        .merge(answers::routes())
        .merge(deliveries::routes())
        .merge(workers::routes())
        .merge(executions::routes())
        .merge(gate::routes())
        .merge(grants::routes())
        .merge(tokens::routes())
        .merge(health::routes())
}

/// A JSON answer. `Json` values pass through as they were written.
fn json<T: Serialize>(value: &T) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => Refusal::from(Error::Corrupt("record")).into_response(),
    }
}
