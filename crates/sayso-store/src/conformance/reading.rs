//! Everything that only reads: pages, filters, what a sweeper looks for, and what another process sees.

use sayso_core::command::{Command, RoundExecution};
use sayso_core::execution::{ExecutionKind, Outcome};
use sayso_core::limits::LEASE_MS;
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, Failure, Status};
use sayso_core::time::UnixMs;

use super::Subject;
use super::bench::{BOTH, Bench, json, submission, submit};
use crate::{Abandoned, ExecutionFilter, RoundFilter, Store};

const ALL: RoundFilter = RoundFilter {
    status: None,
    finished_or_answered: false,
    execution: None,
    asked_by: None,
    unfinished_late: None,
    unfinished_gated: None,
    before: None,
    limit: 100,
};

/// Everything that a store tells of, to compare two store objects.
async fn all_of(store: &dyn Store, now: UnixMs) -> impl PartialEq + std::fmt::Debug + use<> {
    let rounds = store.rounds(ALL).await.expect("rounds");
    let mut answers = Vec::new();
    for round in &rounds {
        answers.push(store.answer(round.row.id).await.expect("answer"));
    }
    let executions = store.executions(ExecutionFilter { limit: 100, ..ExecutionFilter::default() }).await;
    let executions = executions.expect("executions");
    let mut results = Vec::new();
    for (execution, _) in &executions {
        results.push(store.result(execution.id).await.expect("result"));
    }
    let events = store.events_after(0, usize::MAX).await.expect("events");
    let swept = (store.overdue(now, 100).await, store.abandoned(now, 100).await, store.next_deadline().await);
    (rounds, answers, executions, results, events, swept)
}

pub(super) async fn a_reopened_store_reads_everything<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        bench.start(id, &fence).await.expect("started");
        let mut new = bench.asking(delivery);
        new.deadline = Some(bench.now().await.plus_ms(10));
        let failing = bench.create(new).await.expect("stored");
        let failure = Failure::new(Failure::WITHDRAWN, "because");
        bench.fail(failing.id, failing.fence.as_ref(), failure).await.expect("failed");
    }
    let collected = bench.answered(Delivery::Resumable).await;
    bench.collect(collected.id, "once").await.expect("collected");
    let live = bench.asked(Delivery::Live).await;
    let finish = Command::Finish {
        execution: live.execution_id,
        outcome: Outcome::Failed(Failure::new("gave_up", "because")),
        result: Some(json("[1]")),
    };
    bench.ended(finish).await.expect("finished");
    bench.expire_leases();
    let now = bench.now().await;
    let again = bench.reopen().await;
    assert_eq!(all_of(again.as_ref(), now).await, all_of(bench.store.as_ref(), now).await);
    assert_eq!(again.now().await, Ok(now));
}

pub(super) async fn a_second_store_object_sees_what_the_first_commits<S: Subject>(bench: &Bench<S>) {
    let second = bench.reopen().await;
    let round = bench.asked(Delivery::Resumable).await;
    assert_eq!(second.round(round.id).await.expect("is read").map(|found| found.row), Some(round.clone()));
    second.commit(vec![submit(round.id, submission("key", 1))]).await.expect("accepted");
    assert_eq!(bench.status(round.id).await, Status::ResponseValidated);
    assert!(bench.moved(submit(round.id, submission("other", 1))).await.is_err(), "one answer wins, whoever commits");
    let other = bench.asked(Delivery::Resumable).await;
    second.commit(vec![submit(other.id, submission("key", 1))]).await.expect("accepted");
    // One chain, two writers.
    bench.check_chain().await;
}

pub(super) async fn rounds_are_paged_newest_first_and_filtered<S: Subject>(bench: &Bench<S>) {
    let mut asked = Vec::new();
    for n in 0..6 {
        let mut new = bench.asking(Delivery::Resumable);
        if n % 2 == 0 {
            new.asked_by = Principal::agent("other");
        }
        asked.push(bench.create(new).await.expect("stored"));
    }
    bench.answer(asked[0].id).await;
    bench.answer(asked[1].id).await;
    bench.collect(asked[1].id, "once").await.expect("collected");
    bench.fail(asked[3].id, None, Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    let listed = async |filter: RoundFilter| -> Vec<usize> {
        let rounds = bench.store.rounds(filter).await.expect("rounds");
        let place = |id| asked.iter().position(|round| round.id == id).expect("one of them");
        rounds.iter().map(|round| place(round.row.id)).collect()
    };
    assert_eq!(listed(ALL).await, [5, 4, 3, 2, 1, 0]);
    assert_eq!(listed(RoundFilter { limit: 2, ..ALL }).await, [5, 4]);
    assert_eq!(listed(RoundFilter { before: Some(asked[4].id), limit: 3, ..ALL }).await, [3, 2, 1]);
    assert_eq!(listed(RoundFilter { before: Some(asked[0].id), ..ALL }).await, [] as [usize; 0]);
    assert_eq!(listed(RoundFilter { status: Some(Status::Pending), ..ALL }).await, [5, 4, 2]);
    assert_eq!(listed(RoundFilter { status: Some(Status::Failed), ..ALL }).await, [3]);
    assert_eq!(listed(RoundFilter { finished_or_answered: true, ..ALL }).await, [3, 1, 0]);
    let others = RoundFilter { asked_by: Some(Principal::agent("other")), ..ALL };
    assert_eq!(listed(others.clone()).await, [4, 2, 0]);
    assert_eq!(listed(RoundFilter { status: Some(Status::Pending), ..others }).await, [4, 2]);
    assert_eq!(listed(RoundFilter { execution: Some(asked[2].execution_id), ..ALL }).await, [2]);
    assert_eq!(listed(RoundFilter { limit: 0, ..ALL }).await, [] as [usize; 0]);
}

pub(super) async fn lists_are_ordered_by_id_whenever_and_in_whatever_state_a_row_was_stored<S: Subject>(
    bench: &Bench<S>,
) {
    let mut drawn: Vec<_> = (0..6).map(|_| bench.asking(Delivery::Resumable)).collect();
    let ids: Vec<_> = drawn.iter().map(|new| new.id).collect();
    let RoundExecution::New { id: execution, .. } = drawn[0].execution else { panic!("a new execution") };
    for (n, new) in drawn.iter_mut().enumerate() {
        // Two operations, whose rounds take turns.
        new.logical_operation_id = ["ask", "book"][n % 2].to_owned();
        new.execution = match n {
            4 => RoundExecution::New { id: execution, kind: ExecutionKind::Agent, ends_with_round: false },
            _ => RoundExecution::Existing(execution),
        };
    }
    // Stored in another order than they were drawn in; the fifth comes first and starts the execution.
    let mut drawn: Vec<_> = drawn.into_iter().map(Some).collect();
    for n in [4, 0, 5, 2, 1, 3] {
        bench.create(drawn[n].take().expect("once each")).await.expect("stored");
        bench.advance_ms(1);
    }
    bench.answer(ids[1]).await;
    bench.answer(ids[2]).await;
    bench.collect(ids[2], "once").await.expect("collected");
    bench.fail(ids[3], None, Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    let filter = RoundFilter { execution: Some(execution), ..ALL };
    for store in [bench.store.clone(), bench.reopen().await] {
        let listed = async |filter: RoundFilter| -> Vec<_> {
            let rounds = store.rounds(filter).await.expect("rounds");
            rounds.into_iter().map(|round| round.row.id).collect()
        };
        let newest_first: Vec<_> = ids.iter().rev().copied().collect();
        assert_eq!(listed(ALL).await, newest_first);
        assert_eq!(listed(filter.clone()).await, newest_first, "every round of it, whatever became of it");
        let mut paged = Vec::new();
        while let page @ [_, ..] =
            listed(RoundFilter { before: paged.last().copied(), limit: 4, ..filter.clone() }).await.as_slice()
        {
            paged.extend_from_slice(page);
        }
        assert_eq!(paged, newest_first);
        let mut places: Vec<_> = store.rounds(filter.clone()).await.expect("rounds");
        places.sort_by_key(|round| (round.row.logical_operation_id.clone(), round.row.index));
        let places: Vec<_> = places.iter().map(|round| round.row.id).collect();
        assert_eq!(places, [4, 0, 2, 5, 1, 3].map(|n: usize| ids[n]), "within an operation in the order of storing");
        let (_, pending) = store.execution(execution).await.expect("is read").expect("is stored");
        assert_eq!(pending, [0, 4, 5].map(|n: usize| ids[n]));
    }
}

pub(super) async fn late_rounds_are_found_by_their_operation_until_they_are_finished<S: Subject>(bench: &Bench<S>) {
    let late = async |operation: &str, suggestion_of| {
        let mut new = bench.asking(Delivery::Resumable);
        new.logical_operation_id = operation.to_owned();
        new.suggestion_of = suggestion_of;
        bench.create(new).await.expect("stored").id
    };
    let first = late("late:a:1", None).await;
    let second = late("late:a:2", Some(first)).await;
    for other in ["late:ab:1", "late:b:1", "later", "main"] {
        late(other, None).await;
    }
    let found = async |prefix: &str| -> Vec<_> {
        let filter = RoundFilter { unfinished_late: Some(prefix.to_owned()), ..ALL };
        bench
            .store
            .rounds(filter)
            .await
            .expect("rounds")
            .into_iter()
            .map(|round| (round.row.id, round.suggestion_of))
            .collect()
    };
    assert_eq!(found("late:a:").await, [(second, Some(first)), (first, None)], "newest first");
    bench.answer(first).await;
    assert_eq!(found("late:a:1").await, [(first, None)], "answered is not finished");
    bench.collect(first, "once").await.expect("collected");
    assert_eq!(found("late:a:").await, [(second, Some(first))]);
    assert_eq!(found("late:c:").await, []);
}

pub(super) async fn executions_are_paged_newest_first_and_filtered<S: Subject>(bench: &Bench<S>) {
    let mut asked = Vec::new();
    for n in 0..3 {
        let mut new = bench.asking(Delivery::Resumable);
        if n == 1 {
            new.asked_by = Principal::agent("other");
        }
        asked.push(bench.create(new).await.expect("stored"));
    }
    bench.answer(asked[2].id).await;
    let filter = ExecutionFilter { limit: 10, ..ExecutionFilter::default() };
    let listed = async |filter| -> Vec<_> {
        let found = bench.store.executions(filter).await.expect("executions");
        found.into_iter().map(|(row, pending)| (row.id, pending)).collect()
    };
    let [a, b, c] = [0, 1, 2].map(|n: usize| asked[n].execution_id);
    let whole = vec![(c, vec![]), (b, vec![asked[1].id]), (a, vec![asked[0].id])];
    assert_eq!(listed(filter.clone()).await, whole);
    assert_eq!(listed(ExecutionFilter { before: Some(c), limit: 1, ..filter.clone() }).await, whole[1..2]);
    let others = ExecutionFilter { started_by: Some(Principal::agent("other")), ..filter };
    assert_eq!(listed(others).await, whole[1..2]);
}

pub(super) async fn what_is_overdue_is_found_earliest_first<S: Subject>(bench: &Bench<S>) {
    assert_eq!(bench.store.next_deadline().await, Ok(None));
    let now = bench.now().await;
    let mut asked = Vec::new();
    for in_ms in [30, 10, 20, 40] {
        let mut new = bench.asking(Delivery::Resumable);
        new.deadline = Some(now.plus_ms(in_ms));
        asked.push(bench.create(new).await.expect("stored").id);
    }
    bench.asked(Delivery::Resumable).await;
    let overdue = async |at: i64, limit| bench.store.overdue(now.plus_ms(at), limit).await.expect("overdue");
    assert_eq!(bench.store.next_deadline().await, Ok(Some(now.plus_ms(10))));
    assert_eq!(overdue(10, 10).await, [], "the last millisecond still counts");
    assert_eq!(overdue(11, 10).await, [asked[1]]);
    assert_eq!(overdue(31, 10).await, [asked[1], asked[2], asked[0]]);
    assert_eq!(overdue(31, 2).await, [asked[1], asked[2]]);
    bench.answer(asked[1]).await;
    bench.fail(asked[2], None, Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    assert_eq!(overdue(31, 10).await, [asked[0]], "only what is pending");
    assert_eq!(bench.store.next_deadline().await, Ok(Some(now.plus_ms(30))));
}

pub(super) async fn what_died_with_its_worker_is_found<S: Subject>(bench: &Bench<S>) {
    let live = bench.asked(Delivery::Live).await;
    let (resumable, _) = bench.deliverable(Delivery::Resumable).await;
    bench.asked(Delivery::Resumable).await;
    let mut other = bench.asking(Delivery::Live);
    other.fence = Some(bench.fence("own_running"));
    let running = bench.create(other).await.expect("stored");
    let fence = running.fence.clone();
    bench.fail(running.id, fence.as_ref(), Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    let expiry = bench.now().await.plus_ms(LEASE_MS);
    let abandoned = async |now| bench.store.abandoned(now, 100).await.expect("abandoned");
    assert_eq!(abandoned(expiry.plus_ms(-1)).await, []);
    let round = Abandoned {
        round: Some((live.id, live.fence.clone().expect("held"))),
        execution: live.execution_id,
        owner: "own_opener".to_owned(),
        expired_at: Some(expiry),
    };
    let execution = Abandoned {
        round: None,
        execution: running.execution_id,
        owner: "own_running".to_owned(),
        expired_at: Some(expiry),
    };
    assert_eq!(abandoned(expiry).await, [round.clone(), execution]);
    assert_eq!(bench.status(resumable).await, Status::ResponseValidated, "a resumable one waits for another worker");
    bench.renew("own_running").await;
    bench.run(Command::ReleaseOwner { owner: "own_opener".to_owned() }).await.expect("released");
    bench.advance_ms(1);
    bench.renew("own_running").await;
    assert_eq!(abandoned(expiry).await, [Abandoned { expired_at: None, ..round }]);
    let mut more = bench.asking(Delivery::Resumable);
    more.execution = RoundExecution::Existing(running.execution_id);
    bench.create(more).await.expect("stored");
    bench.run(Command::ReleaseOwner { owner: "own_running".to_owned() }).await.expect("released");
    bench.renew("own_opener").await;
    assert_eq!(abandoned(expiry).await, [], "an execution with an unfinished round is not over");
}

pub(super) async fn the_last_wait_of_a_server_is_that_of_its_last_withdrawal<S: Subject>(bench: &Bench<S>) {
    let waited = async || bench.store.last_wait_ms("shipping").await.expect("is read");
    assert_eq!(waited().await, None);
    for (ms, code) in [(60_000, Failure::WITHDRAWN), (90_000, Failure::WITHDRAWN), (5, Failure::CANCELLED)] {
        let round = bench.asked(Delivery::Resumable).await;
        bench.advance_ms(ms);
        bench.fail(round.id, None, Failure::new(code, "because")).await.expect("failed");
    }
    assert_eq!(waited().await, Some(90_000));
    assert_eq!(bench.store.last_wait_ms("other").await, Ok(None));
}
