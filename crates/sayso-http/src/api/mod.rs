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

use axum::body::Body;
use axum::http::{HeaderValue, header};
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

/// Room for a round with a short question: most answers are not longer.
const USUAL_BYTES: usize = 1024;

/// Room for the headers of an answer, those included that every answer gets.
const USUAL_HEADERS: usize = 8;

/// A JSON answer. `Json` values pass through as they were written.
fn json<T: Serialize>(value: &T) -> Response {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    if serde_json::to_writer(&mut text, value).is_err() {
        return Refusal::from(Error::Corrupt("record")).into_response();
    }
    let mut response = Response::new(Body::from(text));
    response.headers_mut().reserve(USUAL_HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
