//! What waits for an answer, the longest waiting first: whoever asked first may give up first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::Round;
use sayso::{Principal, RoundFilter, Sayso, Status, UnixMs};
use sayso_core::error::Error;

use super::layout::{Page, Place};
use super::{Failed, opened, words};
use crate::app::Shared;
use crate::auth::Session;
use crate::routes::Routes;

/// Pages of pending rounds that are gathered to find the oldest: a thousand rounds, more than anybody works off.
const PAGES_MAX: usize = 5;

pub(super) fn routes() -> Routes {
    Routes::new().get("/", show)
}

/// The pending rounds, oldest first, and whether there are older ones than these.
pub(super) async fn pending(sayso: &Sayso, person: &Principal) -> Result<(Vec<Round>, bool), Error> {
    let mut all = Vec::new();
    let mut filter = RoundFilter { status: Some(Status::Pending), ..RoundFilter::default() };
    for _ in 0..PAGES_MAX {
        let page = sayso.rounds(person, filter.clone()).await?;
        all.extend(page.rounds);
        filter.before = page.next_cursor;
        if filter.before.is_none() {
            break;
        }
    }
    all.reverse();
    Ok((all, filter.before.is_some()))
}

async fn show(State(app): State<Shared>, session: Session) -> Result<Response, Failed> {
    let (rounds, is_more) = pending(&app.sayso, &session.person).await?;
    let now = app.sayso.now().await?;
    let count = match rounds.len() {
        0 => "Nothing is waiting".to_owned(),
        1 => "1 question is waiting".to_owned(),
        several => format!("{several} questions are waiting"),
    };
    let title = if rounds.is_empty() { "Waiting".to_owned() } else { format!("({}) Waiting", rounds.len()) };
    let main = html! {
        h1 { "Waiting for you" }
        div id="live" data-announce=(count) data-title=(title) {
            @if rounds.is_empty() {
                (nothing())
            } @else {
                p.lede { (count) @if rounds.len() > 1 { ", the longest waiting first" } "." }
                ul.rounds { @for round in &rounds { (card(round, now)?) } }
                @if is_more { p { "There are more, and older ones. They appear here as these are answered." } }
            }
        }
        noscript { p { a.button href="/" { "Look for new questions" } } }
    };
    let page =
        Page { title, person: Some(&session.person), place: Place::Waiting, live: Some("list".to_owned()), main };
    Ok(page.respond(StatusCode::OK))
}

fn nothing() -> Markup {
    html! {
        div.empty {
            p.empty-title { "Nothing is waiting." }
            p { "When an agent asks something, it appears here. To let one ask, put the gateway in front of one of its servers:" }
            pre tabindex="0" aria-label="Example command" {
                code { "sayso gateway --name shipping -- npx your-mcp-server" }
            }
            p { "What was answered is in the " a href="/history" { "history" } "." }
        }
    }
}

fn card(round: &Round, now: UnixMs) -> Result<Markup, Error> {
    let requests = opened(round)?;
    let mut kinds: Vec<_> = requests.iter().map(|(_, request)| words::kind(request)).collect();
    kinds.dedup();
    let headline = requests.iter().next().map(|(_, request)| words::excerpt(request.headline())).unwrap_or_default();
    Ok(html! {
        li.card {
            div.card-top {
                h2 { a id=(format!("card-{}", round.round_id)) href=(format!("/rounds/{}", round.round_id)) { (words::asks(round, &requests)) } }
                div.badges { @for kind in kinds { span.badge { (kind) } } }
            }
            p.says { (headline) }
            p.meta {
                code { (words::line(&round.operation_name)) }
                span { "asked by " (words::who(&round.asked_by)) }
                span { (words::moment(round.created_at, now)) }
            }
        }
    })
}
