use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sayso::TokenId;
use sayso::wire::NewToken;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::{Id, Query};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/v1/tokens", list).post("/v1/tokens", add).delete("/v1/tokens/{id}", revoke)
}

/// The secret is in this answer and in none after it.
async fn add(State(app): State<Shared>, caller: Caller, Strict(new): Strict<NewToken>) -> Result<Response, Refusal> {
    let minted = app.sayso.new_token(&caller.principal, new).await?;
    Ok((StatusCode::CREATED, json(&minted.token)).into_response())
}

async fn list(State(app): State<Shared>, caller: Caller, uri: Uri) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    Ok(json(&app.sayso.tokens(&caller.principal).await?))
}

async fn revoke(State(app): State<Shared>, caller: Caller, Id(id): Id<TokenId>) -> Result<Response, Refusal> {
    Ok(json(&app.sayso.revoke_token(&caller.principal, id).await?))
}
