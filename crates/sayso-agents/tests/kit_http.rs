//! Kits against servers over HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod http_peer;

use std::time::Duration;

use http_peer::{HANG, HttpPeer, Part, answer, asks, event, says, stream};
use sayso::Json;
use sayso::kit::{AgentSpec, ExecutionHandle, HumanInput, Kit, ScriptedCall, Server, Submission};
use sayso::plan::{DEFAULT_KEY, expect_form};
use sayso::storage::{
    ElicitationResponse, ManagedInputStatus, ManagedInputStore, PendingElicitationRound, SqliteExecutionStore,
};
use sayso_agents::kit::ScriptRunner;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn booked_by(kit: &Kit, server: impl Into<Server>) -> Submission {
    let call = ScriptedCall::new("shipping:book", json(r#"{"item":"lamp"}"#));
    let agent = kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }]).unwrap().remove(0);
    agent.submit("Book the shipment.").server(server).tools(["shipping:book"]).script([call])
}

/// Asks where to in the stream of the call, and books once it is told.
async fn booking() -> HttpPeer {
    let told = Part::Await(r#""id":"ask","result""#);
    calling(stream([event(&asks("ask", "Where to?")), told, event(&says(3, "Booked."))])).await
}

async fn calling(parts: Vec<Part>) -> HttpPeer {
    HttpPeer::start(move |seen| (seen.rpc() == "tools/call").then(|| parts.clone())).await
}

/// Waits for the one round.
async fn pending(handle: &ExecutionHandle) -> PendingElicitationRound {
    let mut look = tokio::time::interval(Duration::from_millis(5));
    let looking = async {
        loop {
            if let Some(round) = handle.pending_elicitation().await.unwrap() {
                return round;
            }
            let state = handle.snapshot().await.unwrap();
            assert!(state.outcome.is_none(), "it ended before it asked: {state:?}");
            look.tick().await;
        }
    };
    tokio::time::timeout(HANG, looking).await.expect("asks in time")
}

async fn respond(handle: &ExecutionHandle, round: &PendingElicitationRound) {
    let response = ElicitationResponse::accept(json(r#"{"city":"Pune"}"#));
    handle.respond_elicitation(round.round_id, [(DEFAULT_KEY, response)], "key").await.unwrap();
}

/// How it ended: status, code and sentence.
async fn outcome(handle: &ExecutionHandle) -> (String, String, String) {
    let outcome = handle.result(Some(HANG)).await.expect("ends in time").execution.outcome.unwrap();
    (outcome.status, outcome.code.unwrap_or_default(), outcome.message.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_what_a_server_over_http_asks() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteExecutionStore::open(folder.path().join("sayso.sqlite")).await.unwrap();
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let peer = booking().await;
    let server = peer.server().header("Authorization", "Bearer s3cret");
    let handle = booked_by(&kit, server).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle).await;
    assert_eq!((round.server.as_str(), round.operation_name.as_str()), ("shipping", "book"));
    respond(&handle, &round).await;
    let done = handle.result(Some(HANG)).await.unwrap();
    let text = r#"{"calls":[{"name":"shipping:book","is_error":false,"text":"Booked."}]}"#;
    assert_eq!(done.result.as_ref().map(Json::as_str), Some(text));
    let record = store.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!((record.status, record.delivery_attempts), (ManagedInputStatus::Resolved, 1));
    let answers = peer.seen().into_iter().filter(|seen| seen.rpc() == "answer").count();
    assert_eq!(answers, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_answers_what_a_server_over_http_asks() {
    let kit = Kit::unstored().with_runner(ScriptRunner);
    let peer = booking().await;
    let plan = || expect_form(DEFAULT_KEY).message("Where to").accept(json(r#"{"city":"Pune"}"#));
    let handle = booked_by(&kit, peer.server()).plan(plan()).start().await.unwrap();
    assert_eq!(outcome(&handle).await.0, "completed");
    let peer = booking().await;
    let handle = kit.tool(peer.server(), "book", json("{}"), Some(plan())).await.unwrap();
    assert_eq!(outcome(&handle).await.0, "completed");
    let peer = booking().await;
    let handle = kit.tool(peer.server(), "book", json("{}"), None).await.unwrap();
    assert_eq!(outcome(&handle).await.1, "elicitation_expectation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_takes_the_call_back_and_ends_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteExecutionStore::open(folder.path().join("sayso.sqlite")).await.unwrap();
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let peer = booking().await;
    let handle = booked_by(&kit, peer.server()).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle).await;
    handle.cancel().await.unwrap();
    assert_eq!(outcome(&handle).await.0, "cancelled");
    peer.request(|seen| seen.rpc() == "notifications/cancelled" && seen.body.contains(r#""requestId":3"#)).await;
    peer.request(|seen| seen.method == "DELETE").await;
    let record = store.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!(record.failure_code.as_deref(), Some("cancelled"));
    kit.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_while_a_person_thinks_takes_its_question_along() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteExecutionStore::open(folder.path().join("sayso.sqlite")).await.unwrap();
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let begun = stream([http_peer::bytes("id: 1\nretry: 20\ndata:\n\n"), event(&asks("ask", "Where to?"))]);
    let peer = HttpPeer::start(move |seen| match seen.header("last-event-id") {
        "" => (seen.rpc() == "tools/call").then(|| begun.clone()),
        _ => Some(answer("404 Not Found", "", "")),
    })
    .await;
    let handle = booked_by(&kit, peer.server()).human_input(HumanInput::Managed).start().await.unwrap();
    let (_, code, message) = outcome(&handle).await;
    assert!(code == "unavailable" && message.contains("session is gone"), "{code} {message}");
    let records = store.managed_input_store().list_rounds(handle.execution_id()).await.unwrap();
    assert_eq!(records[0].failure_code.as_deref(), Some("withdrawn"));
    kit.close().await.unwrap();
}
