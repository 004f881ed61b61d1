//! Executions: how they end, and what is counted while they go on.

use sayso_core::command::{Command, RoundExecution};
use sayso_core::error::ErrorCode;
use sayso_core::execution::{ExecutionKind, Lifecycle, Outcome};
use sayso_core::id::ExecutionId;
use sayso_core::round::{Delivery, Failure, FailureRequest, Status};

use super::Subject;
use super::bench::{Bench, CONFLICT, START, ada, agent, code, failure_of, json, submission, submit};

pub(super) async fn a_result_is_stored_once<S: Subject>(bench: &Bench<S>) {
    let execution = bench.asked(Delivery::Live).await.execution_id;
    let finish = |outcome, result: Option<&str>| Command::Finish { execution, outcome, result: result.map(json) };
    let failed = Outcome::Failed(Failure::new("upstream_exited", "it is gone"));
    let done = bench.ended(finish(failed.clone(), Some("{ \"n\":0.10}"))).await.expect("finished");
    assert_eq!((done.outcome, done.finished_at), (Some(failed.clone()), Some(bench.now().await)));
    let result = bench.store.result(execution).await.expect("is read").expect("is stored");
    assert_eq!(result.as_str(), "{ \"n\":0.10}", "as it came");
    assert_eq!(code(bench.ended(finish(Outcome::Completed, Some("1"))).await), CONFLICT);
    assert_eq!(bench.store.result(execution).await, Ok(Some(result)));
    bench.advance_ms(5);
    let collected = bench.ended(Command::MarkCollected { execution }).await.expect("collected");
    bench.advance_ms(5);
    assert_eq!(bench.ended(Command::MarkCollected { execution }).await, Ok(collected), "the first time counts");
    let unknown = ExecutionId::from_parts(START.0, 0);
    assert_eq!(bench.store.execution(unknown).await, Ok(None));
    assert_eq!(code(bench.ended(Command::MarkCollected { execution: unknown }).await), ErrorCode::NotFound);
}

pub(super) async fn an_execution_started_for_a_round_ends_with_it<S: Subject>(bench: &Bench<S>) {
    let resolved = bench.answered(Delivery::Resumable).await;
    bench.collect(resolved.id, "once").await.expect("collected");
    assert_eq!(bench.execution(resolved.execution_id).await.outcome, Some(Outcome::Completed));
    let withdrawn = bench.asked(Delivery::Resumable).await;
    let failure = Failure::new(Failure::WITHDRAWN, "because");
    bench.fail(withdrawn.id, None, failure.clone()).await.expect("failed");
    assert_eq!(bench.execution(withdrawn.execution_id).await.outcome, Some(Outcome::Failed(failure)));
    let cancelled = bench.asked(Delivery::Resumable).await;
    bench.fail(cancelled.id, None, Failure::new(Failure::CANCELLED, "because")).await.expect("failed");
    assert_eq!(bench.execution(cancelled.execution_id).await.outcome, Some(Outcome::Cancelled));

    let (live, fence) = bench.deliverable(Delivery::Live).await;
    bench.start(live, &fence).await.expect("started");
    bench.delivered(live, &fence).await.expect("delivered");
    let resolved = bench.resolve(live, &fence).await.expect("resolved");
    assert_eq!(bench.execution(resolved.execution_id).await.lifecycle(), Lifecycle::Running, "its worker ends it");
}

pub(super) async fn an_execution_that_suspends_leaves_its_worker_and_ends_with_its_last_round<S: Subject>(
    bench: &Bench<S>,
) {
    let suspended = |execution: ExecutionId| {
        let mut new = bench.asking(Delivery::Resumable);
        new.execution = RoundExecution::Suspending(execution);
        new
    };
    let live = bench.asked(Delivery::Live).await;
    let execution = live.execution_id;
    let first = bench.create(suspended(execution)).await.expect("stored");
    let row = bench.execution(execution).await;
    assert_eq!((row.owner, row.ends_with_round), (None, true));
    let fence = live.fence.clone().expect("held");
    bench.fail(live.id, Some(&fence), Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    assert_eq!(bench.execution(execution).await.outcome, None, "another round of it is open");
    // Its next round takes the place of the first in one transaction, and the execution goes on.
    let (new, failure) = (suspended(execution), Failure::new(Failure::SUPERSEDED, "asked anew"));
    let second = new.id;
    let request = FailureRequest { fence: None, principal: agent(), failure, only_pending: false };
    let unit = vec![Command::CreateRound(Box::new(new)), Command::Fail { round: first.id, request }];
    bench.store.commit(unit).await.expect("stored");
    assert_eq!(bench.execution(execution).await.outcome, None);
    let failure = Failure::new(Failure::WITHDRAWN, "because");
    bench.fail(second, None, failure.clone()).await.expect("failed");
    assert_eq!(bench.execution(execution).await.outcome, Some(Outcome::Failed(failure)));
    let late = bench.create(suspended(execution)).await;
    assert_eq!(code(late), CONFLICT, "what has finished does not suspend");
}

pub(super) async fn cancelling_fails_what_is_pending_and_repeats<S: Subject>(bench: &Bench<S>) {
    let pending = bench.asked(Delivery::Live).await;
    let execution = pending.execution_id;
    let mut more = bench.asking(Delivery::Live);
    more.execution = RoundExecution::Existing(execution);
    let answered = bench.create(more).await.expect("stored");
    let answered = bench.answer(answered.id).await;
    let cancel = || Command::Cancel { execution, principal: ada() };
    let done = bench.ended(cancel()).await.expect("cancelled");
    assert_eq!(done.outcome, Some(Outcome::Cancelled));
    assert_eq!(failure_of(&bench.row(pending.id).await), Some(Failure::CANCELLED));
    assert_eq!(bench.row(answered.id).await, answered, "what was accepted is delivered");
    let events = bench.store.last_event().await;
    assert_eq!(bench.ended(cancel()).await, Ok(done), "a repeat");
    assert_eq!(bench.store.last_event().await, events);
    let finished = bench.asked(Delivery::Live).await.execution_id;
    let finish = Command::Finish { execution: finished, outcome: Outcome::Completed, result: None };
    bench.ended(finish).await.expect("finished");
    assert_eq!(code(bench.ended(Command::Cancel { execution: finished, principal: ada() }).await), CONFLICT);
}

pub(super) async fn an_orphan_is_lost_unless_its_worker_lives_or_its_rounds_decide<S: Subject>(bench: &Bench<S>) {
    let execution = ExecutionId::from_parts(START.0, bench.draw());
    let start = Command::StartExecution {
        execution,
        kind: ExecutionKind::Operation,
        started_by: agent(),
        owner: "own_opener".to_owned(),
    };
    let begun = bench.ended(start).await.expect("started");
    assert_eq!((begun.lifecycle(), begun.owner.as_deref()), (Lifecycle::Running, Some("own_opener")));
    let orphan = |owner: &str| Command::Orphan { execution, owner: owner.to_owned() };
    assert_eq!(code(bench.ended(orphan("own_opener")).await), CONFLICT, "its worker lives");
    let mut new = bench.asking(Delivery::Live);
    new.execution = RoundExecution::Existing(execution);
    let round = bench.create(new).await.expect("stored");
    bench.expire_leases();
    assert_eq!(code(bench.ended(orphan("own_other")).await), CONFLICT, "another worker's");
    assert_eq!(code(bench.ended(orphan("own_opener")).await), CONFLICT, "its round decides");
    bench.renew("own_opener").await;
    let fence = round.fence.clone().expect("held");
    bench.fail(round.id, Some(&fence), Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    assert_eq!(bench.execution(execution).await.outcome, None, "its worker goes on");
    bench.expire_leases();
    let lost = bench.ended(orphan("own_opener")).await.expect("lost");
    assert_eq!(lost.outcome, Some(Outcome::Lost));
    assert_eq!(bench.ended(orphan("own_opener")).await, Ok(lost), "a repeat");
}

pub(super) async fn pending_rounds_are_counted_and_listed<S: Subject>(bench: &Bench<S>) {
    let input = bench.asked(Delivery::Live).await;
    let execution = input.execution_id;
    let mut new = bench.asking(Delivery::Live);
    new.execution = RoundExecution::Existing(execution);
    new.has_approval = true;
    let approval = bench.create(new).await.expect("stored");
    let (row, pending) = bench.store.execution(execution).await.expect("is read").expect("is stored");
    assert_eq!(row.lifecycle(), Lifecycle::WaitingForApproval);
    assert_eq!((row.pending_inputs, row.pending_approvals), (1, 1));
    assert_eq!(pending, [input.id, approval.id], "in the order in which they were asked");
    bench.answer(approval.id).await;
    let (row, pending) = bench.store.execution(execution).await.expect("is read").expect("is stored");
    assert_eq!((row.lifecycle(), pending), (Lifecycle::WaitingForInput, vec![input.id]));
    let fence = input.fence.clone().expect("held");
    bench.fail(input.id, Some(&fence), Failure::new(Failure::WITHDRAWN, "because")).await.expect("failed");
    let (row, pending) = bench.store.execution(execution).await.expect("is read").expect("is stored");
    assert_eq!((row.lifecycle(), pending), (Lifecycle::Running, vec![]));
    assert!(bench.moved(submit(input.id, submission("late", 1))).await.is_err());
    assert_eq!(bench.execution(execution).await, row, "a refused answer counts nothing");
    assert_eq!(bench.status(approval.id).await, Status::ResponseValidated);
}
