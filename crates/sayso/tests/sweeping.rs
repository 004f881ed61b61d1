//! Workers that are gone: who is ended for it, when, and who never is. Monotonic time is fed by hand.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use sayso::{
    Desk, Error, ErrorCode, Failure, Fence, Hub, Opened, People, RoundId, Sayso, Status, Step, Sweeper, limits, words,
};
use sayso_core::command::Command;
use sayso_core::round::{Claim, FenceToken};
use sayso_store::Store;
use support::{LONG, Place, address, agent, code, live, street};

const LEASE: Duration = Duration::from_millis(limits::LEASE_MS.unsigned_abs());
const LEASE_BUT_ONE: Duration = LEASE.saturating_sub(Duration::from_millis(1));

/// A live question whose worker is gone, as after `kill -9`.
async fn left_alone(place: &Place) -> Opened {
    let sayso = place.open().await;
    sayso.desk(agent()).open(live(address()), None).await.expect("stored")
}

async fn sweep(sweeper: &mut Sweeper, store: &Arc<dyn Store>, monotonic: Duration) {
    sweeper.step(store.as_ref(), monotonic).await.expect("sweeps");
}

async fn status(store: &Arc<dyn Store>, round: RoundId) -> Status {
    store.round(round).await.expect("is read").expect("is stored").row.status
}

#[tokio::test]
async fn a_round_fails_only_after_its_expired_lease_was_seen_twice_a_lease_apart() {
    let place = Place::new();
    let asked = left_alone(&place).await.round;
    let sayso = place.open().await;
    let store = place.store();
    let mut sweeper = Sweeper::default();
    sweep(&mut sweeper, &store, Duration::ZERO).await;
    sweep(&mut sweeper, &store, 10 * LEASE).await;
    assert_eq!(status(&store, asked.round_id).await, Status::Pending, "its lease is good");
    place.clock.advance_ms(limits::LEASE_MS);
    for since in [Duration::ZERO, LEASE_BUT_ONE] {
        sweep(&mut sweeper, &store, 20 * LEASE + since).await;
        assert_eq!(status(&store, asked.round_id).await, Status::Pending);
        let early = sayso.people().answer(asked.round_id, street("x"), "k").await;
        let Err(Error::Conflict { detail, winner: None }) = early else { panic!("{early:?}") };
        assert!(detail.contains("not connected"), "{detail}");
    }
    sweep(&mut sweeper, &store, 21 * LEASE).await;
    let round = sayso.people().show(asked.round_id).await.expect("shown");
    let failure = round.failure.expect("it failed");
    assert_eq!((round.status, failure.code.as_str()), (Status::Failed, Failure::RECOVERY_UNAVAILABLE));
    let outcome = sayso.desk(agent()).execution(asked.execution_id).await.expect("seen").outcome.expect("it is over");
    assert_eq!((outcome.status.as_str(), outcome.code.as_deref()), ("failed", Some(Failure::RECOVERY_UNAVAILABLE)));
    let late = sayso.people().answer(asked.round_id, street("x"), "k").await;
    assert_eq!(code(late), ErrorCode::ManagedInputState, "a late answer is refused");
    assert!(words::ended(&failure).contains("gone"));
    assert_eq!(sayso.people().responses(asked.round_id).await, Ok(None));
}

#[tokio::test]
async fn a_new_sweeper_counts_for_itself() {
    let place = Place::new();
    let asked = left_alone(&place).await.round;
    let store = place.store();
    place.clock.advance_ms(limits::LEASE_MS);
    for _ in 0..5 {
        sweep(&mut Sweeper::default(), &store, 100 * LEASE).await;
        assert_eq!(status(&store, asked.round_id).await, Status::Pending, "a restart fails nobody");
    }
}

#[tokio::test]
async fn a_stepped_clock_fails_nobody_who_renews() {
    let place = Place::new();
    let sayso = place.open().await;
    let opened = sayso.desk(agent()).open(live(address()), None).await.expect("stored");
    let round = opened.round.round_id;
    let owner = opened.fence.clone().expect("held").owner;
    let store = place.store();
    let mut sweeper = Sweeper::default();
    let mut monotonic = Duration::ZERO;
    for jump_ms in [3_600_000, -7_200_000, 86_400_000, 100 * limits::LEASE_MS] {
        place.clock.advance_ms(jump_ms);
        sweep(&mut sweeper, &store, monotonic).await;
        monotonic += LEASE_BUT_ONE;
        sweep(&mut sweeper, &store, monotonic).await;
        store.commit(vec![Command::RenewOwner { owner: owner.clone() }]).await.expect("renewed");
        monotonic += Duration::from_millis(1);
        sweep(&mut sweeper, &store, monotonic).await;
        assert_eq!(status(&store, round).await, Status::Pending);
        // The lease runs out anew: what was seen before the renewal no longer counts.
        place.clock.advance_ms(limits::LEASE_MS);
        sweep(&mut sweeper, &store, monotonic).await;
        sweep(&mut sweeper, &store, monotonic + LEASE_BUT_ONE).await;
        store.commit(vec![Command::RenewOwner { owner: owner.clone() }]).await.expect("renewed");
        monotonic += LEASE;
    }
    sayso.people().answer(round, street("x"), "k").await.expect("it is connected as ever");
    let handed = sayso.desk(agent()).start(round, opened.fence.expect("held")).await.expect("handed over");
    assert_eq!(handed.round.status, Status::DeliveryStarted);
}

#[tokio::test]
async fn an_answer_on_its_way_when_the_worker_died_is_never_sent_again() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let opened = desk.open(live(address()), None).await.expect("stored");
    let (round, fence) = (opened.round.round_id, opened.fence.expect("held"));
    sayso.people().answer(round, street("x"), "k").await.expect("accepted");
    desk.start(round, fence.clone()).await.expect("handed over");
    drop((desk, sayso));
    place.clock.advance_ms(limits::LEASE_MS);
    let store = place.store();
    let mut sweeper = Sweeper::default();
    sweep(&mut sweeper, &store, Duration::ZERO).await;
    sweep(&mut sweeper, &store, LEASE).await;
    assert_eq!(status(&store, round).await, Status::Failed);
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    assert_eq!(code(desk.start(round, fence).await), ErrorCode::ManagedInputState);
    assert_eq!(code(desk.collect(round, "once", LONG).await), ErrorCode::ManagedInputRecoveryUnavailable);
    let again = sayso.people().answer(round, street("x"), "k").await;
    assert_eq!(code(again), ErrorCode::ManagedInputState, "the same key is told that it failed");
}

#[tokio::test]
async fn an_execution_that_waited_for_nothing_is_lost() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let begun = desk.begin().await.expect("started");
    let asked = desk.open(live(address()), None).await.expect("stored");
    let withdrawn = Failure::new(Failure::WITHDRAWN, "the server gave up");
    desk.settle(vec![Step::Failed(asked.round.round_id, asked.fence, withdrawn)]).await.expect("withdrawn");
    drop((desk, sayso));
    place.clock.advance_ms(limits::LEASE_MS);
    let store = place.store();
    let mut sweeper = Sweeper::default();
    sweep(&mut sweeper, &store, Duration::ZERO).await;
    sweep(&mut sweeper, &store, LEASE).await;
    let sayso = place.open().await;
    for execution in [begun, asked.round.execution_id] {
        let outcome = sayso.desk(agent()).execution(execution).await.expect("seen").outcome;
        assert_eq!(outcome.map(|outcome| outcome.status).as_deref(), Some("lost"));
    }
}

#[tokio::test]
async fn a_worker_that_leaves_is_not_waited_for_longer_than_one_that_died() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let asked = desk.open(live(address()), None).await.expect("stored").round;
    desk.leave().await.expect("left");
    let refused = sayso.people().answer(asked.round_id, street("x"), "k").await;
    assert_eq!(code(refused), ErrorCode::ManagedInputConflict, "nobody is connected any more");
    let store = place.store();
    let mut sweeper = Sweeper::default();
    sweep(&mut sweeper, &store, Duration::ZERO).await;
    sweep(&mut sweeper, &store, LEASE).await;
    assert_eq!(status(&store, asked.round_id).await, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_desk_is_there_and_has_not_left() {
    let place = Place::new();
    let store = place.store();
    let sayso = Sayso::over(store.clone(), Hub::default(), support::ada(), false).expect("opens");
    let desks = [sayso.desk(agent()), sayso.desk(agent()), sayso.desk(agent())];
    let mut asked = Vec::new();
    for desk in &desks {
        asked.push(desk.open(live(address()), None).await.expect("stored").round.round_id);
    }
    let [_stays, leaves, dropped] = desks;
    leaves.leave().await.expect("left");
    drop(dropped);
    // A beat that was under way when its desk went is stored before the clock moves.
    store.commit(Vec::new()).await.expect("nothing, after all that was queued");
    let abandoned = async |since_start_ms| -> Vec<RoundId> {
        let at = support::START.plus_ms(since_start_ms);
        let found = store.abandoned(at, 10).await.expect("abandoned");
        found.into_iter().filter_map(|one| one.round.map(|(round, _)| round)).collect()
    };
    // Two beats: when the second of one desk has been stored, the first of the others would have been long ago.
    for beat in 1..=2 {
        place.clock.advance_ms(10_000);
        tokio::time::advance(Duration::from_millis(limits::LEASE_RENEW_MS)).await;
        while abandoned(10_000 * beat + limits::LEASE_MS - 1).await.contains(&asked[0]) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(abandoned(limits::LEASE_MS).await.len(), 2);
    assert!(!abandoned(limits::LEASE_MS).await.contains(&asked[0]), "whoever stays is renewed");
}

#[tokio::test]
async fn a_resumable_round_waits_for_the_next_worker() {
    let place = Place::new();
    let sayso = place.open().await;
    let round = sayso.desk(agent()).ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(round, street("x"), "k").await.expect("accepted");
    let store = place.store();
    let fence = Fence { owner: "own_gone".to_owned(), token: FenceToken(1) };
    let claim = Claim { fence, expected: None, evidence: None };
    store.commit(vec![Command::Claim { round, claim }]).await.expect("claimed");
    assert_eq!(code(sayso.desk(agent()).collect(round, "once", LONG).await), ErrorCode::ManagedInputConflict);
    place.clock.advance_ms(limits::LEASE_MS);
    let mut sweeper = Sweeper::default();
    for n in 0..4 {
        sweep(&mut sweeper, &store, n * LEASE).await;
        assert_eq!(status(&store, round).await, Status::ResponseValidated);
    }
    sayso.desk(agent()).collect(round, "once", LONG).await.expect("whoever comes next takes it over");
}

#[tokio::test]
async fn a_deadline_is_swept_at_once_and_an_unreadable_row_holds_up_nobody() {
    let place = Place::new();
    let (sayso, moody) = place.open_moody();
    let desk = sayso.desk(agent());
    let mut asked = Vec::new();
    for in_ms in [10, 20] {
        let deadline = Some(support::START.plus_ms(in_ms));
        asked.push(desk.ask(sayso::Ask { deadline, ..address() }, None).await.expect("stored"));
    }
    let asked: [_; 2] = asked.try_into().expect("two");
    moody.make_unreadable(asked[0].round_id);
    let gone = left_alone(&place).await.round;
    let mut sweeper = Sweeper::default();
    place.clock.advance_ms(limits::LEASE_MS);
    for monotonic in [Duration::ZERO, LEASE] {
        sweeper.step(moody.as_ref(), monotonic).await.expect("sweeps");
    }
    let expired = sayso.people().show(asked[1].round_id).await.expect("shown").failure.expect("it failed");
    assert_eq!(expired.code, Failure::EXPIRED);
    let store = place.store();
    assert_eq!(status(&store, gone.round_id).await, Status::Failed);
    assert_eq!(status(&store, asked[0].round_id).await, Status::Pending);
    moody.refuse_writes(true);
    let stopped = sweeper.step(moody.as_ref(), 2 * LEASE).await;
    assert!(stopped.is_ok() || code(stopped) == ErrorCode::Unavailable);
}
