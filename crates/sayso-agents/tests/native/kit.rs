//! The harness `native` of a kit: submitted, answered through the handle, and watched to its end whoever goes on with it.

use std::sync::Arc;
use std::time::Duration;

use sayso::kit::{Agent, AgentSpec, ExecutionHandle, ExecutionStatus, HumanInput, Kit, KitStore, ScriptedCall};
use sayso::storage::{ElicitationResponse, PendingElicitationRound};
use sayso::{ErrorCode, People, Principal};
use sayso_agents::native::NativeRunner;

use crate::model::Turn;
use crate::scene::{AGENT, Scene, completed, json, yes};
use crate::tools::Kind;

const HANG: Duration = Duration::from_secs(60);
const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Approval), ("ship", Kind::Input)];

fn turns() -> [Turn; 3] {
    [Turn::Calls(vec![("c1", "pay", r#"{"amount":1}"#)]), Turn::Calls(vec![("c2", "ship", "{}")]), Turn::Says("Done.")]
}

fn kit(scene: &Scene) -> Kit {
    let desk = Arc::new(scene.sayso.desk(Principal::agent(AGENT)));
    Kit::new(KitStore::of(desk, Arc::new(scene.people()))).with_runner(NativeRunner::new(scene.runtime(&TOOLS)))
}

fn agent(kit: &Kit) -> Agent {
    let spec =
        AgentSpec { harness: "native".to_owned(), models: vec!["of-the-spec".to_owned()], ..AgentSpec::default() };
    kit.agents([spec]).unwrap().remove(0)
}

async fn pending(handle: &ExecutionHandle) -> PendingElicitationRound {
    let mut look = tokio::time::interval(Duration::from_millis(5));
    loop {
        if let Some(round) = handle.pending_elicitation().await.unwrap() {
            return round;
        }
        let state = handle.snapshot().await.unwrap();
        assert_ne!(state.lifecycle, ExecutionStatus::Finished, "{state:?}");
        look.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_agent_is_submitted_and_answered_through_its_handle() {
    let scene = Scene::new(turns()).await;
    let kit = kit(&scene);
    let handle = agent(&kit).submit("Pay and ship.").human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle).await;
    assert_eq!(handle.snapshot().await.unwrap().lifecycle, ExecutionStatus::WaitingForApproval);
    handle.respond_elicitation(round.round_id, [("c1", yes())], "k1").await.unwrap();
    let round = loop {
        let next = pending(&handle).await;
        if next.requests.0[0].0 == "c2" {
            break next;
        }
    };
    let city = ElicitationResponse::accept(json(r#"{"city":"Oslo"}"#));
    handle.respond_elicitation(round.round_id, [("c2", city)], "k2").await.unwrap();
    let done = handle.result(Some(HANG)).await.unwrap();
    assert_eq!(done.execution.outcome.unwrap().status, "completed");
    assert_eq!(done.result.unwrap().value()["text"], "Done.");
    assert_eq!(scene.ran(), [r#"pay {"amount":1}"#, r#"ship {"city":"Oslo"}"#]);
    assert_eq!(scene.model.asked()[0]["model"], "of-the-spec");
    kit.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_sees_the_end_of_a_run_that_another_process_went_on_with() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "pay", "{}")]), Turn::Says("Paid.")]).await;
    let kit = kit(&scene);
    let handle = agent(&kit).submit("Pay.").human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle).await;
    // Whoever is first goes on; the handle is told the end in either case, and the call runs once.
    let elsewhere = scene.another().await;
    let other = scene.runtime_in(&elsewhere, &TOOLS);
    handle.respond_elicitation(round.round_id, [("c1", yes())], "k").await.unwrap();
    let mut look = tokio::time::interval(Duration::from_millis(5));
    let ended = loop {
        match other.resume(handle.execution_id()).await {
            Ok(outcome) => break outcome,
            Err(error) => assert_eq!(error.code(), ErrorCode::ManagedInputConflict),
        }
        look.tick().await;
    };
    assert_eq!(completed(&ended), "Paid.");
    assert_eq!(handle.result(Some(HANG)).await.unwrap().execution.outcome.unwrap().status, "completed");
    assert_eq!(scene.ran(), ["pay {}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_and_one_that_may_ask_nobody_says_what_it_wanted() {
    let calls = || Turn::Calls(vec![("c1", "pay", "{}")]);
    let scene = Scene::new([calls(), calls()]).await;
    let kit = kit(&scene);
    let handle = agent(&kit).submit("Pay.").human_input(HumanInput::Managed).start().await.unwrap();
    let round = pending(&handle).await;
    handle.cancel().await.unwrap();
    assert_eq!(handle.result(Some(HANG)).await.unwrap().execution.outcome.unwrap().status, "cancelled");
    assert_eq!(scene.people().show(round.round_id).await.unwrap().failure.unwrap().code, "cancelled");
    let alone = agent(&kit).submit("Pay.").start().await.unwrap();
    let outcome = alone.result(Some(HANG)).await.unwrap().execution.outcome.unwrap();
    assert_eq!(outcome.code.as_deref(), Some("elicitation_expectation_failed"));
    assert!(outcome.message.unwrap().contains("native:pay"), "it is named");
    assert!(scene.ran().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_run_is_refused_before_anything_starts() {
    let scene = Scene::new([]).await;
    let kit = kit(&scene);
    let spec = || AgentSpec { harness: "native".to_owned(), prompt: "Do it.".to_owned(), ..AgentSpec::default() };
    let https = sayso::kit::HttpServer::new("far", "https://mcp.example.com/");
    let call = || ScriptedCall::new("files:read", json("{}"));
    let files = || crate::servers::files(scene.folder.path()).clone();
    for (spec, words) in [
        (AgentSpec { models: vec!["a".to_owned(), "b".to_owned()], ..spec() }, "one model"),
        (AgentSpec { servers: vec![files()], script: vec![call()], ..spec() }, "neither a script nor a plan"),
        (AgentSpec { servers: vec![https.into()], ..spec() }, "https cannot be spoken"),
        (AgentSpec { prompt: " ".to_owned(), ..spec() }, "the prompt is empty"),
    ] {
        let refused = kit.submit(spec, HumanInput::Managed).await.unwrap_err();
        assert!(refused.code() == ErrorCode::ModelValidation && refused.to_string().contains(words), "{refused}");
    }
    assert!(scene.events().await.is_empty(), "nothing was started");
}
