//! Every verb of a desk, the same over HTTP as on the store itself.

use std::time::Duration;

use sayso::wire::GrantUse;
use sayso::{
    Ask, ClaimOf, Desk, Error, Evidence, ExecutionId, Failure, Fence, FenceToken, Json, LATE_PREFIX, NewGrant, Outcome,
    Principal, Received, RoundId, Status, Step,
};
use sayso_core::round::Delivery;

use crate::rig::{Rig, ask, ask_url};

async fn live(desk: &dyn Desk) -> (RoundId, ExecutionId, Fence) {
    let opened = desk.open(ask(Delivery::Live), None).await.unwrap();
    assert_eq!((opened.round.status, opened.round.delivery), (Status::Pending, Delivery::Live));
    (opened.round.round_id, opened.round.execution_id, opened.fence.unwrap())
}

async fn a_live_round_is_delivered(rig: &Rig, desk: &dyn Desk) {
    let (round, execution, fence) = live(desk).await;
    assert_eq!(desk.wait(round, 1, Duration::from_millis(1)).await.unwrap().rev, 1, "a wait that ends is no fault");
    let early = desk.start(round, fence.clone()).await;
    assert!(matches!(early, Err(Error::State { status: Status::Pending, failure: None, .. })), "{early:?}");
    rig.answer(round).await;
    assert_eq!(desk.wait(round, 1, Duration::from_secs(45)).await.unwrap().status, Status::ResponseValidated);
    let until = desk.renew(round, fence.clone()).await.unwrap();
    assert_eq!(until, rig.sayso.now().await.unwrap().plus_ms(30_000));
    for _ in 0..2 {
        let handed = desk.start(round, fence.clone()).await.unwrap();
        assert_eq!(handed.round.status, Status::DeliveryStarted);
        assert_eq!(handed.request_state.as_deref(), Some("opaque"));
        let content = handed.responses.get("address").unwrap().content.clone().unwrap();
        assert_eq!(content.as_str(), r#"{"street":"Elm"}"#);
    }
    let result = Json::parse(r#"{"result":{"n":1.50}}"#).unwrap();
    let steps = vec![
        Step::Delivered(round, fence.clone()),
        Step::Resolved(round, fence.clone()),
        Step::Finished(execution, Outcome::Completed, Some(result.clone())),
    ];
    desk.settle(steps.clone()).await.unwrap();
    desk.settle(steps).await.unwrap();
    desk.settle(vec![Step::Collected(execution)]).await.unwrap();
    assert_eq!(rig.round(round).await.status, Status::Resolved);
    assert!(matches!(desk.renew(round, fence).await, Err(Error::State { status: Status::Resolved, .. })));
    let ended = desk.result(execution, Duration::from_secs(45)).await.unwrap();
    assert_eq!(ended.result, Some(result), "numbers stay as they were written");
    assert_eq!(desk.execution(execution).await.unwrap().outcome.unwrap().status, "completed");
}

async fn a_live_round_is_received(rig: &Rig, desk: &dyn Desk) {
    let (round, _, fence) = live(desk).await;
    let early = desk.receive(round, fence.clone(), Duration::from_millis(1)).await;
    assert_eq!(early.unwrap_err(), Error::Timeout);
    for _ in 0..2 {
        let (received, ()) =
            tokio::join!(desk.receive(round, fence.clone(), Duration::from_secs(45)), rig.answer(round));
        let Received::Handed(handed) = received.unwrap() else { panic!("{round} has failed") };
        assert_eq!(handed.round.status, Status::DeliveryStarted);
        assert_eq!(handed.responses.get("address").unwrap().content.as_ref().unwrap().as_str(), r#"{"street":"Elm"}"#);
    }
    let failure = Failure::new("gave_up", "the harness has ended");
    desk.settle(vec![Step::Failed(round, Some(fence.clone()), failure.clone())]).await.unwrap();
    let Received::Failed(ended) = desk.receive(round, fence, Duration::from_secs(45)).await.unwrap() else {
        panic!("{round} was handed over");
    };
    assert_eq!(ended.failure, Some(failure));
}

async fn a_resumable_round_is_claimed_or_collected(rig: &Rig, desk: &dyn Desk) {
    let opened = desk.open(ask(Delivery::Resumable), Some("booking-17".to_owned())).await.unwrap();
    let round = opened.round.round_id;
    assert_eq!(opened.fence, None);
    let again = desk.open(ask(Delivery::Resumable), Some("booking-17".to_owned())).await.unwrap();
    assert_eq!(again.round.round_id, round);
    assert!(matches!(desk.claim(round, ClaimOf::default(), None).await, Err(Error::State { .. })));
    assert_eq!(desk.collect(round, "once", Duration::from_millis(1)).await.unwrap_err(), Error::Timeout);
    rig.answer(round).await;
    let fence = desk.claim(round, ClaimOf::default(), None).await.unwrap().fence;
    assert!(matches!(desk.claim(round, ClaimOf::default(), None).await, Err(Error::Conflict { .. })), "it is held");
    desk.start(round, fence.clone()).await.unwrap();
    rig.clock.advance_ms(60_000);
    let recovery = desk.claim(round, ClaimOf { expected: Some(fence.token), evidence: None }, None).await;
    assert!(matches!(recovery, Err(Error::Recovery(_))), "{recovery:?}");
    let evidence = Some(Evidence::NotDelivered { idempotent: true });
    let wrong = ClaimOf { expected: Some(FenceToken(7)), evidence };
    assert!(matches!(desk.claim(round, wrong, None).await, Err(Error::Conflict { .. })));
    let right = ClaimOf { expected: Some(fence.token), evidence };
    let second = desk.claim(round, right, None).await.unwrap();
    assert_eq!(second.round.status, Status::ResponseValidated);
    let stale = desk.settle(vec![Step::Delivered(round, fence)]).await;
    assert!(matches!(stale, Err(Error::Conflict { .. } | Error::State { .. })), "{stale:?}");

    let other = desk.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    rig.answer(other).await;
    for _ in 0..2 {
        let collected = desk.collect(other, "once", Duration::from_secs(45)).await.unwrap();
        assert_eq!(collected.round.status, Status::Resolved);
    }
}

async fn rounds_fail_and_executions_end(rig: &Rig, desk: &dyn Desk) {
    let (round, execution, fence) = live(desk).await;
    let withdrawn = Failure::new(Failure::WITHDRAWN, "taken back");
    let all = vec![
        Step::Failed(round, Some(fence.clone()), withdrawn.clone()),
        Step::Finished(execution, Outcome::Cancelled, None),
        Step::Delivered(round, fence.clone()),
    ];
    assert!(matches!(desk.settle(all).await, Err(Error::State { failure: Some(_), .. })));
    assert_eq!(rig.round(round).await.status, Status::Pending, "all of it or nothing");
    let steps = vec![
        Step::Failed(round, Some(fence), withdrawn.clone()),
        Step::Finished(execution, Outcome::Failed(Failure::new("gave_up", "no more")), None),
    ];
    desk.settle(steps).await.unwrap();
    assert_eq!(rig.round(round).await.failure, Some(withdrawn.clone()));
    let outcome = desk.execution(execution).await.unwrap().outcome.unwrap();
    assert_eq!((outcome.status.as_str(), outcome.code.as_deref()), ("failed", Some("gave_up")));

    let unheld = desk.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    desk.settle(vec![Step::Failed(unheld, None, withdrawn)]).await.unwrap();
    let url = desk.open(ask_url(), None).await.unwrap().round.round_id;
    desk.settle(vec![Step::UrlCompleted(url)]).await.unwrap();
    assert!(rig.round(url).await.url_completed_at.is_some());

    let begun = desk.begin().await.unwrap();
    assert_eq!(desk.result(begun, Duration::from_millis(1)).await.unwrap_err(), Error::Timeout);
    desk.settle(vec![Step::Finished(begun, Outcome::Completed, None)]).await.unwrap();
    assert!(matches!(
        desk.settle(vec![Step::Finished(begun, Outcome::Cancelled, None)]).await,
        Err(Error::Conflict { .. })
    ));

    let (lost, _, fence) = live(desk).await;
    assert!(matches!(desk.fail_recovery(lost, fence.token).await, Err(Error::Conflict { .. })));
    rig.clock.advance_ms(60_000);
    let failed = desk.fail_recovery(lost, fence.token).await.unwrap();
    assert_eq!(failed.failure.unwrap().code, Failure::RECOVERY_UNAVAILABLE);
}

async fn a_question_taken_back_goes_on_as_a_late_one(rig: &Rig, desk: &dyn Desk) {
    let (round, _, fence) = live(desk).await;
    let operation = format!("{LATE_PREFIX}a&b:c");
    let successor =
        Ask { logical_operation_id: Some(operation.clone()), suggestion_of: Some(round), ..ask(Delivery::Resumable) };
    let foreign = Fence { token: FenceToken(7), ..fence.clone() };
    assert!(matches!(desk.withdraw(round, foreign, successor.clone()).await, Err(Error::Conflict { .. })));
    let late = desk.withdraw(round, fence.clone(), successor.clone()).await.unwrap();
    assert_eq!((late.status, late.suggestion_of), (Status::Pending, Some(round)));
    assert_eq!(desk.withdraw(round, fence, successor).await.unwrap().round_id, late.round_id, "a repeat");
    assert_eq!(rig.round(round).await.failure.unwrap().code, Failure::WITHDRAWN);
    for (prefix, found) in [(operation.as_str(), 1), ("late:a&", 1), ("late:b", 0)] {
        let rounds: Vec<_> = desk.late(prefix).await.unwrap();
        assert_eq!(rounds.len(), found, "{prefix}");
    }
    rig.answer(late.round_id).await;
    desk.collect(late.round_id, "once", Duration::ZERO).await.unwrap();
    assert!(desk.late(&operation).await.unwrap().is_empty(), "finished");
}

async fn what_is_wrong_is_told_with_its_fields(desk: &dyn Desk) {
    let nothing = sayso::Ask::default();
    let refused = desk.open(nothing, None).await.unwrap_err();
    assert!(matches!(&refused, Error::Validation { fields, .. } if !fields.is_empty()), "{refused:?}");
    let mut limited = ask(Delivery::Live);
    limited.round_limit = Some(1);
    let first = desk.open(limited.clone(), None).await.unwrap();
    limited.execution_id = Some(first.round.execution_id);
    assert_eq!(desk.open(limited, None).await.unwrap_err(), Error::RoundLimit(1));
    let nowhere = RoundId::from_parts(1, 1);
    assert_eq!(desk.wait(nowhere, 0, Duration::ZERO).await.unwrap_err(), Error::NotFound("round"));
    let nowhere = ExecutionId::from_parts(1, 1);
    assert_eq!(desk.execution(nowhere).await.unwrap_err(), Error::NotFound("execution"));
    let long = Step::Failed(first.round.round_id, first.fence, Failure::new("", "no code"));
    assert!(matches!(desk.settle(vec![long]).await, Err(Error::Validation { .. })));
}

async fn a_grant_is_used_and_an_executions_rounds_are_listed(rig: &Rig, desk: &dyn Desk) {
    let first = desk.open(ask(Delivery::Live), None).await.unwrap().round;
    let execution_id = Some(first.execution_id);
    let next = sayso::Ask { execution_id, logical_operation_id: Some("next".to_owned()), ..ask(Delivery::Live) };
    let next = desk.open(next, None).await.unwrap().round;
    let mut listed: Vec<_> =
        desk.rounds_of(first.execution_id).await.unwrap().iter().map(|round| round.round_id).collect();
    listed.sort_unstable();
    let mut asked = [first.round_id, next.round_id];
    asked.sort_unstable();
    assert_eq!(listed, asked);
    let begun = desk.begin().await.unwrap();
    assert!(desk.rounds_of(begun).await.unwrap().is_empty());
    let nowhere = ExecutionId::from_parts(1, 1);
    assert_eq!(desk.rounds_of(nowhere).await.unwrap_err(), Error::NotFound("execution"));

    let call = GrantUse {
        session_id: "s".to_owned(),
        tool: "bank:transfer".to_owned(),
        arguments: Json::parse(r#"{"n":1}"#).unwrap(),
        definition: sayso::Digest::of_text("bank"),
        effects: vec![sayso::policy::Effect::Read],
        command_at: None,
        digest: None,
        require_second_person: false,
        changed_definition: false,
        reviewed: None,
        instead_of: None,
    };
    assert_eq!(desk.use_grant(&call).await.unwrap(), None);
    let pins = sayso::policy::Pins::Any;
    let scope = sayso::policy::GrantScope::Rule { tools: "bank:*".to_owned(), effects: None, pins };
    let grant = NewGrant { uses_max: Some(1), ..NewGrant::of(scope) };
    let grant = rig.sayso.people().grant(grant).await.unwrap();
    assert_eq!(desk.use_grant(&call).await.unwrap(), Some(grant.id));
    assert_eq!(desk.use_grant(&call).await.unwrap(), None, "it is used up");
    let unnamed = GrantUse { tool: "bank".to_owned(), ..call };
    assert!(matches!(desk.use_grant(&unnamed).await, Err(Error::Validation { .. })));
}

async fn a_definition_is_reviewed_for_its_agent_alone(rig: &Rig, desk: &dyn Desk) {
    const TOOL: &str = "bank:tr\u{e4}ns fer&tool=x";
    assert_eq!(desk.reviewed(TOOL).await.unwrap(), None);
    for text in ["first", "second", "first"] {
        let definition = sayso::Digest::of_text(text);
        desk.settle(vec![Step::Reviewed { tool: TOOL.to_owned(), definition }]).await.unwrap();
        assert_eq!(desk.reviewed(TOOL).await.unwrap(), Some(definition));
    }
    assert_eq!(rig.sayso.desk(Principal::agent("other")).reviewed(TOOL).await.unwrap(), None);
    assert!(matches!(desk.reviewed("bank").await, Err(Error::Validation { .. })));
}

async fn walk(rig: &Rig, desk: &dyn Desk) {
    a_live_round_is_delivered(rig, desk).await;
    a_live_round_is_received(rig, desk).await;
    a_resumable_round_is_claimed_or_collected(rig, desk).await;
    rounds_fail_and_executions_end(rig, desk).await;
    a_question_taken_back_goes_on_as_a_late_one(rig, desk).await;
    what_is_wrong_is_told_with_its_fields(desk).await;
    a_grant_is_used_and_an_executions_rounds_are_listed(rig, desk).await;
    a_definition_is_reviewed_for_its_agent_alone(rig, desk).await;
    desk.leave().await.unwrap();
}

#[tokio::test]
async fn every_verb_works_over_http() {
    let rig = Rig::new().await;
    walk(&rig, &rig.client().await).await;
}

#[tokio::test]
async fn every_verb_works_on_the_store() {
    let rig = Rig::new().await;
    walk(&rig, &rig.sayso.desk(Principal::agent("booking"))).await;
}

#[tokio::test]
async fn a_large_and_deep_result_passes() {
    let rig = Rig::new().await;
    let client = rig.client().await;
    let begun = client.begin().await.unwrap();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let text = format!(r#"{{"result":{{"deep":{deep},"text":"{}"}}}}"#, "x".repeat(4 << 20));
    let result = Json::parse_within(&text, usize::MAX, 127).unwrap();
    client.settle(vec![Step::Finished(begun, Outcome::Completed, Some(result.clone()))]).await.unwrap();
    assert_eq!(client.result(begun, Duration::ZERO).await.unwrap().result, Some(result));
}
