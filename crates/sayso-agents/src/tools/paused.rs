//! The calls that a round waits for, as every surface says them: `{execution_id, tool_path, message, args}`.

use sayso::Json;
use sayso::wire::{Paused, RequestKind, Round};
use serde_json::{Map, Value, json};

/// What the operations of a native run begin with: each turn's rounds are of one of their own.
pub(crate) const TURN_PREFIX: &str = "native:turn-";

/// A call that waits, under the key of its request.
struct Waiting<'a> {
    key: &'a str,
    tool_path: String,
    message: String,
    args: Option<&'a Json>,
}

/// What each request of the round is about, in order. A turn of the native loop has one request for each call; the others
/// are about one call, however much they ask.
fn waiting<'a>(round: &'a Round) -> Vec<Waiting<'a>> {
    let (requests, calls) = (&round.requests.0, round.calls.as_slice());
    let is_a_turn = round.logical_operation_id.starts_with(TURN_PREFIX);
    let has_call_each = is_a_turn && calls.len() == requests.len();
    let about = |(at, (key, request)): (usize, &'a (String, sayso::Request))| {
        let shown = if has_call_each { calls.get(at) } else { calls.first().filter(|_| calls.len() == 1) };
        let of_turn = shown.filter(|_| is_a_turn).map(|call| call.name.clone());
        let path = request.tool.clone().or(of_turn);
        Waiting {
            key,
            tool_path: path.unwrap_or_else(|| format!("{}:{}", round.server, round.operation_name)),
            message: request.message.clone().or_else(|| request.question.clone()).unwrap_or_default(),
            args: request.arguments.as_ref().or_else(|| shown?.arguments.as_ref()),
        }
    };
    let waiting = requests.iter().enumerate().map(about);
    if is_a_turn || requests.iter().all(|(_, request)| request.kind == RequestKind::Approval) {
        waiting.collect()
    } else {
        waiting.take(1).collect()
    }
}

/// The calls that a round waits for. One whose arguments are not known has none.
pub(crate) fn paused_calls(round: &Round) -> Vec<Paused> {
    let paused = |call: Waiting<'_>| {
        let args = call.args.cloned().or_else(|| Json::parse("{}").ok())?;
        let Waiting { tool_path, message, .. } = call;
        Some(Paused { execution_id: round.execution_id, tool_path, message, args })
    };
    waiting(round).into_iter().filter_map(paused).collect()
}

/// The same for an agent: the first, and where there are several all of them under `calls`.
pub(crate) fn paused_of(round: &Round) -> Value {
    let calls = waiting(round);
    let shown = |call: &Waiting<'_>| {
        let paused = json!({
            "execution_id": round.execution_id.to_string(),
            "tool_path": call.tool_path,
            "message": call.message,
            "args": call.args.map(Json::value),
        });
        if let Value::Object(members) = paused { members } else { Map::new() }
    };
    let listed = |call: &Waiting<'_>| {
        let mut members = shown(call);
        members.insert("request_key".to_owned(), call.key.into());
        Value::Object(members)
    };
    let mut paused = calls.first().map(shown).unwrap_or_default();
    if calls.len() > 1 {
        paused.insert("calls".to_owned(), calls.iter().map(listed).collect());
    }
    Value::Object(paused)
}
