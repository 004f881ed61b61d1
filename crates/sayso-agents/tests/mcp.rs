//! Our own MCP server over streamable HTTP: sessions, questions that are asked and waited for, and what survives.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod mcp_client;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use hyper::{Method, Request, StatusCode};
use mcp_client::{HANG, Rig, Sent, answers, call, message_of, options, questions, request, text_of};
use sayso::{Answer, People, Principal, wire};
use sayso_agents::mcp::{McpOptions, McpServer};
use serde_json::json;
use tokio::sync::watch;
use tower::Service as _;

#[tokio::test]
async fn a_session_is_begun_used_and_ended_by_its_own_agent() {
    let rig = Rig::new(HANG).await;
    for (asked, spoken) in [("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25")] {
        let (_, hello) = rig.hello_as(&rig.agent, asked).await;
        assert_eq!(hello["result"]["protocolVersion"], spoken);
        assert_eq!(hello["result"]["capabilities"], json!({"tools": {}}));
    }
    let session = rig.hello().await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(rig.send(&session, initialized).await.status(), StatusCode::ACCEPTED);
    assert_eq!(message_of(rig.send(&session, request(1, "ping", &json!({}))).await).await["result"], json!({}));
    let list = message_of(rig.send(&session, request(2, "tools/list", &json!({}))).await).await;
    let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["ask_user", "sayso_wait", "resume"]);
    let unknown = message_of(rig.send(&session, request(3, "prompts/list", &json!({}))).await).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let no_tool = message_of(rig.send(&session, call(4, "rm", &json!({}))).await).await;
    assert_eq!(no_tool["error"]["code"], -32602);

    let other = Principal::agent("other");
    let ping = || request(5, "ping", &json!({}));
    let theirs = Sent { session: Some(&session), body: ping(), ..Sent::default() };
    assert_eq!(rig.send_as(&other, theirs).await.status(), StatusCode::NOT_FOUND, "an id is no capability");
    let end = || Sent { method: Method::DELETE, session: Some(&session), ..Sent::default() };
    assert_eq!(rig.send_as(&other, end()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(rig.send_as(&rig.agent, end()).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(rig.send(&session, ping()).await.status(), StatusCode::NOT_FOUND, "the client begins another");
}

#[tokio::test]
async fn what_is_no_message_of_an_agents_is_refused_with_its_reason() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let ping = || request(1, "ping", &json!({}));
    let session = Some(session.as_str());
    let long = json!({"jsonrpc": "2.0", "method": "x", "params": {"t": "x".repeat(2 << 20)}}).to_string();
    for (sent, status) in [
        (Sent { method: Method::GET, session, ..Sent::default() }, StatusCode::METHOD_NOT_ALLOWED),
        (Sent { body: ping(), ..Sent::default() }, StatusCode::BAD_REQUEST),
        (Sent { session, version: Some("2026-07-28"), body: ping(), ..Sent::default() }, StatusCode::BAD_REQUEST),
        (Sent { session, body: format!("[{}]", ping()), ..Sent::default() }, StatusCode::BAD_REQUEST),
        (Sent { session, body: "{".to_owned(), ..Sent::default() }, StatusCode::BAD_REQUEST),
        (
            Sent { session, content_type: "text/plain", body: ping(), ..Sent::default() },
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (Sent { session, accept: "text/html", body: ping(), ..Sent::default() }, StatusCode::NOT_ACCEPTABLE),
        (Sent { session, body: long, ..Sent::default() }, StatusCode::PAYLOAD_TOO_LARGE),
        (Sent { session, version: None, body: ping(), ..Sent::default() }, StatusCode::OK),
    ] {
        let body = sent.body.chars().take(80).collect::<String>();
        assert_eq!(rig.send_as(&rig.agent, sent).await.status(), status, "{body}");
    }
    let person = rig.send_as(&Principal::person("ada"), Sent { body: ping(), ..Sent::default() }).await;
    assert_eq!(person.status(), StatusCode::FORBIDDEN);
    let mut nobody = Request::new(ping());
    *nobody.method_mut() = Method::POST;
    assert_eq!(rig.server.clone().call(nobody).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_question_is_stored_and_its_answer_ends_the_call() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let held = rig.send(&session, call(1, "ask_user", &questions("Where?"))).await;
    assert_eq!(held.headers()["content-type"], "text/event-stream", "it has to wait");
    let round = rig.new_round(0).await;
    assert_eq!((round.server.as_str(), round.operation_name.as_str()), ("claude", "ask_user"));
    assert_eq!(round.requests.get("q0").unwrap().question.as_deref(), Some("Target: Where?"));
    rig.answer(&round).await;
    let message = message_of(held).await;
    assert_eq!(answers(&message)[0], json!({"question": "Where?", "answer": ["staging"]}));
    assert_eq!(answers(&message)[1], json!({"question": "Anything else?", "declined": true, "reason": "no"}));
    assert_eq!((&message["id"], &message["result"]["isError"]), (&json!(1), &json!(false)));
    let wrong = message_of(rig.send(&session, call(2, "ask_user", &json!({}))).await).await;
    assert_eq!(wrong["result"]["isError"], true);
    assert_eq!(rig.rounds().await.len(), 1);
}

#[tokio::test]
async fn a_client_that_takes_no_events_gets_one_json_text() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let body = call(1, "ask_user", &questions("Where?"));
    let sent = Sent { session: Some(&session), accept: "application/json", body, ..Sent::default() };
    let answering = async {
        let round = rig.new_round(0).await;
        rig.answer(&round).await;
    };
    let (response, ()) = tokio::join!(rig.send_as(&rig.agent, sent), answering);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(answers(&message_of(response).await)[0]["answer"], json!(["staging"]));
}

#[tokio::test]
async fn a_call_held_long_enough_is_pending_and_a_retry_or_a_wait_joins_it() {
    let rig = Rig::new(Duration::from_millis(1)).await;
    let session = rig.hello().await;
    let pending = message_of(rig.send(&session, call(1, "ask_user", &questions("Where?"))).await).await;
    let data = &pending["result"]["structuredContent"];
    let round = rig.new_round(0).await;
    assert_eq!(data["paused"]["execution_id"], round.execution_id.to_string());
    assert_eq!(data["answer_at"], format!("http://127.0.0.1:7717/rounds/{}", round.round_id));
    let text = pending["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not denied") && text.contains("sayso_wait"), "{text}");
    let wait = || call(2, "sayso_wait", &json!({"execution_id": round.execution_id}));
    let again = message_of(rig.send(&session, wait()).await).await;
    assert_eq!(again["result"]["structuredContent"]["paused"]["tool_path"], "claude:ask_user");
    message_of(rig.send(&session, call(3, "ask_user", &questions("Where?"))).await).await;
    assert_eq!(rig.rounds().await.len(), 1, "the same question is asked once");
    rig.answer(&round).await;
    let retried = message_of(rig.send(&session, call(4, "ask_user", &questions("Where?"))).await).await;
    assert_eq!(answers(&retried)[0]["question"], "Where?");
    let waited = message_of(rig.send(&session, wait()).await).await;
    assert_eq!(answers(&waited)[0]["answer"], json!(["staging"]), "it can be read again");
    let other = message_of(rig.send(&session, call(5, "ask_user", &questions("Whither?"))).await).await;
    assert!(other["result"]["structuredContent"]["paused"].is_object());
    assert_eq!(rig.rounds().await.len(), 2);
    let unknown = call(6, "sayso_wait", &json!({"execution_id": "exe_01JZ0000000000000000000000"}));
    assert_eq!(message_of(rig.send(&session, unknown).await).await["result"]["isError"], true);
}

#[tokio::test]
async fn the_same_question_is_a_retry_for_ten_minutes_from_when_its_answer_was_first_taken() {
    let rig = Rig::new(Duration::from_millis(1)).await;
    let session = rig.hello().await;
    let ask = async |id| message_of(rig.send(&session, call(id, "ask_user", &questions("Where?"))).await).await;
    // The store has threads of its own, which go by real time: the timers' clock stands still only while it is moved.
    let advance = async |minutes: u64| {
        // The stream that was read to its end has yet to take note of that.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(60 * minutes)).await;
        tokio::time::resume();
    };
    assert!(ask(1).await["result"]["structuredContent"]["paused"].is_object());
    rig.answer(&rig.new_round(0).await).await;
    for (id, minutes) in [(2, 20), (3, 5), (4, 4)] {
        advance(minutes).await;
        assert_eq!(answers(&ask(id).await)[0]["answer"], json!(["staging"]), "{minutes} minutes later");
    }
    assert_eq!(rig.rounds().await.len(), 1);
    advance(1).await;
    let anew = ask(5).await;
    assert!(anew["result"]["structuredContent"]["paused"].is_object(), "it is asked anew: {anew}");
    assert_eq!(rig.rounds().await.len(), 2);
}

#[tokio::test]
async fn the_answer_outlives_the_server_the_session_and_a_client_that_has_gone() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let held = rig.send(&session, call(1, "ask_user", &questions("Where?"))).await;
    let round = rig.new_round(0).await;
    drop(held);
    rig.answer(&round).await;
    // The stream of whoever has gone ends by itself, and lets go of the question.
    let retried = loop {
        let retried = rig.send(&session, call(1, "ask_user", &questions("Where?"))).await;
        let message = message_of(retried).await;
        if message.get("error").is_none() {
            break message;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answers(&retried)[0]["answer"], json!(["staging"]));
    assert_eq!(rig.rounds().await.len(), 1);

    let next = Rig { server: McpServer::new(&rig.sayso, options(HANG)), ..rig };
    assert_eq!(next.send(&session, request(2, "ping", &json!({}))).await.status(), StatusCode::NOT_FOUND);
    let session = next.hello().await;
    let wait = call(3, "sayso_wait", &json!({"execution_id": round.execution_id}));
    assert_eq!(answers(&message_of(next.send(&session, wait).await).await)[0]["answer"], json!(["staging"]));
    let other = Principal::agent("other");
    let (session, _) = next.hello_as(&other, "2025-11-25").await;
    let body = call(4, "sayso_wait", &json!({"execution_id": round.execution_id}));
    let theirs = next.send_as(&other, Sent { session: Some(&session), body, ..Sent::default() }).await;
    assert_eq!(message_of(theirs).await["result"]["isError"], true, "it is nobody else's");
}

#[tokio::test]
async fn a_client_that_goes_away_while_its_question_is_stored_is_asked_for_once() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    // However far the call had come: not begun, waiting for the disk, stored and not noted, waiting for a person.
    for polls in 0..24 {
        let body = call(1, "ask_user", &questions(&format!("Where, {polls}?")));
        let send = |accept| {
            rig.send_as(&rig.agent, Sent { session: Some(&session), accept, body: body.clone(), ..Sent::default() })
        };
        let mut gone = Box::pin(send("application/json"));
        for _ in 0..polls {
            let is_answered = poll_fn(|context| Poll::Ready(gone.as_mut().poll(context).is_ready())).await;
            assert!(!is_answered, "nobody has answered");
            tokio::task::yield_now().await;
        }
        drop(gone);
        let held = send("text/event-stream").await;
        let round = rig.new_round(polls).await;
        rig.answer(&round).await;
        assert_eq!(answers(&message_of(held).await)[0]["answer"], json!(["staging"]), "after {polls} polls");
        assert_eq!(rig.rounds().await.len(), polls + 1, "after {polls} polls");
    }
}

#[tokio::test]
async fn equal_calls_at_once_are_two_and_one_that_is_cancelled_goes_on_being_asked() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let first = rig.send(&session, call(1, "ask_user", &questions("Where?"))).await;
    rig.new_round(0).await;
    let second = rig.send(&session, call(2, "ask_user", &questions("Where?"))).await;
    rig.new_round(1).await;
    let twice = message_of(rig.send(&session, call(2, "ask_user", &questions("Where?"))).await).await;
    assert_eq!(twice["error"]["code"], -32600, "its id is open still");
    let params = json!({"requestId": 1});
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
    rig.send(&session, cancelled).await;
    assert_eq!(text_of(first).await, "", "a request that was given up gets no answer");
    for round in rig.rounds().await {
        assert_eq!(round.status, sayso::Status::Pending);
        rig.answer(&round).await;
    }
    assert_eq!(answers(&message_of(second).await)[0]["answer"], json!(["staging"]));
}

#[tokio::test]
async fn a_server_that_stops_answers_as_if_the_hold_were_over() {
    let rig = Rig::new(HANG).await;
    let (stop, stopping) = watch::channel(false);
    let server = McpServer::new(&rig.sayso, McpOptions { stopping: Some(stopping), ..options(HANG) });
    let rig = Rig { server, ..rig };
    let session = rig.hello().await;
    let held = rig.send(&session, call(1, "ask_user", &questions("Where?"))).await;
    rig.new_round(0).await;
    stop.send_replace(true);
    assert!(message_of(held).await["result"]["structuredContent"]["paused"].is_object());
}

#[tokio::test]
async fn a_wait_for_a_programs_gate_ends_once_a_person_has_decided() {
    let rig = Rig::new(HANG).await;
    let session = rig.hello().await;
    let gate = sayso::gate::Gates::new(&rig.sayso, sayso::policy::PolicyFiles::none()).of(rig.agent.clone());
    let tool = sayso::policy::ToolName::parse("bank:transfer").unwrap();
    let transfer = sayso::gate::Call::new("s", tool, sayso::Json::parse("{}").unwrap());
    let sayso::gate::Ruling::Ask(round) = gate.judge(&transfer).await.unwrap() else { panic!("it is asked") };
    let wait = call(1, "sayso_wait", &json!({"execution_id": round.execution_id}));
    let held = rig.send(&session, wait).await;
    let answer = Answer { digest: Some(round.digest), ..Answer::one("call", wire::Response::consent()) };
    rig.sayso.people().answer(round.round_id, answer, "key").await.unwrap();
    let told = message_of(held).await;
    assert_eq!(told["result"]["structuredContent"]["approved"], true, "{told}");
    assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains("gate again"), "{told}");
}

#[tokio::test]
async fn sessions_are_bounded_and_the_oldest_of_the_same_agent_goes() {
    let rig = Rig::new(HANG).await;
    let other = Principal::agent("other");
    let (theirs, _) = rig.hello_as(&other, "2025-11-25").await;
    let first = rig.hello().await;
    let second = rig.hello().await;
    let ping = || request(1, "ping", &json!({}));
    for _ in 2..sayso::limits::MCP_SESSIONS_OF_ONE_MAX {
        rig.hello().await;
    }
    assert_eq!(rig.send(&first, ping()).await.status(), StatusCode::OK);
    rig.hello().await;
    assert_eq!(rig.send(&second, ping()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(rig.send(&first, ping()).await.status(), StatusCode::OK, "it was used since");
    let theirs = Sent { session: Some(&theirs), body: ping(), ..Sent::default() };
    assert_eq!(rig.send_as(&other, theirs).await.status(), StatusCode::OK);
}
