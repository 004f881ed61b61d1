//! Waiting: whoever waits is woken, by this process or another, and everything is right with all wake-ups dropped.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use sayso::{Ask, Desk, Error, Failure, Hub, Outcome, People, Principal, Request, Sayso, Status, Step};
use sayso_core::wire::RequestKind;
use sayso_store::{ChangedRound, Hints as _};
use support::{LONG, Place, ada, address, agent, json, live, street};

#[tokio::test]
async fn an_answer_wakes_whoever_waits_in_the_same_process() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let people = sayso.people();
    let (collected, answered) = tokio::join!(desk.collect(round, "once", LONG), people.answer(round, street("x"), "k"));
    assert_eq!(answered.expect("accepted").status, Status::ResponseValidated);
    assert_eq!(collected.expect("collected").round.status, Status::Resolved);
}

#[tokio::test]
async fn an_answer_in_one_process_wakes_whoever_waits_in_another() {
    let place = Place::new();
    let (here, there) = (place.open().await, place.open().await);
    let desk = here.desk(agent());
    for n in 0..10 {
        let round = desk.ask(address(), None).await.expect("stored").round_id;
        let people = there.people();
        let (collected, answered) =
            tokio::join!(desk.collect(round, "once", LONG), people.answer(round, street(&n.to_string()), "k"));
        answered.expect("accepted");
        assert_eq!(collected.expect("collected").round.status, Status::Resolved);
    }
}

#[tokio::test]
async fn with_all_wake_ups_dropped_an_answer_still_arrives() {
    let place = Place::new();
    let (here, there) = (place.open_deaf(), place.open_deaf());
    let desk = here.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let people = there.people();
    let (collected, answered) = tokio::join!(desk.collect(round, "once", LONG), people.answer(round, street("x"), "k"));
    answered.expect("accepted");
    assert_eq!(collected.expect("collected").round.status, Status::Resolved);
}

#[tokio::test]
async fn with_all_wake_ups_dropped_a_result_and_an_event_still_arrive() {
    let place = Place::new();
    let (here, there) = (place.open_deaf(), place.open_deaf());
    let (waiting, working) = (here.desk(agent()), there.desk(agent()));
    let execution = working.begin().await.expect("started");
    let last = here.last_event().await.expect("is read");
    let mut feed = here.event_feed();
    let finish = Step::Finished(execution, Outcome::Completed, Some(json("7")));
    let heard = async {
        while here.events_after(&ada(), last).await.expect("events").is_empty() {
            feed.maybe_more().await;
        }
    };
    let (result, finished, ()) = tokio::join!(waiting.result(execution, LONG), working.settle(vec![finish]), heard);
    finished.expect("finished");
    assert_eq!(result.expect("its result").result, Some(json("7")));
}

#[tokio::test]
async fn a_wait_that_is_over_returns_the_round_as_it_is_also_where_no_event_told_of_it() {
    let place = Place::new();
    let (here, there) = (place.open_deaf(), place.open_deaf());
    let (waiting, working) = (here.desk(agent()), there.desk(agent()));
    let opened = working.open(live(address()), None).await.expect("stored");
    let round = opened.round.round_id;
    let answered = there.people().answer(round, street("x"), "k").await.expect("accepted");
    let fence = opened.fence.expect("held");
    let wait = waiting.wait(round, answered.rev, Duration::from_millis(300));
    let (waited, started) = tokio::join!(wait, working.start(round, fence));
    started.expect("started");
    assert_eq!(waited.expect("seen").status, Status::DeliveryStarted);
}

#[tokio::test]
async fn whoever_heard_of_a_row_from_before_it_changed_still_sees_the_change() {
    let place = Place::new();
    let (hub, store) = (Hub::default(), place.store());
    let here = Sayso::over(store.clone(), hub.clone(), ada(), false).expect("opens");
    let desk = here.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored");
    let before = store.row(round.round_id).await.expect("is read").expect("is there");
    place.open_deaf().people().answer(round.round_id, street("x"), "k").await.expect("accepted");
    // Whoever catches up with the store has seen it, and wakes nobody for it again.
    let mut feed = here.event_feed();
    feed.maybe_more().await;
    // The hint of that came too early, or never.
    hub.changed(&[ChangedRound { id: round.round_id, row: Some(Arc::new(before)) }], &[], 0);
    let wait = desk.wait(round.round_id, round.rev, LONG);
    let seen = tokio::time::timeout(LONG / 3, wait).await.expect("its row is read long before the wait is over");
    assert_eq!(seen.expect("seen").status, Status::ResponseValidated);
    let seen = desk.wait(round.round_id, round.rev, Duration::ZERO).await.expect("seen");
    assert_eq!(seen.status, Status::ResponseValidated, "a look that waits for nothing is a look");
    let collected = desk.collect(round.round_id, "once", Duration::ZERO).await.expect("collected");
    assert_eq!(collected.round.status, Status::Resolved);
}

#[tokio::test]
async fn a_wait_for_what_does_not_come_ends_and_the_round_goes_on() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored");
    let short = Duration::from_millis(1);
    assert_eq!(desk.wait(round.round_id, round.rev, short).await, Ok(round.clone()));
    assert_eq!(desk.collect(round.round_id, "once", short).await, Err(Error::Timeout));
    assert_eq!(desk.collect(round.round_id, "once", Duration::ZERO).await, Err(Error::Timeout));
    assert_eq!(desk.result(round.execution_id, short).await, Err(Error::Timeout));
    sayso.people().answer(round.round_id, street("x"), "k").await.expect("accepted");
    desk.collect(round.round_id, "once", Duration::ZERO).await.expect("what is there needs no wait");
}

#[tokio::test]
async fn whoever_waits_for_an_answer_hears_of_every_other_end() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored");
    let people = sayso.people();
    let (collected, cancelled) =
        tokio::join!(desk.collect(round.round_id, "once", LONG), people.cancel(round.execution_id));
    assert!(matches!(cancelled.expect("cancelled").outcome, Some(outcome) if outcome.status == "cancelled"));
    let Err(Error::State { failure: Some(failure), .. }) = collected else { panic!("{collected:?}") };
    assert_eq!(failure.code, Failure::CANCELLED);
    let result = desk.result(round.execution_id, LONG).await.expect("it is over");
    assert_eq!(result.execution.pending, []);
}

#[tokio::test]
async fn an_agents_own_event_is_found_behind_any_number_of_others() {
    let place = Place::new();
    let sayso = place.open().await;
    let text = Request { question: Some("?".to_owned()), ..Request::empty(RequestKind::Text) };
    let other = sayso.desk(Principal::agent("other"));
    for _ in 0..250 {
        other.ask(Ask::one("note", text.clone()), None).await.expect("stored");
    }
    assert_eq!(sayso.events_after(&agent(), 0).await, Ok(Vec::new()));
    let own = sayso.desk(agent()).ask(address(), None).await.expect("stored");
    let events = sayso.events_after(&agent(), 0).await.expect("events");
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [501, 502]);
    assert!(events.iter().all(|event| event.event.execution_id == Some(own.execution_id)));
    assert_eq!(sayso.events_after(&agent(), 502).await, Ok(Vec::new()));
    assert_eq!(sayso.events_after(&ada(), 0).await.expect("events").len(), 200, "a page");
}

/// What `waiter_bytes` measures grows with this first: a million of them may be parked.
#[tokio::test]
async fn a_parked_waiter_keeps_little() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let wait = desk.wait(round, 1, LONG);
    assert!(size_of_val(&*wait) <= 320, "{} bytes", size_of_val(&*wait));
}
