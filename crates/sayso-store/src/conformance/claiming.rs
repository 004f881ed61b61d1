//! `claim_round`.

use sayso_core::command::Command;
use sayso_core::id::RoundId;
use sayso_core::round::{Claim, Delivery, Evidence, Failure, Fence, Status};

use super::Subject;
use super::bench::{Bench, CONFLICT, RECOVERY, STATE, claim_by, code};

async fn claim<S: Subject>(bench: &Bench<S>, round: RoundId) -> Result<Fence, sayso_core::error::Error> {
    let fence = bench.fence("own_other");
    bench.moved(Command::Claim { round, claim: claim_by(&fence) }).await.map(|_| fence)
}

pub(super) async fn a_live_round_is_never_claimed<S: Subject>(bench: &Bench<S>) {
    for steps in 0..3 {
        let (id, fence) = bench.deliverable(Delivery::Live).await;
        if steps > 0 {
            bench.start(id, &fence).await.expect("started");
        }
        if steps > 1 {
            bench.delivered(id, &fence).await.expect("delivered");
        }
        let before = bench.row(id).await;
        assert_eq!(code(claim(bench, id).await), CONFLICT, "while it is held");
        bench.expire_leases();
        assert_eq!(code(claim(bench, id).await), RECOVERY);
        let proof = Claim { evidence: Some(Evidence::Delivered), ..claim_by(&bench.fence("own_other")) };
        assert_eq!(code(bench.moved(Command::Claim { round: id, claim: proof }).await), RECOVERY);
        assert_eq!(bench.row(id).await, before);
    }
    let pending = bench.asked(Delivery::Live).await;
    bench.expire_leases();
    assert_eq!(code(claim(bench, pending.id).await), STATE, "there is nothing to deliver");
    assert_eq!(bench.row(pending.id).await, pending);
}

pub(super) async fn a_resumable_round_is_claimed_once_answered<S: Subject>(bench: &Bench<S>) {
    let round = bench.asked(Delivery::Resumable).await;
    assert_eq!(code(claim(bench, round.id).await), STATE);
    bench.answer(round.id).await;
    let guess = Claim { expected: Some(bench.fence("").token), ..claim_by(&bench.fence("own_other")) };
    assert_eq!(code(bench.moved(Command::Claim { round: round.id, claim: guess }).await), CONFLICT);
    let fence = claim(bench, round.id).await.expect("claimed");
    let row = bench.row(round.id).await;
    assert_eq!((row.status, row.fence.as_ref()), (Status::ResponseValidated, Some(&fence)));
    assert_eq!(code(claim(bench, round.id).await), CONFLICT, "it is held now");
    bench.start(round.id, &fence).await.expect("claiming takes the lease");
}

pub(super) async fn an_expired_claim_is_taken_over_and_the_old_token_fenced_off<S: Subject>(bench: &Bench<S>) {
    let (id, first) = bench.deliverable(Delivery::Resumable).await;
    bench.expire_leases();
    let guess = Claim { expected: Some(bench.fence("").token), ..claim_by(&bench.fence("own_other")) };
    assert_eq!(code(bench.moved(Command::Claim { round: id, claim: guess }).await), CONFLICT, "wrong token");
    let second = bench.fence("own_other");
    let takeover = Claim { expected: Some(first.token), ..claim_by(&second) };
    bench.moved(Command::Claim { round: id, claim: takeover }).await.expect("taken over");
    bench.renew(&first.owner).await;
    assert_eq!(code(bench.start(id, &first).await), CONFLICT, "the first lives again and is fenced off");
    bench.start(id, &second).await.expect("the second delivers");
    let same_owner = Fence { token: second.token, ..first };
    assert_eq!(code(bench.delivered(id, &same_owner).await), CONFLICT);

    let (delivered, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.start(delivered, &fence).await.expect("started");
    bench.delivered(delivered, &fence).await.expect("delivered");
    bench.expire_leases();
    let third = claim(bench, delivered).await.expect("what was delivered needs no evidence");
    assert_eq!(bench.status(delivered).await, Status::Delivered);
    bench.resolve(delivered, &third).await.expect("resolved");
}

pub(super) async fn a_started_delivery_is_repeated_only_with_evidence<S: Subject>(bench: &Bench<S>) {
    for (evidence, becomes) in [
        (None, None),
        (Some(Evidence::NotDelivered { idempotent: false }), None),
        (Some(Evidence::NotDelivered { idempotent: true }), Some(Status::ResponseValidated)),
        (Some(Evidence::Delivered), Some(Status::Delivered)),
    ] {
        let (id, fence) = bench.deliverable(Delivery::Resumable).await;
        let started = bench.start(id, &fence).await.expect("started");
        let second = bench.fence("own_other");
        let takeover = Claim { evidence, ..claim_by(&second) };
        let held = bench.moved(Command::Claim { round: id, claim: takeover.clone() }).await;
        assert_eq!(code(held), CONFLICT, "while it is held");
        bench.expire_leases();
        let taken = bench.moved(Command::Claim { round: id, claim: takeover }).await;
        match becomes {
            None => {
                assert_eq!(code(taken), RECOVERY);
                assert_eq!(bench.row(id).await, started);
            }
            Some(status) => {
                let taken = taken.expect("taken over");
                assert_eq!(taken.status, status);
                // Evidence of an arrival is the receipt.
                assert_eq!(taken.delivered_at.is_some(), status == Status::Delivered);
            }
        }
        if becomes == Some(Status::ResponseValidated) {
            assert_eq!(bench.start(id, &second).await.expect("again").delivery_attempts, 2);
        }
    }
}

pub(super) async fn a_finished_round_is_never_handed_out<S: Subject>(bench: &Bench<S>) {
    let (resolved, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.start(resolved, &fence).await.expect("started");
    bench.delivered(resolved, &fence).await.expect("delivered");
    bench.resolve(resolved, &fence).await.expect("resolved");
    let (failed, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.fail(failed, Some(&fence), Failure::new("gave_up", "because")).await.expect("failed");
    let (lost, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.expire_leases();
    bench.fail_recovery(lost, fence.token).await.expect("failed");
    for (id, expected) in [(resolved, STATE), (failed, STATE), (lost, RECOVERY)] {
        assert_eq!(code(claim(bench, id).await), expected);
    }
}
