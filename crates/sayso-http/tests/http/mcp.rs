//! `/mcp`: what somebody else serves, behind the guard and the credentials of everything here.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Response};
use sayso::Principal;
use sayso_http::{McpService, ServeOptions};
use serde_json::json;

use crate::served::{Served, call, get, post};

/// A service that says who called it, and how.
fn echo() -> McpService {
    McpService::new(tower::service_fn(|request: Request| async move {
        let caller = request.extensions().get::<Principal>().map(ToString::to_string);
        let said = format!("{} by {}", request.method(), caller.unwrap_or_default());
        Ok::<_, Infallible>(Response::new(Body::from(said)))
    }))
}

async fn served() -> Served {
    Served::with(ServeOptions { mcp: Some(echo()), ..ServeOptions::default() }).await
}

#[tokio::test]
async fn the_service_is_told_who_calls_by_the_credential() {
    let served = served().await;
    let reply = post("/mcp").bearer(&served.agent).json(json!({})).send(&served).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, "POST by agent claude"));
    let reply = call(Method::DELETE, "/mcp").bearer(&served.other_agent).send(&served).await;
    assert_eq!(reply.text, "DELETE by agent codex");
    assert_eq!(reply.header("x-content-type-options"), "nosniff", "as every answer here");
}

#[tokio::test]
async fn nobody_gets_there_without_a_credential_or_from_another_site() {
    let served = served().await;
    let reply = post("/mcp").json(json!({})).send(&served).await;
    reply.problem(401, "unauthenticated");
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    for (name, value) in
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        let reply = post("/mcp").header(name, value).bearer(&served.agent).json(json!({})).send(&served).await;
        reply.problem(403, "forbidden");
    }
    get("/mcp").bearer(&served.agent).send(&served).await.problem(405, "not_found");
}

#[tokio::test]
async fn a_server_that_offers_none_has_nothing_there() {
    let served = Served::new().await;
    post("/mcp").bearer(&served.agent).json(json!({})).send(&served).await.problem(404, "not_found");
}
