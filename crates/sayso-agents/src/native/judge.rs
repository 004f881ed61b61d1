//! Judging the calls of a turn: all of them before any runs, and all of them again right before they do.

use sayso::gate::{Admitted, By, Weighed};
use sayso::{Error, Json, words};
use sayso_core::schema::{InputSchema, Needs, read_arguments};

use super::model::ModelCall;
use super::offer::Offered;
use super::outcome::Halt;
use super::state::{AllowedBy, PendingCall};
use super::turns::RunAtWork;

/// A call of which nothing is judged yet.
fn unjudged(call: ModelCall, arguments: Json) -> PendingCall {
    PendingCall {
        id: call.id,
        function: call.function,
        tool: None,
        arguments,
        is_edited: false,
        definition: None,
        refusal: None,
        is_asked: false,
        asked_by: Vec::new(),
        allowed_by: None,
        input_schema: None,
        is_input_on_card: false,
        input: None,
    }
}

/// What a call runs with: its arguments, with a person's values over them. None where it needs values that are not there.
pub(super) fn runs_with(call: &PendingCall) -> Option<Json> {
    match (&call.input_schema, &call.input) {
        (None, _) => Some(call.arguments.clone()),
        (Some(schema), Some(input)) => InputSchema::open(schema).ok()?.overlay(&call.arguments, input).ok(),
        (Some(_), None) => None,
    }
}

impl RunAtWork<'_> {
    /// Judges a call of a new turn. Only offered tools are asked about.
    pub(super) async fn classify(&self, call: ModelCall) -> Result<PendingCall, Halt> {
        let empty = Json::parse("{}").map_err(|_| Error::Corrupt("call"))?;
        let read = read_arguments(&call.arguments);
        let mut pending = unjudged(call, read.as_ref().ok().cloned().unwrap_or(empty));
        let Some(offered) = self.offer.by_function(&pending.function) else {
            pending.refusal = Some(words::not_offered(&pending.function));
            return Ok(pending);
        };
        pending.tool = Some(offered.name.clone());
        match read {
            Ok(_) => self.judge(&mut pending, offered).await?,
            Err(error) => pending.refusal = Some(words::arguments_unreadable(&error.to_string())),
        }
        Ok(pending)
    }

    /// Judges a call by what its tool is now. Nothing that anybody said of it before counts any more.
    async fn judge(&self, call: &mut PendingCall, offered: &Offered) -> Result<(), Halt> {
        call.definition = Some(offered.definition);
        (call.allowed_by, call.input) = (None, None);
        let own = offered.own();
        call.input_schema = own.and_then(|own| own.input_schema.clone());
        call.is_input_on_card = own.is_some_and(|own| matches!(own.needs, Needs::ApprovedInput(_)));
        match self.runtime.gate.weigh(&offered.call(self.execution, call.arguments.clone())).await? {
            Weighed::Deny(denied) => call.refusal = Some(denied.words()),
            Weighed::Ask(_) => call.is_asked = true,
            Weighed::Free => call.is_asked = offered.is_marked(),
        }
        Ok(())
    }

    /// Judges every call again that is to run now. Whether somebody has to be asked again; then nothing has run.
    pub(super) async fn judge_again(&mut self) -> Result<bool, Halt> {
        let mut calls = std::mem::take(&mut self.calls);
        let mut judged = Ok(());
        for call in calls.iter_mut().filter(|call| call.refusal.is_none()) {
            judged = self.judge_one_again(call).await;
            if judged.is_err() {
                break;
            }
        }
        let is_waiting = calls.iter().any(|call| call.needs_approval() || call.needs_input());
        // What nobody was asked about uses up what it rests on, now that nothing else holds the turn up.
        for call in calls.iter_mut().filter(|call| call.refusal.is_none() && call.allowed_by.is_none()) {
            if judged.is_ok() && !is_waiting {
                judged = self.admit(call).await;
            }
        }
        let is_asked = calls.iter().any(|call| call.needs_approval() || call.needs_input());
        self.calls = calls;
        judged.map(|()| is_asked)
    }

    async fn judge_one_again(&self, call: &mut PendingCall) -> Result<(), Halt> {
        let Some(offered) = call.tool.as_ref().and_then(|name| self.offer.by_name(name)) else {
            call.refusal = Some(words::not_offered(&call.tool_name()));
            return Ok(());
        };
        if call.definition != Some(offered.definition) {
            // Another tool than the one that was shown.
            return self.judge(call, offered).await;
        }
        let Some(effective) = runs_with(call) else {
            call.refusal = Some(words::input_missing(&call.tool_name()));
            return Ok(());
        };
        let described = offered.call(self.execution, effective.clone());
        let weighed = match call.allowed_by {
            Some(_) => self.runtime.gate.recheck(&described, &effective, &call.arguments, &call.asked_by).await?,
            None => self.runtime.gate.weigh(&described).await?,
        };
        match weighed {
            Weighed::Free => {}
            Weighed::Deny(denied) => call.refusal = Some(denied.words()),
            Weighed::Ask(_) => (call.is_asked, call.allowed_by) = (true, None),
        }
        Ok(())
    }

    async fn admit(&self, call: &mut PendingCall) -> Result<(), Halt> {
        let Some(offered) = call.tool.as_ref().and_then(|name| self.offer.by_name(name)) else { return Ok(()) };
        let Some(effective) = runs_with(call) else { return Ok(()) };
        match self.runtime.gate.admit(&offered.call(self.execution, effective)).await? {
            Admitted::Allow(allowed) => {
                if let By::Grant(grant) = allowed.by {
                    (call.allowed_by, call.asked_by) = (Some(AllowedBy::Grant(grant)), allowed.rules);
                }
            }
            Admitted::Deny(denied) => call.refusal = Some(denied.words()),
            Admitted::Ask(_) => call.is_asked = true,
        }
        Ok(())
    }
}
