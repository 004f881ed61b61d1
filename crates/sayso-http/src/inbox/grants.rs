//! What is allowed beforehand: the list, a grant with its uses, and taking it back. Reading changes nothing; what is taken
//! back was shown first.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use sayso::policy::Grant;
use sayso::{GrantFilter, GrantId, UnixMs};
use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::policy::{GrantScope, NotCovered};

use super::layout::{Page, Place};
use super::{Failed, covers, words};
use crate::app::Shared;
use crate::auth::Session;
use crate::routes::Routes;

/// Grants on one page: what one scrolls through.
const ROWS: usize = 50;

pub(super) fn routes() -> Routes {
    Routes::new()
        .get("/grants", list)
        .get("/grants/{id}", show)
        .get("/grants/{id}/revoke", confirm)
        .post("/grants/{id}/revoke", revoke)
}

fn grant_id(text: &str) -> Result<GrantId, Error> {
    GrantId::parse(text).map_err(|_| Error::NotFound("grant"))
}

fn parameter(uri: &Uri, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

async fn list(State(app): State<Shared>, session: Session, uri: Uri) -> Result<Response, Failed> {
    let before = match parameter(&uri, "cursor") {
        Some(cursor) => Some(GrantId::parse(&cursor).map_err(|_| Error::NotFound("page of grants"))?),
        None => None,
    };
    let shows_all = parameter(&uri, "show").is_some_and(|shown| shown == "all");
    let now = app.sayso.now().await?;
    let usable_at = (!shows_all).then_some(now);
    let filter = GrantFilter { usable_at, before, limit: ROWS, ..GrantFilter::default() };
    let (grants, next) = session.people(&app).grants(filter).await?;
    let here = if shows_all { "/grants?show=all" } else { "/grants" };
    let older = |cursor: GrantId| format!("{here}{}cursor={cursor}", if shows_all { "&" } else { "?" });
    let current = |is_here: bool| is_here.then_some("page");
    let main = html! {
        h1 { "Grants" }
        p.lede { "What runs without a new question where the rules would ask. What the rules deny, no grant allows." }
        nav.filter aria-label="Which grants" {
            ul {
                li { a href="/grants" aria-current=[current(!shows_all)] { "In force" } }
                li { a href="/grants?show=all" aria-current=[current(shows_all)] { "All, with ended ones" } }
            }
        }
        @if grants.is_empty() { (nothing(shows_all)) } @else {
            ul.rounds { @for grant in &grants { (row(grant, now)) } }
        }
        @if before.is_some() || next.is_some() {
            nav.pages aria-label="Pages of grants" {
                @if before.is_some() { a.button href=(here) { "Newest" } }
                @if let Some(cursor) = next { a.button href=(older(cursor)) { "Older" } }
            }
        }
    };
    Ok(page("Grants".to_owned(), &session, main))
}

fn page(title: String, session: &Session, main: Markup) -> Response {
    Page { title, person: Some(&session.person), place: Place::Grants, live: None, main }.respond(StatusCode::OK)
}

fn nothing(shows_all: bool) -> Markup {
    html! {
        div.empty {
            p.empty-title { @if shows_all { "Nothing was ever allowed beforehand." } @else { "Nothing is allowed beforehand." } }
            p { "Whatever the rules ask about is asked each time. When a call asks, its page also offers to allow more calls like it." }
        }
    }
}

fn row(grant: &Grant, now: UnixMs) -> Markup {
    let title = covers::title(&grant.scope);
    let is_over = grant.is_usable(now).is_err();
    html! {
        li.card.over[is_over] {
            div.card-top {
                h2 { a href=(format!("/grants/{}", grant.id)) { (title) } }
                div.badges { (badge(grant, now)) }
            }
            p.says {
                (covers::openness(&grant.scope))
                ", by " @match &grant.agent { Some(agent) => (words::who(agent)), None => "every agent" }
            }
            (covers::folded(&grant.scope))
            p.meta {
                span { "given by " (words::who(&grant.granted_by)) " " (words::moment(grant.granted_at, now)) }
                span { (used(grant, now)) }
                @if !is_over { @if let Some(end) = grant.expires_at { span { "ends " (words::moment(end, now)) } } }
            }
            @if !is_over {
                p.actions { a.button href=(format!("/grants/{}/revoke", grant.id)) { "Take back" span.visually-hidden { ": " (title) } } }
            }
        }
    }
}

fn badge(grant: &Grant, now: UnixMs) -> Markup {
    let (tone, said) = match grant.is_usable(now) {
        Ok(()) => ("badge good", "In force"),
        Err(NotCovered::Revoked) => ("badge", "Taken back"),
        Err(NotCovered::Expired) => ("badge", "Expired"),
        Err(_) => ("badge", "Used up"),
    };
    html! { span class=(tone) { (said) } }
}

/// How often it was used, and how often it may be.
fn used(grant: &Grant, now: UnixMs) -> String {
    match (grant.uses_limit(), grant.uses) {
        (Some(most), uses) if grant.is_usable(now).is_ok() => {
            format!("{} of {most} uses left", most.saturating_sub(uses))
        }
        (_, 0) => "not used".to_owned(),
        (_, 1) => "used once".to_owned(),
        (_, uses) => format!("used {uses} times"),
    }
}

/// Everything about a grant but its uses.
fn facts(grant: &Grant, now: UnixMs) -> Markup {
    html! {
        dl.facts {
            (covers::facts(&grant.scope, grant.agent.as_ref()))
            dt { "Given by" } dd { (words::who(&grant.granted_by)) ", " (words::moment(grant.granted_at, now)) }
            @if let Some(round) = grant.round { dt { "Drafted from" } dd { a href=(format!("/rounds/{round}")) { "the question that asked" } } }
            @if let Some(at) = grant.revoked_at { dt { "Taken back" } dd { (words::moment(at, now)) } }
            dt { "Ends" } dd {
                @match (&grant.scope, grant.expires_at) {
                    (_, Some(end)) => (words::moment(end, now)),
                    (GrantScope::Session { .. }, None) => "With its session, or when it is taken back",
                    (_, None) => "When it is taken back",
                }
            }
            dt { "Uses" } dd { (used(grant, now)) }
        }
    }
}

async fn show(
    State(app): State<Shared>,
    session: Session,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Failed> {
    let people = session.people(&app);
    let grant = people.show_grant(grant_id(&id)?).await?;
    let before = match parameter(&uri, "before") {
        Some(text) => Some(text.parse().map_err(|_| Error::NotFound("page of uses"))?),
        None => None,
    };
    let (uses, next) = people.grant_uses(&grant, before).await?;
    let now = app.sayso.now().await?;
    let title = covers::title(&grant.scope);
    let main = html! {
        p.back { a href="/grants" { "← All grants" } }
        h1 { (title) }
        div.badges { (badge(&grant, now)) }
        (facts(&grant, now))
        @if grant.is_usable(now).is_ok() {
            p.actions { a.button href=(format!("/grants/{}/revoke", grant.id)) { "Take back" } }
        }
        section aria-labelledby="uses" {
            h2 id="uses" { "Calls that it let run" }
            @if uses.is_empty() { p { @if next.is_some() || before.is_some() { "None here." } @else { "None so far." } } }
            @else { ul.given { @for event in &uses { li { (use_of(event, now)) } } } }
        }
        @if before.is_some() || next.is_some() {
            nav.pages aria-label="Pages of calls" {
                @if before.is_some() { a.button href=(format!("/grants/{}", grant.id)) { "Latest" } }
                @if let Some(seq) = next { a.button href=(format!("/grants/{}?before={seq}", grant.id)) { "Earlier" } }
            }
        }
    };
    Ok(page(title, &session, main))
}

fn use_of(event: &Event, now: UnixMs) -> Markup {
    let used = &event.event;
    html! {
        (words::moment(used.at, now))
        @if let Some(by) = &used.principal { " by " strong { (words::who(by)) } }
        @if let Some(execution) = used.execution_id {
            ", in " a href=(format!("/executions/{execution}")) { "execution " span.visually-hidden { (execution) } }
        }
    }
}

async fn confirm(State(app): State<Shared>, session: Session, Path(id): Path<String>) -> Result<Response, Failed> {
    let grant = session.people(&app).show_grant(grant_id(&id)?).await?;
    let now = app.sayso.now().await?;
    let address = format!("/grants/{}", grant.id);
    if grant.revoked_at.is_some() {
        return Ok(Redirect::to(&address).into_response());
    }
    let main = html! {
        p.back { a href=(address) { "← Back to the grant" } }
        h1 { "Take this back?" }
        p { "From then on its calls are asked about again. Calls that have run stay as they are. It cannot be given back: you would allow it anew." }
        section aria-labelledby="revoked" {
            h2 id="revoked" { (covers::title(&grant.scope)) }
            (facts(&grant, now))
        }
        form method="post" action=(format!("{address}/revoke")) {
            div.actions {
                button.primary type="submit" { "Take it back" }
                a.button href=(address) { "Leave it" }
            }
        }
    };
    Ok(page("Take a grant back".to_owned(), &session, main))
}

async fn revoke(State(app): State<Shared>, session: Session, Path(id): Path<String>) -> Result<Response, Failed> {
    let grant = session.people(&app).revoke_grant(grant_id(&id)?).await?;
    Ok(Redirect::to(&format!("/grants/{}", grant.id)).into_response())
}
