//! What waits for an answer, the longest waiting first: whoever asked first may give up first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::Round;
use sayso::{Principal, RoundFilter, Sayso, Status, UnixMs};
use sayso_core::error::Error;
use sayso_core::limits;
use sayso_core::request::{Request, Requests};

use super::layout::{Page, Place};
use super::{Failed, batch, opened, words};
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
    let is_decidable = |round: &Round| opened(round).is_ok_and(|requests| batch::is_decidable(&requests));
    let has_decidable = rounds.iter().any(is_decidable);
    let title = if rounds.is_empty() { "Waiting".to_owned() } else { format!("({}) Waiting", rounds.len()) };
    let main = html! {
        h1 { "Waiting for you" }
        div id="live" data-announce=(count) data-title=(title) {
            @if rounds.is_empty() {
                (nothing())
            } @else {
                p.lede { (count) @if rounds.len() > 1 { ", the longest waiting first" } "." }
                (keys())
                form id="batch" method="post" action="/batch" {
                    ul.rounds { @for round in &rounds { (card(round, now)?) } }
                    @if has_decidable { (bar()) }
                }
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

/// The keys, which the page's script understands; without it, nobody is told of them.
fn keys() -> Markup {
    let keys = [
        ("j", "next"),
        ("k", "previous"),
        ("o", "open"),
        ("x", "select"),
        ("a", "approve, then Enter"),
        ("d", "deny, then Enter"),
    ];
    html! {
        div.keys id="keys" hidden {
            p { "Keys: " @for (key, said) in keys { span { kbd { (key) } " " (said) } " " } }
            button.quiet type="button" id="keys-off" aria-pressed="false" { "Turn keys off" }
        }
    }
}

/// What is done with the calls that are selected. Enter in the reason must decide nothing.
fn bar() -> Markup {
    html! {
        section.batch aria-labelledby="batch-bar" {
            h2 id="batch-bar" { "Decide what is selected" }
            div.field {
                label for="batch-reason" { "Reason, if you deny " span.need { "(optional)" } }
                textarea id="batch-reason" name=(batch::REASON) rows="2" {}
            }
            div.actions {
                button.primary type="submit" id="batch-approve" name=(batch::DECISION) value="approve" { "Approve selected" }
                button type="submit" id="batch-deny" name=(batch::DECISION) value="deny" { "Deny selected" }
                span id="batch-count" {}
            }
            p.hint { "Each is answered by itself, and only if it is still what you see here. At most " (limits::BATCH_MAX) " at once." }
        }
    }
}

fn card(round: &Round, now: UnixMs) -> Result<Markup, Error> {
    let requests = opened(round)?;
    let mut kinds: Vec<_> = requests.iter().map(|(_, request)| words::kind(request)).collect();
    kinds.dedup();
    let headline = requests.iter().next().map(|(_, request)| words::excerpt(request.headline())).unwrap_or_default();
    let title = words::asks(round, &requests);
    let is_decidable = batch::is_decidable(&requests);
    let id = format!("pick-{}", round.round_id);
    Ok(html! {
        li.card {
            div.card-top {
                h2 { a id=(format!("card-{}", round.round_id)) href=(format!("/rounds/{}", round.round_id)) { (title) } }
                div.badges { @for kind in kinds { span.badge { (kind) } } }
            }
            @if is_decidable {
                (decidable(round, &requests))
                div.pick.option {
                    input type="checkbox" id=(id) name=(batch::PICK) value=(batch::pick(round)?) data-digest=(round.digest);
                    label for=(id) { "Select" span.visually-hidden { ": " (title) ", " (headline) } }
                }
            } @else {
                p.says { (headline) }
            }
            p.meta {
                code { (words::line(&round.operation_name)) }
                span { "asked by " (words::who(&round.asked_by)) }
                span { (words::moment(round.created_at, now)) }
                @if let Some(deadline) = round.deadline { span { "answer by " (words::moment(deadline, now)) } }
            }
        }
    })
}

/// The calls of a round, whole: what can be approved from the list is shown there.
fn decidable(round: &Round, requests: &Requests) -> Markup {
    html! {
        @for (_, request) in requests.iter() {
            @if let Request::Approval(approval) = request {
                div.approval {
                    p.call-name { code { (words::line(&approval.tool)) } }
                    (super::card::arguments(approval))
                    (super::card::risks(&approval.effects))
                    (super::card::preview(approval, &round.server))
                }
            }
        }
    }
}
