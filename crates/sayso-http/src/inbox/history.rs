//! What is no longer waiting, newest first.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::Round;
use sayso::{RoundFilter, RoundId, Status, UnixMs};
use sayso_core::error::Error;

use super::layout::{Page, Place};
use super::{Failed, opened, words};
use crate::app::Shared;
use crate::auth::Session;
use crate::routes::Routes;

/// Rounds on one page: what one scrolls through.
const ROWS: usize = 50;

pub(super) fn routes() -> Routes {
    Routes::new().get("/history", show)
}

async fn show(State(app): State<Shared>, session: Session, uri: Uri) -> Result<Response, Failed> {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let before = match pairs.find(|(name, _)| name == "cursor") {
        Some((_, cursor)) => Some(RoundId::parse(&cursor).map_err(|_| Error::NotFound("page of the history"))?),
        None => None,
    };
    let filter = RoundFilter { finished_or_answered: true, before, limit: ROWS, ..RoundFilter::default() };
    let page = app.sayso.rounds(&session.person, filter).await?;
    let now = app.sayso.now().await?;
    let main = html! {
        h1 { "History" }
        @if page.rounds.is_empty() {
            div.empty {
                p.empty-title { "Nothing here yet." }
                p { "Questions move here once they are answered or have ended." }
            }
        } @else {
            ul.rounds { @for round in &page.rounds { (row(round, now)?) } }
        }
        @if before.is_some() || page.next_cursor.is_some() {
            nav.pages aria-label="Pages of the history" {
                @if before.is_some() { a.button href="/history" { "Newest" } }
                @if let Some(cursor) = page.next_cursor { a.button href=(format!("/history?cursor={cursor}")) { "Older" } }
            }
        }
    };
    let page =
        Page { title: "History".to_owned(), person: Some(&session.person), place: Place::History, live: None, main };
    Ok(page.respond(StatusCode::OK))
}

/// A round in a list of what happened.
pub(super) fn row(round: &Round, now: UnixMs) -> Result<Markup, Error> {
    let requests = opened(round)?;
    let headline = requests.iter().next().map(|(_, request)| words::excerpt(request.headline())).unwrap_or_default();
    let tone = match round.status {
        Status::Failed => "badge bad",
        Status::Pending => "badge",
        _ => "badge good",
    };
    Ok(html! {
        li.card {
            div.card-top {
                h2 { a href=(format!("/rounds/{}", round.round_id)) { (words::asks(round, &requests)) } }
                div.badges { span class=(tone) { (words::status(round)) } }
            }
            p.says { (headline) }
            @if let Some(answered) = &round.answered {
                p.result { (words::deed(answered, Some(&requests))) " by " strong { (words::who(&answered.principal)) }
                    " via " (answered.channel.as_str()) ", " (words::moment(answered.at, now)) "."
                    @if let Some(delivery) = words::delivery(round.status) { " " (delivery) }
                }
            }
            @if let Some(failure) = &round.failure {
                p.result { (words::ended(failure)) " " span.code { (words::line(&failure.code)) } }
            }
            p.meta {
                code { (words::line(&round.operation_name)) }
                span { "asked by " (words::who(&round.asked_by)) }
                span { (words::moment(round.created_at, now)) }
            }
        }
    })
}
