//! Suspending: what a round of a turn asks, and storing the run with it.

use sayso::gate::Asked;
use sayso::policy::DEFAULT_RULE;
use sayso::wire::{Call, Keyed, Request};
use sayso::{Ask, Error, Failure, Json, OperationKind, Status, UnixMs};

use super::outcome::{Halt, RunOutcome, SUSPEND_FAILED};
use super::sealed::seal;
use super::state::{PendingCall, SuspendedRunState, WaitsFor};
use super::tool::OWN_SERVER;
use super::turns::RunAtWork;
use crate::tools::TURN_PREFIX;

/// What a person reads of a tool that asks by itself, in the place of a rule.
const MARKED: &str = "the tool requires approval";
/// The name of the operation that a turn's rounds are of.
const OPERATION_NAME: &str = "turn";

impl RunAtWork<'_> {
    /// Whether somebody has to be asked before the turn can go on: first about every call that wants approval, then for
    /// the values of every call that may run.
    pub(super) fn waits_for(&self) -> Option<WaitsFor> {
        if self.calls.iter().any(PendingCall::needs_approval) {
            Some(WaitsFor::Approval)
        } else if self.calls.iter().any(PendingCall::needs_input) {
            Some(WaitsFor::Input)
        } else {
            None
        }
    }

    /// Stores the run with the round that it waits in.
    pub(super) async fn suspend(&mut self, waits_for: WaitsFor) -> Halt {
        if !self.runtime.asks_people {
            let call = self.calls.iter().find(|call| call.needs_approval() || call.needs_input());
            let tool = call.map(PendingCall::tool_name).unwrap_or_default();
            let words = format!("{tool} needs a person before it runs, and nobody is asked in this run");
            return Halt::failed(sayso::plan::EXPECTATION_FAILED, words);
        }
        let mut suspended = match self.question(waits_for).await {
            Ok(ask) => self.store(ask, waits_for).await,
            Err(error) => Err(error),
        };
        if let Err(Error::Unavailable(_)) = &suspended
            // The acknowledgement alone may have been lost: then it waits, and says so.
            && let Ok(Some(round)) = self.runtime.round_of(self.execution).await
            && round.status == Status::Pending
        {
            suspended = Ok(Box::new(round));
        }
        match suspended {
            Ok(round) if waits_for == WaitsFor::Approval => Halt::Suspended(RunOutcome::AwaitingApproval(round)),
            Ok(round) => Halt::Suspended(RunOutcome::AwaitingInput(round)),
            Err(Error::RoundLimit(limit)) => {
                let words = format!("one turn asked more often than its limit of {limit} rounds allows");
                Halt::failed(Error::RoundLimit(limit).code().as_str(), words)
            }
            Err(error) => {
                let words = format!("the run could not be stored as it was to wait, so nobody was asked: {error}");
                Halt::SuspendFailed(Failure::new(SUSPEND_FAILED, words))
            }
        }
    }

    async fn store(&self, ask: Ask, waits_for: WaitsFor) -> Result<Box<sayso::wire::Round>, Error> {
        let state = self.state(waits_for).written()?;
        let (keys, execution) = (self.runtime.keys.as_ref(), self.execution);
        let sealed = |round| seal(keys, state, execution, round);
        let held = self.held.as_ref();
        self.runtime.desk.suspend(ask, sealed, held, self.is_asked_again).await.map(Box::new)
    }

    fn state(&self, waits_for: WaitsFor) -> SuspendedRunState {
        SuspendedRunState {
            v: SuspendedRunState::VERSION,
            waits_for,
            messages: self.messages.clone(),
            pending_calls: self.calls.clone(),
            iterations: self.iterations,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            offered_tools: self.offered_tools.clone(),
        }
    }

    /// The round, and in the calls the rules that ask now.
    async fn question(&mut self, waits_for: WaitsFor) -> Result<Ask, Error> {
        let mut requests = Vec::new();
        let mut longest_ms: Option<i64> = None;
        for at in 0..self.calls.len() {
            let request = match (waits_for, self.calls.get(at)) {
                (WaitsFor::Approval, Some(call)) if call.needs_approval() => {
                    let asked = self.approval(call).await?;
                    longest_ms = [longest_ms, asked.deadline_ms].into_iter().flatten().min();
                    if let Some(call) = self.calls.get_mut(at) {
                        call.asked_by = asked.rules;
                    }
                    asked.request
                }
                (WaitsFor::Input, Some(call)) if call.needs_input() => input(call)?,
                _ => continue,
            };
            if let Some(call) = self.calls.get(at) {
                requests.push((call.id.clone(), request));
            }
        }
        // An approval shows its call itself.
        let calls = match waits_for {
            WaitsFor::Approval => Vec::new(),
            WaitsFor::Input => self.calls.iter().filter(|call| call.needs_input()).map(shown).collect(),
        };
        Ok(Ask {
            execution_id: Some(self.execution),
            logical_operation_id: Some(format!("{TURN_PREFIX}{}", self.iterations)),
            server: Some(OWN_SERVER.to_owned()),
            operation_kind: Some(OperationKind::Tool),
            operation_name: Some(OPERATION_NAME.to_owned()),
            deadline: self.deadline(longest_ms).await?,
            round_limit: Some(self.runtime.round_limit),
            calls,
            requests: Keyed(requests),
            ..Ask::default()
        })
    }

    async fn deadline(&self, within_ms: Option<i64>) -> Result<Option<UnixMs>, Error> {
        let by_rule = match within_ms {
            Some(ms) => Some(self.runtime.sayso.now().await?.plus_ms(ms)),
            None => None,
        };
        Ok([by_rule, self.runtime.deadline].into_iter().flatten().min())
    }

    async fn approval(&self, call: &PendingCall) -> Result<Asked, Error> {
        let offered = call.tool.as_ref().and_then(|name| self.offer.by_name(name)).ok_or(Error::NotFound("tool"))?;
        let described = offered.call(self.execution, call.arguments.clone());
        let mut asked = self.runtime.gate.ask_anyway(&described, &call.arguments).await?;
        if call.is_input_on_card {
            asked.request.schema = call.input_schema.clone();
        }
        if offered.is_marked() {
            // The tool itself asks each time, so nothing is granted for the session.
            asked.request.session = None;
            let by_rule = asked.rules.iter().any(|rule| rule.id != DEFAULT_RULE);
            let rule = asked.request.rule.take().filter(|_| by_rule);
            asked.request.rule =
                Some([Some(MARKED.to_owned()), rule].into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        Ok(asked)
    }
}

fn input(call: &PendingCall) -> Result<Request, Error> {
    let schema = call.input_schema.clone().ok_or(Error::Corrupt("call"))?;
    Ok(Request::form(format!("{} needs these values before it runs.", call.tool_name()), schema))
}

fn shown(call: &PendingCall) -> Call {
    Call { name: call.tool_name(), arguments: Some(call.arguments.clone()) }
}

/// What of a round's requests the calls that it is about must be like, so that an answer serves the very calls it was
/// given for.
pub(super) fn is_about(request: &Request, call: &PendingCall, waits_for: WaitsFor) -> bool {
    let same =
        |asked: &Option<Json>, kept: Option<&Json>| asked.as_ref().map(Json::canonical) == kept.map(Json::canonical);
    match waits_for {
        WaitsFor::Approval => {
            let on_card = call.input_schema.as_ref().filter(|_| call.is_input_on_card);
            request.tool == call.tool.as_ref().map(ToString::to_string)
                && same(&request.arguments, Some(&call.arguments))
                && request.definition == call.definition
                && same(&request.schema, on_card)
        }
        WaitsFor::Input => same(&request.schema, call.input_schema.as_ref()),
    }
}
