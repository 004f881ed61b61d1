//! From a one-time link to a session. Reading the link changes nothing: whatever looks at links before a person does
//! (mail scanners, chat previews) must not use it up.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use sayso::Error;

use super::Failed;
use super::layout::{Page, Place};
use super::words;
use crate::app::Shared;
use crate::auth::{Session, session_cookie, session_secret};
use crate::body;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/login", show).post("/login", log_in).post("/logout", log_out)
}

fn token_in(query: Option<&str>) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(name, _)| name == "token").map(|(_, value)| value.into_owned()).filter(|token| !token.is_empty())
}

/// How one gets in, said to whoever is not.
pub(super) fn how_to() -> Markup {
    html! {
        p { "Sayso has no passwords. On the machine where it runs, type:" }
        pre tabindex="0" aria-label="Command" { code { "sayso login" } }
        p { "It prints a link that works once, for ten minutes. Open it in this browser." }
    }
}

async fn show(State(app): State<Shared>, headers: HeaderMap, uri: Uri) -> Result<Response, Failed> {
    let session = Session::find(&headers, &app.sayso).await?;
    let person = session.as_ref().map(|session| &session.person);
    let main = match (token_in(uri.query()), person) {
        (Some(token), _) => html! {
            h1 { "Log in to Sayso" }
            p { "This link logs this browser in for thirty days. It works once." }
            form method="post" action="/login" {
                input type="hidden" name="token" value=(token);
                p.actions { button.primary type="submit" { "Log in" } }
            }
        },
        (None, Some(person)) => html! {
            h1 { "You are logged in" }
            p { "As " strong { (words::who(person)) } "." }
            p.actions { a.button href="/" { "Go to the inbox" } }
        },
        (None, None) => html! {
            h1 { "Log in to Sayso" }
            (how_to())
        },
    };
    Ok(Page { title: "Log in".to_owned(), person, place: Place::Elsewhere, live: None, main }.respond(StatusCode::OK))
}

async fn log_in(State(app): State<Shared>, request: Request) -> Result<Response, Failed> {
    let pairs = body::form(request).await.map_err(Failed)?;
    let token = pairs.into_iter().find(|(name, _)| name == "token").map(|(_, token)| token).unwrap_or_default();
    let secret = match app.sayso.use_login(&token).await {
        Err(Error::Unauthenticated(_)) => return Ok(used_up()),
        secret => secret?,
    };
    let cookie = session_cookie(Some(&secret), app.options.is_https());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

/// A link that is no longer good, and how to get another.
fn used_up() -> Response {
    let main = html! {
        h1 { "This link has been used or is too old" }
        (how_to())
    };
    let title = "Log in".to_owned();
    Page { title, person: None, place: Place::Elsewhere, live: None, main }.respond(StatusCode::UNAUTHORIZED)
}

async fn log_out(State(app): State<Shared>, headers: HeaderMap) -> Result<Response, Failed> {
    if let Some(secret) = session_secret(&headers) {
        app.sayso.end_session(&secret).await?;
    }
    Ok(([(header::SET_COOKIE, session_cookie(None, app.options.is_https()))], Redirect::to("/login")).into_response())
}
