//! What a program's engine asks, as an agent at `/mcp` goes on with it: gate, paused, `resume`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod mcp_client;

use std::sync::Arc;

use mcp_client::{HANG, Rig, call, message_of};
use sayso::engine::{Elicit, ElicitationEngine, Gated, Options, PendingElicitation, ToolDef};
use sayso::{Channel, Json, People, Principal, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

/// A program whose agent has a session at `/mcp`.
struct Scene {
    rig: Rig,
    session: String,
    engine: Arc<ElicitationEngine>,
    pauses: Receiver<PendingElicitation>,
}

impl Scene {
    async fn new(trust_agent_relay: bool) -> Self {
        let rig = Rig::relaying(HANG, trust_agent_relay).await;
        let (told, pauses) = channel(8);
        let options = Options::default().agent(rig.agent.clone());
        let options = options.on_pause(move |pending| told.try_send(pending.clone()).unwrap());
        let engine = Arc::new(ElicitationEngine::new(&rig.sayso, options));
        Self { session: rig.hello().await, rig, engine, pauses }
    }

    /// What `resume` reports about a pause.
    async fn resume(&self, pause: &PendingElicitation, said: &Value) -> Value {
        let mut arguments = json!({"execution_id": pause.execution_id});
        arguments.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let message = message_of(self.rig.send(&self.session, call(1, "resume", &arguments)).await).await;
        message["result"]["structuredContent"].clone()
    }

    async fn status(&self) -> (Status, Option<(Principal, Channel)>) {
        let newest = self.rig.rounds().await.remove(0);
        let round = self.rig.sayso.people().show(newest.round_id).await.unwrap();
        (round.status, round.answered.map(|by| (by.principal, by.channel)))
    }
}

fn transfer() -> (ToolDef, Json) {
    (ToolDef::destructive("bank.transfer").described("Sends money"), Json::parse(r#"{"amount":5}"#).unwrap())
}

fn label() -> Elicit {
    let schema = r#"{"type":"object","properties":{"label":{"type":"string"}},"required":["label"]}"#;
    Elicit::form("github.issues.create", "Which label?", Json::parse(schema).unwrap())
}

#[tokio::test]
async fn with_relay_an_agent_resumes_a_gate_and_it_goes_on() {
    let mut scene = Scene::new(true).await;
    for (approved, said, outcome) in [
        (true, json!({}), Gated::Approved { arguments: transfer().1 }),
        (false, json!({"data": {"reason": "not today"}}), Gated::Denied { reason: Some("not today".to_owned()) }),
    ] {
        let engine = scene.engine.clone();
        let gate = tokio::spawn(async move { engine.gate(&transfer().0, &transfer().1).await });
        let pause = scene.pauses.recv().await.unwrap();
        let mut said = said;
        said["approved"] = approved.into();
        let report = scene.resume(&pause, &said).await;
        assert_eq!((&report["resolved"], &report["approved"]), (&json!(true), &json!(approved)), "{report}");
        assert_eq!(report["relayed_by"], "agent claude");
        assert_eq!(gate.await.unwrap(), Ok(outcome));
        assert_eq!(scene.status().await.1, Some((Principal::agent("claude"), Channel::Relay)));
    }
}

#[tokio::test]
async fn with_relay_an_agent_resumes_a_handlers_question_with_data_that_fits() {
    let mut scene = Scene::new(true).await;
    let engine = scene.engine.clone();
    let handler = tokio::spawn(async move { engine.elicit(label()).await });
    let pause = scene.pauses.recv().await.unwrap();
    let misfit = scene.resume(&pause, &json!({"approved": true, "data": {"label": 1}})).await;
    assert_eq!(misfit["code"], "managed_input_invalid", "{misfit}");
    assert_eq!(scene.status().await.0, Status::Pending, "what does not fit changes nothing");
    let report = scene.resume(&pause, &json!({"approved": true, "data": {"label": "bug"}})).await;
    assert_eq!((&report["resolved"], &report["approved"]), (&json!(true), &json!(true)), "{report}");
    let response = handler.await.unwrap().unwrap();
    assert_eq!((response.execution_id, response.approved), (pause.execution_id, true));
    assert_eq!(response.data, Some(Json::parse(r#"{"label":"bug"}"#).unwrap()));
}

#[tokio::test]
async fn without_relay_resume_says_that_a_gate_waits_until_a_person_has_decided() {
    let mut scene = Scene::new(false).await;
    let engine = scene.engine.clone();
    let gate = tokio::spawn(async move { engine.gate(&transfer().0, &transfer().1).await });
    let pause = scene.pauses.recv().await.unwrap();
    for approved in [true, false] {
        let report = scene.resume(&pause, &json!({"approved": approved})).await;
        assert_eq!(report["resolved"], false, "{report}");
        assert_eq!(report["paused"]["tool_path"], "bank.transfer");
        assert_eq!(report["paused"]["args"], json!({"amount": 5}));
        assert_eq!(scene.status().await, (Status::Pending, None), "an agent's word is no verdict");
    }
    assert_eq!(scene.engine.resolve(pause.execution_id, true, None).await, Ok(true));
    assert_eq!(gate.await.unwrap(), Ok(Gated::Approved { arguments: transfer().1 }));
    let report = scene.resume(&pause, &json!({"approved": false})).await;
    assert_eq!((&report["approved"], &report["relayed_by"]), (&json!(true), &Value::Null), "the person's verdict");
}

#[tokio::test]
async fn without_relay_resume_says_that_a_handlers_question_waits_and_takes_no_data() {
    let mut scene = Scene::new(false).await;
    let engine = scene.engine.clone();
    let handler = tokio::spawn(async move { engine.elicit(label()).await });
    let pause = scene.pauses.recv().await.unwrap();
    let report = scene.resume(&pause, &json!({"approved": true, "data": {"label": "smuggled"}})).await;
    assert_eq!(
        (&report["resolved"], &report["paused"]["message"]),
        (&json!(false), &json!("Which label?")),
        "{report}"
    );
    assert_eq!(scene.status().await, (Status::Pending, None));
    let data = Json::parse(r#"{"label":"bug"}"#).unwrap();
    assert_eq!(scene.engine.resolve(pause.execution_id, true, Some(data.clone())).await, Ok(true));
    assert_eq!(handler.await.unwrap().unwrap().data, Some(data));
}
