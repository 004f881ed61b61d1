//! `resume {execution_id, approved?, data?}`: what a person decided about a paused call, as the store has it.

use std::time::Duration;

use sayso::wire::{Answer, RequestKind, Round};
use sayso::{Channel, Desk, Error, ExecutionId, Failure, Json, Response, Status, words};
use sayso_core::json::ObjectView;
use sayso_core::limits::JSON_DEPTH_CEILING;
use sayso_core::response::Action;
use sayso_core::round::Delivery;
use serde_json::{Map, Value, json};

use super::answers;
use super::paused::paused_of;

/// The operation of questions that agents put by `ask_user` outside a gateway: whoever asks for the answer takes it.
pub(crate) const ASKED: &str = "mcp:ask_user";
/// Under which such an answer is taken: it can be read again.
const COLLECTED_BY: &str = "ask_user";

/// What the tool was called with.
pub(crate) struct Resume {
    /// The paused call.
    pub execution: ExecutionId,
    /// What the agent says that a person said.
    pub approved: Option<bool>,
    data: Option<Json>,
}

impl Resume {
    /// Reads the tool's arguments. The error is a sentence for the agent.
    pub(crate) fn read(arguments: Option<&str>) -> Result<Self, String> {
        let given = arguments.and_then(ObjectView::read).ok_or("arguments must be an object")?;
        let member = |name: &str| given.get(name).filter(|text| *text != "null");
        let execution = member("execution_id").and_then(|text| serde_json::from_str(text).ok());
        let execution = execution.ok_or("arguments.execution_id must be the handle of a paused call, exe_…")?;
        let approved = member("approved").map(serde_json::from_str).transpose();
        let approved = approved.map_err(|_| "arguments.approved must be true or false")?;
        let data = member("data").map(Json::parse).transpose().ok().flatten();
        if member("data").is_some() && !data.as_ref().is_some_and(Json::is_object) {
            return Err("arguments.data must be an object".to_owned());
        }
        Ok(Self { execution, approved, data })
    }

    /// Passes on what the agent says that a person said, as the answer to what is asked now. That somebody else was
    /// first, or that nothing is asked any more, is no error: the report will say so.
    pub(crate) async fn relay(&self, desk: &dyn Desk) -> Result<(), Error> {
        let Some(approved) = self.approved else { return Ok(()) };
        let rounds = match desk.rounds_of(self.execution).await {
            Err(Error::NotFound(_)) => return Ok(()),
            rounds => rounds?,
        };
        let Some(round) = rounds.iter().find(|round| round.status == Status::Pending) else { return Ok(()) };
        let [(key, _)] = round.requests.0.as_slice() else {
            return Err(Error::field("/execution_id", "asks several questions, which a person answers in Sayso"));
        };
        let response = match (approved, self.data.clone()) {
            (true, Some(data)) => Response::accept(data),
            (true, None) => Response::consent(),
            (false, data) => Response::decline(data.as_ref().and_then(reason_in)),
        };
        let answer = Answer { digest: Some(round.digest), ..Answer::one(key.clone(), response) };
        let said = if approved { "relay:approved" } else { "relay:denied" };
        match desk.relay(round.round_id, answer, said).await {
            Ok(_) | Err(Error::Conflict { .. } | Error::State { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn reason_in(data: &Json) -> Option<String> {
    data.value().get("reason")?.as_str().map(str::to_owned)
}

/// How a verdict is reported.
pub(crate) struct Report {
    /// The tool that goes on waiting, by its name here.
    pub wait_tool: String,
    /// Where people answer, as far as it is known.
    pub inbox: Option<String>,
}

impl Report {
    /// The tool's result: what a person decided, and the call's own result, which is waited for at most for `wait`.
    pub(crate) async fn of(&self, desk: &dyn Desk, execution: ExecutionId, wait: Duration) -> String {
        let rounds = match desk.rounds_of(execution).await {
            Ok(rounds) => rounds,
            Err(Error::NotFound(_)) => return unresolved("There is no call with this execution_id.", None),
            Err(error) => return Self::refused(&error),
        };
        let newest = rounds.iter().max_by_key(|round| (round.created_at, round.round_index));
        let Some(round) = rounds.iter().find(|round| round.status == Status::Pending).or(newest) else {
            return match desk.execution(execution).await {
                Ok(found) if found.outcome.is_none() => told(
                    &words::still_running(execution, &self.wait_tool),
                    json!({"resolved": false, "paused": {"execution_id": execution.to_string()}}),
                    false,
                ),
                _ => unresolved("Nobody was asked about this call.", None),
            };
        };
        if round.status == Status::Pending {
            return self.pending(round);
        }
        if let Some(failure) = &round.failure {
            return ended(desk, round, failure).await;
        }
        if round.logical_operation_id == ASKED && round.delivery == Delivery::Resumable {
            return answered(desk, round).await;
        }
        // Whoever asked a gate asks it again to go on, and may wait for this report before.
        let wait = if is_gates(round) { Duration::ZERO } else { wait };
        match desk.result(execution, wait).await {
            Ok(found) => decided(round, found.result.as_ref()),
            Err(Error::Timeout) => self.undelivered(round),
            Err(error) => Self::refused(&error),
        }
    }

    /// Why nothing can be reported.
    pub(crate) fn refused(error: &Error) -> String {
        unresolved(&error.to_string(), Some(error.code().as_str()))
    }

    /// Nobody has decided.
    pub(crate) fn pending(&self, round: &Round) -> String {
        let answer_at = match &self.inbox {
            Some(inbox) => format!("{}/rounds/{}", inbox.trim_end_matches('/'), round.round_id),
            None => format!("sayso answer {}", round.round_id),
        };
        let place = format!("The person answers it in Sayso: {answer_at}");
        let text = words::still_waiting(round.execution_id, &self.wait_tool, &place);
        let data = json!({"resolved": false, "paused": paused_of(round), "answer_at": answer_at});
        told(&text, data, false)
    }

    /// Decided, and its call has no result yet.
    fn undelivered(&self, round: &Round) -> String {
        let text = match (is_gates(round), is_accepted(round)) {
            (true, true) => {
                "A person approved this call. Send exactly the same call to the gate again, and run it then."
            }
            (true, false) => "A person did not approve this call. Do not run it.",
            (false, _) => &words::still_running(round.execution_id, &self.wait_tool),
        };
        told(text, verdict(round).into(), false)
    }
}

fn told(text: &str, data: Value, is_error: bool) -> String {
    json!({"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": is_error}).to_string()
}

fn unresolved(text: &str, code: Option<&str>) -> String {
    let mut data = json!({"resolved": false, "error": text});
    if let (Some(members), Some(code)) = (data.as_object_mut(), code) {
        members.insert("code".to_owned(), code.into());
    }
    told(text, data, true)
}

fn is_approval(round: &Round) -> bool {
    round.requests.0.iter().any(|(_, request)| request.kind == RequestKind::Approval)
}

/// Whether a program's gate asked, which runs nothing itself.
pub(crate) fn is_gates(round: &Round) -> bool {
    round.logical_operation_id.starts_with(sayso::GATE_PREFIX)
}

fn is_accepted(round: &Round) -> bool {
    round.answered.as_ref().is_some_and(|answered| answered.action == Some(Action::Accept))
}

/// What a person decided, and for a relayed verdict who says so.
fn verdict(round: &Round) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("resolved".to_owned(), true.into());
    data.insert("execution_id".to_owned(), round.execution_id.to_string().into());
    let Some(answered) = &round.answered else { return data };
    // Of several questions that were answered in different ways there is no one verdict.
    if answered.action.is_some() {
        data.insert("approved".to_owned(), is_accepted(round).into());
    }
    if answered.action == Some(Action::Cancel) {
        data.insert("dismissed".to_owned(), true.into());
    }
    if answered.channel == Channel::Relay {
        data.insert("relayed_by".to_owned(), answered.principal.to_string().into());
    }
    data
}

/// A question that ended without a person's verdict. Its call may have gone on by another way, such as a grant.
async fn ended(desk: &dyn Desk, round: &Round, failure: &Failure) -> String {
    let text = if is_approval(round) { words::approval_ended(failure) } else { words::ended(failure) };
    let found = desk.result(round.execution_id, Duration::ZERO).await.ok();
    let went_on = found.and_then(|found| found.result).filter(|_| failure.code == Failure::WITHDRAWN);
    let Some(result) = went_on.as_ref().and_then(|stored| stored.object()?.get("result").map(str::to_owned)) else {
        return unresolved(&text, Some(&failure.code));
    };
    let data = json!({"resolved": false, "error": text, "code": failure.code}).to_string();
    let data = ObjectView::with_member(&data, "result", &result);
    ObjectView::with_member(&told(&text, Value::Null, false), "structuredContent", &data)
}

/// An answer that waits for whoever asks for it.
async fn answered(desk: &dyn Desk, round: &Round) -> String {
    match desk.collect(round.round_id, COLLECTED_BY, Duration::ZERO).await {
        Ok(collected) => {
            let mut result = answers(&asked_in(round, collected.request_state.as_deref()), &collected.responses);
            let mut data = verdict(round);
            let given = result.pointer_mut("/structuredContent").map(Value::take);
            if let Some(Value::Object(given)) = given {
                data.extend(given);
            }
            if let Some(members) = result.as_object_mut() {
                members.insert("structuredContent".to_owned(), data.into());
            }
            result.to_string()
        }
        Err(error) => Report::refused(&error),
    }
}

/// The questions as the agent put them, as long as the round keeps them; else as they were shown.
fn asked_in(round: &Round, state: Option<&str>) -> Vec<String> {
    let kept = state.and_then(|state| serde_json::from_str(state).ok());
    kept.unwrap_or_else(|| {
        let shown = |request: &sayso::Request| request.question.clone().unwrap_or_default();
        round.requests.0.iter().map(|(_, request)| shown(request)).collect()
    })
}

/// A person has decided, and the call is over. Its own answer is repeated as it was written.
fn decided(round: &Round, stored: Option<&Json>) -> String {
    let mut data = verdict(round);
    let stored = stored.and_then(Json::object);
    let member = |name: &str| stored.as_ref().and_then(|stored| stored.get(name));
    let result = member("result").and_then(ObjectView::read);
    let blocks = result.as_ref().and_then(|result| result.get("content"));
    if !is_accepted(round) {
        let said = blocks.and_then(first_text);
        let is_dismissed = data.contains_key("dismissed");
        let text = match (said, is_dismissed) {
            // What the agent was told, or would have been.
            (Some(said), _) => said,
            (None, true) => words::DISMISSED.to_owned(),
            (None, false) => words::declined(None),
        };
        data.insert("message".to_owned(), text.clone().into());
        return told(&text, data.into(), false);
    }
    let lead = match (is_approval(round), is_gates(round)) {
        (true, true) => "A person approved this call, and whoever asked the gate about it was told so.",
        (true, false) => "A person approved this call. It ran.",
        (false, _) => "A person answered.",
    };
    let is_error = result.as_ref().is_some_and(|result| result.get("isError") == Some("true"));
    let own = ["result", "error"].into_iter().find_map(|name| Some((name, member(name)?)));
    let mut data = Value::from(data).to_string();
    if let Some((name, own)) = own {
        data = ObjectView::with_member(&data, name, own);
    }
    let mut content = format!("[{}", json!({"type": "text", "text": lead}));
    let inside = blocks.and_then(|blocks| blocks.strip_prefix('[')?.strip_suffix(']')).unwrap_or_default().trim();
    if !inside.is_empty() {
        content.push(',');
        content.push_str(inside);
    }
    content.push(']');
    format!(r#"{{"content":{content},"structuredContent":{data},"isError":{is_error}}}"#)
}

/// The text of the first block.
fn first_text(blocks: &str) -> Option<String> {
    let blocks = Json::parse_within(blocks, usize::MAX, JSON_DEPTH_CEILING).ok()?;
    let first = blocks.items().into_iter().next()?;
    serde_json::from_str(first.object()?.get("text")?).ok()
}
