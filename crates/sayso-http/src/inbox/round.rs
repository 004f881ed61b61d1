//! A round's page, and the way an answer takes from it.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use sayso::wire::Round;
use sayso::{Answer, Digest, FieldError, People, RoundId, Status};
use sayso_core::error::Error;
use sayso_core::request::Requests;

use super::controls::Drawn;
use super::layout::{Page, Place};
use super::problems::Problems;
use super::question::{Notice, Question};
use super::typed::{DIGEST, KEY, Typed};
use super::{Failed, login, opened, outcome, reading, sentence, suggested, words};
use crate::app::{App, Shared};
use crate::auth::Session;
use crate::body;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().get("/rounds/{id}", show).post("/rounds/{id}", answer)
}

fn round_id(text: &str) -> Result<RoundId, Error> {
    RoundId::parse(text).map_err(|_| Error::NotFound("round"))
}

/// A key that no other form has: what makes sending one form twice the same answer.
fn new_key() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
    Ok(format!("inbox-{:032x}", u128::from_be_bytes(bytes)))
}

async fn show(State(app): State<Shared>, session: Session, Path(id): Path<String>) -> Result<Response, Failed> {
    let round = app.sayso.round(&session.person, round_id(&id)?).await?;
    let requests = opened(&round)?;
    if round.status != Status::Pending {
        return Ok(outcome::respond(&app, &session, &round, &requests, None).await?);
    }
    let earlier = match round.suggestion_of {
        Some(earlier) => session.people(&app).responses(earlier).await?,
        None => None,
    };
    let suggested = earlier.and_then(|record| suggested::typed(&requests, &record));
    let drawn = Drawn { typed: suggested.as_ref(), problems: &Problems::default() };
    let is_suggested = suggested.is_some();
    let question = Question { round: &round, requests: &requests, drawn, notice: None, is_suggested, key: new_key()? };
    Ok(question.respond(&app, &session.person, StatusCode::OK).await?)
}

async fn answer(
    State(app): State<Shared>,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Failed> {
    let id = round_id(&id)?;
    let typed = Typed::new(body::form(request).await.map_err(Failed)?);
    let session = match Session::find(&headers, &app.sayso).await {
        Ok(Some(session)) => session,
        Ok(None) => return Ok(kept_page(&typed, &Error::Unauthenticated("your session has ended"))),
        Err(error) => return Ok(kept_page(&typed, &error)),
    };
    let found = app.sayso.round(&session.person, id).await.and_then(|round| Ok((opened(&round)?, round)));
    let (requests, round) = match found {
        Ok(found) => found,
        Err(error) => return Ok(kept_page(&typed, &error)),
    };
    let page = AnswerPage { app: &app, session: &session, round, requests, typed: &typed };
    let responses = match reading::answer(&page.requests, &typed) {
        Ok(responses) => responses,
        Err(errors) => return Ok(page.wrong(&errors).await?),
    };
    let digest = typed.one(DIGEST).and_then(Digest::parse);
    let key = typed.one(KEY).unwrap_or_default();
    match session.people(&app).answer(id, Answer { digest, responses }, key).await {
        Ok(_) => Ok(Redirect::to(&format!("/rounds/{id}")).into_response()),
        Err(error) => Ok(page.refused(&error).await.unwrap_or_else(|error| kept_page(&typed, &error))),
    }
}

/// What an answer is sent from, for drawing its page again.
struct AnswerPage<'a> {
    app: &'a Arc<App>,
    session: &'a Session,
    round: Round,
    requests: Requests,
    typed: &'a Typed,
}

impl AnswerPage<'_> {
    /// Something cannot be read or does not fit. Where the round no longer waits, that is what the person must know.
    async fn wrong(&self, errors: &[FieldError]) -> Result<Response, Error> {
        if self.round.status != Status::Pending {
            return self.too_late(&self.round).await;
        }
        let problems = Problems::new(&self.requests, errors);
        self.again(&problems, None, StatusCode::UNPROCESSABLE_ENTITY).await
    }

    async fn refused(&self, error: &Error) -> Result<Response, Error> {
        let notice = |title| Some(Notice { title, text: sentence(&error.to_string()) });
        let none = Problems::default();
        match error {
            Error::Validation { fields, .. } => self.wrong(fields).await,
            Error::Conflict { .. } | Error::State { .. } => {
                let now = self.app.sayso.round(&self.session.person, self.round.round_id).await?;
                if now.status != Status::Pending {
                    return self.too_late(&now).await;
                }
                let title = "The agent is not connected";
                self.again(&none, notice(title), StatusCode::CONFLICT).await
            }
            Error::Stale => self.again(&none, notice("Look again before you answer"), StatusCode::CONFLICT).await,
            Error::Limit(_) => {
                self.again(&none, notice("The answer is too large"), StatusCode::PAYLOAD_TOO_LARGE).await
            }
            Error::Unavailable(_) => {
                let notice = Notice {
                    title: "The answer was not stored",
                    text: format!("{} Nothing was accepted. Send it again.", sentence(&error.to_string())),
                };
                self.again(&none, Some(notice), StatusCode::SERVICE_UNAVAILABLE).await
            }
            other => Err(other.clone()),
        }
    }

    /// The form again, with everything that was typed, and the key it had: nothing was accepted under it.
    async fn again(&self, problems: &Problems, notice: Option<Notice>, status: StatusCode) -> Result<Response, Error> {
        let drawn = Drawn { typed: Some(self.typed), problems };
        let key = self.typed.one(KEY).filter(|key| !key.is_empty());
        let key = key.map_or_else(new_key, |key| Ok(key.to_owned()))?;
        let question =
            Question { round: &self.round, requests: &self.requests, drawn, notice, is_suggested: false, key };
        question.respond(self.app, &self.session.person, status).await
    }

    async fn too_late(&self, round: &Round) -> Result<Response, Error> {
        outcome::respond(self.app, self.session, round, &self.requests, Some(self.typed)).await
    }
}

/// A page that keeps what was typed where the form itself cannot be drawn: no session, no store.
fn kept_page(typed: &Typed, error: &Error) -> Response {
    let texts: Vec<&str> = typed.texts().collect();
    let refusal = crate::problem::Refusal::from(error.clone());
    let main = html! {
        h1 { "Your answer was not sent" }
        p role="alert" { (sentence(&error.to_string())) }
        @if matches!(error, Error::Unauthenticated(_)) { (login::how_to()) }
        @if !texts.is_empty() {
            section.too-late aria-labelledby="too-late" {
                h2 id="too-late" { "What you typed" }
                p { "Nothing of it was stored. Copy it before you leave this page." }
                ul.given { @for text in texts { li.multiline { (words::lines(text)) } } }
            }
        }
        p.actions { a.button href="/" { "Go to the inbox" } }
    };
    let page = Page { title: "Not sent".to_owned(), person: None, place: Place::Elsewhere, live: None, main };
    page.respond(refusal.status())
}
