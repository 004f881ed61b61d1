//! A kit whose rounds are at a `sayso serve`: the agent runs here, the rounds and the person are there.

use std::time::Duration;

use sayso::kit::{AgentSpec, ExecutionHandle, ExecutionStatus, HumanInput, Kit, KitStore, ScriptedCall, StdioServer};
use sayso::storage::{ElicitationResponse, PendingElicitationRound};
use sayso::wire::NewTokenKind;
use sayso::{ErrorCode, Json};
use sayso_agents::kit::ScriptRunner;
use sayso_http::client::{Client, ClientOptions, PeopleClient};

use crate::folder::Folder;
use crate::server::Server;

async fn kit(server: &Server, agent: &str, person: &str) -> Kit {
    let options = |token: &str| ClientOptions::new(format!("http://{}", server.address), token);
    let desk = Client::connect(options(agent)).await.unwrap();
    let people = PeopleClient::new(&options(person)).unwrap();
    Kit::new(KitStore::of(std::sync::Arc::new(desk), std::sync::Arc::new(people))).with_runner(ScriptRunner)
}

async fn submit(kit: &Kit) -> ExecutionHandle {
    let shipping = StdioServer::new("shipping", [env!("CARGO_BIN_EXE_sayso"), "demo", "--as-server"]);
    let agents = kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }]).unwrap();
    let arguments = Json::parse(r#"{"item":"anvil"}"#).unwrap();
    agents[0]
        .submit("Ask for the delivery address, then book the shipment.")
        .server(shipping)
        .tools(["shipping:book_shipment"])
        .script([ScriptedCall::new("shipping:book_shipment", arguments)])
        .human_input(HumanInput::Managed)
        .start()
        .await
        .unwrap()
}

async fn pending(handle: &ExecutionHandle) -> PendingElicitationRound {
    let mut look = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Some(round) = handle.pending_elicitation().await.unwrap() {
            return round;
        }
        assert_ne!(handle.snapshot().await.unwrap().lifecycle, ExecutionStatus::Finished);
        look.tick().await;
    }
}

fn address(street: &str) -> [(&'static str, ElicitationResponse); 1] {
    let content = Json::parse(&format!(r#"{{"street":"{street}","city":"Pune"}}"#)).unwrap();
    [("elicitation", ElicitationResponse::accept(content))]
}

#[test]
fn the_same_handle_answers_and_waits_over_http() {
    let folder = Folder::new();
    let token = |kind, name| std::fs::read_to_string(folder.token_file(kind, name)).unwrap().trim().to_owned();
    let (agent, person) = (token(NewTokenKind::Agent, "kit"), token(NewTokenKind::Person, "ada"));
    let server = Server::start(&folder);
    folder.runtime.block_on(async {
        let kit = kit(&server, &agent, &person).await;
        let handle = submit(&kit).await;
        let round = pending(&handle).await;
        assert_eq!((round.server.as_str(), round.operation_name.as_str()), ("shipping", "book_shipment"));
        let key = format!("address-{}", round.round_id);
        let refused = handle.respond_elicitation(round.round_id, address("x"), &key).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
        handle.respond_elicitation(round.round_id, address("1 Main Street"), &key).await.unwrap();
        handle.respond_elicitation(round.round_id, address("1 Main Street"), &key).await.unwrap();
        let done = handle.result(Some(Duration::from_secs(45))).await.unwrap();
        assert_eq!(done.execution.outcome.as_ref().map(|outcome| outcome.status.as_str()), Some("completed"));
        assert_eq!(done.execution.kind, sayso::ExecutionKind::Agent);
        assert!(done.result.as_ref().unwrap().as_str().contains("Booked: one anvil to 1 Main Street, Pune"));

        let other = submit(&kit).await;
        let round = pending(&other).await;
        // A handle answers the rounds of its own execution, and no other's.
        let stray = handle.respond_elicitation(round.round_id, address("1 Main Street"), "k").await.unwrap_err();
        assert_eq!(stray.code(), ErrorCode::NotFound);
        other.cancel().await.unwrap();
        other.cancel().await.unwrap();
        let ended = other.result(Some(Duration::from_secs(45))).await.unwrap();
        assert_eq!(ended.execution.outcome.map(|outcome| outcome.status).as_deref(), Some("cancelled"));
        let late = other.respond_elicitation(round.round_id, address("1 Main Street"), "k").await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::ManagedInputState);
        kit.close().await.unwrap();
    });
}
