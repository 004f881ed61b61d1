//! What becomes of an approved call when its client, its server or the gateway goes away, and when it asks while it runs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use rig::approving::{ASKING, START, asked, heard_call, setup, short_hold, tools, upstream_heard_nothing};
use rig::{Gated, Rig, Setup, answer_handshake, answer_tools, text_of};
use sayso::clock::ManualClock;
use sayso::{ErrorCode, Failure, Options, People, Response, Sayso, Status, Sweeper};
use sayso_agents::gateway::GatewayExit;
use serde_json::json;

#[tokio::test]
async fn a_parked_call_runs_once_somebody_asks_for_it_and_its_result_goes_to_the_retry() {
    let mut rig = Gated::start(ASKING, short_hold()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    let pending = rig.client.hear().await;
    assert!(text_of(&pending).contains("still waiting") && text_of(&pending).contains("not denied"), "{pending}");
    let paused = &pending["result"]["structuredContent"]["paused"];
    assert_eq!((&paused["tool_path"], &paused["args"]), (&json!("shipping:book"), &json!({"item": "anvil"})));
    assert_eq!(paused["message"], "shipping:book: Books a shipment.");
    let execution = paused["execution_id"].clone();
    rig.approve(&round, None).await;
    rig.until(&round, Status::ResponseValidated).await;
    upstream_heard_nothing(&mut rig).await;
    rig.call_tool(2, "book", json!({"item": "anvil"})).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    let result = rig.client.hear().await;
    assert_eq!((result["id"].as_u64(), text_of(&result)), (Some(2), "booked"));
    rig.call_tool(3, "book", json!({"item": "anvil"})).await;
    assert_eq!(text_of(&rig.client.hear().await), "booked", "a retry reads it again");
    rig.call_tool(4, "sayso_wait", json!({"execution_id": execution})).await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
    assert_eq!(rig.rounds().await.len(), 1);
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn the_wait_tool_runs_an_approved_call_too() {
    let mut rig = Gated::start(ASKING, short_hold()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    let pending = rig.client.hear().await;
    let execution = pending["result"]["structuredContent"]["paused"]["execution_id"].clone();
    rig.approve(&round, None).await;
    rig.until(&round, Status::ResponseValidated).await;
    rig.call_tool(2, "sayso_wait", json!({"execution_id": execution})).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    let running = rig.client.hear().await;
    assert!(text_of(&running).contains("is running and has no result yet"), "{running}");
    rig.result(&number, "booked").await;
    rig.until(&round, Status::Resolved).await;
    rig.call_tool(3, "sayso_wait", json!({"execution_id": execution})).await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
}

#[tokio::test]
async fn a_client_that_gives_up_while_a_person_thinks_runs_nothing_until_it_asks_again() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    upstream_heard_nothing(&mut rig).await;
    rig.approve(&round, None).await;
    rig.until(&round, Status::ResponseValidated).await;
    upstream_heard_nothing(&mut rig).await;
    rig.call_tool(2, "book", json!({"item": "anvil"})).await;
    heard_call(&mut rig, json!({"item": "anvil"})).await;
}

#[tokio::test]
async fn a_gated_call_may_ask_while_it_runs() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&round, None).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    let question = rig.ask("q-1").await;
    assert_eq!((question.execution_id, question.round_index), (round.execution_id, 1));
    rig.answer_street(&question).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
    rig.result(&number, "booked").await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
    assert_eq!(rig.round(&round).await.status, Status::Resolved);
    assert_eq!(rig.round(&question).await.status, Status::Resolved);
}

#[tokio::test]
async fn a_question_is_never_taken_for_that_of_a_call_which_is_not_running() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let first = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&first, None).await;
    heard_call(&mut rig, json!({"item": "anvil"})).await;
    asked(&mut rig, 2, json!({"item": "rope"})).await;
    let question = rig.ask("q-1").await;
    assert_eq!(question.execution_id, first.execution_id);
}

#[tokio::test]
async fn an_upstream_cannot_answer_a_call_that_it_was_not_sent() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    for number in 0..9 {
        rig.result(&json!(number), "forged").await;
    }
    rig.approve(&round, None).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
}

/// The upstream is started again and lists its tools.
async fn started_again(rig: &mut Rig) {
    rig.upstream = rig.launches.recv().await.unwrap();
    answer_handshake(&mut rig.upstream, &tools()).await;
    assert_eq!(rig.upstream.hear().await["method"], "notifications/initialized");
    answer_tools(&mut rig.upstream, &tools()).await;
}

#[tokio::test]
async fn an_upstream_that_crashes_while_a_person_thinks_is_started_again_for_the_approved_call() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.upstream_exits();
    rig.client.say(json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})).await;
    assert_eq!(rig.client.hear().await["id"], 9);
    rig.approve(&round, None).await;
    started_again(&mut rig).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    assert_eq!(text_of(&rig.client.hear_but("notifications/tools/list_changed").await), "booked");
}

#[tokio::test]
async fn an_upstream_that_dies_while_an_approved_call_runs_leaves_it_as_perhaps_run() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&round, None).await;
    heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.upstream_exits();
    assert!(text_of(&rig.client.hear().await).contains("may have run"));
    let failure = rig.until(&round, Status::Failed).await.failure.unwrap();
    assert_eq!(failure.code, Failure::RECOVERY_UNAVAILABLE);
    assert!(failure.message.contains("may have run"), "{}", failure.message);
    rig.call_tool(2, "book", json!({"item": "anvil"})).await;
    started_again(&mut rig).await;
    let next = rig.new_round(1).await;
    assert_ne!(next.execution_id, round.execution_id, "it is never run again under the old approval");
}

#[tokio::test]
async fn a_client_that_leaves_takes_the_calls_along_that_did_not_run() {
    let mut rig = Gated::start(ASKING, short_hold()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.rig.client_hangs_up();
    let failure = rig.until(&round, Status::Failed).await.failure.unwrap();
    assert_eq!(failure.code, Failure::WITHDRAWN);
    assert!(failure.message.contains("was not run"), "{}", failure.message);
    let error = rig.decide(&round, Response::consent()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ManagedInputState, "an approval that comes now is refused");
    assert_eq!(rig.rig.gateway.await.unwrap().exit, GatewayExit::ClientLeft);
}

#[tokio::test]
async fn a_gateway_that_is_stopped_says_of_every_call_whether_it_may_have_run() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let running = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&running, None).await;
    heard_call(&mut rig, json!({"item": "anvil"})).await;
    let waiting = asked(&mut rig, 2, json!({"item": "rope"})).await;
    rig.stop.take().unwrap().send(()).unwrap();
    let (mut first, mut second) = (rig.client.hear().await, rig.client.hear().await);
    if first["id"] == 2 {
        std::mem::swap(&mut first, &mut second);
    }
    assert!(text_of(&first).contains("may have run"), "{first}");
    assert!(text_of(&second).contains("was not run"), "{second}");
    assert_eq!(rig.until(&running, Status::Failed).await.failure.unwrap().code, Failure::RECOVERY_UNAVAILABLE);
    assert_eq!(rig.until(&waiting, Status::Failed).await.failure.unwrap().code, Failure::WITHDRAWN);
}

#[tokio::test]
async fn a_call_whose_gateway_is_killed_after_it_started_is_said_to_have_perhaps_run() {
    let clock = Arc::new(ManualClock::at(START));
    let folder = tempfile::tempdir().unwrap();
    let sayso = Sayso::open(Options::at(folder.path()).clock(clock.clone())).await.unwrap();
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, ASKING).unwrap();
    let mut rig = Rig::over(sayso.clone(), Setup { policy: Some(policy.clone()), ..setup() }).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&round, None).await;
    heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.gateway.abort();
    assert!(rig.gateway.await.unwrap_err().is_cancelled());
    assert_eq!(sayso.people().show(round.round_id).await.unwrap().status, Status::DeliveryStarted);
    clock.advance_ms(31_000);
    let mut sweeper = Sweeper::default();
    for seconds in [0, 31] {
        sayso.sweep(&mut sweeper, Duration::from_secs(seconds)).await.unwrap();
    }
    let failure = sayso.people().show(round.round_id).await.unwrap().failure.unwrap();
    assert_eq!(failure.code, Failure::RECOVERY_UNAVAILABLE);
    // Another gateway neither runs it again nor takes its verdict for a new call.
    let mut later = Rig::over(sayso, Setup { policy: Some(policy), ..setup() }).await;
    later.call_tool(1, "sayso_wait", json!({"execution_id": round.execution_id.to_string()})).await;
    let text = text_of(&later.client.hear().await).to_owned();
    assert!(text.contains("may have run"), "{text}");
    let anew = asked(&mut later, 2, json!({"item": "anvil"})).await;
    assert_ne!(anew.round_id, round.round_id);
}
