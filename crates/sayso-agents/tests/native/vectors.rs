//! Recorded behaviour of another system's loop (`sayso-core/tests/data/nrllm_vectors.jsonl`): whole turns, and what is
//! made of a stored run that was damaged. `follow` says whether the other system is to be reproduced (`yes`), may be
//! (`may`), or was wrong (`no`). Where the design decides otherwise the vector is listed here, with the reason.

use std::collections::BTreeSet;

use sayso::{ErrorCode, wire};
use sayso_agents::native::{AgentRuntime, RunOutcome, SuspendedRunState, Toolbox};
use serde_json::{Value, json};

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, run, yes};
use crate::tools::{Kind, TestTool};

const VECTORS: &str = include_str!("../../../sayso-core/tests/data/nrllm_vectors.jsonl");

/// Turns that the design decides otherwise: what comes out, and why.
const TURNS_DECIDED: [(&str, &str, &str); 4] = [
    ("resume_input_is_checked_again", "managed_input_invalid", "what does not fit is refused before it is accepted"),
    ("resume_target_missing_from_pending", "waits_for_nothing", "NR-17: no call waits, so there is no such pause"),
    ("approve_input_tool_is_refused", "managed_input_state", "approving a run that waits for input is a state error"),
    ("resume_same_input_tool_twice", "own_answers", "NR-22: each call has its own answer"),
];

pub fn vectors(group: &str, count: usize) -> Vec<Value> {
    let all = VECTORS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<_> = all.filter(|vector| vector["group"] == group).collect();
    assert_eq!(found.len(), count, "vectors of {group}");
    found
}

pub fn word(value: &Value) -> &'static str {
    Box::leak(value.as_str().unwrap().to_owned().into_boxed_str())
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn tool(scene: &Scene, tool: &Value) -> TestTool {
    let kind = match tool["kind"].as_str().unwrap() {
        "plain" | "read" => Kind::Harmless,
        "approval" => Kind::Approval,
        "input" => Kind::Input,
        // Writes and tools of others of which nothing is known ask (NR-20).
        _ => Kind::Plain,
    };
    let mut made = scene.tool(word(&tool["name"]), kind);
    made.fails = tool["throws"] == true;
    if tool["schema"].is_object() {
        made.schema = tool["schema"].to_string();
    }
    made
}

fn turn(calls: &Value) -> Turn {
    let calls = list(calls);
    if calls.is_empty() {
        return Turn::Says("Done.");
    }
    let call = |call: &Value| {
        let arguments = if call["arguments"].is_object() { call["arguments"].to_string() } else { "{}".to_owned() };
        (word(&call["id"]), word(&call["name"]), word(&Value::from(arguments)))
    };
    Turn::Calls(calls.iter().map(call).collect())
}

/// A scene of a vector, with a runtime of everything that is registered and one of what is offered.
struct Case {
    scene: Scene,
    registered: AgentRuntime,
    offered: AgentRuntime,
}

impl Case {
    async fn new(vector: &Value) -> Self {
        let mut turns: Vec<_> =
            list(&vector["pending"]).is_empty().then(Vec::new).unwrap_or_else(|| vec![turn(&vector["pending"])]);
        turns.extend(list(&vector["model_turns"]).iter().map(turn));
        let scene = Scene::new(turns).await;
        let offers = |tool: &&Value| {
            let named = |list: &Value| list.as_array().is_none_or(|names| names.contains(&tool["name"]));
            named(&vector["offered"]) && named(&vector["allowed"])
        };
        let tools = list(&vector["tools"]);
        let max = vector["max"].as_u64().map_or(50, |max| u32::try_from(max).unwrap());
        let of = |tools: Vec<&Value>| {
            scene.runtime_of(&scene.sayso, tools.into_iter().map(|one| tool(&scene, one))).turns_max(max)
        };
        let (registered, offered) = (of(tools.iter().collect()), of(tools.iter().filter(offers).collect()));
        Self { scene, registered, offered }
    }

    /// What ran, but for tools that broke.
    fn executed(&self, vector: &Value) -> Vec<Value> {
        let breaks =
            |name: &str| list(&vector["tools"]).iter().any(|tool| tool["name"] == name && tool["throws"] == true);
        let ran = self.scene.ran.lock().unwrap().clone();
        let well = ran.into_iter().filter(|(name, _)| !breaks(name));
        well.map(|(name, arguments)| json!([name, serde_json::from_str::<Value>(&arguments).unwrap()])).collect()
    }

    /// What the model read of each call that it made, as the other system's words for it.
    fn calls(&self) -> Vec<Value> {
        let asked = self.scene.model.asked();
        let messages = asked.last().map(|body| list(&body["messages"])).unwrap_or_default();
        let name_of = |id: &Value| {
            let calls = messages.iter().flat_map(|message| list(&message["tool_calls"]));
            calls.into_iter().find(|call| call["id"] == *id).unwrap()["function"]["name"].clone()
        };
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let words = |text: &str| match text {
            text if text.contains("is not offered") => "refused_not_offered",
            text if text.contains("Error: ") => "tool_failed",
            text if text.ends_with("is done") => "ran",
            other => panic!("{other}"),
        };
        results
            .map(|result| json!([name_of(&result["tool_call_id"]), words(result["content"].as_str().unwrap())]))
            .collect()
    }
}

fn ends(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed(_) => "completed",
        RunOutcome::AwaitingApproval(_) => "waiting_for_approval",
        RunOutcome::AwaitingInput(_) => "waiting_for_input",
        other => panic!("{other:?}"),
    }
}

/// Answers a pause as the vector says: an answer for each call that waits.
async fn go_on(case: &Case, vector: &Value, round: &wire::Round) -> Result<RunOutcome, ErrorCode> {
    let input = vector["human_input"].to_string();
    let response = |(key, _): &(String, wire::Request)| {
        let response = if vector["start"] == "resume" { yes() } else { accept(&input) };
        (word(&Value::from(key.as_str())), response)
    };
    let answer = answers(round.requests.0.iter().map(response));
    let (people, execution) = (case.scene.people(), round.execution_id);
    let outcome = match vector["start"] == "resume" {
        true => case.offered.approve(&people, execution, answer, "k").await,
        false => case.offered.submit_input(&people, execution, answer, "k").await,
    };
    outcome.map_err(|error| error.code())
}

fn decided(name: &str) -> Option<&'static str> {
    TURNS_DECIDED.iter().find(|(decided, ..)| *decided == name).map(|(_, outcome, _)| *outcome)
}

async fn check_turn(vector: &Value) {
    let name = vector["name"].as_str().unwrap();
    if vector["should"]["ends"] == "programming_error" {
        let scene = Scene::new([]).await;
        let refused = Toolbox::new().with(tool(&scene, &vector["tools"][0])).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ModelValidation, "{name}: refused when it is registered");
        return;
    }
    let case = Case::new(vector).await;
    let (outcome, before) = if vector["start"] == "run" {
        (run(&case.offered).await.1, 0)
    } else {
        let (execution, paused) = run(&case.registered).await;
        let Some(round) = paused.round().cloned() else {
            assert_eq!(decided(name), Some("waits_for_nothing"), "{name}");
            return;
        };
        if name == "resume_same_input_tool_twice" {
            let own = answers([("c1", accept(r#"{"city":"Berlin"}"#)), ("c2", accept(r#"{"city":"Oslo"}"#))]);
            case.offered.submit_input(&case.scene.people(), execution, own, "k").await.unwrap();
            let ran = [json!(["ask_user", {"n": 1, "city": "Berlin"}]), json!(["ask_user", {"n": 2, "city": "Oslo"}])];
            assert_eq!(case.executed(vector), ran, "{name}");
            return;
        }
        match go_on(&case, vector, &round).await {
            Ok(outcome) => (outcome, vector["iterations"].as_u64().unwrap_or(1) - 1),
            Err(code) => return assert_eq!(Some(code.as_str()), decided(name), "{name}"),
        }
    };
    assert_eq!(decided(name), None, "{name}");
    let expected = match vector["should"]["ends"].is_string() {
        true => &vector["should"],
        false => &vector["outcome"],
    };
    assert_eq!(ends(&outcome), expected["ends"], "{name}");
    if let RunOutcome::Completed(said) = &outcome {
        assert_eq!(Some(u64::from(said.iterations) + before), expected["iterations"].as_u64(), "{name}");
        assert_eq!(expected["truncated"], said.truncated, "{name}");
        if !said.truncated {
            let unknown = |call: &Value| json!([call[0], call[1].as_str().unwrap().replace("unknown", "not_offered")]);
            assert_eq!(case.calls(), list(&expected["calls"]).iter().map(unknown).collect::<Vec<_>>(), "{name}");
        }
    }
    assert_eq!(case.executed(vector), list(&expected["executed"]), "{name}");
    let waiting: BTreeSet<_> =
        outcome.round().into_iter().flat_map(|round| &round.requests.0).map(|(key, _)| key).collect();
    let count = match name {
        // Both of its inputs are asked in one round.
        "first_of_two_input_tools_is_asked" => 2,
        _ => usize::from(outcome.round().is_some()),
    };
    assert_eq!(waiting.len(), count, "{name}");
}

#[tokio::test]
async fn whole_turns_end_as_recorded_or_better() {
    for vector in vectors("turn", 23) {
        check_turn(&vector).await;
    }
    let names: BTreeSet<_> = vectors("turn", 23).iter().map(|vector| word(&vector["name"])).collect();
    assert!(TURNS_DECIDED.iter().all(|(name, ..)| names.contains(name)));
}

/// A sound state of ours, with the damage of the vector; none where the vector has no damage.
fn damaged(name: &str, mut state: Value) -> Option<Value> {
    match name {
        "full" => return None,
        "calls_not_a_list" => state["pending_calls"] = json!("x"),
        "broken_call_is_dropped_and_previews_follow" | "preview_of_a_dropped_call" => {
            state["pending_calls"].as_array_mut().unwrap().insert(0, json!("x"));
        }
        // Previews are shown in the round, and are no part of the state; neither is what the other system keeps beside.
        "preview_without_lines" | "preview_lines_mixed" => state["call_previews"] = json!([]),
        "forced_uids" => state["forced_snippet_uids"] = json!([3]),
        "counters_as_text" => state["iterations"] = json!("7"),
        "allowed_mixed" => state["offered_tools"] = json!(["native:a", 5]),
        "allowed_not_a_list" => state["offered_tools"] = json!("native:a"),
        "allowed_missing" => drop(state.as_object_mut().unwrap().remove("offered_tools")),
        other => panic!("{other}"),
    }
    Some(state)
}

/// A run stored by us is read as it was written or not at all: unlike the other system, nothing of it is dropped,
/// converted or taken for no restriction (NR-17, NR-18), and nothing is in it that is not ours.
#[tokio::test]
async fn a_stored_run_is_read_whole_or_not_at_all() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "ask_user", "{}")])]).await;
    let runtime = scene.runtime(&[("ask_user", Kind::Input)]);
    let (_, outcome) = run(&runtime).await;
    let db = rusqlite::Connection::open(scene.file()).unwrap();
    let id = outcome.round().unwrap().round_id.to_bytes();
    let read = db.query_row("SELECT request_state FROM request_states WHERE round_id = ?1", [id], |row| row.get(0));
    let text: String = read.unwrap();
    let whole = SuspendedRunState::read(&text).unwrap();
    assert_eq!(whole.input_tool_name().as_deref(), Some("native:ask_user"));
    assert_eq!(whole.input_schema().unwrap().as_str(), crate::tools::CITY);
    assert_eq!((whole.iterations, whole.prompt_tokens, whole.offered_tools.len()), (1, 3, 1));
    assert_eq!(whole.written().unwrap(), text, "it is written as it was read");
    for vector in vectors("rehydrate", 11) {
        let name = word(&vector["name"]);
        match damaged(name, serde_json::from_str(&text).unwrap()) {
            None => assert!(SuspendedRunState::read(&text).is_ok(), "{name}"),
            Some(state) => {
                let refused = SuspendedRunState::read(&state.to_string()).unwrap_err();
                assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState, "{name}");
            }
        }
    }
    // A schema that names no keys, an input that does not fit it, and a pause in which nothing waits are damage, too.
    let schema = text.replace(r#""type":"object""#, r#""type":"string""#);
    let input = text.replace(r#""input":null"#, r#""input":{"city":"X"}"#);
    let nothing_waits = text.replace(r#""refusal":null"#, r#""refusal":"no""#);
    for damaged in [schema, input, nothing_waits] {
        assert_ne!(damaged, text);
        assert!(SuspendedRunState::read(&damaged).is_err(), "{damaged}");
    }
}
