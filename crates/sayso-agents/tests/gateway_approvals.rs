//! A call that waits for a person's word runs once, as it was approved, or not at all; and the agent reads which.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use rig::approving::{ASKING, START, asked, heard_call, request, setup, upstream_heard_nothing};
use rig::{Gated, Rig, Setup, Trouble, text_of};
use sayso::clock::ManualClock;
use sayso::{Desk, ErrorCode, Failure, Json, Options, People, Principal, Response, Sayso, Status};
use serde_json::{Value, json};

#[tokio::test]
async fn an_approved_call_runs_with_the_bytes_it_came_in_and_is_delivered_with_its_result() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let line = r#"{ "jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"book","arguments":{ "n": 1,  "item":"anv\u0069l"},"_meta":{"progressToken":"p"}} }"#;
    rig.client.say_raw(line).await;
    let round = rig.new_round(0).await;
    let asked = request(&round);
    assert_eq!(asked.tool.as_deref(), Some("shipping:book"));
    assert_eq!(asked.arguments.as_ref().map(Json::as_str), Some(r#"{"item":"anvil","n":1}"#));
    assert_eq!(asked.message.as_deref(), Some("Books a shipment."));
    assert_eq!(asked.rule.as_deref(), Some("operator writes: It costs money."));
    assert_eq!(asked.session.as_deref(), Some("ses"));
    assert!(asked.definition.is_some() && asked.arguments_schema.is_some() && asked.effects.is_some());
    assert_eq!((round.status, round.delivery), (Status::Pending, sayso_core::round::Delivery::Live));
    rig.approve(&round, None).await;
    let heard = rig.upstream.hear_line().await.unwrap();
    let number = serde_json::from_str::<Value>(&heard).unwrap()["id"].clone();
    let expected = line.replace(r#""id":"a""#, &format!(r#""id":{number}"#));
    assert_eq!(heard, expected.replace(r#""progressToken":"p""#, &format!(r#""progressToken":{number}"#)));
    assert_eq!(rig.round(&round).await.status, Status::DeliveryStarted, "stored before it ran");
    let progress = json!({"progressToken": number, "progress": 1});
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})).await;
    assert_eq!(rig.client.hear().await["params"]["progressToken"], "p");
    assert_eq!(rig.round(&round).await.status, Status::DeliveryStarted, "only the result is the receipt");
    rig.result(&number, "booked").await;
    let answer = rig.client.hear().await;
    assert_eq!(
        (answer["id"].as_str(), &answer["result"]["content"]),
        (Some("a"), &json!([{"type": "text", "text": "booked"}]))
    );
    assert_eq!(rig.round(&round).await.status, Status::Resolved, "stored before the client read it");
    let desk = rig.sayso.desk(Principal::agent("gateway:shipping"));
    let stored = desk.result(round.execution_id, Duration::ZERO).await.unwrap();
    assert!(stored.result.unwrap().as_str().contains("booked"));
}

#[tokio::test]
async fn edited_arguments_run_in_the_place_of_the_agents_and_it_is_told_which() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"item":"anvil"},"name":"book" ,"x":[1.0]}}"#;
    rig.client.say_raw(line).await;
    let round = rig.new_round(0).await;
    let wrong = Response::accept(Json::parse(r#"{"arguments":{"item":"rope","n":9}}"#).unwrap());
    let error = rig.decide(&round, wrong).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ManagedInputInvalid, "edited arguments must fit the tool's schema");
    rig.approve(&round, Some(r#"{"item": "rope", "n": 2}"#)).await;
    let heard = rig.upstream.hear_line().await.unwrap();
    let number = serde_json::from_str::<Value>(&heard).unwrap()["id"].clone();
    let meta = format!(r#","x":[1.0],"_meta":{{"progressToken":{number}}}}}"#);
    let expected = line
        .replace(r#""id":1"#, &format!(r#""id":{number}"#))
        .replace(r#"{"item":"anvil"}"#, r#"{"item": "rope", "n": 2}"#);
    assert_eq!(heard, expected.replace(r#","x":[1.0]}"#, &meta));
    rig.upstream
        .say_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{number},"result":{{"content":[ {{"type":"text","text":"booked"}} ],"n":1.0}}}}"#
        ))
        .await;
    let answer = rig.client.hear_line().await.unwrap();
    assert!(
        answer.contains(r#"[ {"type":"text","text":"booked"} ,{"#) && answer.ends_with(r#"],"n":1.0}}"#),
        "{answer}"
    );
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let told = answer["result"]["content"][1]["text"].as_str().unwrap();
    assert!(told.contains("changed the arguments") && told.contains(r#"{"item": "rope", "n": 2}"#), "{told}");
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_none() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.approve(&round, Some(r#"{ "item" : "anvil" }"#)).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    assert_eq!(rig.client.hear().await["result"]["content"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_call_never_runs_and_the_agent_reads_the_reason() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.decide(&round, Response::decline(Some("Too heavy.".to_owned()))).await.unwrap();
    let refused = rig.client.hear().await;
    let text = text_of(&refused);
    assert!(text.contains("person refused") && text.contains("not run") && text.contains("Too heavy."), "{text}");
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(rig.round(&round).await.status, Status::Resolved);
    let dismissed = asked(&mut rig, 2, json!({"item": "rope"})).await;
    rig.decide(&dismissed, Response::cancel()).await.unwrap();
    let text = text_of(&rig.client.hear().await).to_owned();
    assert!(text.contains("Nobody refused") && text.contains("not run"), "{text}");
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn a_call_that_nobody_answers_in_time_expires_and_is_never_approved_by_that() {
    let clock = Arc::new(ManualClock::at(START));
    let folder = tempfile::tempdir().unwrap();
    let sayso = Sayso::open(Options::at(folder.path()).clock(clock.clone())).await.unwrap();
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, format!("{ASKING}deadline_seconds = 20\n")).unwrap();
    let mut rig = Rig::over(sayso, Setup { policy: Some(policy), ..setup() }).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    assert_eq!(round.deadline, Some(START.plus_ms(20_000)));
    clock.advance_ms(20_001);
    let error = rig.decide(&round, Response::consent()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ManagedInputState, "too late");
    let text = text_of(&rig.client.hear().await).to_owned();
    assert!(text.contains("Nobody answered in time; nobody refused. It was not run."), "{text}");
    assert_eq!(rig.round(&round).await.failure.unwrap().code, Failure::EXPIRED);
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn a_cancelled_execution_says_so_and_the_call_does_not_run() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    rig.sayso.people().cancel(round.execution_id).await.unwrap();
    let text = text_of(&rig.client.hear().await).to_owned();
    assert!(text.contains("Cancelled") && text.contains("nobody refused") && text.contains("not run"), "{text}");
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn an_approval_that_cannot_be_stored_is_unavailable_and_nobody_denied_it() {
    let mut rig = Gated::start(ASKING, Setup { trouble: Some(Trouble::StoreIsAway), ..setup() }).await;
    rig.call_tool(1, "book", json!({"item": "anvil"})).await;
    let answer = rig.client.hear().await;
    let text = text_of(&answer);
    assert!(text.starts_with("Approval unavailable") && text.contains("nothing was denied"), "{text}");
    assert_eq!(answer["result"]["isError"], true);
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn a_call_too_large_to_be_shown_is_not_run_and_says_why() {
    let mut rig = Gated::start(ASKING, setup()).await;
    rig.call_tool(1, "book", json!({"item": "x".repeat(2 << 20)})).await;
    let text = text_of(&rig.client.hear().await).to_owned();
    assert!(text.contains("cannot be shown to a person") && text.contains("not run"), "{text}");
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn two_equal_calls_at_once_are_two_calls_each_with_its_own_verdict() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let first = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    let second = asked(&mut rig, 2, json!({"item": "anvil"})).await;
    assert_ne!(first.execution_id, second.execution_id);
    rig.decide(&first, Response::decline(Some("one is enough".to_owned()))).await.unwrap();
    let refused = rig.client.hear().await;
    assert_eq!((refused["id"].as_u64(), text_of(&refused).contains("one is enough")), (Some(1), true));
    rig.approve(&second, None).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    let booked = rig.client.hear().await;
    assert_eq!((booked["id"].as_u64(), text_of(&booked)), (Some(2), "booked"));
}

#[tokio::test]
async fn of_parallel_calls_those_approved_run_and_every_call_gets_one_result() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let mut rounds = Vec::new();
    for id in 1..=3 {
        rounds.push(asked(&mut rig, id, json!({"item": "anvil", "n": id})).await);
    }
    rig.decide(&rounds[1], Response::decline(Some("one too many".to_owned()))).await.unwrap();
    let denied = rig.client.hear().await;
    assert_eq!(denied["id"], 2);
    assert!(text_of(&denied).contains("one too many"));
    for id in [3, 1] {
        rig.approve(&rounds[id - 1], None).await;
        let number = heard_call(&mut rig, json!({"item": "anvil", "n": id})).await;
        rig.result(&number, &format!("booked {id}")).await;
        let told = rig.client.hear().await;
        assert_eq!((told["id"].as_u64(), text_of(&told)), (u64::try_from(id).ok(), format!("booked {id}").as_str()));
    }
    upstream_heard_nothing(&mut rig).await;
}
