//! An answer that its asker waits for is stored and taken in one transaction. What that refuses is as if nobody had waited.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use sayso::{
    Answer, Desk, ErrorCode, Failure, Fence, FenceToken, Handed, People, Received, RoundId, Sayso, Status, Step,
};
use sayso_core::round::Digest;
use sayso_store::Store;
use support::{LONG, Place, address, agent, code, live, street};

#[tokio::test]
async fn an_answer_that_is_waited_for_takes_one_transaction() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let (before, people) = (store.commits(), sayso.people());
    let (collected, answered) = tokio::join!(desk.collect(round, "once", LONG), people.answer(round, street("x"), "k"));
    assert_eq!(store.commits() - before, 1);
    let (collected, answered) = (collected.expect("collected"), answered.expect("accepted"));
    assert_eq!((answered.status, collected.round.status), (Status::ResponseValidated, Status::Resolved));
    let content = collected.responses.get("address").and_then(|response| response.content.clone());
    assert!(content.is_some_and(|content| content.as_str().contains("\"x\"")));
    let names = sayso.events_after(sayso.person(), 0).await.expect("events");
    let names: Vec<_> = names.iter().map(|event| event.event.body.name()).collect();
    assert_eq!(names, ["execution_created", "round_created", "input", "answered", "execution_state", "resolved"]);
    assert_eq!(desk.collect(round, "once", LONG).await, Ok(collected), "the same key reads it again");
    assert_eq!(people.answer(round, street("x"), "k").await.expect("the same record").status, Status::Resolved);
    assert_eq!(code(desk.collect(round, "twice", LONG).await), ErrorCode::ManagedInputState);
}

#[tokio::test]
async fn whoever_collects_here_does_so_under_one_name() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let mut names = std::collections::BTreeSet::new();
    for key in ["first", "second"] {
        // As each request over HTTP has a desk of its own.
        let desk = sayso.desk(agent());
        let round = desk.ask(address(), None).await.expect("stored").round_id;
        sayso.people().answer(round, street("x"), "k").await.expect("accepted");
        desk.collect(round, key, LONG).await.expect("collected");
        let row = store.row(round).await.expect("is read").expect("is there");
        names.insert(row.fence.expect("who collected").owner);
    }
    assert_eq!(names.len(), 1, "each name is stored for good: {names:?}");
}

#[tokio::test]
async fn an_answer_that_is_refused_leaves_its_event_and_the_asker_waits_on() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let people = sayso.people();
    let answers = async {
        let stale = Answer { digest: Some(Digest::of_text("something else")), ..street("x") };
        let refused = code(people.answer(round, stale, "k").await);
        store.refuse_writes(true);
        assert_eq!(code(people.answer(round, street("x"), "l").await), ErrorCode::Unavailable);
        store.refuse_writes(false);
        people.answer(round, street("x"), "m").await.expect("accepted");
        refused
    };
    let (collected, refused) = tokio::join!(desk.collect(round, "once", LONG), answers);
    assert_eq!(collected.expect("collected").round.status, Status::Resolved);
    let events = sayso.events_after(sayso.person(), 0).await.expect("events");
    let refusals = events.iter().filter(|event| event.event.body.name() == "response_refused").count();
    assert_eq!((refusals, refused), (1, ErrorCode::ManagedInputStale));
}

#[tokio::test]
async fn of_two_that_wait_one_takes_the_answer() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    let people = sayso.people();
    let (one, other, answered) = tokio::join!(
        desk.collect(round, "one", LONG),
        desk.collect(round, "other", LONG),
        people.answer(round, street("x"), "k")
    );
    answered.expect("accepted");
    assert!(one.is_ok());
    assert_eq!(code(other), ErrorCode::ManagedInputState);
}

#[tokio::test]
async fn nobody_takes_what_a_worker_holds() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let opened = desk.open(live(address()), None).await.expect("stored");
    let (round, fence) = (opened.round.round_id, opened.fence.expect("held"));
    let people = sayso.people();
    let (collected, answered) = tokio::join!(desk.collect(round, "once", LONG), people.answer(round, street("x"), "k"));
    answered.expect("accepted");
    assert_eq!(code(collected), ErrorCode::ManagedInputConflict);
    assert_eq!(desk.start(round, fence).await.expect("handed to its worker").round.status, Status::DeliveryStarted);
}

async fn held(desk: &dyn Desk) -> (RoundId, Fence) {
    let opened = desk.open(live(address()), None).await.expect("stored");
    (opened.round.round_id, opened.fence.expect("held"))
}

fn handed(received: Received) -> Handed {
    match received {
        Received::Handed(handed) => *handed,
        Received::Failed(round) => panic!("{:?}", round.failure),
    }
}

async fn status(sayso: &Sayso, round: RoundId) -> Status {
    sayso.round(sayso.person(), round).await.expect("is there").status
}

#[tokio::test]
async fn an_answer_that_its_worker_waits_for_begins_its_delivery() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let desk = sayso.desk(agent());
    let (round, fence) = held(&desk).await;
    let (before, people) = (store.commits(), sayso.people());
    let (received, answered) =
        tokio::join!(desk.receive(round, fence.clone(), LONG), people.answer(round, street("x"), "k"));
    assert_eq!(store.commits() - before, 1);
    let (received, answered) = (handed(received.expect("received")), answered.expect("accepted"));
    assert_eq!((answered.status, received.round.status), (Status::ResponseValidated, Status::DeliveryStarted));
    let content = received.responses.get("address").and_then(|response| response.content.clone());
    assert!(content.is_some_and(|content| content.as_str().contains("\"x\"")));
    let again = handed(desk.receive(round, fence.clone(), LONG).await.expect("a repeat"));
    assert_eq!((&again.round, &again.responses), (&received.round, &received.responses), "one attempt, not two");
    desk.settle(vec![Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)]).await.expect("goes on");
    let names = sayso.events_after(sayso.person(), 0).await.expect("events");
    let names: Vec<_> = names.iter().map(|event| event.event.body.name()).collect();
    assert_eq!(names, ["execution_created", "round_created", "input", "answered", "resolved"]);
}

#[tokio::test]
async fn a_worker_that_no_longer_waits_is_handed_the_answer_when_it_asks() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let (round, fence) = held(&desk).await;
    let short = std::time::Duration::from_millis(1);
    assert_eq!(code(desk.receive(round, fence.clone(), short).await), ErrorCode::OperationTimeout);
    sayso.people().answer(round, street("x"), "k").await.expect("accepted");
    assert_eq!(status(&sayso, round).await, Status::ResponseValidated, "nobody waits");
    handed(desk.receive(round, fence, short).await.expect("received"));
    assert_eq!(status(&sayso, round).await, Status::DeliveryStarted);
}

#[tokio::test]
async fn whoever_does_not_hold_a_round_receives_nothing_and_keeps_nobody_from_answering() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let (round, fence) = held(&desk).await;
    let foreign = Fence { token: FenceToken(fence.token.0.wrapping_add(1)), ..fence.clone() };
    let people = sayso.people();
    let (received, answered) = tokio::join!(desk.receive(round, foreign, LONG), people.answer(round, street("x"), "k"));
    assert_eq!(answered.expect("accepted").status, Status::ResponseValidated);
    assert_eq!(code(received), ErrorCode::ManagedInputConflict);
    handed(desk.receive(round, fence, LONG).await.expect("its holder receives it"));
}

#[tokio::test]
async fn a_worker_hears_that_nobody_can_answer_any_more() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let (round, fence) = held(&desk).await;
    let execution = sayso.round(sayso.person(), round).await.expect("is there").execution_id;
    let people = sayso.people();
    let (received, cancelled) = tokio::join!(desk.receive(round, fence, LONG), people.cancel(execution));
    cancelled.expect("cancelled");
    let Received::Failed(ended) = received.expect("told") else { panic!("handed over") };
    assert_eq!(ended.failure.map(|failure| failure.code).as_deref(), Some(Failure::CANCELLED));
}
