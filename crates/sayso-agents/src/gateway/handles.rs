//! The agent's handle of a paused call: pending results, the wait tool, identical calls, and results that are stored.

use std::time::Duration;

use sayso::{Error, ExecutionId, Failure, Json, Outcome, Step, wire, words};
use sayso_core::json::ObjectView;
use sayso_core::round::OperationKind;
use serde_json::json;
use tokio::time::Instant;

use super::call::{Call, CallKey, Open, Pending, Waiter, WaitsBy};
use super::session::{Event, Session};
use super::timers::{COLLECTED_AFTER, Due, HEARTBEAT};
use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Message};
use crate::tools::{stored_answer, tool_error};

/// What a heartbeat adds to the last progress value: small enough to stay behind the upstream's own next step.
const HEARTBEAT_STEP: f64 = 0.001;

impl Session {
    /// Makes sure that a paused call has a handle; one that shares its question with others has none yet.
    pub(super) async fn ensure_execution(&mut self, number: u64) -> Option<ExecutionId> {
        if let Some(execution) = self.call(number)?.execution {
            return Some(execution);
        }
        let begun = self.desk.begin().await.ok()?;
        self.call(number)?.execution = Some(begun);
        Some(begun)
    }

    /// A request has been held long enough: where its call waits for a person, the pending result ends it.
    pub(super) async fn hold_over(&mut self, client_id: &str) {
        let Some(Open::Forwarded(number)) = self.open.get(client_id).cloned() else { return };
        let is_paused = self.is_paused(number);
        let Some(waiter) = self.call(number).and_then(|call| call.waiter.clone()) else { return };
        if waiter.client_id == client_id && (is_paused || waiter.by != WaitsBy::Call) {
            self.let_go(number).await;
        }
    }

    /// Ends the request of whoever waits for a call with its pending result; the call stays.
    async fn let_go(&mut self, number: u64) {
        let Some(execution) = self.ensure_execution(number).await else { return };
        let Some(waiter) = self.call(number).and_then(|call| {
            call.was_parked = true;
            call.waiter.take()
        }) else {
            return;
        };
        if waiter.by == WaitsBy::Resume {
            return self.report(&waiter.client_id, execution, Duration::ZERO);
        }
        self.open.remove(&waiter.client_id);
        let line = self.pending_result(number, execution, &waiter);
        self.client.send(line).await;
    }

    fn pending_result(&mut self, number: u64, execution: ExecutionId, waiter: &Waiter) -> String {
        let ask = self.asks.values().find(|ask| ask.pauses(number));
        let (round, message) = ask.map_or((None, String::new()), |ask| (Some(ask.round), ask.text()));
        let where_ = round.map(|round| format!("The person answers round {round} in Sayso.")).unwrap_or_default();
        let text = match round {
            Some(_) => words::still_waiting(execution, &self.lists.wait_tool(), &where_),
            None => words::still_running(execution, &self.lists.wait_tool()),
        };
        let Some(Pending::Call(call)) = self.requests.get(&number) else {
            return jsonrpc::error(&waiter.client_id, INTERNAL_ERROR, &text, None);
        };
        let paused = json!({
            "execution_id": execution.to_string(),
            "tool_path": self.options.tool_path(&call.name),
            "message": message,
            "args": call.arguments.as_ref().map(Json::value),
        });
        if call.kind != OperationKind::Tool {
            let data = json!({"execution_id": execution.to_string(), "paused": paused}).to_string();
            return jsonrpc::error(&waiter.client_id, INTERNAL_ERROR, &text, Some(&data));
        }
        // A result of a tool with an output schema must carry what the schema says, unless it is an error.
        let is_error = waiter.by == WaitsBy::Call && self.lists.has_output_schema(&call.name);
        let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        if !is_error && let Some(members) = result.as_object_mut() {
            members.insert("structuredContent".to_owned(), json!({"paused": paused}));
        }
        jsonrpc::result(&waiter.client_id, &result.to_string())
    }

    /// Whoever waits for a paused call hears that it still is.
    pub(super) async fn heartbeat(&mut self, number: u64) {
        if !self.is_paused(number) {
            return;
        }
        self.timers.at(Instant::now() + HEARTBEAT, Due::Heartbeat { call: number });
        let Some(call) = self.call(number) else { return };
        let Some(token) = call.waiter.as_ref().and_then(|waiter| waiter.progress_token.clone()) else { return };
        call.progress = call.progress.max(0.0) + HEARTBEAT_STEP;
        let (progress, message) = (call.progress, "waiting for a person");
        let params = format!(r#"{{"progressToken":{token},"progress":{progress},"message":"{message}"}}"#);
        self.client.send(jsonrpc::notification("notifications/progress", &params)).await;
    }

    /// Joins an identical call that was let go, or gives its stored result. `false`: this is a new call.
    pub(super) async fn join(&mut self, key: &CallKey, waiter: &Waiter) -> bool {
        let is_it = |pending: &Pending| matches!(pending, Pending::Call(call) if call.key == *key && call.was_parked);
        if let Some(number) = self.requests.iter().find(|(_, pending)| is_it(pending)).map(|(number, _)| *number) {
            self.attach(number, waiter.clone()).await;
            return true;
        }
        let Some(execution) = self.stored.for_retry(key) else { return false };
        self.look_elsewhere(execution, waiter, Duration::ZERO);
        true
    }

    /// The newest waiter wins; an older one gets the pending result.
    pub(super) async fn attach(&mut self, number: u64, waiter: Waiter) {
        if self.call(number).is_some_and(|call| call.waiter.is_some()) {
            self.let_go(number).await;
        }
        self.open.insert(waiter.client_id.clone(), Open::Forwarded(number));
        self.timers.at(waiter.hold_until, Due::HoldOver { client_id: waiter.client_id.clone() });
        if let Some(call) = self.call(number) {
            call.waiter = Some(waiter);
            // Every request begins its own count.
            call.progress = f64::NEG_INFINITY;
        }
        // One that a person has approved meanwhile ran for nobody; now somebody waits.
        self.go_on(number).await;
    }

    /// `sayso_wait {execution_id}`.
    pub(super) async fn wait_tool_called(&mut self, message: &Message, id: &str) {
        let given = message.param("arguments").and_then(ObjectView::read);
        let execution = given.and_then(|arguments| serde_json::from_str(arguments.get("execution_id")?).ok());
        let Some(execution) = execution else {
            let words = "arguments.execution_id must be the handle that a paused call returned, exe_…";
            self.client.send(jsonrpc::error(id, INVALID_PARAMS, words, None)).await;
            return;
        };
        let waiter = self.waiter(message, id, WaitsBy::WaitTool);
        let is_it = |pending: &Pending| matches!(pending, Pending::Call(call) if call.execution == Some(execution));
        match self.requests.iter().find(|(_, pending)| is_it(pending)).map(|(number, _)| *number) {
            Some(number) => self.attach(number, waiter).await,
            None => self.look_elsewhere(execution, &waiter, self.hold),
        }
    }

    /// Waits in the background for a result that is stored, or that another process will store.
    fn look_elsewhere(&mut self, execution: ExecutionId, waiter: &Waiter, wait: Duration) {
        self.open.insert(waiter.client_id.clone(), Open::Elsewhere);
        let (desk, events, client_id) = (self.desk.clone(), self.events.clone(), waiter.client_id.clone());
        tokio::spawn(async move {
            let until = Instant::now() + wait;
            let outcome = loop {
                let left = until.saturating_duration_since(Instant::now());
                match desk.result(execution, left).await {
                    Err(Error::Timeout) if !left.is_zero() => {}
                    outcome => break outcome,
                }
            };
            // A session that is gone has nobody to tell.
            let _ = events.send(Event::Elsewhere { client_id, execution, outcome }).await;
        });
    }

    pub(super) async fn found_elsewhere(
        &mut self,
        client_id: &str,
        execution: ExecutionId,
        outcome: Result<wire::ExecutionResult, Error>,
    ) {
        if self.open.remove(client_id).is_none() {
            return;
        }
        let line = match outcome {
            Ok(found) => {
                if let Some(key) = self.stored.key_of(execution) {
                    self.count_as_collected_later(&key, client_id);
                }
                stored_line(client_id, &found)
            }
            Err(Error::Timeout) => return self.report(client_id, execution, Duration::ZERO),
            Err(Error::NotFound(_)) => tool_error(client_id, "There is no call with this execution_id."),
            Err(error) => tool_error(client_id, &error.to_string()),
        };
        self.client.send(line).await;
    }

    fn count_as_collected_later(&mut self, key: &CallKey, client_id: &str) {
        self.stored.written(key, client_id);
        let due = Due::Collected { client_id: client_id.to_owned(), key: key.clone() };
        self.timers.at(Instant::now() + COLLECTED_AFTER, due);
    }

    pub(super) async fn collected(&mut self, client_id: &str, key: &CallKey) {
        if let Some(execution) = self.stored.collected(key, client_id) {
            self.settle(vec![Step::Collected(execution)]).await;
        }
    }

    /// The upstream's result or error for a call. Receipt, end of the rounds and result are stored in one transaction
    /// before the client reads it.
    pub(super) async fn call_answered(&mut self, number: u64, call: Call, message: &Message) {
        let told = call.ran_with.as_ref().and_then(|arguments| with_words(message, &words::edited(arguments)));
        let message = told.as_ref().unwrap_or(message);
        let mut steps = self.take_answered(number, |_| true);
        steps.extend(self.end_shared_asks(number));
        steps.extend(call.execution.map(|execution| finished(execution, message)));
        self.hand_back(call, steps, |client_id| message.with_id(client_id)).await;
    }

    /// A call is over: what became known is stored, then whoever waits reads the line that `line` makes for a request.
    pub(super) async fn hand_back(&mut self, call: Call, steps: Vec<Step>, line: impl FnOnce(&str) -> String) {
        // A call whose question goes on without it has no answer for the next one, whatever its server says.
        if let Some(execution) = call.execution
            && !call.goes_on_late
        {
            self.stored.keep(call.key.clone(), execution, call.was_parked);
        }
        self.settle(steps).await;
        let Some(waiter) = call.waiter else { return };
        if self.open.remove(&waiter.client_id).is_none() {
            return;
        }
        if let Some(execution) = call.execution {
            self.count_as_collected_later(&call.key, &waiter.client_id);
            if waiter.by == WaitsBy::Resume {
                return self.report(&waiter.client_id, execution, Duration::ZERO);
            }
        }
        self.client.send(line(&waiter.client_id)).await;
    }

    /// A call that has ended asks nothing more. Where it failed, its server may just have lost patience: the question
    /// goes on, for the time that the call is made again.
    pub(super) async fn end_own_asks(&mut self, number: u64, has_failed: bool) {
        let own = self.asks.iter().find(|(_, ask)| ask.pauses(number) && ask.candidates == [number]);
        let Some(ask) = own.map(|(ask, _)| *ask) else { return };
        if has_failed {
            self.withdrawn(ask).await;
        } else {
            self.dropped(ask, "the call ended without waiting for the answer").await;
        }
    }

    /// A call that has ended is no candidate of the questions that it may have shared; one without candidates ends.
    fn end_shared_asks(&mut self, number: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let concerned: Vec<_> = self.asks.iter().filter(|(_, ask)| ask.pauses(number)).map(|(ask, _)| *ask).collect();
        for ask in concerned {
            let Some(found) = self.asks.get_mut(&ask) else { continue };
            found.candidates.retain(|candidate| *candidate != number);
            if !found.candidates.is_empty() {
                continue;
            }
            let failure = Failure::new(Failure::WITHDRAWN, "the call ended without waiting for the answer");
            steps.push(Step::Failed(found.round, found.fence.clone(), failure));
            steps.extend(found.own_execution.map(|own| Step::Finished(own, Outcome::Cancelled, None)));
            self.asks.remove(&ask);
        }
        steps
    }
}

/// The stored form of what the upstream answered: `{"result": …}` or `{"error": …}`, as written.
fn finished(execution: ExecutionId, message: &Message) -> Step {
    let stored = |name: &str| {
        let text = format!(r#"{{"{name}":{}}}"#, message.member(name)?);
        Json::parse_within(&text, usize::MAX, sayso_core::limits::JSON_DEPTH_CEILING).ok()
    };
    match stored("result") {
        Some(result) => Step::Finished(execution, Outcome::Completed, Some(result)),
        None => {
            let failure = Failure::new("upstream_error", "the server answered with an error");
            Step::Finished(execution, Outcome::Failed(failure), stored("error"))
        }
    }
}

/// The server's answer with words of ours for the agent: a block after its own content, or after an error's message.
fn with_words(message: &Message, words: &str) -> Option<Message> {
    let text = match message.member("result") {
        Some(result) => {
            let content = ObjectView::read(result)?.get("content")?;
            let inside = content.strip_prefix('[')?.strip_suffix(']')?;
            let comma = if inside.trim().is_empty() { "" } else { "," };
            let content = format!("[{inside}{comma}{}]", json!({"type": "text", "text": words}));
            let result = ObjectView::with_member(result, "content", &content);
            ObjectView::with_member(message.text(), "result", &result)
        }
        None => {
            let error = message.member("error")?;
            let said: String = serde_json::from_str(ObjectView::read(error)?.get("message")?).ok()?;
            let error = ObjectView::with_member(error, "message", &json!(format!("{said} {words}")).to_string());
            ObjectView::with_member(message.text(), "error", &error)
        }
    };
    Message::parse(&text).ok()
}

/// Whether an answer says that the call failed.
pub(super) fn is_error(message: &Message) -> bool {
    let result = message.member("result").and_then(ObjectView::read);
    result.is_none_or(|result| result.get("isError") == Some("true"))
}

/// A stored result as an answer to the client's request of this id.
fn stored_line(client_id: &str, found: &wire::ExecutionResult) -> String {
    if let Some((name, answer)) = stored_answer(found) {
        return format!(r#"{{"jsonrpc":"2.0","id":{client_id},"{name}":{answer}}}"#);
    }
    let outcome = found.execution.outcome.as_ref();
    let failure = outcome.map(|outcome| Failure {
        code: outcome.code.clone().unwrap_or_else(|| outcome.status.clone()),
        message: outcome.message.clone().unwrap_or_else(|| "there is no result".to_owned()),
    });
    tool_error(client_id, &failure.as_ref().map_or_else(|| "There is no result.".to_owned(), words::ended))
}
