//! A paused call outlives its client's patience: pending results, the wait tool, identical calls, stored results.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use std::time::Duration;

use rig::{Rig, Setup, text_of};
use sayso::{Options, Sayso, Status};
use sayso_agents::gateway::GatewayExit;
use serde_json::{Value, json};

fn short_hold() -> Setup {
    Setup { hold: Duration::from_millis(30), ..Setup::default() }
}

async fn wait_tool(rig: &mut Rig, id: u64, execution: &Value) {
    let params = json!({"name": "sayso_wait", "arguments": {"execution_id": execution}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
}

/// A call that is paused and whose pending result was handed out: its number, its round, its handle.
async fn parked(rig: &mut Rig) -> (Value, sayso::wire::Round, Value) {
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    let pending = rig.client.hear().await;
    assert_eq!(pending["id"], 1);
    let text = text_of(&pending);
    assert!(text.contains("still waiting for a person") && text.contains("not denied"), "{text}");
    assert!(text.contains("sayso_wait"), "{text}");
    let paused = &pending["result"]["structuredContent"]["paused"];
    assert_eq!(paused["tool_path"], "shipping:book");
    assert_eq!(paused["args"], json!({"item": "anvil"}));
    assert_eq!(paused["message"], "Where to?");
    (call, round, paused["execution_id"].clone())
}

#[tokio::test]
async fn a_call_held_long_enough_returns_its_handle_and_the_wait_tool_its_result() {
    let mut rig = Rig::start(short_hold()).await;
    let (call, round, execution) = parked(&mut rig).await;
    wait_tool(&mut rig, 2, &execution).await;
    let again = rig.client.hear().await;
    assert!(text_of(&again).contains("still waiting"), "waiting has a hold of its own: {again}");
    rig.answer_street(&round).await;
    rig.upstream.hear().await;
    rig.result(&call, "booked").await;
    rig.until(&round, Status::Resolved).await;
    for id in [3, 4] {
        wait_tool(&mut rig, id, &execution).await;
        let result = rig.client.hear().await;
        assert_eq!((result["id"].as_u64(), text_of(&result)), (Some(id), "booked"), "the same id reads it again");
    }
}

#[tokio::test]
async fn an_identical_call_joins_a_parked_one_and_runs_nothing_twice() {
    let mut rig = Rig::start(short_hold()).await;
    let (call, round, _) = parked(&mut rig).await;
    let retry = json!({"name": "book", "arguments": {"item": "anvil"}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": retry})).await;
    assert!(text_of(&rig.client.hear().await).contains("still waiting"), "joined, held, let go again");
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept", "no second call was forwarded");
    rig.result(&call, "booked").await;
    rig.until(&round, Status::Resolved).await;
    rig.client.say(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": retry})).await;
    assert_eq!(text_of(&rig.client.hear().await), "booked", "the stored result goes to the retry");
    let other = rig.call(4, json!({"item": "rope"})).await;
    rig.result(&other, "another call").await;
    assert_eq!(text_of(&rig.client.hear().await), "another call", "other arguments are another call");
}

#[tokio::test]
async fn two_equal_calls_at_once_are_two_calls() {
    let mut rig = Rig::start(Setup::default()).await;
    let first = rig.call(1, json!({"item": "anvil"})).await;
    let second = rig.call(2, json!({"item": "anvil"})).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_client_that_gives_up_while_paused_is_never_forwarded_and_its_retry_gets_the_answer() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    rig.client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    let params = json!({"name": "book", "arguments": {"item": "anvil"}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await;
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept", "neither cancelled nor a second call");
    rig.result(&call, "booked").await;
    let answer = rig.client.hear().await;
    assert_eq!((answer["id"].as_u64(), text_of(&answer)), (Some(2), "booked"));
}

#[tokio::test]
async fn a_client_that_gives_up_a_call_that_never_asked_cancels_it_upstream() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({})).await;
    let params = json!({"requestId": 1, "reason": "too slow"});
    rig.client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["params"], json!({"requestId": call, "reason": "too slow"}));
}

#[tokio::test]
async fn a_tool_with_an_output_schema_gets_its_pending_result_as_an_error() {
    let tools = json!([{"name": "book", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}]);
    let mut rig = Rig::start(Setup { tools, ..short_hold() }).await;
    rig.call(1, json!({})).await;
    rig.ask("q-1").await;
    let pending = rig.client.hear().await;
    assert_eq!(pending["result"]["isError"], true);
    assert!(pending["result"].get("structuredContent").is_none());
}

#[tokio::test]
async fn a_prompt_that_is_held_too_long_ends_with_its_handle_and_an_identical_one_joins_it() {
    let mut rig = Rig::start(short_hold()).await;
    let get = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "prompts/get", "params": {"name": "p"}});
    rig.client.say(get(1)).await;
    let number = rig.upstream.hear().await["id"].clone();
    let round = rig.ask("q-1").await;
    assert_eq!(round.operation_kind, sayso_core::round::OperationKind::Prompt);
    let ended = rig.client.hear().await;
    assert_eq!(ended["error"]["data"]["execution_id"], json!(round.execution_id.to_string()));
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
    rig.client.say(get(2)).await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": number, "result": {"messages": []}})).await;
    let answer = rig.client.hear().await;
    assert_eq!((answer["id"].as_u64(), &answer["result"]), (Some(2), &json!({"messages": []})));
}

#[tokio::test]
async fn an_unknown_handle_is_said_to_be_unknown() {
    let mut rig = Rig::start(short_hold()).await;
    wait_tool(&mut rig, 1, &json!("exe_00000000000000000000000000")).await;
    let unknown = rig.client.hear().await;
    assert_eq!(unknown["result"]["isError"], true);
    assert!(text_of(&unknown).contains("no call with this execution_id"));
    wait_tool(&mut rig, 2, &json!("nonsense")).await;
    assert_eq!(rig.client.hear().await["error"]["code"], -32602);
}

#[tokio::test]
async fn two_calls_that_share_a_question_each_get_a_handle() {
    let mut rig = Rig::start(short_hold()).await;
    rig.call(1, json!({"item": "anvil"})).await;
    rig.call(2, json!({"item": "rope"})).await;
    let round = rig.ask("q-1").await;
    let pending = [rig.client.hear().await, rig.client.hear().await];
    let handle = |message: &Value| message["result"]["structuredContent"]["paused"]["execution_id"].clone();
    assert_ne!(handle(&pending[0]), handle(&pending[1]));
    assert!(pending.iter().all(|message| text_of(message).contains(&round.round_id.to_string())));
}

#[tokio::test]
async fn a_client_that_ends_while_paused_leaves_a_result_for_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
    let mut rig = Rig::over(sayso.clone(), short_hold()).await;
    let (call, round, execution) = parked(&mut rig).await;
    rig.client_hangs_up();
    let mut later = Rig::over(sayso.clone(), Setup::default()).await;
    wait_tool(&mut later, 7, &execution).await;
    rig.answer_street(&round).await;
    assert_eq!(rig.upstream.hear().await["result"]["action"], "accept");
    rig.result(&call, "booked").await;
    let result = later.client.hear().await;
    assert_eq!((result["id"].as_u64(), text_of(&result)), (Some(7), "booked"));
    assert_eq!(rig.gateway.await.unwrap().exit, GatewayExit::ClientLeft, "nothing is open any more");
}

#[tokio::test]
async fn a_gateway_that_lingered_long_enough_ends_its_rounds_with_the_reason() {
    let mut rig = Rig::start(Setup { linger: Duration::from_millis(30), ..short_hold() }).await;
    let (_, round, _) = parked(&mut rig).await;
    rig.client_hangs_up();
    let failure = rig.until(&round, Status::Failed).await.failure.unwrap();
    assert_eq!(rig.gateway.await.unwrap().exit, GatewayExit::LingerOver);
    assert_eq!(failure.code, "recovery_unavailable");
    assert!(failure.message.contains("the agent left"), "{}", failure.message);
}

#[tokio::test]
async fn a_gateway_that_is_stopped_fails_its_rounds_at_once_and_tells_whoever_waits() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.stop.take().unwrap().send(()).unwrap();
    let told = rig.client.hear().await;
    assert_eq!(told["result"]["isError"], true);
    assert!(text_of(&told).contains("stopped"), "{told}");
    assert_eq!(rig.round(&round).await.failure.unwrap().code, "recovery_unavailable");
}

#[tokio::test]
async fn an_upstream_that_exits_ends_its_rounds_and_the_next_request_starts_it_again() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    rig.upstream_exits();
    let told = rig.client.hear().await;
    assert!(text_of(&told).contains("may have run"), "{told}");
    let ended = rig.until(&round, Status::Failed).await;
    assert_eq!(ended.failure.unwrap().code, "recovery_unavailable");
    let execution = rig.sayso.execution(rig.sayso.person(), round.execution_id).await.unwrap();
    assert_eq!(execution.outcome.unwrap().code.as_deref(), Some("recovery_unavailable"));

    let params = json!({"name": "book", "arguments": {}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await;
    rig.upstream = rig.launches.recv().await.unwrap();
    let tools = Setup::default().tools;
    rig::answer_handshake(&mut rig.upstream, &tools).await;
    assert_eq!(rig.upstream.hear().await["method"], "notifications/initialized");
    let call = rig.upstream.hear().await;
    assert_eq!(call["method"], "tools/call", "what waited goes first");
    rig::answer_tools(&mut rig.upstream, &tools).await;
    rig.result(&call["id"], "after all").await;
    let heard = [rig.client.hear().await, rig.client.hear().await];
    assert!(heard.iter().any(|message| message["method"] == "notifications/tools/list_changed"));
    assert!(heard.iter().any(|message| text_of(message) == "after all"));
}

#[tokio::test]
async fn the_newest_waiter_wins_and_an_older_one_gets_the_pending_result() {
    let mut rig = Rig::start(Setup::default()).await;
    let call = rig.call(1, json!({"item": "anvil"})).await;
    let round = rig.ask("q-1").await;
    let execution = json!(round.execution_id.to_string());
    wait_tool(&mut rig, 2, &execution).await;
    let pending = rig.client.hear().await;
    assert_eq!(pending["id"], 1, "the call itself was the older waiter");
    assert!(text_of(&pending).contains("still waiting"));
    rig.answer_street(&round).await;
    rig.upstream.hear().await;
    rig.result(&call, "booked").await;
    let answer = rig.client.hear().await;
    assert_eq!((answer["id"].as_u64(), text_of(&answer)), (Some(2), "booked"));
}

#[tokio::test]
async fn an_upstream_that_keeps_crashing_is_given_up_after_five_starts() {
    let mut rig = Rig::start(Setup::default()).await;
    let request = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "vendor/x"});
    rig.upstream_exits();
    for id in 1..5 {
        rig.client.say(request(id)).await;
        drop(rig.launches.recv().await.unwrap());
        let told = rig.client.hear().await;
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(id), &json!(-32603)), "{told}");
    }
    rig.client.say(request(5)).await;
    let told = rig.client.hear().await;
    assert!(told["error"]["message"].as_str().unwrap().contains("crashed 5 times"), "{told}");
}

#[tokio::test]
async fn an_upstream_that_sends_a_line_over_the_limit_is_broken() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let round = rig.ask("q-1").await;
    let too_long = "x".repeat(sayso::limits::LINE_BYTES_MAX + 1);
    let mut upstream = std::mem::replace(&mut rig.upstream, rig::nobody());
    let saying = tokio::spawn(async move { upstream.try_say(&too_long).await });
    let told = rig.client.hear().await;
    assert!(text_of(&told).contains("a line over the limit"), "{told}");
    assert_eq!(rig.until(&round, Status::Failed).await.failure.unwrap().code, "recovery_unavailable");
    saying.await.unwrap();
}

#[tokio::test]
async fn noise_of_the_upstream_is_counted() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.upstream.say_raw("listening").await;
    rig.upstream.say_raw("debug: {").await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    rig.upstream.hear().await;
    rig.client_hangs_up();
    let report = rig.gateway.await.unwrap();
    assert_eq!((report.exit, report.skipped_lines), (GatewayExit::ClientLeft, 2));
}
