//! Most servers give up after a minute, people do not: a question goes on without its call, and its answer is used once.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Rig, Setup, text_of};
use sayso::{Answer, Json, Options, People, Response, Sayso, Status, wire};
use sayso_agents::gateway::Replay;
use serde_json::{Value, json};

/// The upstream gives up question `id` of call `number`; the live round and its successor.
async fn gives_up(rig: &mut Rig, id: &str, number: &Value, round: &wire::Round) -> wire::Round {
    let params = json!({"requestId": id, "reason": "timed out"});
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    let failed = json!({"content": [{"type": "text", "text": "timed out"}], "isError": true});
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": number, "result": failed})).await;
    let ended = rig.until(round, Status::Failed).await;
    let failure = ended.failure.unwrap();
    assert_eq!(failure.code, "withdrawn");
    let successor = rig.rounds().await.into_iter().next().unwrap();
    assert_ne!(successor.round_id, round.round_id);
    assert!(failure.message.contains(&successor.round_id.to_string()), "{}", failure.message);
    assert_eq!((successor.status, successor.requests.clone()), (Status::Pending, round.requests.clone()));
    assert_eq!(successor.suggestion_of, Some(round.round_id));
    successor
}

async fn answer(sayso: &Sayso, round: &wire::Round, street: &str) {
    let content = Json::parse(&json!({"street": street}).to_string()).unwrap();
    let answer = Answer::one("elicitation", Response::accept(content));
    sayso.people().answer(round.round_id, answer, "late").await.unwrap();
}

#[tokio::test]
async fn a_late_answer_is_used_once_when_the_agent_makes_the_call_again() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    assert_eq!(text_of(&rig.client.hear().await), "timed out");
    answer(&rig.sayso, &late, "1 Main Street").await;

    let call = rig.call(2, json!({"item": "anvil"})).await;
    let known = rig.rounds().await.len();
    rig.upstream
        .say(json!({"jsonrpc": "2.0", "id": "q-2", "method": "elicitation/create", "params": {
            "message": "Where to?", "requestedSchema": {
                "required": ["street"], "type": "object", "properties": {"street": {"type": "string"}}}}}))
        .await;
    let answered = rig.upstream.hear().await;
    assert_eq!((&answered["id"], &answered["result"]["content"]), (&json!("q-2"), &json!({"street": "1 Main Street"})));
    assert_eq!(rig.rounds().await.len(), known, "nobody is asked again");
    rig.result(&call, "booked").await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
    assert_eq!(rig.round(&late).await.status, Status::Resolved);

    rig.call(3, json!({"item": "anvil", "again": true})).await;
    let fresh = rig.ask("q-3").await;
    assert_eq!((fresh.status, fresh.suggestion_of), (Status::Pending, None), "another call asks anew");
}

#[tokio::test]
async fn a_used_late_answer_is_not_used_for_the_next_call() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    rig.client.hear().await;
    answer(&rig.sayso, &late, "1 Main Street").await;
    let call = rig.call(2, json!({})).await;
    rig.ask_raw("q-2").await;
    assert_eq!(rig.upstream.hear().await["id"], "q-2");
    rig.ask_raw("q-3").await;
    let fresh = rig.new_round(2).await;
    assert_eq!(fresh.status, Status::Pending, "the same question in the same call is asked anew");
    rig.result(&call, "done").await;
}

#[tokio::test]
async fn a_question_that_comes_again_before_it_is_answered_is_the_same_round() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    rig.client.hear().await;
    let call = rig.call(2, json!({})).await;
    rig.ask_raw("q-2").await;
    answer(&rig.sayso, &late, "2 Side Street").await;
    let answered = rig.upstream.hear().await;
    assert_eq!(answered["result"]["content"]["street"], "2 Side Street");
    rig.result(&call, "booked").await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
    assert_eq!(rig.rounds().await.len(), 2);
}

#[tokio::test]
async fn a_question_that_comes_again_changed_is_a_new_round_that_suggests_the_old_answer() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    rig.client.hear().await;
    answer(&rig.sayso, &late, "1 Main Street").await;
    rig.call(2, json!({})).await;
    let params = json!({"message": "Where to, exactly?", "requestedSchema": {
        "type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}});
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": "q-2", "method": "elicitation/create", "params": params})).await;
    let fresh = rig.new_round(2).await;
    assert_eq!((fresh.status, fresh.suggestion_of), (Status::Pending, Some(late.round_id)));
    assert_eq!(rig.until(&late, Status::Failed).await.failure.unwrap().code, "superseded");
}

#[tokio::test]
async fn a_repeatable_call_is_made_again_by_the_gateway_and_its_result_waits_for_the_agent() {
    let tools = json!([{"name": "book", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true}}]);
    let mut rig = Rig::start(Setup { tools, ..Setup::default() }).await;
    let call = rig.call(1, json!({"n": 0.10})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    rig.client.hear().await;
    answer(&rig.sayso, &late, "1 Main Street").await;
    let again = rig.upstream.hear().await;
    assert_eq!((&again["method"], &again["params"]["arguments"]), (&json!("tools/call"), &json!({"n": 0.10})));
    rig.ask_raw("q-2").await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
    rig.result(&again["id"], "booked").await;
    rig.until(&late, Status::Resolved).await;
    let params = json!({"name": "book", "arguments": {"n": 0.10}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await;
    assert_eq!(text_of(&rig.client.hear().await), "booked", "without a third call");
}

#[tokio::test]
async fn a_call_is_made_again_where_its_tool_says_that_it_reads_or_the_gateway_was_told_to_always() {
    let harmful = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false});
    for (replay, hints) in
        [(Replay::Declared, json!({"readOnlyHint": true})), (Replay::Always, harmful), (Replay::Always, Value::Null)]
    {
        let tools = json!([{"name": "book", "inputSchema": {"type": "object"}, "annotations": hints}]);
        let mut rig = Rig::start(Setup { tools, replay, ..Setup::default() }).await;
        let call = rig.call(1, json!({"item": "anvil"})).await;
        let round = rig.ask("q-1").await;
        let late = gives_up(&mut rig, "q-1", &call, &round).await;
        assert_eq!(text_of(&rig.client.hear().await), "timed out");
        answer(&rig.sayso, &late, "1 Main Street").await;
        let again = rig.upstream.hear().await;
        assert_eq!((&again["method"], &again["params"]["name"]), (&json!("tools/call"), &json!("book")), "{replay:?}");
        assert_eq!(again["params"]["arguments"], json!({"item": "anvil"}));
        rig.ask_raw("q-2").await;
        assert_eq!(rig.upstream.hear().await["result"]["content"]["street"], "1 Main Street");
        rig.result(&again["id"], "booked").await;
        rig.until(&late, Status::Resolved).await;
    }
}

#[tokio::test]
async fn a_late_answer_is_for_its_server_tool_arguments_and_question_alone() {
    let tools = || json!([{"name": "book", "inputSchema": {"type": "object"}}, {"name": "ship", "inputSchema": {"type": "object"}}]);
    let street = json!({"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]});
    let optional = json!({"type": "object", "properties": {"street": {"type": "string"}}});
    let anvil = json!({"item": "anvil"});
    for (what, server, tool, arguments, schema, ends) in [
        ("server", "freight", "book", &anvil, &street, None),
        ("tool", "shipping", "ship", &anvil, &street, None),
        ("arguments", "shipping", "book", &json!({"item": "anvil", "n": 1}), &street, None),
        ("schema", "shipping", "book", &anvil, &optional, Some("superseded")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
        let mut rig = Rig::over(sayso.clone(), Setup { tools: tools(), ..Setup::default() }).await;
        let call = rig.call(1, anvil.clone()).await;
        let round = rig.ask("q-1").await;
        let late = gives_up(&mut rig, "q-1", &call, &round).await;
        rig.client_hangs_up();
        rig.gateway.await.unwrap();
        answer(&sayso, &late, "1 Main Street").await;

        let mut next = Rig::over(sayso, Setup { name: server, tools: tools(), ..Setup::default() }).await;
        next.call_tool(1, tool, arguments.clone()).await;
        assert_eq!(next.upstream.hear().await["params"]["name"], tool);
        let params = json!({"message": "Where to?", "requestedSchema": schema});
        next.upstream.say(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})).await;
        let fresh = next.new_round(2).await;
        assert_eq!((fresh.status, fresh.answered), (Status::Pending, None), "another {what} is asked about anew");
        let late = match ends {
            Some(code) => {
                let ended = next.until(&late, Status::Failed).await;
                assert_eq!(ended.failure.as_ref().map(|failure| failure.code.as_str()), Some(code), "{what}");
                ended
            }
            None => next.round(&late).await,
        };
        assert_eq!(late.status == Status::ResponseValidated, ends.is_none(), "its own call may still use it: {what}");
    }
}

#[tokio::test]
async fn a_call_that_may_do_harm_twice_waits_for_the_agent() {
    for (replay, hints) in [(Replay::Declared, json!({})), (Replay::Never, json!({"readOnlyHint": true}))] {
        let tools = json!([{"name": "book", "inputSchema": {"type": "object"}, "annotations": hints}]);
        let mut rig = Rig::start(Setup { tools, replay, ..Setup::default() }).await;
        let call = rig.call(1, json!({})).await;
        let round = rig.ask("q-1").await;
        let late = gives_up(&mut rig, "q-1", &call, &round).await;
        rig.client.hear().await;
        answer(&rig.sayso, &late, "1 Main Street").await;
        rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "vendor/x"})).await;
        assert_eq!(rig.upstream.hear().await["method"], "vendor/x", "no call came before it: {replay:?}");
        assert_eq!(rig.round(&late).await.status, Status::ResponseValidated);
    }
}

#[tokio::test]
async fn a_late_answer_outlives_its_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
    let mut rig = Rig::over(sayso.clone(), Setup::default()).await;
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    let late = gives_up(&mut rig, "q-1", &call, &round).await;
    rig.client_hangs_up();
    rig.gateway.await.unwrap();
    answer(&sayso, &late, "1 Main Street").await;
    let mut next = Rig::over(sayso, Setup::default()).await;
    next.call(1, json!({"item": "anvil"})).await;
    next.ask_raw("q-9").await;
    assert_eq!(next.upstream.hear().await["result"]["content"]["street"], "1 Main Street");
}
