//! The worker's verbs on an embedded store: claims with evidence, renewals, repeats.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use std::sync::Arc;
use std::time::Duration;

use sayso::clock::ManualClock;
use sayso::{
    Answer, Ask, ClaimOf, Desk, Error, Evidence, Failure, Fence, Json, LocalDesk, Options, Outcome, People, Principal,
    Request, Response, RoundId, Sayso, Status, Step, Sweeper, UnixMs, wire,
};
use sayso_core::round::Delivery;

struct Bench {
    sayso: Sayso,
    clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

fn agent() -> Principal {
    Principal::agent("booking")
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(UnixMs(1_800_000_000_000)));
        let sayso = Sayso::open(Options::at(folder.path()).clock(clock.clone())).await.unwrap();
        Self { sayso, clock, _folder: folder }
    }

    fn worker(&self) -> LocalDesk {
        self.sayso.new_worker(agent()).unwrap()
    }

    /// A resumable round that a person has answered.
    async fn answered(&self) -> RoundId {
        let round = self.worker().ask(ask(Delivery::Resumable), None).await.unwrap();
        self.answer(round.round_id).await;
        round.round_id
    }

    async fn answer(&self, round: RoundId) {
        let content = Json::parse(r#"{"street":"Elm"}"#).unwrap();
        self.sayso.people().answer(round, Answer::one("address", Response::accept(content)), "a").await.unwrap();
    }

    async fn status(&self, round: RoundId) -> Status {
        self.sayso.people().show(round).await.unwrap().status
    }
}

fn ask(delivery: Delivery) -> Ask {
    let schema = Json::parse(r#"{"type":"object","properties":{"street":{"type":"string"}}}"#).unwrap();
    Ask { delivery: Some(delivery), ..Ask::one("address", Request::form("Where to?", schema)) }
}

async fn claim(desk: &LocalDesk, round: RoundId) -> Result<Fence, Error> {
    Ok(desk.claim(round, ClaimOf::default(), None).await?.fence)
}

#[tokio::test]
async fn an_answer_is_claimed_started_delivered_and_resolved_by_one_worker() {
    let bench = Bench::new().await;
    let (first, second) = (bench.worker(), bench.worker());
    let round = bench.answered().await;
    let fence = claim(&first, round).await.unwrap();
    assert!(matches!(claim(&second, round).await, Err(Error::Conflict { .. })));
    let handed = first.start(round, fence.clone()).await.unwrap();
    assert_eq!(handed.responses.get("address").unwrap().content.as_ref().unwrap().as_str(), r#"{"street":"Elm"}"#);
    let steps = vec![Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)];
    first.settle(steps.clone()).await.unwrap();
    assert_eq!(bench.status(round).await, Status::Resolved);
    first.settle(steps).await.expect("a repeat of what is stored changes nothing");
    let foreign = Fence { owner: second.owner_id().to_owned(), token: sayso::FenceToken(1) };
    let theirs = vec![Step::Delivered(round, foreign.clone()), Step::Resolved(round, foreign)];
    assert!(second.settle(theirs).await.is_err(), "what another worker did is no repeat");
}

#[tokio::test]
async fn a_claim_repeated_under_its_key_finds_the_same_lease() {
    let bench = Bench::new().await;
    let worker = bench.worker();
    let round = bench.answered().await;
    let under = |key: &str| worker.claim(round, ClaimOf::default(), Some(key.to_owned()));
    let first = under("k").await.unwrap();
    assert_eq!(under("k").await.unwrap().fence, first.fence);
    assert!(matches!(under("other").await, Err(Error::Conflict { .. })));
    worker.start(round, first.fence.clone()).await.unwrap();
    assert_eq!(under("k").await.unwrap().fence, first.fence, "a late repeat does not start over");
    assert_eq!(bench.status(round).await, Status::DeliveryStarted);
}

#[tokio::test]
async fn a_started_delivery_is_taken_over_only_with_evidence() {
    let bench = Bench::new().await;
    for (evidence, status) in [
        (None, None),
        (Some(Evidence::NotDelivered { idempotent: false }), None),
        (Some(Evidence::NotDelivered { idempotent: true }), Some(Status::ResponseValidated)),
        (Some(Evidence::Delivered), Some(Status::Delivered)),
    ] {
        let (first, second) = (bench.worker(), bench.worker());
        let round = bench.answered().await;
        let fence = claim(&first, round).await.unwrap();
        first.start(round, fence.clone()).await.unwrap();
        bench.clock.advance_ms(30_000);
        let taken = second.claim(round, ClaimOf { expected: Some(fence.token), evidence }, None).await;
        match status {
            Some(status) => assert_eq!(taken.unwrap().round.status, status),
            None => assert!(matches!(taken, Err(Error::Recovery(_))), "{evidence:?}"),
        }
    }
}

#[tokio::test]
async fn a_holder_renews_late_until_somebody_takes_over_or_it_ends() {
    let bench = Bench::new().await;
    let (first, second) = (bench.worker(), bench.worker());
    let round = bench.answered().await;
    let fence = claim(&first, round).await.unwrap();
    bench.clock.advance_ms(31_000);
    assert!(matches!(first.start(round, fence.clone()).await, Err(Error::Conflict { .. })), "the lease has run out");
    let until = first.renew(round, fence.clone()).await.unwrap();
    assert_eq!(until.since_ms(bench.sayso.now().await.unwrap()), 30_000);
    first.start(round, fence.clone()).await.unwrap();

    bench.clock.advance_ms(31_000);
    let evidence = Some(Evidence::NotDelivered { idempotent: true });
    let taken = second.claim(round, ClaimOf { expected: None, evidence }, None).await.unwrap().fence;
    assert!(matches!(first.renew(round, fence).await, Err(Error::Conflict { .. })), "replaced");
    second.settle(vec![Step::Failed(round, Some(taken.clone()), Failure::new("gave_up", "no"))]).await.unwrap();
    assert!(matches!(second.renew(round, taken).await, Err(Error::State { .. })), "finished");
}

#[tokio::test]
async fn a_live_round_asked_again_under_its_key_gives_its_lease_to_the_same_worker_alone() {
    let bench = Bench::new().await;
    let (first, second) = (bench.worker(), bench.worker());
    let key = || Some("k".to_owned());
    let opened = first.open(ask(Delivery::Live), key()).await.unwrap();
    let again = first.open(ask(Delivery::Live), key()).await.unwrap();
    assert_eq!((again.round.round_id, again.fence.is_some()), (opened.round.round_id, true));
    assert_eq!(again.fence, opened.fence);
    assert_eq!(second.open(ask(Delivery::Live), key()).await.unwrap().fence, None);
    let named = Ask { owner_id: Some(second.owner_id().to_owned()), ..ask(Delivery::Live) };
    assert!(matches!(first.open(named, None).await, Err(Error::Validation { .. })));
}

#[tokio::test]
async fn what_a_lost_worker_held_is_ended_by_its_token_and_by_the_sweeper() {
    let bench = Bench::new().await;
    let worker = bench.worker();
    let opened = worker.open(ask(Delivery::Live), None).await.unwrap();
    let (round, token) = (opened.round.round_id, opened.fence.unwrap().token);
    assert!(matches!(worker.fail_recovery(round, token).await, Err(Error::Conflict { .. })), "the lease is held");
    bench.clock.advance_ms(30_000);
    let other = sayso::FenceToken(token.0 ^ 1);
    assert!(matches!(worker.fail_recovery(round, other).await, Err(Error::Conflict { .. })));
    assert_eq!(worker.fail_recovery(round, token).await.unwrap().failure.unwrap().code, Failure::RECOVERY_UNAVAILABLE);

    let begun = worker.begin().await.unwrap();
    worker.leave().await.unwrap();
    let mut sweeper = Sweeper::default();
    for seconds in [0, 30] {
        bench.sayso.sweep(&mut sweeper, Duration::from_secs(seconds)).await.unwrap();
    }
    assert_eq!(worker.execution(begun).await.unwrap().outcome.unwrap().status, "lost");
}

#[tokio::test]
async fn a_repeated_end_of_an_execution_is_no_fault_and_another_end_is() {
    let bench = Bench::new().await;
    let worker = bench.worker();
    let begun = worker.begin().await.unwrap();
    let result = Json::parse(r#"{"result":1}"#).ok();
    let end = Step::Finished(begun, Outcome::Completed, result.clone());
    worker.settle(vec![end.clone()]).await.unwrap();
    worker.settle(vec![end]).await.unwrap();
    for other in [Step::Finished(begun, Outcome::Completed, None), Step::Finished(begun, Outcome::Cancelled, result)] {
        assert!(matches!(worker.settle(vec![other]).await, Err(Error::Conflict { .. })));
    }
}

#[tokio::test]
async fn a_round_takes_the_place_of_another_in_one_transaction_and_a_repeat_finds_it() {
    let bench = Bench::new().await;
    let (worker, other) = (bench.worker(), bench.worker());
    let first = worker.open(ask(Delivery::Live), None).await.unwrap();
    let (round, fence) = (first.round.round_id, first.fence.unwrap());
    bench.answer(round).await;
    worker.start(round, fence.clone()).await.unwrap();
    let supersedes = Some(wire::Superseded { round_id: round, lease_token: wire::LeaseToken(fence.token) });
    let next = Ask { supersedes, ..ask(Delivery::Live) };
    assert!(matches!(other.open(next.clone(), None).await, Err(Error::Conflict { .. })), "another worker holds it");
    let limited = Ask { round_limit: Some(1), ..next.clone() };
    assert!(matches!(worker.open(limited, None).await, Err(Error::RoundLimit(1))));
    assert_eq!(bench.status(round).await, Status::DeliveryStarted, "both or neither");
    let opened = worker.open(next.clone(), Some("k".to_owned())).await.unwrap();
    assert_eq!((opened.round.execution_id, opened.round.round_index), (first.round.execution_id, 1));
    let failed = bench.sayso.people().show(round).await.unwrap();
    assert_eq!(failed.failure.unwrap().code, Failure::SUPERSEDED);
    let repeated = worker.open(next, Some("k".to_owned())).await.unwrap();
    assert_eq!((repeated.round.round_id, repeated.fence), (opened.round.round_id, opened.fence));
}

#[tokio::test]
async fn a_deadline_may_be_a_time_from_now() {
    let bench = Bench::new().await;
    let worker = bench.worker();
    let round = worker.ask(Ask { deadline_in_ms: Some(5_000), ..ask(Delivery::Resumable) }, None).await.unwrap();
    assert_eq!(round.deadline, Some(round.created_at.plus_ms(5_000)));
    for wrong in [0, -1, i64::MAX] {
        let ask = Ask { deadline_in_ms: Some(wrong), ..ask(Delivery::Resumable) };
        assert!(matches!(worker.ask(ask, None).await, Err(Error::Validation { .. })));
    }
    let both = Ask { deadline: round.deadline, deadline_in_ms: Some(1), ..ask(Delivery::Resumable) };
    assert!(matches!(worker.ask(both, None).await, Err(Error::Validation { .. })));
}
