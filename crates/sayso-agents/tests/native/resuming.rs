//! Another process goes on with a run, also a week later; what cannot be read or opened consumes nothing; a crash while
//! tools run never runs them again.

use std::sync::Arc;

use sayso::{Error, ErrorCode, ExecutionId, Failure, People, RoundId, limits};
use sayso_agents::native::{AgentRuntime, Keyring, RunOutcome, SuspendedRunState};
use tokio::sync::Semaphore;

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, approval, completed, input, run, yes};
use crate::tools::Kind;

const WEEK_MS: i64 = 7 * 24 * 3600 * 1000;

fn pays() -> [Turn; 2] {
    [Turn::Calls(vec![("c1", "pay", r#"{"amount":1.50}"#), ("c2", "look", "{}")]), Turn::Says("Paid.")]
}

const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Approval), ("look", Kind::Harmless)];

async fn answer(scene: &Scene, round: RoundId, response: sayso::Response) {
    let digest = Some(scene.people().show(round).await.unwrap().digest);
    let answer = sayso::Answer { digest, ..answers([("c1", response)]) };
    scene.people().answer(round, answer, "inbox").await.unwrap();
}

/// The stored state of a round, or what takes its place.
fn stored(scene: &Scene, round: RoundId, instead: Option<&str>) -> String {
    let db = rusqlite::Connection::open(scene.file()).unwrap();
    let id = round.to_bytes();
    let read = db.query_row("SELECT request_state FROM request_states WHERE round_id = ?1", [id], |row| row.get(0));
    if let Some(text) = instead {
        db.execute("UPDATE request_states SET request_state = ?2 WHERE round_id = ?1", (id, text)).unwrap();
    }
    read.unwrap()
}

#[tokio::test]
async fn a_run_is_answered_while_nobody_runs_it_and_another_process_goes_on_a_week_later() {
    let scene = Scene::new(pays()).await;
    let (execution, round) = {
        let first = scene.another().await;
        let runtime = scene.runtime_in(&first, &TOOLS);
        let (execution, outcome) = run(&runtime).await;
        (execution, approval(&outcome).round_id)
    };
    scene.clock.advance_ms(WEEK_MS);
    let mut sweeper = sayso::Sweeper::default();
    for seconds in [0, 31, 62] {
        scene.sayso.sweep(&mut sweeper, std::time::Duration::from_secs(seconds)).await.unwrap();
    }
    assert_eq!(scene.ended(execution).await, None, "a suspended run lives in no process, so none is missed");
    answer(&scene, round, yes()).await;
    let elsewhere = scene.another().await;
    let runtime = scene.runtime_in(&elsewhere, &TOOLS);
    assert_eq!(runtime.answered().await.unwrap(), [execution]);
    assert_eq!(completed(&runtime.resume(execution).await.unwrap()), "Paid.");
    assert_eq!(scene.ran(), [r#"pay {"amount":1.50}"#, "look {}"]);
    assert_eq!(runtime.answered().await.unwrap(), []);
    assert_eq!(completed(&runtime.resume(execution).await.unwrap()), "Paid.", "how it ended can be read again");
    assert_eq!(scene.ran().len(), 2);
}

#[tokio::test]
async fn of_two_that_go_on_with_a_run_one_does() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    answer(&scene, approval(&outcome).round_id, yes()).await;
    let elsewhere = scene.another().await;
    let other = scene.runtime_in(&elsewhere, &TOOLS);
    let (first, second) = tokio::join!(runtime.resume(execution), other.resume(execution));
    let (third, fourth) = tokio::join!(runtime.resume(execution), runtime.resume(execution));
    let went_on = [first, second, third, fourth];
    let is_well = |outcome: &Result<RunOutcome, Error>| match outcome {
        Ok(RunOutcome::Completed(_)) | Err(Error::Conflict { .. } | Error::State { .. }) => true,
        other => panic!("{other:?}"),
    };
    assert!(went_on.iter().all(is_well) && went_on.iter().any(Result::is_ok));
    assert_eq!(scene.ran().len(), 2, "each call ran once");
}

#[tokio::test]
async fn tools_that_are_gone_when_the_run_goes_on_are_not_called() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    answer(&scene, approval(&outcome).round_id, yes()).await;
    let elsewhere = scene.another().await;
    // A tool that came since is offered from the next turn on.
    let other = scene.runtime_in(&elsewhere, &[("look", Kind::Harmless), ("mail", Kind::Harmless)]);
    completed(&other.resume(execution).await.unwrap());
    assert_eq!(scene.ran(), ["look {}"]);
    assert!(scene.model.told("c1").contains("is not offered"));
    assert_eq!(scene.model.offered(), ["look", "mail"]);
}

#[tokio::test]
async fn a_state_that_cannot_be_read_consumes_nothing_and_is_kept() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome).round_id;
    let whole = stored(&scene, round, None);
    let other_call = whole.replace("1.50", "9.50");
    let state = SuspendedRunState::read(&whole).unwrap();
    assert_eq!((state.iterations, state.pending_calls.len()), (1, 2));
    for damaged in ["", "{}", "[]", &whole[..whole.len() - 1], &whole.replace("\"v\":1", "\"v\":2"), &other_call] {
        stored(&scene, round, Some(damaged));
        let answer = answers([("c1", yes())]);
        let refused = runtime.approve(&scene.people(), execution, answer, "k").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState, "{damaged}");
        assert_eq!(stored(&scene, round, None), *damaged, "it is kept");
    }
    // Also where the answer is there already: it waits until the state can be read.
    answer(&scene, round, yes()).await;
    let refused = runtime.resume(execution).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState);
    stored(&scene, round, Some(&whole));
    completed(&runtime.resume(execution).await.unwrap());
    assert_eq!(scene.ran().len(), 2);
}

#[tokio::test]
async fn rotated_keys_open_runs_that_wait_and_a_missing_key_is_named() {
    let key = |id: &str, digit: char| format!("{id} {}\n", String::from(digit).repeat(64));
    let ring = |text: &str| Keyring::read(text).unwrap();
    let turns = [Turn::Calls(vec![("c1", "ship", "{}")]), Turn::Calls(vec![("c1", "ship", "{}")]), Turn::Says("Done.")];
    let scene = Scene::new(turns).await;
    let tools = [("ship", Kind::Input)];
    let old = scene.runtime(&tools).keys(ring(&key("2026-01", '1')));
    let (execution, outcome) = run(&old).await;
    let round = input(&outcome).round_id;
    assert!(stored(&scene, round, None).starts_with("sealed.v1.2026-01."));
    answer(&scene, round, accept(r#"{"city":"Oslo"}"#)).await;
    for keys in [None, Some(ring(&key("2026-02", '2')))] {
        let runtime = keys.into_iter().fold(scene.runtime(&tools), AgentRuntime::keys);
        let refused = runtime.resume(execution).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState);
        assert!(refused.to_string().contains("2026-01"), "{refused}");
    }
    let rotated = scene.runtime(&tools).keys(ring(&format!("{}{}", key("2026-01", '1'), key("2026-02", '2'))));
    let next = input(&rotated.resume(execution).await.unwrap()).round_id;
    assert_eq!(scene.ran(), [r#"ship {"city":"Oslo"}"#]);
    assert!(stored(&scene, next, None).starts_with("sealed.v1.2026-02."), "the newest key seals");
    // What was sealed for one round opens for no other.
    let first = stored(&scene, next, None);
    stored(&scene, next, Some(&first.replace("2026-02", "2026-01")));
    let refused = rotated.resume(execution).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState);
    stored(&scene, next, Some(&first));
    let values = answers([("c1", accept(r#"{"city":"Rome"}"#))]);
    completed(&rotated.submit_input(&scene.people(), execution, values, "k").await.unwrap());
}

/// Begins to go on with a run whose tool stops in the middle, and kills that process.
async fn killed_while_paying(scene: &Scene) -> ExecutionId {
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    answer(scene, approval(&outcome).round_id, yes()).await;
    let dying = scene.another().await;
    let mut pay = scene.tool("pay", Kind::Approval);
    pay.gate = Some(Arc::new(Semaphore::new(0)));
    let stopping = scene.runtime_of(&dying, [pay, scene.tool("look", Kind::Harmless)]);
    let at_work = tokio::spawn(async move { stopping.resume(execution).await });
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    while scene.ran().is_empty() {
        look.tick().await;
    }
    let busy = runtime.resume(execution).await.unwrap_err();
    assert_eq!(busy.code(), ErrorCode::ManagedInputConflict, "somebody is at it");
    at_work.abort();
    drop(at_work.await);
    drop(dying);
    execution
}

#[tokio::test]
async fn a_crash_while_a_tool_runs_ends_the_run_and_never_runs_it_again() {
    let scene = Scene::new(pays()).await;
    let execution = killed_while_paying(&scene).await;
    scene.clock.advance_ms(limits::LEASE_MS + 1);
    let runtime = scene.runtime(&TOOLS);
    assert_eq!(runtime.answered().await.unwrap(), [execution]);
    let ended = runtime.resume(execution).await.unwrap();
    assert!(
        matches!(&ended, RunOutcome::Failed(failure) if failure.code == Failure::RECOVERY_UNAVAILABLE),
        "{ended:?}"
    );
    assert_eq!(runtime.resume(execution).await.unwrap(), ended);
    assert_eq!(scene.ran(), [r#"pay {"amount":1.50}"#], "it may have run, and it does not run again");
    assert_eq!(scene.ended(execution).await.as_deref(), Some(Failure::RECOVERY_UNAVAILABLE));
}

#[tokio::test]
async fn a_crash_between_the_claim_and_the_start_leaves_the_answer_for_the_next() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome).round_id;
    answer(&scene, round, yes()).await;
    {
        let dying = scene.another().await;
        let desk = dying.desk(sayso::Principal::agent(crate::scene::AGENT));
        sayso::Desk::claim(&desk, round, sayso::ClaimOf::default(), None).await.unwrap();
    }
    assert_eq!(runtime.resume(execution).await.unwrap_err().code(), ErrorCode::ManagedInputConflict);
    scene.clock.advance_ms(limits::LEASE_MS + 1);
    completed(&runtime.resume(execution).await.unwrap());
    assert_eq!(scene.ran().len(), 2);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_requeues_the_run() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    answer(&scene, approval(&outcome).round_id, yes()).await;
    let gone = sayso::kit::StdioServer::new("files", ["/no/such/server"]);
    let broken = runtime.clone().servers(vec![gone.into()], Vec::new());
    let requeued = broken.resume(execution).await.unwrap();
    assert!(matches!(&requeued, RunOutcome::Requeued(failure) if failure.code == "unavailable"), "{requeued:?}");
    assert_eq!(runtime.answered().await.unwrap(), [execution]);
    completed(&runtime.resume(execution).await.unwrap());
    assert_eq!(scene.ran().len(), 2);
}
