//! Units of several commands, and many units at once.

use sayso_core::command::{Command, Reply, RoundExecution};
use sayso_core::execution::Outcome;
use sayso_core::round::{Delivery, Status};

use super::Subject;
use super::bench::{Bench, CONFLICT, STATE, code, json, submission, submit};

pub(super) async fn a_unit_is_stored_whole_or_not_at_all<S: Subject>(bench: &Bench<S>) {
    let (id, fence) = bench.deliverable(Delivery::Live).await;
    bench.start(id, &fence).await.expect("started");
    let before = bench.row(id).await;
    let execution = before.execution_id;
    let deliver = || Command::MarkDelivered { round: id, fence: fence.clone() };
    let resolve = || Command::Resolve { round: id, fence: fence.clone() };
    let finish = || Command::Finish { execution, outcome: Outcome::Completed, result: Some(json("1")) };
    let events = bench.store.last_event().await;
    for unit in [
        vec![deliver(), resolve(), finish(), finish()],
        vec![resolve(), deliver()],
        vec![deliver(), submit(id, submission("late", 2))],
        vec![Command::CreateRound(Box::new(bench.asking(Delivery::Live))), resolve()],
    ] {
        assert!(bench.store.commit(unit).await.is_err());
        assert_eq!(bench.row(id).await, before);
        assert_eq!(bench.execution(execution).await.outcome, None);
        assert_eq!(bench.store.result(execution).await, Ok(None));
        assert_eq!(bench.store.last_event().await, events, "not even an event");
    }
    let replies = bench.store.commit(vec![deliver(), resolve(), finish()]).await.expect("all of it");
    assert_eq!(replies.len(), 3);
    assert_eq!(bench.status(id).await, Status::Resolved);
    assert_eq!(bench.store.result(execution).await, Ok(Some(json("1"))));
    assert_eq!(bench.store.commit(Vec::new()).await, Ok(Vec::new()));
}

pub(super) async fn a_unit_sees_its_own_earlier_commands<S: Subject>(bench: &Bench<S>) {
    let first = bench.asking(Delivery::Resumable);
    let mut second = bench.asking(Delivery::Resumable);
    let RoundExecution::New { id: execution, .. } = first.execution else { unreachable!("a new one") };
    second.execution = RoundExecution::Existing(execution);
    let (first_id, second_id) = (first.id, second.id);
    let unit = vec![
        Command::CreateRound(Box::new(first)),
        Command::CreateRound(Box::new(second)),
        submit(first_id, submission("key", 1)),
        Command::Collect { round: first_id, key: "once".to_owned(), fence: bench.fence("own_a") },
    ];
    let replies = bench.store.commit(unit).await.expect("all of it");
    assert!(matches!(replies.last(), Some(Reply::Handed { .. })));
    assert_eq!(bench.row(second_id).await.index, 1);
    let row = bench.execution(execution).await;
    assert_eq!((row.pending_inputs, row.outcome), (1, None), "its second round is pending still");
}

pub(super) async fn a_refusal_in_a_unit_does_not_touch_its_neighbours<S: Subject>(bench: &Bench<S>) {
    let round = bench.asked(Delivery::Resumable).await;
    let mut units = tokio::task::JoinSet::new();
    for n in 0..20_u8 {
        let store = bench.store.clone();
        let good = Command::CreateRound(Box::new(bench.asking(Delivery::Resumable)));
        let bad = Command::Resolve { round: round.id, fence: bench.fence("own_a") };
        let unit = if n % 2 == 0 { vec![good] } else { vec![good, bad] };
        units.spawn(async move { (n % 2 == 0, store.commit(unit).await) });
    }
    for (good, outcome) in units.join_all().await {
        assert_eq!(outcome.is_ok(), good);
        assert!(good || [CONFLICT, STATE].contains(&code(outcome)));
    }
    assert_eq!(bench.event_names(0).await.iter().filter(|name| **name == "round_created").count(), 11);
    bench.check_chain().await;
}

pub(super) async fn many_units_at_once_are_each_counted<S: Subject>(bench: &Bench<S>) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let store = bench.store.clone();
        let new: Vec<_> = (0..4).map(|_| bench.asking(Delivery::Resumable)).collect();
        tasks.spawn(async move {
            for new in new {
                let id = new.id;
                store.commit(vec![Command::CreateRound(Box::new(new))]).await.expect("stored");
                store.commit(vec![submit(id, submission("key", 1))]).await.expect("accepted");
                assert!(store.round(id).await.expect("is read").is_some(), "what is acknowledged can be read");
            }
        });
    }
    tasks.join_all().await;
    let names = bench.event_names(0).await;
    for name in ["execution_created", "round_created", "input", "answered"] {
        assert_eq!(names.iter().filter(|found| **found == name).count(), 256, "{name}");
    }
    let last = bench.store.last_event().await.expect("is read");
    assert_eq!(usize::try_from(last), Ok(names.len()));
    bench.check_chain().await;
}
