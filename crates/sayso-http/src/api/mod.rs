//! The HTTP API (`docs/http.md`), a file a resource.

mod answers;
mod executions;
mod health;
mod rounds;
mod tokens;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sayso_core::error::Error;
use serde::Serialize;

use crate::app::Shared;
use crate::problem::Refusal;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .merge(rounds::routes())
        .merge(answers::routes())
        .merge(executions::routes())
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
