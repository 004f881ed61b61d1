//! `collect`: the four steps of a delivery at once, for a caller that is its own agent.

use sayso_core::execution::Outcome;
use sayso_core::round::{Delivery, Failure, Status};

use super::Subject;
use super::bench::{Bench, CONFLICT, RECOVERY, SEALED, STATE, TYPED, code};

pub(super) async fn collecting_is_claim_start_delivered_and_resolved_at_once<S: Subject>(bench: &Bench<S>) {
    let round = bench.answered(Delivery::Resumable).await;
    let content = bench.collect(round.id, "once").await.expect("collected");
    assert!(content.responses.as_str().contains(TYPED));
    assert_eq!(content.request_state.as_deref(), Some(SEALED));
    let row = bench.row(round.id).await;
    let now = Some(bench.now().await);
    assert_eq!((row.status, row.delivery_attempts), (Status::Resolved, 1));
    assert_eq!((row.delivery_started_at, row.delivered_at, row.finished_at), (now, now, now));
    assert_eq!(bench.execution(round.execution_id).await.outcome, Some(Outcome::Completed));
    assert_eq!(bench.event_names(0).await.iter().filter(|name| **name == "resolved").count(), 1);
}

pub(super) async fn the_same_key_reads_the_same_answer_again<S: Subject>(bench: &Bench<S>) {
    let round = bench.answered(Delivery::Resumable).await;
    let first = bench.collect(round.id, "once").await.expect("collected");
    let (row, events) = (bench.row(round.id).await, bench.store.last_event().await);
    let again = bench.collect(round.id, "once").await.expect("collected again");
    assert_eq!(again.responses, first.responses);
    assert_eq!(code(bench.collect(round.id, "twice").await), STATE, "handed over once");
    assert_eq!((bench.row(round.id).await, bench.store.last_event().await), (row, events));
}

pub(super) async fn what_is_pending_held_live_or_failed_is_not_collected<S: Subject>(bench: &Bench<S>) {
    let pending = bench.asked(Delivery::Resumable).await;
    assert_eq!(code(bench.collect(pending.id, "once").await), STATE);
    let (held, fence) = bench.deliverable(Delivery::Resumable).await;
    assert_eq!(code(bench.collect(held, "once").await), CONFLICT);
    bench.fail(held, Some(&fence), Failure::new("gave_up", "because")).await.expect("failed");
    assert_eq!(code(bench.collect(held, "once").await), STATE);
    let (started, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.start(started, &fence).await.expect("started");
    let (delivered, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.start(delivered, &fence).await.expect("started");
    bench.delivered(delivered, &fence).await.expect("delivered");
    let live = bench.answered(Delivery::Live).await;
    assert_eq!(code(bench.collect(live.id, "once").await), CONFLICT);
    bench.expire_leases();
    assert_eq!(code(bench.collect(live.id, "once").await), RECOVERY);
    assert_eq!(code(bench.collect(started, "once").await), RECOVERY, "nobody can tell whether it arrived");
    assert_eq!(bench.status(started).await, Status::DeliveryStarted);
    assert_eq!(code(bench.collect(delivered, "once").await), STATE, "it has arrived once already");
    assert_eq!(bench.status(delivered).await, Status::Delivered);
}
