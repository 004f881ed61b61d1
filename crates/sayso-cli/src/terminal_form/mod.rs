//! A round as a form on the terminal: request by request, field by field, with the same check as everywhere behind it.
//! It talks on standard error and reads keys; what was typed goes into the answer and nowhere else.

mod call;
mod field;
mod form;
mod prompt;

use sayso::wire::{self, Keyed, Response};
use sayso_core::json::visible;
use sayso_core::request::{Choice, Request, Requests};

use crate::error::CommandError;
use crate::{output, render, typed};
use prompt::{Prompted, line, menu, pick_many};

/// What the person decided to do with a request.
enum Decision {
    Accept,
    Decline,
    Cancel,
}

/// Asks for everything that the round asks. Leaving (Ctrl-C, or Esc where a request begins) is an error: nothing was
/// decided.
pub fn fill(round: &wire::Round, requests: &Requests) -> Result<Keyed<Response>, CommandError> {
    let mut responses = Vec::new();
    for (key, request) in requests.iter() {
        output::note(&render::request(key, request, round.requests.get(key)));
        responses.push((key.to_owned(), one(request)?));
    }
    Ok(Keyed(responses))
}

fn one(request: &Request) -> Result<Response, CommandError> {
    if let Request::Approval(approval) = request {
        return call::decide(approval);
    }
    loop {
        let response = match decide(request)? {
            Decision::Cancel => return Ok(Response::cancel()),
            Decision::Decline => decline()?,
            Decision::Accept => accept(request)?,
        };
        // Esc inside a request leads back to where it begins.
        if let Some(response) = response {
            return Ok(response);
        }
    }
}

/// A decline with its reason; none where the person went back.
fn decline() -> Result<Option<Response>, CommandError> {
    Ok(match line("Why not? (for the agent to read; may be empty)", "", "", &|_| None)? {
        Prompted::Given(reason) => Some(Response::decline(Some(reason).filter(|reason| !reason.is_empty()))),
        Prompted::Back => None,
    })
}

fn decide(request: &Request) -> Result<Decision, CommandError> {
    // What runs something or leads somewhere is not one thoughtless Enter away.
    let (accept, decline, start) = match request {
        Request::Form(form) if form.schema.fields().is_empty() => ("Accept", "Decline", 0),
        Request::Form(_) => ("Fill in the form", "Decline", 0),
        Request::Url(_) => ("I agree to open this address", "Decline", 1),
        Request::Approval(_) | Request::Choice(_) | Request::Text(_) => ("Answer", "Decline", 0),
    };
    match menu("What do you want to do?", &[accept, decline, "Dismiss without a decision"], start)? {
        Prompted::Given(0) => Ok(Decision::Accept),
        Prompted::Given(1) => Ok(Decision::Decline),
        Prompted::Given(_) => Ok(Decision::Cancel),
        Prompted::Back => Err(CommandError::Interrupted),
    }
}

fn accept(request: &Request) -> Result<Option<Response>, CommandError> {
    match request {
        Request::Form(form) => Ok(form::fill(&form.schema)?.map(Response::accept)),
        Request::Url(_) | Request::Approval(_) => Ok(Some(Response::consent())),
        Request::Choice(choice) => Ok(choose(choice)?.map(|answer| Response::accept(typed::answer(&answer)))),
        Request::Text(_) => Ok(words()?.map(|answer| Response::accept(typed::answer(&[answer])))),
    }
}

fn words() -> Result<Option<String>, CommandError> {
    let given = line("Your answer", "", "", &|text| text.trim().is_empty().then(|| "must not be empty".to_owned()))?;
    Ok(given.into_option())
}

fn choose(choice: &Choice) -> Result<Option<Vec<String>>, CommandError> {
    let mut shown: Vec<String> = choice.options.iter().map(|option| visible(&option.label).into_owned()).collect();
    shown.push("Something else…".to_owned());
    let other = shown.len() - 1;
    let label = |at: &usize| choice.options.get(*at).map(|option| option.label.clone());
    let chosen = if choice.multi_select {
        let any = |chosen: &[usize]| chosen.is_empty().then(|| "choose at least one".to_owned());
        pick_many("Your answer", shown, &[], "", &any)?
    } else {
        prompt::pick("Your answer", shown, 0, "")?.map(|at| vec![at])
    };
    let Prompted::Given(chosen) = chosen else { return Ok(None) };
    let mut answer: Vec<String> = chosen.iter().filter_map(label).collect();
    if chosen.contains(&other) {
        match words()? {
            Some(text) if !answer.contains(&text) => answer.push(text),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(answer))
}
