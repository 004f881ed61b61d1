//! A round's page, and the way an answer takes from it.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use sayso::policy::Grant;
use sayso::wire::{Keyed, Response as Given, Round, responses_from_wire};
use sayso::{Answer, Digest, FieldError, GrantId, People, RoundId, Status};
use sayso_core::error::Error;
use sayso_core::json::pointer_to;
use sayso_core::request::{Approval, Request as Asked, Requests};
use sayso_core::response::{Content, check};

use super::controls::Drawn;
use super::layout::{Page, Place};
use super::problems::Problems;
use super::question::{Notice, Question};
use super::typed::{
    CHECK, DIGEST, KEY, LESS, MORE, Part, Typed, action_id, arguments_id, child_id, edits_id, is_in_part, part_id,
    reason_id, reviewed_id,
};
use super::{Failed, allowing, changes, edits, login, opened, outcome, reading, sentence, suggested, words};
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
pub(super) fn new_key() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
    Ok(format!("inbox-{:032x}", u128::from_be_bytes(bytes)))
}

async fn show(
    State(app): State<Shared>,
    session: Session,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Failed> {
    let round = app.sayso.round(&session.person, round_id(&id)?).await?;
    let requests = opened(&round)?;
    if round.status != Status::Pending {
        let granted = granted_with(&app, &session, &round, &uri).await?;
        return Ok(outcome::respond(&app, &session, &round, &requests, None, granted.as_ref()).await?);
    }
    let earlier = match round.suggestion_of {
        Some(earlier) => session.people(&app).responses(earlier).await?,
        None => None,
    };
    let suggested = earlier.and_then(|record| suggested::typed(&requests, &record));
    let drawn = Drawn { typed: suggested.as_ref(), problems: &Problems::default(), focus: None };
    let is_suggested = suggested.is_some();
    let question = Question { round: &round, requests: &requests, drawn, notice: None, is_suggested, key: new_key()? };
    Ok(question.respond(&app, &session.person, StatusCode::OK).await?)
}

/// The grant that this person has just given with their answer, as the address names it.
async fn granted_with(app: &Shared, session: &Session, round: &Round, uri: &Uri) -> Result<Option<Grant>, Error> {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let named = pairs.find(|(name, _)| name == "granted").and_then(|(_, id)| GrantId::parse(&id).ok());
    let Some(id) = named else { return Ok(None) };
    match session.people(app).show_grant(id).await {
        Ok(grant) => Ok(Some(grant).filter(|grant| grant.round == Some(round.round_id))),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
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
    Ok(page.take().await.unwrap_or_else(|error| kept_page(&typed, &error)))
}

/// What an answer is sent from, for drawing its page again.
pub(super) struct AnswerPage<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) session: &'a Session,
    pub(super) round: Round,
    pub(super) requests: Requests,
    pub(super) typed: &'a Typed,
}

/// What is said where the form is drawn again before anything is sent.
const CHANGED_ARGUMENTS: &str = "Look at what you changed, then approve it. Nothing was sent yet.";
const NOTHING_CHANGED: &str = "The arguments are as they were proposed. Nothing was sent yet.";

/// A way down to what was changed in the arguments of a request.
fn to_changes(index: usize) -> Markup {
    html! { p { a href=(format!("#r{index}-changes")) { "Go to what you changed" } } }
}

impl AnswerPage<'_> {
    async fn take(&self) -> Result<Response, Error> {
        if let Some(wanted) = self.typed.one(allowing::ALLOW) {
            return allowing::take(self, wanted).await;
        }
        if let Some(redrawn) = self.redrawn().await? {
            return Ok(redrawn);
        }
        let responses = match reading::answer(&self.requests, self.typed) {
            Ok(responses) => responses,
            Err(errors) => return self.wrong(&errors).await,
        };
        if let Some(asked_again) = self.unseen_changes(&responses).await? {
            return Ok(asked_again);
        }
        let id = self.round.round_id;
        let digest = self.typed.one(DIGEST).and_then(Digest::parse);
        let key = self.typed.one(KEY).unwrap_or_default();
        match self.session.people(self.app).answer(id, Answer { digest, responses }, key).await {
            Ok(_) => Ok(Redirect::to(&format!("/rounds/{id}")).into_response()),
            Err(error) => self.refused(&error).await,
        }
    }

    /// The form with a row more or less, or with what was changed in the arguments; `None` where it is to be sent.
    async fn redrawn(&self) -> Result<Option<Response>, Error> {
        let (more, less) = (self.typed.one(MORE), self.typed.one(LESS));
        let is_check = self.typed.one(CHECK).is_some();
        if more.is_none() && less.is_none() && !is_check {
            return Ok(None);
        }
        if self.round.status != Status::Pending {
            return self.ended(&self.round).await.map(Some);
        }
        let typed = self.typed.clone();
        let (typed, focus) = match (more, less) {
            (Some(list), _) => {
                let last = typed.rows(list).unwrap_or_default();
                (typed.with_row(list), Some(child_id(list, last)))
            }
            (None, Some(row)) => (typed.without_row(row), row.rsplit_once('_').map(|(list, _)| list.to_owned())),
            (None, None) => return self.checked().await.map(Some),
        };
        let drawn = Drawn { typed: Some(&typed), problems: &Problems::default(), focus: focus.as_deref() };
        self.draw(drawn, None, StatusCode::OK).await.map(Some)
    }

    /// The form with what was changed in the arguments, or with what is wrong with them.
    async fn checked(&self) -> Result<Response, Error> {
        let mut errors = Vec::new();
        let mut edited_at = None;
        for (index, (key, request)) in self.requests.iter().enumerate() {
            let Asked::Approval(approval) = request else { continue };
            match edits::edited(index, approval, self.typed) {
                Ok(edited) => edited_at = edited_at.or(edited.map(|_| index)),
                Err(found) => {
                    let at = format!("{}/content/arguments", pointer_to("/responses", key));
                    let placed = |error: FieldError| FieldError { pointer: format!("{at}{}", error.pointer), ..error };
                    errors.extend(found.into_iter().map(placed));
                }
            }
        }
        if !errors.is_empty() {
            return self.wrong(&errors).await;
        }
        let text = if edited_at.is_some() { CHANGED_ARGUMENTS } else { NOTHING_CHANGED };
        let notice = Notice { title: "Not decided yet", text: text.to_owned(), more: edited_at.map(to_changes) };
        self.again(&Problems::default(), Some(notice), StatusCode::OK).await
    }

    /// The form once more, where it would approve changed arguments whose changes the person has not been shown.
    async fn unseen_changes(&self, responses: &Keyed<Given>) -> Result<Option<Response>, Error> {
        let is_unseen = |index: usize, key: &str, approval: &Approval| {
            let content = responses.get(key).and_then(|given| given.content.as_ref()).and_then(Content::read);
            let edited = content.and_then(|content| content.arguments);
            edited.is_some_and(|edited| {
                edited.canonical() != approval.arguments.canonical() && !edits::is_reviewed(index, &edited, self.typed)
            })
        };
        let unseen = self.requests.iter().enumerate().position(|(index, (key, request))| match request {
            Asked::Approval(approval) => is_unseen(index, key, approval),
            _ => false,
        });
        let Some(index) = unseen.filter(|_| self.round.status == Status::Pending) else { return Ok(None) };
        if let Err(Error::Validation { fields, .. }) = check(&self.requests, &responses_from_wire(responses)) {
            return self.wrong(&fields).await.map(Some);
        }
        let more = Some(to_changes(index));
        let notice = Notice { title: "Not approved yet", text: CHANGED_ARGUMENTS.to_owned(), more };
        self.again(&Problems::default(), Some(notice), StatusCode::OK).await.map(Some)
    }

    /// Something cannot be read or does not fit. Where the round no longer waits, that is what the person must know.
    async fn wrong(&self, errors: &[FieldError]) -> Result<Response, Error> {
        if self.round.status != Status::Pending {
            return self.ended(&self.round).await;
        }
        let problems = Problems::new(&self.requests, errors);
        self.again(&problems, None, StatusCode::UNPROCESSABLE_ENTITY).await
    }

    pub(super) async fn refused(&self, error: &Error) -> Result<Response, Error> {
        let notice = |title| Some(Notice { title, text: sentence(&error.to_string()), more: None });
        let none = Problems::default();
        match error {
            Error::Validation { fields, .. } => self.wrong(fields).await,
            Error::Conflict { .. } | Error::State { .. } => {
                let now = self.app.sayso.round(&self.session.person, self.round.round_id).await?;
                if now.status != Status::Pending {
                    return self.ended(&now).await;
                }
                let title = "The agent is not connected";
                self.again(&none, notice(title), StatusCode::CONFLICT).await
            }
            Error::Stale => {
                let digest = self.typed.one(DIGEST).unwrap_or_default();
                let before = changes::shown(&self.app.sayso, &self.session.person, &self.round, digest).await?;
                let more = before.map(|before| changes::of_rounds(&before, &self.round));
                let text = sentence(&error.to_string());
                let notice = Notice { title: "Look again before you answer", text, more };
                self.again(&none, Some(notice), StatusCode::CONFLICT).await
            }
            Error::Forbidden(_) => self.again(&none, notice("You may not do this"), StatusCode::FORBIDDEN).await,
            Error::Limit(_) => {
                self.again(&none, notice("The answer is too large"), StatusCode::PAYLOAD_TOO_LARGE).await
            }
            Error::Unavailable(_) => {
                let notice = Notice {
                    title: "The answer was not stored",
                    text: format!("{} Nothing was accepted. Send it again.", sentence(&error.to_string())),
                    more: None,
                };
                self.again(&none, Some(notice), StatusCode::SERVICE_UNAVAILABLE).await
            }
            other => Err(other.clone()),
        }
    }

    /// The form again, with everything that was typed, and the key it had: nothing was accepted under it.
    pub(super) async fn again(
        &self,
        problems: &Problems,
        notice: Option<Notice>,
        status: StatusCode,
    ) -> Result<Response, Error> {
        self.draw(Drawn { typed: Some(self.typed), problems, focus: None }, notice, status).await
    }

    async fn draw(&self, drawn: Drawn<'_>, notice: Option<Notice>, status: StatusCode) -> Result<Response, Error> {
        let key = self.typed.one(KEY).filter(|key| !key.is_empty());
        let key = key.map_or_else(new_key, |key| Ok(key.to_owned()))?;
        let question =
            Question { round: &self.round, requests: &self.requests, drawn, notice, is_suggested: false, key };
        question.respond(self.app, &self.session.person, status).await
    }

    /// The round no longer waits. Where another question took its place, that one is asked, with what changed; else the
    /// page says how it ended, and keeps what was typed.
    pub(super) async fn ended(&self, round: &Round) -> Result<Response, Error> {
        let Some(next) = changes::successor(&self.app.sayso, &self.session.person, round).await? else {
            return outcome::respond(self.app, self.session, round, &self.requests, Some(self.typed), None).await;
        };
        let requests = opened(&next)?;
        let is_carried = |name: &str| self.is_carried(&next, name);
        let carried = self.can_carry(&next).then(|| Typed::new(self.typed.only(is_carried)));
        let left =
            if carried.is_some() { Typed::new(self.typed.only(|name| !is_carried(name))) } else { self.typed.clone() };
        let drawn = Drawn { typed: carried.as_ref(), problems: &Problems::default(), focus: None };
        let notice = Notice {
            title: "The question changed while you were looking at it",
            text: "Nothing was accepted. This is what changed; below is the question as it is now.".to_owned(),
            more: Some(html! {
                (changes::of_rounds(round, &next))
                @if let Some(left) = outcome::left_behind(&self.requests, &left) { (left) }
            }),
        };
        let question = Question {
            round: &next,
            requests: &requests,
            drawn,
            notice: Some(notice),
            is_suggested: false,
            key: new_key()?,
        };
        question.respond(self.app, &self.session.person, StatusCode::CONFLICT).await
    }

    /// Whether what was typed can be shown in the new question's form: a form that is drawn with what was typed has no
    /// defaults, so all of it was, or there is nothing to fill in.
    fn can_carry(&self, next: &Round) -> bool {
        let mut requests = next.requests.0.iter().enumerate();
        requests.all(|(index, (_, request))| request.schema.is_none() || self.is_same(next, index))
    }

    fn is_same(&self, next: &Round, index: usize) -> bool {
        self.round.requests.0.get(index).is_some_and(|old| next.requests.0.get(index) == Some(old))
    }

    /// Whether what a control held is about nothing that changed: requests that are the same, and the reasons. Edited
    /// arguments are left behind: they were made of what is no longer proposed.
    fn is_carried(&self, next: &Round, name: &str) -> bool {
        let index = name.strip_prefix('r').and_then(|rest| rest.split_once('-')?.0.parse::<usize>().ok());
        let Some(index) = index else { return false };
        let is_edit = [arguments_id(index), edits_id(index), reviewed_id(index)].iter().any(|edit| name == edit)
            || is_in_part(name, &part_id(index, Part::Arguments));
        name == reason_id(index) || (self.is_same(next, index) && !is_edit && name != action_id(index))
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
