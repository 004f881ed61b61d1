//! `fail`, `fail_recovery` and the service's own expiry.

use sayso_core::command::Command;
use sayso_core::execution::Outcome;
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, Failure, FailureRequest, Status};

use super::Subject;
use super::bench::{BOTH, Bench, CONFLICT, STATE, agent, code, failure_of};

fn failure(code: &str) -> Failure {
    Failure::new(code, "because")
}

pub(super) async fn its_holder_fails_a_round_with_a_reason<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        for steps in 0..3 {
            let (id, fence) = bench.deliverable(delivery).await;
            if steps > 0 {
                bench.start(id, &fence).await.expect("started");
            }
            if steps > 1 {
                bench.delivered(id, &fence).await.expect("delivered");
            }
            assert_eq!(code(bench.fail(id, Some(&bench.fence("own_other")), failure("gave_up")).await), CONFLICT);
            assert_eq!(code(bench.fail(id, None, failure(Failure::WITHDRAWN)).await), CONFLICT, "it is answered");
            bench.expire_leases();
            assert_eq!(code(bench.fail(id, Some(&fence), failure("gave_up")).await), CONFLICT, "the lease ran out");
            bench.renew(&fence.owner).await;
            let failed = bench.fail(id, Some(&fence), failure("gave_up")).await.expect("failed");
            assert_eq!((failed.status, failure_of(&failed)), (Status::Failed, Some("gave_up")));
            assert_eq!(failed.finished_at, Some(bench.now().await));
            assert_eq!(bench.fail(id, Some(&fence), failure("gave_up")).await, Ok(failed), "a repeat");
            assert_eq!(code(bench.fail(id, Some(&fence), failure("other")).await), CONFLICT);
            assert_eq!(code(bench.fail(id, Some(&fence), Failure::new("gave_up", "otherwise")).await), CONFLICT);
            assert_eq!(code(bench.start(id, &fence).await), STATE, "failed is final");
        }
        let (id, fence) = bench.deliverable(delivery).await;
        bench.start(id, &fence).await.expect("started");
        bench.delivered(id, &fence).await.expect("delivered");
        bench.resolve(id, &fence).await.expect("resolved");
        assert_eq!(code(bench.fail(id, Some(&fence), failure("gave_up")).await), STATE);
    }
}

pub(super) async fn whoever_asked_takes_a_resumable_question_back<S: Subject>(bench: &Bench<S>) {
    for taken_back_as in [Failure::WITHDRAWN, Failure::CANCELLED, Failure::SUPERSEDED] {
        let round = bench.asked(Delivery::Resumable).await;
        let by_another = FailureRequest {
            fence: None,
            principal: Principal::agent("other"),
            failure: failure(taken_back_as),
            only_pending: false,
        };
        assert_eq!(code(bench.moved(Command::Fail { round: round.id, request: by_another }).await), CONFLICT);
        let failed = bench.fail(round.id, None, failure(taken_back_as)).await.expect("taken back");
        assert_eq!(failure_of(&failed), Some(taken_back_as));
        assert_eq!(bench.fail(round.id, None, failure(taken_back_as)).await, Ok(failed));
    }
    let round = bench.asked(Delivery::Resumable).await;
    for other in [Failure::EXPIRED, Failure::UNAVAILABLE, Failure::RECOVERY_UNAVAILABLE, "gave_up"] {
        assert_eq!(code(bench.fail(round.id, None, failure(other)).await), CONFLICT, "{other}");
    }
    let live = bench.asked(Delivery::Live).await;
    assert_eq!(code(bench.fail(live.id, None, failure(Failure::WITHDRAWN)).await), CONFLICT, "it has a holder");
    assert_eq!(bench.row(live.id).await, live);
    bench.fail(live.id, live.fence.as_ref(), failure(Failure::WITHDRAWN)).await.expect("its holder takes it back");
}

pub(super) async fn a_question_that_only_its_asker_drops_yields_to_an_answer_that_came_first<S: Subject>(
    bench: &Bench<S>,
) {
    for delivery in BOTH {
        let drop = |fence| FailureRequest {
            fence,
            principal: agent(),
            failure: failure(Failure::WITHDRAWN),
            only_pending: true,
        };
        let answered = bench.answered(delivery).await;
        let request = drop(answered.fence.clone());
        assert_eq!(code(bench.moved(Command::Fail { round: answered.id, request }).await), CONFLICT);
        assert_eq!(bench.row(answered.id).await, answered);
        let pending = bench.asked(delivery).await;
        let request = drop(pending.fence.clone());
        let fail = Command::Fail { round: pending.id, request };
        let dropped = bench.moved(fail.clone()).await.expect("dropped");
        assert_eq!(failure_of(&dropped), Some(Failure::WITHDRAWN));
        assert_eq!(code(bench.moved(fail).await), CONFLICT, "what goes with it must not happen twice");
    }
}

pub(super) async fn a_round_whose_holder_is_gone_fails_as_unrecoverable<S: Subject>(bench: &Bench<S>) {
    for steps in 0..4 {
        let round = bench.asked(Delivery::Live).await;
        let fence = round.fence.clone().expect("held");
        if steps > 0 {
            bench.answer(round.id).await;
        }
        if steps > 1 {
            bench.start(round.id, &fence).await.expect("started");
        }
        if steps > 2 {
            bench.delivered(round.id, &fence).await.expect("delivered");
        }
        assert_eq!(code(bench.fail_recovery(round.id, fence.token).await), CONFLICT, "the lease is held");
        bench.expire_leases();
        assert_eq!(code(bench.fail_recovery(round.id, bench.fence("").token).await), CONFLICT, "another token");
        let failed = bench.fail_recovery(round.id, fence.token).await.expect("failed");
        assert_eq!(failure_of(&failed), Some(Failure::RECOVERY_UNAVAILABLE));
        assert_eq!(bench.fail_recovery(round.id, fence.token).await, Ok(failed.clone()), "a repeat");
        let outcome = bench.execution(round.execution_id).await.outcome;
        assert_eq!(outcome, failed.failure.map(Outcome::Failed), "the execution dies with it");
        bench.renew(&fence.owner).await;
        assert_eq!(code(bench.start(round.id, &fence).await), STATE, "a late return changes nothing");
    }
    let round = bench.asked(Delivery::Live).await;
    bench.run(Command::ReleaseOwner { owner: "own_opener".to_owned() }).await.expect("released");
    let token = round.fence.as_ref().expect("held").token;
    bench.fail_recovery(round.id, token).await.expect("a worker that left is gone, too");
}

pub(super) async fn a_resumable_round_is_unrecoverable_only_once_claimed<S: Subject>(bench: &Bench<S>) {
    let pending = bench.asked(Delivery::Resumable).await;
    let answered = bench.answered(Delivery::Resumable).await;
    bench.expire_leases();
    for round in [&pending, &answered] {
        assert_eq!(code(bench.fail_recovery(round.id, bench.fence("").token).await), STATE, "nobody holds it");
        assert_eq!(bench.row(round.id).await, *round);
    }
    let fence = bench.claim(answered.id, "own_claimer").await;
    assert_eq!(code(bench.fail_recovery(answered.id, fence.token).await), CONFLICT);
    bench.expire_leases();
    let failed = bench.fail_recovery(answered.id, fence.token).await.expect("failed");
    assert_eq!(failure_of(&failed), Some(Failure::RECOVERY_UNAVAILABLE));
    let (resolved, fence) = bench.deliverable(Delivery::Resumable).await;
    bench.start(resolved, &fence).await.expect("started");
    bench.delivered(resolved, &fence).await.expect("delivered");
    bench.resolve(resolved, &fence).await.expect("resolved");
    bench.expire_leases();
    assert_eq!(code(bench.fail_recovery(resolved, fence.token).await), STATE);
}

pub(super) async fn a_pending_round_expires_and_an_accepted_answer_never_does<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let deadline = bench.now().await.plus_ms(10);
        let mut both = Vec::new();
        for _ in 0..2 {
            let mut new = bench.asking(delivery);
            new.deadline = Some(deadline);
            both.push(bench.create(new).await.expect("stored"));
        }
        let answered = bench.answer(both[0].id).await;
        let pending = &both[1];
        bench.advance_ms(10);
        assert_eq!(bench.moved(Command::Expire { round: pending.id }).await, Ok(pending.clone()), "not yet");
        bench.advance_ms(1);
        let expired = bench.moved(Command::Expire { round: pending.id }).await.expect("expired");
        assert_eq!((expired.status, failure_of(&expired)), (Status::Failed, Some(Failure::EXPIRED)));
        let events = bench.store.last_event().await;
        assert_eq!(bench.moved(Command::Expire { round: pending.id }).await, Ok(expired), "a repeat");
        assert_eq!(bench.moved(Command::Expire { round: answered.id }).await, Ok(answered), "never");
        assert_eq!(bench.store.last_event().await, events);
        let endless = bench.asked(delivery).await;
        bench.advance_ms(1_000_000_000);
        assert_eq!(bench.moved(Command::Expire { round: endless.id }).await, Ok(endless), "no deadline");
    }
}
