//! `start_delivery`, `mark_delivered`, `resolve` and `renew`.

use sayso_core::command::Command;
use sayso_core::limits::LEASE_MS;
use sayso_core::round::{Fence, Status};

use super::Subject;
use super::bench::{BOTH, Bench, CONFLICT, SEALED, STATE, TYPED, code};
use sayso_core::round::Delivery;

async fn hand_over<S: Subject>(bench: &Bench<S>, delivery: Delivery) {
    let (id, fence) = bench.deliverable(delivery).await;
    let content = bench.handed(Command::StartDelivery { round: id, fence: fence.clone() }).await.expect("handed over");
    assert!(content.responses.as_str().starts_with("{ ") && content.responses.as_str().contains(TYPED));
    assert_eq!(content.request_state.as_deref(), Some(SEALED));
    let started = bench.row(id).await;
    assert_eq!((started.status, started.delivery_attempts), (Status::DeliveryStarted, 1));
    assert_eq!(started.delivery_started_at, Some(bench.now().await));
    bench.advance_ms(1);
    let delivered = bench.delivered(id, &fence).await.expect("delivered");
    assert_eq!((delivered.status, delivered.delivered_at), (Status::Delivered, Some(bench.now().await)));
    let resolved = bench.resolve(id, &fence).await.expect("resolved");
    assert_eq!((resolved.status, resolved.finished_at), (Status::Resolved, Some(bench.now().await)));
    assert!(resolved.failure.is_none() && started.rev < delivered.rev && delivered.rev < resolved.rev);
    assert_eq!(bench.event_names(0).await.last(), Some(&"resolved"));
}

pub(super) async fn a_live_answer_is_handed_over_confirmed_and_resolved<S: Subject>(bench: &Bench<S>) {
    hand_over(bench, Delivery::Live).await;
    assert_eq!(
        bench.event_names(0).await,
        ["execution_created", "round_created", "input", "answered", "resolved"],
        "hops of the delivery are no events"
    );
}

pub(super) async fn a_claimed_answer_is_handed_over_confirmed_and_resolved<S: Subject>(bench: &Bench<S>) {
    hand_over(bench, Delivery::Resumable).await;
}

pub(super) async fn a_step_repeated_at_its_target_returns_the_record<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        let started = bench.start(id, &fence).await.expect("started");
        bench.advance_ms(5);
        assert_eq!(bench.start(id, &fence).await, Ok(started.clone()), "one attempt, not two");
        let again = bench.handed(Command::StartDelivery { round: id, fence: fence.clone() }).await.expect("again");
        assert_eq!(again.request_state.as_deref(), Some(SEALED));
        let delivered = bench.delivered(id, &fence).await.expect("delivered");
        assert_eq!(bench.delivered(id, &fence).await, Ok(delivered));
        let resolved = bench.resolve(id, &fence).await.expect("resolved");
        let events = bench.store.last_event().await;
        assert_eq!(bench.resolve(id, &fence).await, Ok(resolved.clone()));
        bench.expire_leases();
        assert_eq!(bench.resolve(id, &fence).await, Ok(resolved), "also when the lease has run out since");
        assert_eq!(bench.store.last_event().await, events);
    }
}

pub(super) async fn a_step_out_of_order_is_a_state_error<S: Subject>(bench: &Bench<S>) {
    let pending = bench.asked(Delivery::Live).await;
    let opener = pending.fence.clone().expect("held");
    assert_eq!(code(bench.start(pending.id, &opener).await), STATE);
    assert_eq!(bench.row(pending.id).await, pending);
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        assert_eq!(code(bench.delivered(id, &fence).await), STATE);
        assert_eq!(code(bench.resolve(id, &fence).await), STATE);
        bench.start(id, &fence).await.expect("started");
        assert_eq!(code(bench.resolve(id, &fence).await), STATE);
        bench.delivered(id, &fence).await.expect("delivered");
        assert_eq!(code(bench.start(id, &fence).await), STATE);
        bench.resolve(id, &fence).await.expect("resolved");
        assert_eq!(code(bench.start(id, &fence).await), STATE);
        assert_eq!(code(bench.delivered(id, &fence).await), STATE);
    }
}

/// Every step of a delivery under `fence`, each from the state it starts in, is a conflict and moves nothing.
async fn no_step_moves<S: Subject>(bench: &Bench<S>, delivery: Delivery, spoil: impl Fn(&Fence) -> Option<Fence>) {
    for at in [Status::ResponseValidated, Status::DeliveryStarted, Status::Delivered] {
        let (id, fence) = bench.deliverable(delivery).await;
        if at != Status::ResponseValidated {
            bench.start(id, &fence).await.expect("started");
        }
        if at == Status::Delivered {
            bench.delivered(id, &fence).await.expect("delivered");
        }
        let spoilt = spoil(&fence).unwrap_or_else(|| {
            bench.expire_leases();
            fence.clone()
        });
        let before = bench.row(id).await;
        let step = match at {
            Status::ResponseValidated => bench.start(id, &spoilt).await,
            Status::DeliveryStarted => bench.delivered(id, &spoilt).await,
            _ => bench.resolve(id, &spoilt).await,
        };
        assert_eq!(code(step), CONFLICT, "{at:?}");
        assert_eq!(bench.row(id).await, before);
    }
}

pub(super) async fn an_expired_or_foreign_fence_moves_nothing<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        no_step_moves(bench, delivery, |fence| Some(Fence { owner: "own_other".to_owned(), ..fence.clone() })).await;
        let other_token = bench.fence("").token;
        no_step_moves(bench, delivery, |fence| Some(Fence { token: other_token, ..fence.clone() })).await;
        no_step_moves(bench, delivery, |_| None).await;
    }
}

pub(super) async fn an_owner_renews_late_as_long_as_nobody_took_over<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        bench.advance_ms(LEASE_MS - 1);
        bench.start(id, &fence).await.expect("in time by a millisecond");
        bench.advance_ms(1);
        assert_eq!(code(bench.delivered(id, &fence).await), CONFLICT, "late by none");
        bench.advance_ms(10 * LEASE_MS);
        bench.renew(&fence.owner).await;
        bench.delivered(id, &fence).await.expect("renewed late");
        bench.resolve(id, &fence).await.expect("renewed late");
    }
}
