//! Several approvals decided at once, from the list. Each is answered by itself, with the digest of what the list showed
//! of it and a key of its own; the page says of each what became of it.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::{Answered, Keyed, Response as Given, Round};
use sayso::{Answer, Digest, People, RoundId};
use sayso_core::error::Error;
use sayso_core::limits;
use sayso_core::request::{Request as Asked, Requests};
use sayso_core::response::Action;

use super::layout::{Page, Place};
use super::{Failed, changes, list, opened, round, sentence, words};
use crate::app::{App, Shared};
use crate::auth::Session;
use crate::body;
use crate::routes::Routes;

/// The check boxes of the list.
pub(super) const PICK: &str = "pick";
/// The buttons below it.
pub(super) const DECISION: &str = "decision";
/// Why, for those that are denied.
pub(super) const REASON: &str = "reason";

pub(super) fn routes() -> Routes {
    Routes::new().post("/batch", decide)
}

/// Whether a round may be decided from the list: calls alone, which need nothing of the person and are shown whole there.
pub(super) fn is_decidable(requests: &Requests) -> bool {
    let mut size = 0;
    let is_plain = requests.iter().all(|(_, request)| match request {
        Asked::Approval(approval) => {
            size += approval.arguments.as_str().len() + approval.preview.iter().map(String::len).sum::<usize>();
            approval.input.is_none()
        }
        _ => false,
    });
    is_plain && size <= limits::BATCH_ARGUMENTS_BYTES_MAX
}

/// What a check box holds: the round, the digest of what is shown beside it, and the key of the answer.
pub(super) fn pick(round: &Round) -> Result<String, Error> {
    Ok(format!("{} {} {}", round.round_id, round.digest, round::new_key()?))
}

struct Pick {
    id: RoundId,
    digest: Digest,
    key: String,
}

fn read_pick(text: &str) -> Option<Pick> {
    let mut parts = text.split(' ');
    let (id, digest, key) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Pick { id: RoundId::parse(id).ok()?, digest: Digest::parse(digest)?, key: key.to_owned() })
}

/// What became of one.
struct Became {
    title: Markup,
    is_decided: bool,
    said: Markup,
}

async fn decide(State(app): State<Shared>, headers: HeaderMap, request: Request) -> Result<Response, Failed> {
    let posted = body::form(request).await.map_err(Failed)?;
    let Some(session) = Session::find(&headers, &app.sayso).await? else {
        return Err(Error::Unauthenticated("your session has ended; nothing was decided").into());
    };
    let one = |name: &str| posted.iter().find(|(known, _)| known == name).map(|(_, text)| text.trim());
    let action = match one(DECISION) {
        Some("approve") => Action::Accept,
        Some("deny") => Action::Decline,
        _ => return Err(Error::field("/decision", "must be approve or deny").into()),
    };
    let picks: Vec<_> = posted.iter().filter(|(name, _)| name == PICK).collect();
    if picks.is_empty() {
        return Ok(nothing(&session));
    }
    if picks.len() > limits::BATCH_MAX {
        let message = format!("at most {} questions are decided at once; nothing was decided", limits::BATCH_MAX);
        return Err(Error::Limit(message).into());
    }
    let picks: Option<Vec<Pick>> = picks.into_iter().map(|(_, text)| read_pick(text)).collect();
    let picks = picks.ok_or_else(|| Error::field("/pick", "has not the form that the list gives it"))?;
    let reason = one(REASON).filter(|reason| !reason.is_empty() && action == Action::Decline);
    let mut all = Vec::with_capacity(picks.len());
    for pick in &picks {
        all.push(one_of_them(&app, &session, pick, action, reason).await);
    }
    Ok(respond(&app, &session, action, &all).await?)
}

async fn one_of_them(app: &Shared, session: &Session, pick: &Pick, action: Action, reason: Option<&str>) -> Became {
    let href = format!("/rounds/{}", pick.id);
    let found = app.sayso.round(&session.person, pick.id).await.and_then(|round| Ok((opened(&round)?, round)));
    let (requests, round) = match found {
        Ok(found) => found,
        Err(error) => {
            let title = html! { a href=(href) { code { (pick.id) } } };
            return Became { title, is_decided: false, said: html! { (sentence(&error.to_string())) } };
        }
    };
    let headline = requests.iter().next().map(|(_, request)| words::excerpt(request.headline())).unwrap_or_default();
    let arguments = requests.iter().find_map(|(_, request)| match request {
        Asked::Approval(approval) => Some(words::excerpt(approval.arguments.as_str())),
        _ => None,
    });
    let title = html! {
        a href=(href) { (words::line(&round.server)) ": " (headline) }
        @if let Some(arguments) = arguments { " " code { (arguments) } }
    };
    if !is_decidable(&requests) && action == Action::Accept {
        let said = html! { "Needs more than a yes: open it to decide. Nothing was sent." };
        return Became { title, is_decided: false, said };
    }
    let given = match action {
        Action::Decline => Given::decline(reason.map(str::to_owned)),
        _ => Given::consent(),
    };
    let responses = Keyed(requests.iter().map(|(key, _)| (key.to_owned(), given.clone())).collect());
    let answer = Answer { digest: Some(pick.digest), responses };
    match session.people(app).answer(pick.id, answer, &pick.key).await {
        Ok(_) => {
            let said = if action == Action::Accept { "Approved." } else { "Denied." };
            Became { title, is_decided: true, said: html! { (said) } }
        }
        Err(error) => Became { title, is_decided: false, said: refused(app, session, &round, &error).await },
    }
}

async fn refused(app: &App, session: &Session, round: &Round, error: &Error) -> Markup {
    let now = app.sayso.round(&session.person, round.round_id).await.ok();
    let next = match &now {
        Some(now) => changes::successor(&app.sayso, &session.person, now).await.ok().flatten(),
        None => None,
    };
    let answered = now.as_ref().and_then(|now| now.answered.as_ref());
    html! {
        @match (error, next, answered) {
            (Error::Stale, ..) => "It is not what the list showed any more: open it and look again. Nothing was sent.",
            (_, Some(next), _) => {
                "The question changed. " a href=(format!("/rounds/{}", next.round_id)) { "Look at it as it is now" } "."
                (changes::of_rounds(round, &next))
            }
            (Error::Conflict { .. } | Error::State { .. }, None, Some(answered)) => (already(answered)),
            _ => (sentence(&error.to_string())),
        }
    }
}

fn already(answered: &Answered) -> Markup {
    html! {
        "Answered already, by " strong { (words::who(&answered.principal)) } " via " (answered.channel.as_str())
        ". Your decision was not used."
    }
}

fn nothing(session: &Session) -> Response {
    let main = html! {
        p.back { a href="/" { "← All waiting questions" } }
        h1 { "Nothing was selected" }
        p { "Check the calls that you want to decide, then approve or deny them." }
    };
    let person = Some(&session.person);
    let page = Page { title: "Nothing selected".to_owned(), person, place: Place::Waiting, live: None, main };
    page.respond(StatusCode::UNPROCESSABLE_ENTITY)
}

async fn respond(app: &App, session: &Session, action: Action, all: &[Became]) -> Result<Response, Error> {
    let (waiting, _) = list::pending(&app.sayso, &session.person).await?;
    let done = all.iter().filter(|one| one.is_decided).count();
    let deed = if action == Action::Accept { "approved" } else { "denied" };
    let title = format!("{done} of {} {deed}", all.len());
    let main = html! {
        p.back { a href="/" { "← All waiting questions" } }
        h1 id="batch-title" tabindex="-1" autofocus { (title) }
        ul.rounds {
            @for one in all {
                li.card {
                    div.card-top {
                        h2 { (one.title) }
                        div.badges {
                            @if one.is_decided { span class="badge good" { "Done" } } @else { span class="badge bad" { "Not decided" } }
                        }
                    }
                    div.result { (one.said) }
                }
            }
        }
        p.actions {
            @if let Some(next) = waiting.first() {
                a.button.primary href=(format!("/rounds/{}", next.round_id)) { "Next question" }
                span { (waiting.len()) " waiting" }
            } @else {
                span { "Nothing else is waiting." }
            }
        }
    };
    let page = Page { title, person: Some(&session.person), place: Place::Waiting, live: None, main };
    Ok(page.respond(if done == all.len() { StatusCode::OK } else { StatusCode::CONFLICT }))
}
