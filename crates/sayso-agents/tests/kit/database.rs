//! The whole run of a kit on a database that processes share: submitted here, answered from another process, its result read
//! by a third; and the same without a runtime.

use std::time::Duration;

use sayso::blocking;
use sayso::kit::{AgentSpec, ExecutionStatus, HumanInput, Kit, ScriptedCall};
use sayso::plan::DEFAULT_KEY;
use sayso::storage::{ElicitationResponse, ManagedInputStatus, ManagedInputStore, PostgresExecutionStore};
use sayso::{Error, ErrorCode, Json};
use sayso_agents::kit::ScriptRunner;

use crate::cluster::Cluster;
use crate::{HANG, booked_by, booking, json, pending, respond, result, status};

const BOOKED: &str = r#"{"calls":[{"name":"shipping:book","is_error":false,"text":"Booked."}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_on_a_database_is_answered_and_read_by_other_processes() {
    let url = Cluster::shared().fresh().await;
    let store = PostgresExecutionStore::open(&url).await.unwrap();
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let handle = booked_by(&kit, booking()).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    assert_eq!((round.server.as_str(), round.operation_name.as_str()), ("shipping", "book"));
    assert_eq!(handle.snapshot().await.unwrap().lifecycle, ExecutionStatus::WaitingForInput);
    assert_eq!(handle.result(Some(Duration::ZERO)).await.unwrap_err(), Error::Timeout);

    let other = Kit::new(PostgresExecutionStore::open(&url).await.unwrap());
    let seen = other.handle(handle.execution_id()).unwrap();
    assert_eq!(seen.pending_elicitation().await.unwrap(), Some(round.clone()));
    let wrong = [("other", ElicitationResponse::cancel())];
    let refused = seen.respond_elicitation(round.round_id, wrong, "key").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
    assert_eq!(respond(&seen, &round, "Pune").await, Ok(()));
    assert_eq!(respond(&handle, &round, "Pune").await, Ok(()), "a lost acknowledgement is repaired, wherever");
    assert_eq!(respond(&handle, &round, "Oslo").await.unwrap_err().code(), ErrorCode::ManagedInputConflict);
    let done = result(&handle).await;
    assert_eq!((status(&done).as_str(), done.result.as_ref().map(Json::as_str)), ("completed", Some(BOOKED)));
    let record = store.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!((record.status, record.delivery_attempts), (ManagedInputStatus::Resolved, 1));

    let third = Kit::new(PostgresExecutionStore::open(&url).await.unwrap());
    let read = third.handle(handle.execution_id()).unwrap();
    assert_eq!(result(&read).await, done);
    assert_eq!(read.cancel().await, Ok(()), "what has finished stays as it is");
    assert_eq!(result(&read).await, done);
    kit.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_on_a_database_is_cancelled_by_another_process() {
    let url = Cluster::shared().fresh().await;
    let kit = Kit::new(PostgresExecutionStore::open(&url).await.unwrap()).with_runner(ScriptRunner);
    let handle = booked_by(&kit, booking()).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    let other = PostgresExecutionStore::open(&url).await.unwrap();
    Kit::new(&other).handle(handle.execution_id()).unwrap().cancel().await.unwrap();
    assert_eq!(status(&result(&handle).await), "cancelled");
    let record = other.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!(record.failure_code.as_deref(), Some("cancelled"));
    assert_eq!(respond(&handle, &round, "Pune").await.unwrap_err().code(), ErrorCode::ManagedInputState);
    kit.close().await.unwrap();
}

/// The round that is pending, looked for as a program without a runtime looks.
fn asked(handle: &blocking::ExecutionHandle) -> sayso::storage::PendingElicitationRound {
    loop {
        if let Some(round) = handle.pending_elicitation().unwrap() {
            return round;
        }
        let state = handle.snapshot().unwrap();
        assert!(state.outcome.is_none(), "it ended before it asked: {state:?}");
        std::thread::yield_now();
    }
}

#[test]
fn the_same_without_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = runtime.block_on(Cluster::shared().fresh());
    let kit = blocking::Kit::open(PostgresExecutionStore::open(&url)).unwrap().with_runner(ScriptRunner);
    let agents = kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }]).unwrap();
    let submission = agents[0].submit("Book the shipment.").server(booking()).tools(["shipping:book"]);
    let call = ScriptedCall::new("shipping:book", json(r#"{"item":"lamp"}"#));
    let handle = submission.script([call]).human_input(HumanInput::Managed).start().unwrap();
    let round = asked(&handle);
    let other = blocking::Kit::open(PostgresExecutionStore::open(&url)).unwrap();
    let seen = other.handle(handle.execution_id()).unwrap();
    assert_eq!(seen.pending_rounds().unwrap(), std::slice::from_ref(&round));
    let answer = [(DEFAULT_KEY, ElicitationResponse::accept(json(r#"{"city":"Pune"}"#)))];
    seen.respond_elicitation(round.round_id, answer, "key").unwrap();
    let done = handle.result(Some(HANG)).unwrap();
    assert_eq!((status(&done).as_str(), done.result.as_ref().map(Json::as_str)), ("completed", Some(BOOKED)));
    assert_eq!(seen.result(Some(HANG)).unwrap(), done);
    let refused = runtime.block_on(async { handle.snapshot().map(drop) });
    assert_eq!(refused.map_err(|error| error.code()), Err(ErrorCode::Unavailable), "not for async code");
    kit.close().unwrap();
    other.close().unwrap();
}
