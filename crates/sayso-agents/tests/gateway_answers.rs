//! What the upstream asks is stored, answered by a person, handed over once, and its result comes back.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Rig, Setup, Trouble, text_of};
use sayso::{Error, Json, People, Response, Status};
use serde_json::json;

#[tokio::test]
async fn an_answer_reaches_the_upstream_as_it_was_typed_and_its_result_reaches_the_client() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    assert_eq!(round.server, "shipping");
    assert_eq!(round.operation_name, "book");
    assert_eq!(round.calls[0].arguments.as_ref().unwrap().as_str(), r#"{"item":"anvil"}"#);

    let typed = r#"{"street":"1 Main Street","n":0.10,"big":123456789012345678901234567890}"#;
    rig.answer(&round, Response::accept(Json::parse(typed).unwrap())).await.unwrap();
    let line = rig.upstream.hear_line().await.unwrap();
    let expected = format!(r#"{{"jsonrpc":"2.0","id":"q-1","result":{{"action":"accept","content":{typed}}}}}"#);
    assert_eq!(line, expected);
    assert_eq!(rig.round(&round).await.status, Status::DeliveryStarted, "started before it was written");

    rig.result(&call, "booked").await;
    let answer = rig.client.hear().await;
    assert_eq!((answer["id"].as_u64(), text_of(&answer)), (Some(1), "booked"));
    assert_eq!(rig.round(&round).await.status, Status::Resolved);
    let people = rig.sayso.people();
    let execution = rig.sayso.execution(rig.sayso.person(), round.execution_id).await.unwrap();
    assert_eq!(execution.outcome.unwrap().status, "completed");
    assert_eq!(people.responses(round.round_id).await.unwrap().unwrap().submitted.0.len(), 1);
}

#[tokio::test]
async fn an_answer_that_came_before_the_asking_was_acknowledged_goes_upstream_at_once() {
    let mut rig = Rig::start(Setup { trouble: Some(Trouble::AnsweredMeanwhile), ..Setup::default() }).await;
    rig.call(1, json!({})).await;
    rig.ask("q-1").await;
    assert_eq!(rig.upstream.hear().await["result"], json!({"action": "accept", "content": {"street": "Elm"}}));
}

#[tokio::test]
async fn decline_and_cancel_go_upstream_as_such() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.answer(&round, Response::decline(Some("not \"today\"".to_owned()))).await.unwrap();
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["result"], json!({"action": "decline", "_meta": {"dev.sayso/reason": "not \"today\""}}));
    let round = rig.ask("q-2").await;
    assert_eq!(round.round_index, 1, "the second question of one call is its next round");
    rig.answer(&round, Response::cancel()).await.unwrap();
    assert_eq!(rig.upstream.hear().await["result"], json!({"action": "cancel"}));
}

#[tokio::test]
async fn an_invalid_answer_changes_nothing_and_the_next_one_counts() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    let refused = rig.answer(&round, Response::accept(Json::parse("{}").unwrap())).await.unwrap_err();
    let Error::Validation { fields, .. } = refused else { panic!("{refused}") };
    assert_eq!(fields[0].pointer, "/responses/elicitation/content/street");
    assert_eq!(rig.round(&round).await.status, Status::Pending);
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
}

#[tokio::test]
async fn progress_of_the_call_is_the_receipt_of_its_answer() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.answer_street(&round).await;
    rig.upstream.hear().await;
    let params = json!({"progressToken": call, "progress": 1});
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})).await;
    rig.until(&round, Status::Resolved).await;
}

#[tokio::test]
async fn a_question_that_the_upstream_takes_back_is_withdrawn_and_a_late_answer_is_refused_with_the_reason() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.upstream
        .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q-1"}}))
        .await;
    let ended = rig.until(&round, Status::Failed).await;
    assert_eq!(ended.failure.unwrap().code, "withdrawn");
    let content = Json::parse(r#"{"street":"x"}"#).unwrap();
    let late = rig.answer(&round, Response::accept(content)).await.unwrap_err();
    assert!(matches!(&late, Error::State { failure: Some(failure), .. } if failure.code == "withdrawn"), "{late}");
    rig.result(&call, "gave up").await;
    assert_eq!(text_of(&rig.client.hear().await), "gave up");
    assert!(rig.sayso.last_wait("shipping").await.unwrap().is_some(), "how long it waited is known from now on");
}

#[tokio::test]
async fn a_schema_that_cannot_be_checked_is_refused_to_the_upstream_and_nothing_is_shown() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    for (params, named) in [
        (
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}}),
            "schema",
        ),
        (json!({"message": "?", "mode": "voice"}), "mode"),
        (json!({"requestedSchema": {}}), "message"),
        (json!({"mode": "url", "message": "?", "url": "not a url"}), "url"),
    ] {
        rig.upstream.say(json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": params})).await;
        let refused = rig.upstream.hear().await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(named), "{refused}");
    }
    assert!(rig.rounds().await.is_empty());
}

#[tokio::test]
async fn a_url_is_consented_to_and_its_completion_recorded_also_before_the_consent() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let params =
        json!({"mode": "url", "message": "Connect", "url": "https://example.com/c?s=1", "elicitationId": "el-1"});
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": params})).await;
    let round = rig.new_round(0).await;
    let complete = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id}});
    rig.upstream.say(complete("unknown")).await;
    rig.upstream.say(complete("el-1")).await;
    let mut feed = rig.sayso.event_feed();
    while rig.round(&round).await.url_completed_at.is_none() {
        feed.maybe_more().await;
    }
    rig.answer(&round, Response::consent()).await.unwrap();
    assert_eq!(rig.upstream.hear().await, json!({"jsonrpc": "2.0", "id": 9, "result": {"action": "accept"}}));
}

#[tokio::test]
async fn with_two_calls_in_flight_a_question_lists_both_and_each_result_goes_to_its_own_call() {
    let mut rig = Rig::start(Setup::default()).await;
    let first = rig.call(1, json!({"item": "anvil"})).await;
    let second = rig.call(2, json!({"item": "rope"})).await;
    let round = rig.ask("q-1").await;
    assert_eq!(round.calls.len(), 2);
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
    let ping = rig.upstream.hear().await;
    assert_eq!(ping["method"], "ping", "the receipt of a question that no single call asked");
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}})).await;
    rig.until(&round, Status::Resolved).await;
    rig.result(&second, "rope sent").await;
    rig.result(&first, "anvil sent").await;
    let answers = [rig.client.hear().await, rig.client.hear().await];
    assert_eq!(
        answers.each_ref().map(|a| (a["id"].as_u64(), text_of(a))),
        [(Some(2), "rope sent"), (Some(1), "anvil sent")]
    );
}

#[tokio::test]
async fn a_call_that_ends_without_its_answer_withdraws_its_question() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.result(&call, "never mind").await;
    assert_eq!(text_of(&rig.client.hear().await), "never mind");
    assert_eq!(rig.round(&round).await.failure.unwrap().code, "withdrawn");
}

#[tokio::test]
async fn a_question_that_cannot_be_stored_was_never_asked_and_nobody_is_said_to_have_refused() {
    let mut rig = Rig::start(Setup { trouble: Some(Trouble::StoreIsAway), ..Setup::default() }).await;
    let call = rig.call(1, json!({})).await;
    let params = json!({"message": "Where to?", "requestedSchema": {"type": "object", "properties": {}}});
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})).await;
    let refused = rig.upstream.hear().await;
    assert_eq!(refused["error"]["code"], -32603);
    assert_eq!(refused["error"]["data"]["code"], "unavailable");
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("Question unavailable") && words.contains("nothing was denied"), "{words}");
    assert!(rig.rounds().await.is_empty());
    rig.result(&call, words).await;
    assert_eq!(text_of(&rig.client.hear().await), words);
}
