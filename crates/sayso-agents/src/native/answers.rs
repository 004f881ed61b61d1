//! Taking a round's answers into the calls they were given for, by id.

use sayso::wire::{Keyed, Response};
use sayso::{Error, RoundId, words};
use sayso_core::response::{Action, Content};
use sayso_core::schema::InputSchema;

use super::state::{AllowedBy, PendingCall, WaitsFor};

/// Takes every answer in. One that is missing or of another form is no answer of this round: nothing of it is guessed.
pub(super) fn take(
    calls: &mut [PendingCall],
    waits_for: WaitsFor,
    round: RoundId,
    responses: &Keyed<Response>,
) -> Result<(), Error> {
    let is_asked = |call: &PendingCall| match waits_for {
        WaitsFor::Approval => call.needs_approval(),
        WaitsFor::Input => call.needs_input(),
    };
    for call in calls.iter_mut().filter(|call| is_asked(call)) {
        let response = responses.get(&call.id).ok_or(Error::Corrupt("answer"))?;
        match waits_for {
            WaitsFor::Approval => take_verdict(call, round, response)?,
            WaitsFor::Input => take_input(call, response)?,
        }
    }
    Ok(())
}

fn take_verdict(call: &mut PendingCall, round: RoundId, response: &Response) -> Result<(), Error> {
    let reason = response.reason.as_deref();
    match response.action {
        Action::Decline => call.refusal = Some(words::declined(reason)),
        Action::Cancel => call.refusal = Some(words::DISMISSED.to_owned()),
        Action::Accept => {
            let content = response.content.as_ref().map_or(Some(Content::default()), Content::read);
            let content = content.ok_or(Error::Corrupt("answer"))?;
            if let Some(edited) = content.arguments {
                (call.arguments, call.is_edited) = (edited, true);
            }
            if call.is_input_on_card {
                let input = content.input.ok_or(Error::Corrupt("answer"))?;
                call.input = Some(checked(call, input)?);
            }
            call.allowed_by = Some(AllowedBy::Person(round));
        }
    }
    Ok(())
}

fn take_input(call: &mut PendingCall, response: &Response) -> Result<(), Error> {
    match response.action {
        Action::Decline => call.refusal = Some(words::input_declined(response.reason.as_deref())),
        Action::Cancel => call.refusal = Some(words::INPUT_DISMISSED.to_owned()),
        Action::Accept => {
            let input = response.content.clone().ok_or(Error::Corrupt("answer"))?;
            call.input = Some(checked(call, input)?);
        }
    }
    Ok(())
}

/// The values once more by the call's own schema: what was accepted fits it, or the answer is not this call's.
fn checked(call: &PendingCall, input: sayso::Json) -> Result<sayso::Json, Error> {
    let schema = call.input_schema.as_ref().and_then(|schema| InputSchema::open(schema).ok());
    schema.and_then(|schema| schema.effective(&input).ok()).ok_or(Error::Corrupt("answer"))
}
