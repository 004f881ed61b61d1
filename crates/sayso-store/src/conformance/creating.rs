//! `create_round`.

use std::sync::Arc;

use sayso_core::command::{Command, Creation, NewRound, Reply, RoundExecution};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::execution::{Lifecycle, Outcome};
use sayso_core::limits::ROUND_LIMIT_MAX;
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, OperationKind, Status};

use super::Subject;
use super::bench::{BOTH, Bench, CONFLICT, INVALID, agent, code, json};

pub(super) async fn a_stored_round_reads_back_as_it_was_asked<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let mut new = bench.asking(delivery);
        new.deadline = Some(bench.now().await.plus_ms(1));
        let round = bench.create(new.clone()).await.expect("stored");
        assert_eq!((round.status, round.rev, round.index), (Status::Pending, 1, 0));
        assert_eq!((round.fence.clone(), round.deadline, round.digest), (new.fence, new.deadline, new.digest));
        assert_eq!((&round.asked_by, round.created_at), (&agent(), bench.now().await));
        let stored = bench.store.round(round.id).await.expect("is read").expect("is stored");
        assert_eq!(stored.requests.as_str(), new.requests.as_str(), "byte for byte");
        assert_eq!(stored.calls.as_str(), new.calls.as_str(), "byte for byte");
        assert_eq!(bench.store.answer(round.id).await, Ok(None));
        assert_eq!(bench.execution(round.execution_id).await.lifecycle(), Lifecycle::WaitingForInput);
    }
    assert_eq!(bench.event_names(0).await, ["execution_created", "round_created"].repeat(2));
}

pub(super) async fn a_live_round_needs_an_owner_and_a_resumable_one_takes_none<S: Subject>(bench: &Bench<S>) {
    let mut live = bench.asking(Delivery::Live);
    live.fence = None;
    let mut resumable = bench.asking(Delivery::Resumable);
    resumable.fence = Some(bench.fence("own_opener"));
    for new in [live, resumable] {
        let id = new.id;
        assert_eq!(code(bench.create(new).await), INVALID);
        assert_eq!(bench.store.round(id).await, Ok(None));
    }
    assert_eq!(bench.store.last_event().await, Ok(0), "a refused question leaves nothing");
}

pub(super) async fn a_deadline_must_lie_in_the_future<S: Subject>(bench: &Bench<S>) {
    for (from_now, fits) in [(-1, false), (0, false), (1, true)] {
        let mut new = bench.asking(Delivery::Resumable);
        new.deadline = Some(bench.now().await.plus_ms(from_now));
        let created = bench.create(new).await;
        assert_eq!(created.is_ok(), fits, "{from_now} ms from now");
        assert!(fits || code(created) == INVALID);
    }
}

pub(super) async fn rounds_of_one_operation_are_numbered_up_to_their_limit<S: Subject>(bench: &Bench<S>) {
    let mut first = bench.asking(Delivery::Live);
    first.limit = 3;
    let execution = bench.create(first.clone()).await.expect("stored").execution_id;
    let next = || {
        let mut new = bench.asking(Delivery::Resumable);
        new.execution = RoundExecution::Existing(execution);
        new.limit = 3;
        new
    };
    for index in [1, 2] {
        assert_eq!(bench.create(next()).await.expect("stored").index, index);
    }
    assert_eq!(bench.create(next()).await, Err(Error::RoundLimit(3)));
    let other = NewRound { logical_operation_id: "other".to_owned(), ..next() };
    assert_eq!(bench.create(other).await.expect("stored").index, 0, "each operation counts for itself");
    for limit in [0, ROUND_LIMIT_MAX + 1] {
        let mut new = bench.asking(Delivery::Resumable);
        new.limit = limit;
        assert_eq!(code(bench.create(new).await), INVALID);
    }
}

pub(super) async fn one_operation_keeps_its_server_kind_and_name<S: Subject>(bench: &Bench<S>) {
    let execution = bench.asked(Delivery::Live).await.execution_id;
    for change in 0..4 {
        let mut new = bench.asking(Delivery::Live);
        new.execution = RoundExecution::Existing(execution);
        match change {
            0 => new.server = "billing".to_owned(),
            1 => new.operation_kind = OperationKind::Prompt,
            2 => new.operation_name = "cancel".to_owned(),
            _ => {}
        }
        let created = bench.create(new).await;
        assert_eq!(created.is_ok(), change == 3);
        assert!(change == 3 || code(created) == INVALID);
    }
}

pub(super) async fn creating_again_under_a_key_returns_the_same_round<S: Subject>(bench: &Bench<S>) {
    let asking = |fingerprint: u8, by: &Principal| {
        let mut new = bench.asking(Delivery::Resumable);
        new.creation = Some(Creation { key: "booking-17".to_owned(), fingerprint: [fingerprint; 32] });
        new.asked_by = by.clone();
        Command::CreateRound(Box::new(new))
    };
    let Ok(Reply::Created { round: first, is_new: true }) = bench.run(asking(1, &agent())).await else {
        panic!("the first is new")
    };
    let events = bench.store.last_event().await;
    assert_eq!(bench.run(asking(1, &agent())).await, Ok(Reply::Created { round: first.clone(), is_new: false }));
    assert_eq!(code(bench.run(asking(2, &agent())).await), CONFLICT);
    assert_eq!(bench.store.last_event().await, events, "a repeat is not asked twice");
    let Ok(Reply::Created { round, is_new: true }) = bench.run(asking(2, &Principal::agent("other"))).await else {
        panic!("keys are each principal's own")
    };
    assert_ne!(round.id, first.id);
    let answered = bench.answer(first.id).await;
    assert_eq!(
        bench.run(asking(1, &agent())).await,
        Ok(Reply::Created { round: Arc::new(answered), is_new: false }),
        "the round as it is now"
    );
}

pub(super) async fn only_a_running_execution_of_the_same_principal_asks_more<S: Subject>(bench: &Bench<S>) {
    let execution = bench.asked(Delivery::Live).await.execution_id;
    let more = || {
        let mut new = bench.asking(Delivery::Live);
        new.execution = RoundExecution::Existing(execution);
        new
    };
    let mut foreign = more();
    foreign.asked_by = Principal::agent("other");
    assert_eq!(code(bench.create(foreign).await), ErrorCode::NotFound);
    bench.create(more()).await.expect("stored");
    let finish = Command::Finish { execution, outcome: Outcome::Completed, result: None };
    bench.ended(finish).await.expect("finished");
    assert_eq!(code(bench.create(more()).await), CONFLICT);
}

/// A record as its creator repeats it: the same round, at a place, with facts beside it.
fn record(new: &NewRound, index: u32, fingerprint: u8) -> Command {
    let creation = Some(Creation { key: format!("round {}", new.id), fingerprint: [fingerprint; 32] });
    let new = NewRound { creation, limit: 5, ..new.clone() };
    Command::CreateRecord { new: Box::new(new), index, details: Some(json(r#"{ "turn_id": "t-1" }"#)) }
}

pub(super) async fn a_record_stands_where_its_creator_puts_it_and_keeps_what_is_beside_it<S: Subject>(
    bench: &Bench<S>,
) {
    for delivery in BOTH {
        let new = bench.asking(delivery);
        let Ok(Reply::Created { round, is_new: true }) = bench.run(record(&new, 2, 1)).await else {
            panic!("it is new")
        };
        assert_eq!((round.id, round.index, round.fence.as_ref()), (new.id, 2, new.fence.as_ref()));
        let details = bench.store.details(round.id).await.expect("is read").expect("is kept");
        assert_eq!(details.as_str(), r#"{ "turn_id": "t-1" }"#, "byte for byte");
        assert_eq!(bench.reopen().await.details(round.id).await, Ok(Some(details)));
        let lease = bench.store.lease_until("own_opener").await.expect("is read");
        assert_eq!(lease.is_some(), delivery == Delivery::Live);
        if delivery == Delivery::Live {
            let released = bench.run(Command::ReleaseOwner { owner: "own_opener".to_owned() }).await;
            assert_eq!(released, Ok(Reply::Done));
            assert_eq!(bench.store.lease_until("own_opener").await, Ok(None));
        }
    }
    assert_eq!(bench.store.details(bench.asked(Delivery::Live).await.id).await, Ok(None));
}

pub(super) async fn a_record_is_stored_once_and_its_place_is_taken<S: Subject>(bench: &Bench<S>) {
    let first = bench.asking(Delivery::Live);
    let Ok(Reply::Created { round, .. }) = bench.run(record(&first, 1, 1)).await else { panic!("it is stored") };
    let events = bench.store.last_event().await;
    let again = bench.run(record(&first, 1, 1)).await;
    assert_eq!(again, Ok(Reply::Created { round: round.clone(), is_new: false }));
    assert_eq!(code(bench.run(record(&first, 1, 2)).await), CONFLICT, "other data");
    assert_eq!(bench.store.last_event().await, events, "a repeat is not asked twice");
    // The execution is the one of that id: begun by the first, and the others' too.
    let more = || {
        let mut new = bench.asking(Delivery::Live);
        if let RoundExecution::New { id, .. } = &mut new.execution {
            *id = round.execution_id;
        }
        new
    };
    for taken in [0, 1] {
        assert_eq!(code(bench.run(record(&more(), taken, 1)).await), CONFLICT);
    }
    assert_eq!(code(bench.run(record(&more(), 5, 1)).await), INVALID, "past the limit");
    let Ok(Reply::Created { round: next, is_new: true }) = bench.run(record(&more(), 3, 1)).await else {
        panic!("a later place is free")
    };
    assert_eq!((next.execution_id, next.index), (round.execution_id, 3));
    assert_eq!(bench.execution(round.execution_id).await.pending_inputs, 2);
    let mut unkeyed = bench.asking(Delivery::Live);
    unkeyed.id = round.id;
    let unkeyed = Command::CreateRecord { new: Box::new(unkeyed), index: 0, details: None };
    assert_eq!(code(bench.run(unkeyed).await), CONFLICT, "an id is taken, too");
}
