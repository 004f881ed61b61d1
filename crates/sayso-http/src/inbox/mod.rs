//! The inbox: the pages where a person answers. They work without a script; the one script adds live updates.

mod allowing;
mod assets;
mod batch;
mod card;
mod changes;
mod controls;
mod covers;
mod edits;
mod entered;
mod execution;
mod grants;
mod hints;
mod history;
mod layout;
mod list;
mod login;
mod outcome;
mod problems;
mod question;
mod reading;
mod round;
mod suggested;
mod typed;
mod words;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use sayso::Principal;
use sayso::wire::Round;
use sayso_core::error::Error;
use sayso_core::request::Requests;

use crate::problem::Refusal;
use crate::routes::Routes;
use layout::{Page, Place};

pub(crate) fn routes() -> Routes {
    Routes::new()
        .merge(assets::routes())
        .merge(login::routes())
        .merge(list::routes())
        .merge(batch::routes())
        .merge(history::routes())
        .merge(grants::routes())
        .merge(round::routes())
        .merge(execution::routes())
}

/// What a page's handler could not do, as a page.
struct Failed(Refusal);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        error_page(&self.0, None)
    }
}

/// A page that says what went wrong and where to go on.
pub(crate) fn error_page(refusal: &Refusal, person: Option<&Principal>) -> Response {
    let problem = &refusal.0;
    let status = refusal.status();
    let main = html! {
        h1 { (problem.title) }
        p { (sentence(&problem.detail)) }
        @if status == StatusCode::SERVICE_UNAVAILABLE {
            p { "Nothing was lost: what is stored stays stored. Try again in a moment." }
        }
        p.actions { a.button href="/" { "Go to the inbox" } }
    };
    Page { title: problem.title.clone(), person, place: Place::Elsewhere, live: None, main }.respond(status)
}

/// An error's words as a sentence.
fn sentence(detail: &str) -> String {
    let shown = words::lines(detail);
    let mut letters = shown.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if detail.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// What a stored round asks, opened again.
fn opened(round: &Round) -> Result<Requests, Error> {
    round.requests.check().map_err(|_| Error::Corrupt("request"))
}
