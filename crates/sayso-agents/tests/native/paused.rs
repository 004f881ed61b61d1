//! What a run that waits says it waits for: its outcome and `resume` alike, every call of the turn.

use sayso::{ExecutionId, Principal, Sayso};
use sayso_agents::mcp::{McpOptions, McpServer};
use serde_json::{Value, json};

use crate::model::Turn;
use crate::scene::{AGENT, Scene, answers, run, yes};
use crate::tools::Kind;

const TOOLS: [(&str, Kind); 3] = [("pay", Kind::Approval), ("ship", Kind::Input), ("look", Kind::Harmless)];

async fn resumed(sayso: &Sayso, execution: ExecutionId) -> Value {
    let mcp = McpServer::new(sayso, McpOptions::default());
    let asked = crate::scene::json(&json!({ "execution_id": execution }).to_string());
    let told = mcp.call_tool(&Principal::agent(AGENT), "resume", &asked).await.unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["structuredContent"]["resolved"], false, "{told}");
    told["structuredContent"]["paused"].clone()
}

fn listed(paused: &Value) -> Vec<(&str, &str, String)> {
    let calls = paused["calls"].as_array().expect("all of them are listed");
    calls
        .iter()
        .map(|call| {
            let text = |name: &str| call[name].as_str().unwrap();
            (text("request_key"), text("tool_path"), call["args"].to_string())
        })
        .collect()
}

#[tokio::test]
async fn every_call_of_a_turn_that_waits_is_named_by_the_outcome_and_by_resume() {
    let turn = Turn::Calls(vec![
        ("c1", "pay", r#"{"amount":1}"#),
        ("c2", "look", "{}"),
        ("c3", "ship", r#"{"n":3}"#),
        ("c4", "pay", r#"{"amount":4}"#),
        ("c5", "ship", r#"{"n":5}"#),
    ]);
    let scene = Scene::new([turn]).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let said = |outcome: &sayso_agents::native::RunOutcome| -> Vec<_> {
        let paused = outcome.paused();
        assert!(paused.iter().all(|paused| paused.execution_id == execution && !paused.message.is_empty()));
        paused.into_iter().map(|paused| (paused.tool_path, paused.args.as_str().to_owned())).collect()
    };
    let pays = [("native:pay", r#"{"amount":1}"#), ("native:pay", r#"{"amount":4}"#)];
    assert_eq!(said(&outcome), pays.map(|(tool, args)| (tool.to_owned(), args.to_owned())));
    let paused = resumed(&scene.sayso, execution).await;
    assert_eq!((&paused["execution_id"], &paused["tool_path"]), (&json!(execution), &json!("native:pay")));
    assert_eq!(paused["args"], json!({"amount": 1}), "the first stands where a single one does");
    let calls =
        [("c1", "native:pay", r#"{"amount":1}"#.to_owned()), ("c4", "native:pay", r#"{"amount":4}"#.to_owned())];
    assert_eq!(listed(&paused), calls);

    let verdicts = answers([("c1", yes()), ("c4", yes())]);
    let next = runtime.approve(&scene.people(), execution, verdicts, "k").await.unwrap();
    let ships = [("native:ship", r#"{"n":3}"#), ("native:ship", r#"{"n":5}"#)];
    assert_eq!(said(&next), ships.map(|(tool, args)| (tool.to_owned(), args.to_owned())));
    let calls = [("c3", "native:ship", r#"{"n":3}"#.to_owned()), ("c5", "native:ship", r#"{"n":5}"#.to_owned())];
    assert_eq!(listed(&resumed(&scene.sayso, execution).await), calls);
    assert!(runtime.cancel(&scene.people(), execution).await.unwrap().paused().is_empty());
}

#[tokio::test]
async fn a_single_call_that_waits_is_said_as_everywhere() {
    for (tool, turn) in [("native:pay", ("c1", "pay", "{}")), ("native:ship", ("c1", "ship", "{}"))] {
        let scene = Scene::new([Turn::Calls(vec![turn])]).await;
        let (execution, outcome) = run(&scene.runtime(&TOOLS)).await;
        let paused = resumed(&scene.sayso, execution).await;
        assert_eq!((&paused["tool_path"], &paused["args"]), (&json!(tool), &json!({})));
        assert_eq!(paused.get("calls"), None);
        assert_eq!(serde_json::to_value(outcome.paused()).unwrap(), json!([paused]));
    }
}
