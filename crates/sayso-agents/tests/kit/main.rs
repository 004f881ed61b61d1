//! Kits with scripted agents and direct operations, against servers that are shell scripts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "../../../sayso-store/tests/support/cluster.rs"]
mod cluster;
mod database;
mod operations;

use std::sync::Arc;
use std::time::Duration;

use sayso::clock::ManualClock;
use sayso::kit::{
    Agent, AgentSpec, ExecutionHandle, ExecutionResult, ExecutionStatus, HttpServer, HumanInput, Kit, OperationSpec,
    ScriptedCall, Server, StdioServer, Submission,
};
use sayso::plan::{DEFAULT_KEY, expect_form, maybe_form, sequence};
use sayso::storage::{
    ElicitationResponse, ManagedInputStatus, ManagedInputStore, Options, PendingElicitationRound, SqliteExecutionStore,
};
use sayso::{Error, ErrorCode, Json, UnixMs};
use sayso_agents::kit::ScriptRunner;

/// Far beyond anything that is waited for; a test that reaches it has hung.
const HANG: Duration = Duration::from_secs(60);
const START: UnixMs = UnixMs(1_796_000_000_000);

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// A server with the tools `book` and `quote`; what it does once it is called is `script`, in the shell.
fn server(script: &str) -> StdioServer {
    let hello = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'; read l"#;
    let tools = r#"read l; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"book","inputSchema":{"type":"object"}},{"name":"quote","inputSchema":{"type":"object"}}]}}'; read l"#;
    StdioServer::new("shipping", ["sh", "-c", &format!("{hello}; {tools}; {script}; read l")])
}

fn asks(id: &str, message: &str) -> String {
    format!(
        r#"echo '{{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{{"message":"{message}","requestedSchema":{{"type":"object","properties":{{"city":{{"type":"string"}}}},"required":["city"]}}}}}}'"#
    )
}

fn says(id: u32, text: &str) -> String {
    format!(r#"echo '{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}'"#)
}

/// Asks where to, and books once it is told.
fn booking() -> StdioServer {
    server(&format!("{}; read l; {}", asks("a", "Where to?"), says(3, "Booked.")))
}

struct Place {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(START)) }
    }

    async fn store(&self) -> SqliteExecutionStore {
        let options = Options { clock: Some(self.clock.clone()), ..Options::default() };
        SqliteExecutionStore::open_with(self.folder.path().join("sayso.sqlite"), options).await.unwrap()
    }

    async fn kit(&self) -> Kit {
        Kit::new(self.store().await).with_runner(ScriptRunner)
    }
}

fn agent(kit: &Kit) -> Agent {
    kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }]).unwrap().remove(0)
}

fn booked_by(kit: &Kit, server: impl Into<Server>) -> Submission {
    let call = ScriptedCall::new("shipping:book", json(r#"{"item":"lamp"}"#));
    agent(kit).submit("Book the shipment.").server(server).tools(["shipping:book"]).script([call])
}

/// Waits until `count` rounds are pending.
async fn pending(handle: &ExecutionHandle, count: usize) -> Vec<PendingElicitationRound> {
    let mut look = tokio::time::interval(Duration::from_millis(5));
    let looking = async {
        loop {
            let rounds = handle.pending_rounds().await.unwrap();
            if rounds.len() >= count {
                return rounds;
            }
            let state = handle.snapshot().await.unwrap();
            assert!(state.outcome.is_none(), "it ended before it asked: {state:?}");
            look.tick().await;
        }
    };
    tokio::time::timeout(HANG, looking).await.expect("asks in time")
}

async fn respond(handle: &ExecutionHandle, round: &PendingElicitationRound, city: &str) -> Result<(), Error> {
    let content = Json::from_value(&serde_json::json!({ "city": city }));
    handle.respond_elicitation(round.round_id, [(DEFAULT_KEY, ElicitationResponse::accept(content))], "key").await
}

async fn result(handle: &ExecutionHandle) -> ExecutionResult {
    handle.result(Some(HANG)).await.expect("ends in time")
}

fn failure(result: &ExecutionResult) -> (String, String) {
    let outcome = result.execution.outcome.clone().unwrap();
    assert_eq!(outcome.status, "failed");
    (outcome.code.unwrap(), outcome.message.unwrap())
}

fn status(result: &ExecutionResult) -> String {
    result.execution.outcome.clone().unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_through_the_handle_and_the_result_is_read_after_reopening() {
    let place = Place::new();
    let store = place.store().await;
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let handle = booked_by(&kit, booking()).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    assert_eq!(handle.pending_elicitation().await.unwrap(), Some(round.clone()));
    assert_eq!((round.server.as_str(), round.operation_name.as_str()), ("shipping", "book"));
    assert_eq!(handle.snapshot().await.unwrap().lifecycle, ExecutionStatus::WaitingForInput);
    assert_eq!(handle.result(Some(Duration::ZERO)).await.unwrap_err(), Error::Timeout);

    let wrong = [("other", ElicitationResponse::cancel())];
    let refused = handle.respond_elicitation(round.round_id, wrong, "key").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
    assert_eq!(respond(&handle, &round, "Pune").await, Ok(()));
    assert_eq!(respond(&handle, &round, "Pune").await, Ok(()), "a lost acknowledgement is repaired");
    assert_eq!(respond(&handle, &round, "Oslo").await.unwrap_err().code(), ErrorCode::ManagedInputConflict);
    let done = result(&handle).await;
    assert_eq!(status(&done), "completed");
    let text = r#"{"calls":[{"name":"shipping:book","is_error":false,"text":"Booked."}]}"#;
    assert_eq!(done.result.as_ref().map(Json::as_str), Some(text));
    let record = store.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!((record.status, record.delivery_attempts), (ManagedInputStatus::Resolved, 1));

    // Another process finds everything; cancelling what has finished changes nothing.
    let again = place.kit().await.handle(handle.execution_id()).unwrap();
    assert_eq!(result(&again).await, done);
    assert_eq!(again.cancel().await, Ok(()));
    assert_eq!(again.pending_elicitation().await.unwrap(), None);
    assert_eq!(result(&again).await, done);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_rounds_at_once_are_named_and_answered_one_by_one() {
    let place = Place::new();
    let kit = place.kit().await;
    let script =
        format!("{}; {}; read l; read l; {}", asks("a", "Where to?"), asks("b", "Where from?"), says(3, "Both."));
    let handle = booked_by(&kit, server(&script)).human_input(HumanInput::Managed).start().await.unwrap();
    let rounds = pending(&handle, 2).await;
    let error = handle.pending_elicitation().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ManagedInputState);
    for round in &rounds {
        assert!(error.to_string().contains(&round.round_id.to_string()), "{error}");
    }
    respond(&handle, &rounds[1], "Oslo").await.unwrap();
    assert_eq!(handle.pending_elicitation().await.unwrap().unwrap().round_id, rounds[0].round_id);
    respond(&handle, &rounds[0], "Pune").await.unwrap();
    assert_eq!(status(&result(&handle).await), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_answers_and_what_it_does_not_expect_fails_the_execution() {
    let place = Place::new();
    let kit = place.kit().await;
    let plan = sequence([maybe_form("none").cancel(), expect_form(DEFAULT_KEY).accept(json(r#"{"city":"Pune"}"#))]);
    let handle = booked_by(&kit, booking()).plan(plan).start().await.unwrap();
    assert_eq!(status(&result(&handle).await), "completed");

    let unexpected = booked_by(&kit, booking()).start().await.unwrap();
    let (code, message) = failure(&result(&unexpected).await);
    assert_eq!(code, "elicitation_expectation_failed");
    assert!(message.contains("Where to?"), "{message}");
    assert!(unexpected.pending_rounds().await.unwrap().is_empty());

    let unfinished = server(&says(3, "Booked."));
    let plan = expect_form(DEFAULT_KEY).message("Where to").cancel();
    let handle = booked_by(&kit, unfinished).plan(plan).start().await.unwrap();
    let (code, message) = failure(&result(&handle).await);
    assert!(code == "elicitation_expectation_failed" && message.contains("did not come"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_the_round_and_the_server_and_repeats() {
    let place = Place::new();
    let store = place.store().await;
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let handle = booked_by(&kit, booking()).human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    // Also from another process, which knows its id alone.
    place.kit().await.handle(handle.execution_id()).unwrap().cancel().await.unwrap();
    handle.cancel().await.unwrap();
    assert_eq!(status(&result(&handle).await), "cancelled");
    let record = store.managed_input_store().get_round(round.round_id).await.unwrap().unwrap();
    assert_eq!(record.failure_code.as_deref(), Some("cancelled"));
    assert_eq!(respond(&handle, &round, "Pune").await.unwrap_err().code(), ErrorCode::ManagedInputState);
    kit.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_a_person_thinks_takes_its_question_along() {
    let place = Place::new();
    let store = place.store().await;
    let kit = Kit::new(&store).with_runner(ScriptRunner);
    let dying = server(&format!("{}; exit 3", asks("a", "Where to?")));
    let handle = booked_by(&kit, dying).human_input(HumanInput::Managed).start().await.unwrap();
    let (code, message) = failure(&result(&handle).await);
    assert!(code == "unavailable" && message.contains("ended"), "{code} {message}");
    let records = store.managed_input_store().list_rounds(handle.execution_id()).await.unwrap();
    assert_eq!(records[0].failure_code.as_deref(), Some("withdrawn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_and_a_limit_that_is_reached_fail_the_execution() {
    let place = Place::new();
    let kit = place.kit().await;
    let submission = booked_by(&kit, booking()).human_input(HumanInput::Managed).deadline(START.plus_ms(1000));
    let handle = submission.start().await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    assert_eq!(round.deadline, Some(START.plus_ms(1000)));
    place.clock.advance_ms(1001);
    assert_eq!(respond(&handle, &round, "Pune").await.unwrap_err().code(), ErrorCode::ManagedInputState);
    assert_eq!(failure(&result(&handle).await).0, "operation_timeout");

    let greedy = server(&format!("{}; read l; {}; read l; {}", asks("a", "One?"), asks("b", "Two?"), says(3, "Done.")));
    let spec = AgentSpec {
        harness: "script".to_owned(),
        prompt: "Book it.".to_owned(),
        servers: vec![greedy.into()],
        script: vec![ScriptedCall::new("shipping:book", json("{}"))],
        round_limit: 1,
        ..AgentSpec::default()
    };
    let handle = kit.submit(spec, HumanInput::Managed).await.unwrap();
    let round = pending(&handle, 1).await.remove(0);
    respond(&handle, &round, "Pune").await.unwrap();
    assert_eq!(failure(&result(&handle).await).0, "elicitation_round_limit");
}

#[test]
fn a_lost_worker_leaves_a_failed_execution_that_no_answer_revives() {
    let place = Place::new();
    let clock = place.clock.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (execution, round) = runtime.block_on(async {
        let kit = place.kit().await;
        let handle = booked_by(&kit, booking()).human_input(HumanInput::Managed).start().await.unwrap();
        (handle.execution_id(), pending(&handle, 1).await.remove(0))
    });
    // As the end of a process: nothing is said to the store.
    runtime.shutdown_background();
    clock.advance_ms(31_000);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let data = sayso::Options::at(place.folder.path()).clock(clock);
        let sayso = sayso::Sayso::open(data).await.unwrap();
        let mut sweeper = sayso::Sweeper::default();
        sayso.sweep(&mut sweeper, Duration::ZERO).await.unwrap();
        let desk = Arc::new(sayso.desk(sayso::Principal::agent("kit")));
        let kit = Kit::new(sayso::kit::KitStore::of(desk, Arc::new(sayso.people())));
        let handle = kit.handle(execution).unwrap();
        assert_eq!(handle.pending_rounds().await.unwrap().len(), 1, "one look is not enough");
        sayso.sweep(&mut sweeper, Duration::from_secs(31)).await.unwrap();
        let (code, message) = failure(&result(&handle).await);
        assert!(code == "recovery_unavailable" && message.contains("died with it"), "{message}");
        assert_eq!(respond(&handle, &round, "Pune").await.unwrap_err().code(), ErrorCode::ManagedInputState);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_cannot_be_run_is_refused_before_anything_starts() {
    let place = Place::new();
    let store = place.store().await;
    let (kit, unstored) = (Kit::new(&store).with_runner(ScriptRunner), Kit::unstored().with_runner(ScriptRunner));
    let whole = || AgentSpec {
        harness: "script".to_owned(),
        prompt: "Book it.".to_owned(),
        servers: vec![booking().into()],
        tools: vec!["shipping:book".to_owned()],
        script: vec![ScriptedCall::new("shipping:book", json("{}"))],
        ..AgentSpec::default()
    };
    let call = |tool: &str| vec![ScriptedCall::new(tool, json("{}"))];
    let plan = || Some(expect_form(DEFAULT_KEY).cancel());
    let http = |url: &str| vec![HttpServer::new("shipping", url).into()];
    use HumanInput::{Fail, Managed};
    for (spec, human_input, words) in [
        (AgentSpec { plan: plan(), ..whole() }, Managed, "exclude each other"),
        (AgentSpec { harness: "codex".to_owned(), ..whole() }, Fail, "no harness codex"),
        (AgentSpec { harness: String::new(), ..whole() }, Fail, "no harness is named"),
        (AgentSpec { models: vec![" ".to_owned()], ..whole() }, Fail, "a model has no name"),
        (AgentSpec { prompt: " \n".to_owned(), ..whole() }, Fail, "the prompt is empty"),
        (AgentSpec { script: Vec::new(), ..whole() }, Fail, "needs a script"),
        (AgentSpec { script: call("shipping:quote"), ..whole() }, Fail, "not among the tools"),
        (AgentSpec { script: call("other:book"), ..whole() }, Fail, "the server other, which is not bound"),
        (AgentSpec { tools: vec!["book".to_owned()], ..whole() }, Fail, "must be written server:name"),
        (AgentSpec { servers: Vec::new(), ..whole() }, Fail, "not bound"),
        (AgentSpec { servers: vec![booking().into(), booking().into()], ..whole() }, Fail, "two servers"),
        (AgentSpec { servers: http("https://localhost/mcp"), ..whole() }, Fail, "https cannot be spoken"),
        (AgentSpec { servers: http("http://example.com/mcp"), ..whole() }, Fail, "allow_plain_http"),
        (AgentSpec { servers: http(""), ..whole() }, Fail, "the URL of the server"),
        (AgentSpec { servers: vec![StdioServer::new("a:b", ["x"]).into()], ..whole() }, Fail, "no colon"),
        (AgentSpec { servers: vec![StdioServer::new("shipping", [""; 0]).into()], ..whole() }, Fail, "no command"),
        (AgentSpec { plan: Some(sequence([])), ..whole() }, Fail, "the plan cannot be followed"),
        (AgentSpec { round_limit: 0, ..whole() }, Fail, "the round limit"),
        (AgentSpec { time_limit: Duration::ZERO, ..whole() }, Fail, "the time limit"),
    ] {
        let error = kit.submit(spec, human_input).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::ModelValidation, "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let scripted = AgentSpec { script: vec![ScriptedCall::new("shipping:book", json("[]"))], ..whole() };
    let error = kit.submit(scripted, Fail).await.unwrap_err();
    assert!(error.to_string().contains("must be an object"), "{error}");
    let error = unstored.submit(whole(), Managed).await.unwrap_err();
    assert!(error.code() == ErrorCode::ModelValidation && error.to_string().contains("persistent store"), "{error}");
    for spec in [
        OperationSpec::tool(booking(), "book", json("{}")),
        OperationSpec::prompt(booking(), "greet", json("{}")),
        OperationSpec::resource(booking(), "demo://x"),
    ] {
        let error = kit.submit(spec, Managed).await.unwrap_err();
        assert!(error.code() == ErrorCode::ModelValidation && error.to_string().contains("only an agent's"), "{error}");
    }
    let error = kit.tool(booking(), "", json("{}"), None).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelValidation);
    assert_eq!(kit.agents([AgentSpec::default()]).err().map(|error| error.code()), Some(ErrorCode::ModelValidation));
    let sayso = sayso::Sayso::open(sayso::Options::at(place.folder.path())).await.unwrap();
    let started = sayso.executions(sayso.person(), sayso::ExecutionFilter::default()).await.unwrap();
    assert_eq!(started.executions, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_of_several_models_is_as_many_agents() {
    let place = Place::new();
    let kit = place.kit().await;
    let models = vec!["one".to_owned(), "two".to_owned()];
    let agents = kit.agents([AgentSpec { harness: "script".to_owned(), models, ..AgentSpec::default() }]).unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.spec().models.clone()).collect();
    assert_eq!(names, [["one".to_owned()], ["two".to_owned()]]);
}
