//! The order of checks around a decision, as another system was recorded to have it, with what the design decides instead.
//!
//! Here accepting an answer and going on are two facts: what is wrong with an answer is found before it is accepted, so
//! nothing is ever claimed for it, and the run waits as it did.

use std::sync::Arc;

use sayso::{Channel, Digest, Error, ErrorCode, Principal, Response, Status};
use sayso_agents::native::RunOutcome;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::model::Turn;
use crate::scene::{AGENT, Scene, accept, answers, no, run, yes};
use crate::tools::Kind;
use crate::vectors::{vectors, word};

/// What is decided otherwise, or shown elsewhere: what comes out, and why.
const DECIDED: [(&str, &str, &str); 12] = [
    ("input/no_digest", "completed", "in-process calls bind to the round that they address"),
    ("approve/no_digest", "completed", "in-process calls bind to the round that they address"),
    ("input/configuration_gone", "requeued", "a server that is gone requeues the run: `resuming.rs`"),
    ("input/unreadable_pending_call", "corrupt_suspended_state", "a state is read whole or not at all"),
    ("input/tool_not_among_pending_calls_is_checked_too", "corrupt", "no such pause can be read: `vectors.rs`"),
    ("input/event_write_fails", "unavailable", "NR-24: the answer and its event are one transaction, or nothing runs"),
    ("approve/unreadable_after_claim", "kept", "NR-25: nothing is consumed and the bytes are kept: `resuming.rs`"),
    ("approve/approver_may_not_run_write", "no_such_person", "whoever may answer may run it: persons have one right"),
    ("input/actor_may_not_act", "forbidden", "agents and services never answer; every person of the store may"),
    ("four_eyes/service_account", "same_hand", "NR-26: an account's own agent is its hand: `policies.rs`"),
    (
        "suspend/cancel_came_first",
        "suspend_failed",
        "as recorded; the moment is made by a cancel during the model's turn",
    ),
    ("suspend/run_was_never_stored", "unavailable", "a run that cannot be stored is not begun"),
];

/// A run that waits, or what became of it.
struct Case {
    scene: Scene,
    runtime: sayso_agents::native::AgentRuntime,
    execution: sayso::ExecutionId,
    outcome: RunOutcome,
}

async fn waiting(situation: &Value) -> Case {
    let is_input = situation["decision"] == "input" || situation["suspension"] == "input";
    let (tool, kind) = if is_input { ("ship", Kind::Input) } else { ("pay", Kind::Plain) };
    let scene = Scene::new([Turn::Calls(vec![("c1", tool, "{}")]), Turn::Says("Done.")]).await;
    let second = if situation["second_person_required"] == true { "require_second_person = true\n" } else { "" };
    let policy = scene.policy(&format!("[[rule]]\nid = \"pay\"\nask = [\"native:pay\"]\n{second}"));
    let runtime = match situation["second_person_required"].is_boolean() {
        // The initiator is the account that the embedded person has.
        true => {
            let model = sayso_agents::native::ChatEndpoint::new(&scene.model.url, "scripted", None).unwrap();
            let tools = sayso_agents::native::Toolbox::new().with(scene.tool(tool, kind)).unwrap();
            sayso_agents::native::AgentRuntime::new(&scene.sayso, Principal::agent("local:ada"), model).tools(tools)
        }
        false => scene.runtime(&[(tool, kind)]),
    };
    let runtime = runtime.policy(policy, None);
    if situation["store"] == "refuses" {
        refuse(&scene, "request_states");
    }
    let (execution, outcome) = run(&runtime).await;
    Case { scene, runtime, execution, outcome }
}

/// Nothing is stored in this table from now on.
fn refuse(scene: &Scene, table: &str) {
    let db = rusqlite::Connection::open(scene.file()).unwrap();
    let sql = format!("CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'full'); END");
    db.execute_batch(&sql).unwrap();
}

async fn decide(case: &Case, situation: &Value) -> Result<RunOutcome, Error> {
    let response: Response = match situation["decision"].as_str().unwrap() {
        "input" if situation["valid"] == false => accept("{}"),
        "input" => accept(r#"{"city":"Oslo"}"#),
        "approve" => yes(),
        _ => no("no"),
    };
    let mut answer = answers([("c1", response)]);
    answer.digest = match situation["digest"].as_str() {
        Some("calls only" | "other turn") => Some(Digest::of_text("another")),
        _ => None,
    };
    let people = match situation["actor"].as_str().unwrap_or("owner") {
        "stranger" | "service" | "may decide, may not run the tool" => {
            case.scene.sayso.people_as(Principal::agent(AGENT), Channel::Library)
        }
        "colleague" => case.scene.sayso.people_as(Principal::person("grace"), Channel::Library),
        _ => case.scene.people(),
    };
    match situation["decision"] == "input" {
        true => case.runtime.submit_input(&people, case.execution, answer, "k").await,
        false => case.runtime.approve(&people, case.execution, answer, "k").await,
    }
}

/// Our word for the other system's.
fn code(recorded: &str) -> ErrorCode {
    match recorded {
        "access_denied" | "submitter_not_permitted" | "approver_not_permitted" => ErrorCode::Forbidden,
        "corrupt_state" => ErrorCode::CorruptSuspendedState,
        "invalid_input" => ErrorCode::ManagedInputInvalid,
        "already_resuming" => ErrorCode::ManagedInputConflict,
        "stale_turn" => ErrorCode::ManagedInputStale,
        other => panic!("{other}"),
    }
}

async fn check(name: &str, situation: &Value, recorded: &Value) {
    let case = waiting(situation).await;
    if let Some(outcome) = recorded["outcome"].as_str() {
        assert_eq!(case.outcome.as_str(), outcome, "{name}");
        return;
    }
    let round = case.outcome.round().expect(name).round_id;
    if situation["schema"].is_object()
        || situation.get("input_tool").is_some_and(Value::is_null)
        || situation["pending"].is_string()
    {
        let db = rusqlite::Connection::open(case.scene.file()).unwrap();
        let sql = "UPDATE request_states SET request_state = replace(request_state, ?1, ?2)";
        let changed = if situation["schema"].is_object() {
            ("\"properties\"", "\"was\"")
        } else {
            ("\"id\":\"c1\"", "\"id\":\"\"")
        };
        assert_eq!(db.execute(sql, changed).unwrap(), 1);
    }
    if situation["event_store"] == "refuses" {
        refuse(&case.scene, "event_lists");
    }
    if situation["claim"] == "lost" {
        // Another worker claims it in between: here, before the answer is sent again.
        let desk = case.scene.sayso.desk(Principal::agent(AGENT));
        let answer =
            answers([("c1", if situation["decision"] == "input" { accept(r#"{"city":"Oslo"}"#) } else { yes() })]);
        let answer = sayso::Answer { digest: case.outcome.round().map(|round| round.digest), ..answer };
        sayso::People::answer(&case.scene.people(), round, answer, "k").await.unwrap();
        sayso::Desk::claim(&desk, round, sayso::ClaimOf::default(), None).await.unwrap();
    }
    let before = case.scene.events().await.len();
    let came = decide(&case, situation).await;
    let row = case.scene.sayso.round(case.scene.sayso.person(), round).await.unwrap();
    let decided = DECIDED.iter().find(|(decided, ..)| *decided == name).map(|(_, outcome, _)| *outcome);
    let error = match decided {
        Some("completed") => None,
        Some("corrupt_suspended_state") => Some(ErrorCode::CorruptSuspendedState),
        Some("unavailable") => Some(ErrorCode::Unavailable),
        Some("forbidden" | "no_such_person") => Some(ErrorCode::Forbidden),
        _ => recorded["error"].as_str().map(code),
    };
    match error {
        None => assert!(matches!(came, Ok(RunOutcome::Completed(_))), "{name}: {came:?}"),
        Some(code) => {
            assert_eq!(came.expect_err(name).code(), code, "{name}");
            let stands = if situation["claim"] == "lost" { Status::ResponseValidated } else { Status::Pending };
            assert_eq!(row.status, stands, "{name}: nothing was consumed");
            assert!(case.scene.ran().is_empty(), "{name}");
        }
    }
    if error.is_none() {
        let executed = decided == Some("completed") || recorded["executed"] == true;
        assert_eq!(!case.scene.ran().is_empty(), executed, "{name}");
        let events = case.scene.events().await;
        assert!(
            events.iter().skip(before).any(|event| matches!(*event, "approval" | "input")),
            "{name}: it is on record"
        );
    }
}

#[tokio::test]
async fn decisions_are_checked_in_the_order_that_was_recorded_or_earlier() {
    let mut elsewhere = 0;
    for vector in vectors("decision", 30) {
        let name = word(&vector["name"]);
        match DECIDED.iter().find(|(decided, ..)| *decided == name).map(|(_, outcome, _)| *outcome) {
            Some("requeued" | "corrupt" | "kept" | "same_hand") => elsewhere += 1,
            Some("unavailable") if name.starts_with("suspend/") => elsewhere += 1,
            Some("suspend_failed") => elsewhere += 1,
            _ => check(name, &vector["situation"], &vector["outcome"]).await,
        }
    }
    assert_eq!(elsewhere, 6, "each of these is shown where the table says, or below");
}

#[tokio::test]
async fn a_cancel_that_comes_first_wins_over_the_suspension() {
    let held = Arc::new(Semaphore::new(0));
    let turn = Turn::Calls(vec![("c1", "look", "{}"), ("c2", "pay", "{}")]);
    let scene = Scene::new([Turn::Held(held.clone(), Box::new(turn))]).await;
    let runtime = scene.runtime(&[("look", Kind::Harmless), ("pay", Kind::Approval)]);
    let execution = runtime.begin().await.unwrap();
    let at_work = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.run(execution, "Do it.").await }
    });
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    while scene.model.asked().is_empty() {
        look.tick().await;
    }
    runtime.cancel(&scene.people(), execution).await.unwrap();
    held.add_permits(1);
    let outcome = at_work.await.unwrap().unwrap();
    assert!(matches!(outcome, RunOutcome::SuspendFailed(_)), "{outcome:?}");
    assert_eq!(scene.ended(execution).await.as_deref(), Some("cancelled"));
    assert!(scene.ran().is_empty());
}
