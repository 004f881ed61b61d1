//! One execution: how it stands or ended, and what it asked.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;
use sayso::{ExecutionId, RoundFilter};
use sayso_core::error::Error;
use sayso_core::execution::Lifecycle;

use super::layout::{Page, Place};
use super::{Failed, history, words};
use crate::app::Shared;
use crate::auth::Session;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/executions/{id}", show)
}

async fn show(State(app): State<Shared>, session: Session, Path(id): Path<String>) -> Result<Response, Failed> {
    let id = ExecutionId::parse(&id).map_err(|_| Error::NotFound("execution"))?;
    let execution = app.sayso.execution(&session.person, id).await?;
    let filter = RoundFilter { execution: Some(id), ..RoundFilter::default() };
    let page = app.sayso.rounds(&session.person, filter).await?;
    let now = app.sayso.now().await?;
    let stands = match execution.lifecycle {
        Lifecycle::Running => "Going on",
        Lifecycle::WaitingForInput => "Waiting for an answer",
        Lifecycle::WaitingForApproval => "Waiting for an approval",
        Lifecycle::Finished => "Finished",
    };
    let main = html! {
        h1 { "Execution" }
        dl.facts {
            dt { "Id" } dd { code { (execution.execution_id) } }
            dt { "Kind" } dd { (execution.kind.as_str()) }
            dt { "State" } dd { (stands) }
            @if let Some(outcome) = &execution.outcome {
                dt { "Outcome" }
                dd {
                    (words::line(&outcome.status))
                    @if let Some(code) = &outcome.code { " " span.code { (words::line(code)) } }
                    @if let Some(message) = &outcome.message { span.multiline { ": " (words::lines(message)) } }
                }
            }
            dt { "Started" } dd { (words::moment(execution.created_at, now)) }
            @if let Some(at) = execution.finished_at { dt { "Ended" } dd { (words::moment(at, now)) } }
        }
        h2 { "What it asked" }
        @if page.rounds.is_empty() { p { "Nothing." } }
        ul.rounds { @for round in &page.rounds { (history::row(round, now)?) } }
        @if page.next_cursor.is_some() { p { "Earlier questions of this execution are in the " a href="/history" { "history" } "." } }
    };
    let page = Page {
        title: "Execution".to_owned(),
        person: Some(&session.person),
        place: Place::Elsewhere,
        live: None,
        main,
    };
    Ok(page.respond(StatusCode::OK))
}
