//! A worker that stalls until its lease has passed and its run was ended elsewhere, and then wakes.

use std::sync::Arc;

use sayso::{Answer, Failure, People, limits};
use sayso_agents::native::RunOutcome;
use tokio::sync::Semaphore;

use crate::model::Turn;
use crate::scene::{Scene, answers, approval, run, yes};
use crate::tools::Kind;

const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Approval), ("look", Kind::Harmless)];

/// Where the worker stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stalls {
    /// In the first of two calls.
    FirstCall,
    /// While the model is asked, which then wants another call.
    NextTurn,
    /// While the model is asked, which then says its last word.
    LastWord,
}

async fn wakes_too_late(stalls: Stalls) {
    let held = Arc::new(Semaphore::new(0));
    let pays = |calls: &[(&'static str, &'static str, &'static str)]| Turn::Calls(calls.to_vec());
    let turns = match stalls {
        Stalls::FirstCall => [pays(&[("c1", "pay", "{}"), ("c2", "look", "{}")]), Turn::Says("Paid.")],
        Stalls::NextTurn => {
            let looks = Turn::Calls(vec![("c2", "look", "{}")]);
            [pays(&[("c1", "pay", "{}")]), Turn::Held(held.clone(), Box::new(looks))]
        }
        Stalls::LastWord => [pays(&[("c1", "pay", "{}")]), Turn::Held(held.clone(), Box::new(Turn::Says("Paid.")))],
    };
    let scene = Scene::new(turns).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome);
    let answer = Answer { digest: Some(round.digest), ..answers([("c1", yes())]) };
    scene.people().answer(round.round_id, answer, "inbox").await.unwrap();

    let stalling = scene.another().await;
    let mut pay = scene.tool("pay", Kind::Approval);
    pay.gate = (stalls == Stalls::FirstCall).then(|| held.clone());
    let worker = scene.runtime_of(&stalling, [pay, scene.tool("look", Kind::Harmless)]);
    let at_work = tokio::spawn(async move { worker.resume(execution).await });
    let turns_begun = if stalls == Stalls::FirstCall { 1 } else { 2 };
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    while scene.ran().is_empty() || scene.model.asked().len() < turns_begun {
        look.tick().await;
    }
    scene.clock.advance_ms(limits::LEASE_MS + 1);
    let ended = runtime.resume(execution).await.unwrap();
    assert!(
        matches!(&ended, RunOutcome::Failed(failure) if failure.code == Failure::RECOVERY_UNAVAILABLE),
        "{stalls:?}: {ended:?}"
    );

    held.add_permits(1);
    assert_eq!(at_work.await.unwrap().unwrap(), RunOutcome::LeaseLost, "{stalls:?}");
    assert_eq!(scene.ran(), ["pay {}"], "{stalls:?}: nothing more runs");
    assert_eq!(scene.model.asked().len(), turns_begun, "{stalls:?}: the model is not asked any more");
    assert_eq!(scene.ended(execution).await.as_deref(), Some(Failure::RECOVERY_UNAVAILABLE), "{stalls:?}");
    assert_eq!(runtime.resume(execution).await.unwrap(), ended, "{stalls:?}");
}

#[tokio::test]
async fn a_worker_that_wakes_in_a_call_runs_no_other() {
    wakes_too_late(Stalls::FirstCall).await;
}

#[tokio::test]
async fn a_worker_that_wakes_with_new_calls_runs_none_of_them() {
    wakes_too_late(Stalls::NextTurn).await;
}

#[tokio::test]
async fn a_worker_that_wakes_with_the_last_word_does_not_overwrite_how_the_run_ended() {
    wakes_too_late(Stalls::LastWord).await;
}
