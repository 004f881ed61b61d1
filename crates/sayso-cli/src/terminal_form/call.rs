//! A call that waits for approval: approve, change its arguments first, or deny.

use sayso::wire::Response;
use sayso::{FieldError, Json};
use sayso_core::json::visible;
use sayso_core::request::Approval;
use sayso_core::response::Content;

use super::prompt::{Prompted, line, menu};
use super::{decline, form};
use crate::error::CommandError;
use crate::{output, render};

/// Asks what is to become of a call. The cursor never stands on what runs it.
pub(super) fn decide(approval: &Approval) -> Result<Response, CommandError> {
    let mut edited: Option<Json> = None;
    loop {
        let approve = if edited.is_some() { "Approve: run it with the changes" } else { "Approve: run this call" };
        let mut options = vec![approve, "Deny", "Dismiss without a decision"];
        if approval.edits.is_some() {
            options.push("Change the arguments");
        }
        let response = match menu("What do you want to do?", &options, 1)? {
            Prompted::Given(0) => approve_with(approval, edited.as_ref())?,
            Prompted::Given(1) => decline()?,
            Prompted::Given(2) => Some(Response::cancel()),
            Prompted::Given(_) => {
                edited = change(approval, edited)?;
                None
            }
            Prompted::Back => return Err(CommandError::Interrupted),
        };
        if let Some(response) = response {
            return Ok(response);
        }
    }
}

/// The approval with what the tool needs of the person; none where they went back.
fn approve_with(approval: &Approval, edited: Option<&Json>) -> Result<Option<Response>, CommandError> {
    let input = match &approval.input {
        None => None,
        Some(schema) => match form::fill(schema.form())? {
            Some(input) => Some(input),
            None => return Ok(None),
        },
    };
    let content = Content { arguments: edited.cloned(), input };
    Ok(Some(Response { content: content.written(), ..Response::consent() }))
}

/// Asks for the arguments as JSON, and shows what was changed in them. Esc leaves them as they were.
fn change(approval: &Approval, before: Option<Json>) -> Result<Option<Json>, CommandError> {
    let Some(schema) = &approval.edits else { return Ok(None) };
    let check = |text: &str| match Json::parse(text) {
        Err(error) => Some(format!("must be JSON: {error}")),
        Ok(json) => schema.validate(&json).err().map(|faults| said(&faults)),
    };
    let start = before.as_ref().unwrap_or(&approval.arguments).as_str().replace(['\n', '\r'], " ");
    let Prompted::Given(text) = line("The arguments", "JSON; Esc changes nothing", &start, &check)? else {
        return Ok(before);
    };
    let edited = Json::parse(&text).ok().filter(|edited| edited.canonical() != approval.arguments.canonical());
    match &edited {
        Some(edited) => output::note(&format!("What you changed:\n{}", render::changed_arguments(approval, edited))),
        None => output::note("The arguments are as they were proposed."),
    }
    Ok(edited)
}

fn said(faults: &[FieldError]) -> String {
    let said: Vec<_> =
        faults.iter().map(|fault| format!("{} {}", visible(&fault.pointer), visible(&fault.message))).collect();
    said.join("; ")
}
