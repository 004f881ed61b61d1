//! Silence approves nothing, and nobody is said to have refused who did not.

use std::time::Duration;

use sayso::gate::Ruling;
use sayso::{Error, Failure, Response, Sweeper};

use crate::{Scene, asked, transfer};

const BRIEF: &str = "[[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\ndeadline_seconds = 60\n";

fn failure_of(outcome: Result<Ruling, Error>) -> (String, String) {
    match outcome {
        Err(Error::State { detail, failure: Some(failure), .. }) => (failure.code, detail),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_that_expires_is_an_error_and_neither_approved_nor_denied() {
    let scene = Scene::with(BRIEF).await;
    let (told, mut rounds) = tokio::sync::mpsc::channel(1);
    let gate = scene.gate();
    let waiting =
        tokio::spawn(
            async move { gate.pass(&transfer("1"), None, |round| told.try_send(round.clone()).unwrap()).await },
        );
    let round = rounds.recv().await.unwrap();
    assert!(round.deadline.is_some());
    scene.place.clock.advance_ms(60_001);
    scene.sayso.sweep(&mut Sweeper::default(), Duration::ZERO).await.expect("swept");
    let (code, words) = failure_of(waiting.await.unwrap());
    assert_eq!(code, Failure::EXPIRED);
    assert!(words.contains("nobody refused") && !words.to_lowercase().contains("denied"), "{words}");
    assert_ne!(asked(scene.judge(&transfer("1")).await).round_id, round.round_id, "the next call asks anew");
}

#[tokio::test]
async fn a_wait_that_ends_leaves_the_question_and_says_so() {
    let scene = Scene::new().await;
    let ruling = scene.gate().pass(&transfer("1"), Some(Duration::ZERO), |_| ()).await.unwrap();
    let round = asked(ruling);
    scene.approve(&round).await;
    crate::allowed(scene.gate().pass(&transfer("1"), Some(Duration::ZERO), |_| ()).await.unwrap());
}

#[tokio::test]
async fn an_approval_that_is_dismissed_is_no_denial_and_runs_nothing() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.answer(&round, Response::cancel()).await;
    let (code, words) = failure_of(scene.gate().judge(&transfer("1")).await);
    assert_eq!(code, Failure::CANCELLED);
    assert!(words.contains("Nobody refused"), "{words}");
}

#[tokio::test]
async fn a_cancelled_execution_ends_the_wait_with_its_own_words() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let gate = scene.gate();
    let waiting = tokio::spawn(async move { gate.pass(&transfer("1"), None, |_| ()).await });
    sayso::People::cancel(&scene.sayso.people(), round.execution_id).await.expect("cancelled");
    let outcome = waiting.await.unwrap();
    // Whoever came after the cancellation asks anew; whoever waited is told.
    if let Err(error) = outcome {
        assert!(error.to_string().contains("nobody refused"), "{error}");
    }
}
