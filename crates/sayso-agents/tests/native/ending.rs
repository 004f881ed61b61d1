//! How runs end that nobody answers, that cannot be stored, or whose model is no help.

use sayso::{Error, ErrorCode, Failure, Status};
use sayso_agents::native::RunOutcome;

use crate::model::Turn;
use crate::scene::{Scene, answers, approval, completed, run, yes};
use crate::tools::Kind;

fn pays() -> [Turn; 2] {
    [Turn::Calls(vec![("c1", "pay", "{}")]), Turn::Says("Paid.")]
}

const TOOLS: [(&str, Kind); 1] = [("pay", Kind::Approval)];

fn failed(outcome: &RunOutcome) -> &str {
    match outcome {
        RunOutcome::Failed(failure) => &failure.code,
        other => panic!("not failed: {other:?}"),
    }
}

/// From now on (or no longer) no run can be stored as it waits.
fn refuse_states(scene: &Scene, refuses: bool) {
    let db = rusqlite::Connection::open(scene.file()).unwrap();
    let sql = match refuses {
        true => "CREATE TRIGGER full BEFORE INSERT ON request_states BEGIN SELECT RAISE(ABORT, 'full'); END",
        false => "DROP TRIGGER full",
    };
    db.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_run_that_cannot_be_stored_asks_nobody_and_runs_nothing() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    refuse_states(&scene, true);
    let (execution, outcome) = run(&runtime).await;
    assert!(matches!(&outcome, RunOutcome::SuspendFailed(failure) if failure.code == "suspend_failed"), "{outcome:?}");
    assert_eq!(scene.ended(execution).await.as_deref(), Some("suspend_failed"));
    assert!(scene.ran().is_empty() && !scene.events().await.contains(&"round_created"));
    assert_eq!(runtime.resume(execution).await.unwrap(), outcome);
    let late = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::ManagedInputState);
}

#[tokio::test]
async fn a_run_too_large_to_be_stored_is_refused_likewise() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).system("x".repeat(sayso::limits::SUSPENDED_STATE_BYTES_MAX));
    let (_, outcome) = run(&runtime).await;
    assert!(matches!(outcome, RunOutcome::SuspendFailed(_)), "{outcome:?}");
}

#[tokio::test]
async fn what_cannot_be_asked_again_ends_the_run_and_nothing_runs() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Plain)]);
    let runtime = runtime.policy(scene.policy("[[rule]]\nid = \"a\"\nask = [\"native:pay\"]\n"), None);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome).round_id;
    scene.policy("[[rule]]\nid = \"a\"\nask = [\"native:*\"]\n");
    refuse_states(&scene, true);
    let ended = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    assert!(matches!(ended, RunOutcome::SuspendFailed(_)), "{ended:?}");
    refuse_states(&scene, false);
    assert!(scene.ran().is_empty());
    assert_eq!(scene.ended(execution).await.as_deref(), Some("suspend_failed"));
    let round = scene.sayso.round(scene.sayso.person(), round).await.unwrap();
    assert_eq!(round.failure.map(|failure| failure.code).as_deref(), Some(Failure::SUPERSEDED));
}

#[tokio::test]
async fn silence_ends_a_run_as_expired_and_runs_nothing() {
    let scene = Scene::new(pays()).await;
    let policy = "[[rule]]\nid = \"a\"\nask = [\"native:pay\"]\ndeadline_seconds = 3600\n";
    let runtime = scene.runtime(&[("pay", Kind::Plain)]).policy(scene.policy(policy), None);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(approval(&outcome).deadline, Some(crate::scene::START.plus_ms(3_600_000)));
    scene.clock.advance_ms(3_600_001);
    let late = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::ManagedInputState);
    assert_eq!(failed(&runtime.resume(execution).await.unwrap()), Failure::EXPIRED);
    assert_eq!(scene.ended(execution).await.as_deref(), Some(Failure::EXPIRED));
    assert!(scene.ran().is_empty());
}

#[tokio::test]
async fn a_run_that_nobody_watches_ends_with_its_last_round_and_says_how() {
    for cancels in [false, true] {
        let scene = Scene::new(pays()).await;
        let policy = "[[rule]]\nid = \"a\"\nask = [\"native:pay\"]\ndeadline_seconds = 3600\n";
        let (execution, round) = {
            let gone = scene.another().await;
            let runtime = scene.runtime_in(&gone, &[("pay", Kind::Plain)]).policy(scene.policy(policy), None);
            let (execution, outcome) = run(&runtime).await;
            (execution, approval(&outcome).round_id)
        };
        scene.clock.advance_ms(3_600_001);
        if cancels {
            scene.runtime(&TOOLS).cancel(&scene.people(), execution).await.unwrap();
        } else {
            scene.sayso.sweep(&mut sayso::Sweeper::default(), std::time::Duration::ZERO).await.unwrap();
        }
        let expected = if cancels { Failure::CANCELLED } else { Failure::EXPIRED };
        assert_eq!(scene.ended(execution).await.as_deref(), Some(expected));
        let round = scene.sayso.round(scene.sayso.person(), round).await.unwrap();
        assert_eq!(round.failure.unwrap().code, expected);
    }
}

#[tokio::test]
async fn a_run_is_cancelled_while_it_waits_and_before_it_can() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(runtime.cancel(&scene.people(), execution).await.unwrap(), RunOutcome::Cancelled);
    assert_eq!(runtime.resume(execution).await.unwrap(), RunOutcome::Cancelled);
    let round = scene.sayso.round(scene.sayso.person(), approval(&outcome).round_id).await.unwrap();
    assert_eq!(round.status, Status::Failed);
    // Before its first step.
    let execution = runtime.begin().await.unwrap();
    runtime.cancel(&scene.people(), execution).await.unwrap();
    assert_eq!(runtime.run(execution, "Do it.").await.unwrap(), RunOutcome::Cancelled);
    assert!(scene.ran().is_empty());
}

#[tokio::test]
async fn a_model_that_is_no_help_fails_the_run_with_the_reason() {
    for (turn, code) in [
        (Turn::Status(401), "model_unavailable"),
        (Turn::Raw("not json"), "model_answer_invalid"),
        (Turn::Raw(r#"{"choices":[]}"#), "model_answer_invalid"),
    ] {
        let scene = Scene::new([turn]).await;
        let runtime = scene.runtime(&TOOLS);
        let (execution, outcome) = run(&runtime).await;
        assert_eq!(failed(&outcome), code);
        assert_eq!(scene.ended(execution).await.as_deref(), Some(code));
    }
}

#[tokio::test]
async fn an_endpoint_that_is_busy_for_a_moment_is_asked_again() {
    let scene = Scene::new([Turn::Status(503), Turn::Says("Here.")]).await;
    let (_, outcome) = run(&scene.runtime(&TOOLS)).await;
    assert_eq!(completed(&outcome), "Here.");
    assert_eq!(scene.model.asked().len(), 2);
}

#[tokio::test]
async fn a_run_of_too_many_turns_ends_with_what_was_said_last() {
    let look = || Turn::Calls(vec![("c1", "look", "{}")]);
    let scene = Scene::new([look(), look(), look()]).await;
    let (_, outcome) = run(&scene.runtime(&[("look", Kind::Harmless)]).turns_max(2)).await;
    assert!(matches!(&outcome, RunOutcome::Completed(said) if said.truncated && said.iterations == 2), "{outcome:?}");
    assert_eq!(scene.ran().len(), 2);
}

#[tokio::test]
async fn one_turn_cannot_ask_for_ever() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Plain)]).round_limit(1);
    let runtime = runtime.policy(scene.policy("[[rule]]\nid = \"a\"\nask = [\"native:pay\"]\n"), None);
    let (execution, _) = run(&runtime).await;
    scene.policy("[[rule]]\nid = \"a\"\nask = [\"native:*\"]\n");
    let ended = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    assert_eq!(failed(&ended), Error::RoundLimit(1).code().as_str());
    assert!(scene.ran().is_empty());
}
