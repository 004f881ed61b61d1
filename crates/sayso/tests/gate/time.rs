//! Silence approves nothing, and nobody is said to have refused who did not.

use std::time::Duration;

use sayso::gate::{CALL_KEY, Ruling};
use sayso::policy::{GrantScope, Pins};
use sayso::{Answer, Error, Failure, NewGrant, People, Response, Sweeper};

use crate::{Scene, allowed, asked, transfer};

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
    let (told, mut rounds) = tokio::sync::mpsc::channel(1);
    let gate = scene.gate();
    let waiting =
        tokio::spawn(
            async move { gate.pass(&transfer("1"), None, |round| told.try_send(round.clone()).unwrap()).await },
        );
    let round = rounds.recv().await.unwrap();
    sayso::People::cancel(&scene.sayso.people(), round.execution_id).await.expect("cancelled");
    let (code, words) = failure_of(waiting.await.unwrap());
    assert_eq!(code, Failure::CANCELLED);
    assert!(words.to_lowercase().contains("nobody refused"), "{words}");
}

#[tokio::test]
async fn without_a_deadline_a_question_waits_for_as_long_as_it_takes() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    assert_eq!(round.deadline, None);
    let mut sweeper = Sweeper::default();
    for _ in 0..3 {
        scene.place.clock.advance_ms(366 * 86_400_000);
        scene.sayso.sweep(&mut sweeper, Duration::ZERO).await.expect("swept");
    }
    assert_eq!(scene.asked(&transfer("1")).await.round_id, round.round_id, "nobody answered in a person's place");
    scene.approve(&round).await;
    allowed(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn a_deadline_is_counted_by_the_stores_clock_from_when_the_question_was_stored() {
    let scene = Scene::with(BRIEF).await;
    let round = scene.asked(&transfer("1")).await;
    assert_eq!(round.deadline, Some(round.created_at.plus_ms(60_000)));
    assert_eq!(round.created_at, crate::support::START, "not by anybody's own clock");
}

#[tokio::test]
async fn an_answer_after_the_deadline_loses_also_where_nobody_has_swept() {
    let scene = Scene::with(BRIEF).await;
    let round = scene.asked(&transfer("1")).await;
    scene.place.clock.advance_ms(60_001);
    let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    let late = scene.sayso.people().answer(round.round_id, answer, "k").await;
    let failure = match late {
        Err(Error::State { failure: Some(failure), .. }) => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!(failure.code, Failure::EXPIRED);
    assert_ne!(scene.asked(&transfer("1")).await.round_id, round.round_id, "it approved nothing");
}

#[tokio::test]
async fn an_approval_in_time_is_good_whenever_its_call_comes_for_it() {
    let scene = Scene::with(BRIEF).await;
    let round = scene.asked(&transfer("1")).await;
    scene.place.clock.advance_ms(59_999);
    scene.approve(&round).await;
    scene.place.clock.advance_ms(86_400_000);
    scene.sayso.sweep(&mut Sweeper::default(), Duration::ZERO).await.expect("swept");
    allowed(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn a_grant_that_ran_out_while_the_call_waited_covers_nothing() {
    let scene = Scene::new().await;
    let scope = GrantScope::Rule { tools: "bank:*".to_owned(), effects: None, pins: Pins::Any };
    let grant = NewGrant { good_for_ms: Some(60_000), ..NewGrant::of(scope) };
    scene.sayso.people().grant(grant).await.expect("granted");
    scene.place.clock.advance_ms(59_999);
    allowed(scene.judge(&transfer("1")).await);
    scene.place.clock.advance_ms(1);
    scene.asked(&transfer("1")).await;
}
