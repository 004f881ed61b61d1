//! `renew`, a round's: whose lease it is decides the token in its row, and for how long its owner's life. The row says
//! whether a holder may renew ([`Round::renew`](sayso_core::round::Round::renew)), the command extends.

use sayso_core::command::Command;
use sayso_core::limits::LEASE_MS;
use sayso_core::round::{Delivery, Fence, Status};

use super::Subject;
use super::bench::{BOTH, Bench, CONFLICT, STATE, claim_by, code};

/// A round in this state, and its holder.
async fn held<S: Subject>(bench: &Bench<S>, delivery: Delivery, status: Status) -> (sayso_core::id::RoundId, Fence) {
    if status == Status::Pending {
        let round = bench.asked(delivery).await;
        return (round.id, round.fence.expect("held"));
    }
    let (id, fence) = bench.deliverable(delivery).await;
    if status != Status::ResponseValidated {
        bench.start(id, &fence).await.expect("started");
    }
    if status == Status::Delivered {
        bench.delivered(id, &fence).await.expect("delivered");
    }
    (id, fence)
}

pub(super) async fn a_holder_whose_token_nobody_replaced_renews_late_wherever_its_round_stands<S: Subject>(
    bench: &Bench<S>,
) {
    let started = [Status::ResponseValidated, Status::DeliveryStarted, Status::Delivered];
    let of_both = BOTH.into_iter().flat_map(|delivery| started.map(|status| (delivery, status)));
    for (delivery, status) in of_both.chain([(Delivery::Live, Status::Pending)]) {
        let (id, fence) = held(bench, delivery, status).await;
        let before = bench.row(id).await;
        bench.advance_ms(100 * LEASE_MS);
        assert_eq!(bench.row(id).await.renew(&fence), Ok(()), "{delivery:?} {status:?}: late, and not replaced");
        bench.renew(&fence.owner).await;
        let until = bench.now().await.plus_ms(LEASE_MS);
        assert_eq!(bench.store.lease_until(&fence.owner).await, Ok(Some(until)));
        assert_eq!(bench.reopen().await.lease_until(&fence.owner).await, Ok(Some(until)));
        assert_eq!(bench.row(id).await, before, "it is the owner's lease: the round's row is as it was");
        bench.advance_ms(LEASE_MS - 1);
        match status {
            Status::Pending => assert_eq!(bench.answer(id).await.status, Status::ResponseValidated),
            Status::ResponseValidated => drop(bench.start(id, &fence).await.expect("in time by a millisecond")),
            Status::DeliveryStarted => drop(bench.delivered(id, &fence).await.expect("in time by a millisecond")),
            _ => drop(bench.resolve(id, &fence).await.expect("in time by a millisecond")),
        }
    }
}

pub(super) async fn a_holder_that_was_replaced_renews_nothing_of_what_it_lost<S: Subject>(bench: &Bench<S>) {
    // By another worker, and by the same one under another token.
    for taker in ["own_taker", "own_claimer"] {
        let (id, old) = held(bench, Delivery::Resumable, Status::ResponseValidated).await;
        bench.expire_leases();
        let new = bench.claim(id, taker).await;
        let until = bench.store.lease_until(&new.owner).await.expect("is read");
        for row in [bench.row(id).await, bench.reopen().await.row(id).await.expect("is read").expect("is stored")] {
            assert_eq!(code(row.renew(&old)), CONFLICT, "{taker}");
            assert_eq!(row.renew(&new), Ok(()));
        }
        bench.advance_ms(1);
        if old.owner != new.owner {
            bench.renew(&old.owner).await;
            assert_eq!(bench.store.lease_until(&new.owner).await, Ok(until), "another's life is not extended");
        }
        assert_eq!(code(bench.start(id, &old).await), CONFLICT, "it lives, and holds nothing");
        bench.start(id, &new).await.expect("started");
        assert_eq!(bench.row(id).await.fence, Some(new));
    }
}

pub(super) async fn a_holder_that_renewed_late_is_not_replaced_while_that_holds<S: Subject>(bench: &Bench<S>) {
    let (id, fence) = held(bench, Delivery::Resumable, Status::ResponseValidated).await;
    let other = bench.fence("own_taker");
    let claim = || Command::Claim { round: id, claim: claim_by(&other) };
    bench.advance_ms(3 * LEASE_MS);
    bench.renew(&fence.owner).await;
    bench.advance_ms(LEASE_MS - 1);
    assert_eq!(code(bench.moved(claim()).await), CONFLICT, "it is held until its last millisecond");
    bench.advance_ms(1);
    bench.moved(claim()).await.expect("taken over");
    assert_eq!(code(bench.row(id).await.renew(&fence)), CONFLICT);
}

pub(super) async fn a_finished_round_is_renewed_by_nobody<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = held(bench, delivery, Status::Delivered).await;
        bench.resolve(id, &fence).await.expect("resolved");
        assert_eq!(code(bench.row(id).await.renew(&fence)), STATE);
        let (id, fence) = held(bench, delivery, Status::ResponseValidated).await;
        bench.expire_leases();
        bench.fail_recovery(id, fence.token).await.expect("failed");
        bench.renew(&fence.owner).await;
        assert_eq!(code(bench.row(id).await.renew(&fence)), STATE, "{delivery:?}");
    }
    let unclaimed = bench.answered(Delivery::Resumable).await;
    assert_eq!(code(unclaimed.renew(&bench.fence("own_nobody"))), CONFLICT, "nobody holds it");
}
