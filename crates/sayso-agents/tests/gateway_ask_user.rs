//! The agent asks a person by a tool of the gateway's own.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use std::time::Duration;

use rig::{Rig, Setup, Trouble, text_of};
use sayso::wire::{Keyed, RequestKind};
use sayso::{Answer, Failure, Json, People, Response, Status, wire};
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup { ask_user: true, ..Setup::default() }
}

fn questions() -> Value {
    json!({"questions": [
        {"question": "Which target?", "header": "Target", "multiSelect": true, "id": 7,
         "options": [{"label": "staging", "description": "Safe."}, {"label": "live"}]},
        {"question": "Anything else?"}
    ]})
}

async fn asked(rig: &mut Rig, id: u64) -> wire::Round {
    let known = rig.rounds().await.len();
    rig.call_tool(id, "ask_user", questions()).await;
    rig.new_round(known).await
}

async fn answer(rig: &Rig, round: &wire::Round, target: Response, else_: Response) {
    let responses = Keyed(vec![("q0".to_owned(), target), ("q1".to_owned(), else_)]);
    let answer = Answer { digest: None, responses };
    rig.sayso.people().answer(round.round_id, answer, "key").await.unwrap();
}

fn accept(text: &str) -> Response {
    Response::accept(Json::parse(text).unwrap())
}

#[tokio::test]
async fn an_agents_questions_are_one_round_and_the_answers_its_tools_result() {
    let mut rig = Rig::start(setup()).await;
    let round = asked(&mut rig, 1).await;
    let choice = round.requests.get("q0").unwrap();
    assert_eq!((choice.kind, choice.question.as_deref()), (RequestKind::Choice, Some("Target: Which target?")));
    assert_eq!((choice.multi_select, choice.options.as_ref().map(Vec::len)), (Some(true), Some(2)));
    assert_eq!(round.requests.get("q1").unwrap().kind, RequestKind::Text);
    answer(&rig, &round, accept(r#"{"answer":["staging","live"]}"#), accept(r#"{"answer":["No."]}"#)).await;
    let result = rig.client.hear().await;
    assert_eq!(text_of(&result), "Which target?\nstaging, live\n\nAnything else?\nNo.");
    assert_eq!(
        result["result"]["structuredContent"]["answers"],
        json!([{"question": "Which target?", "answer": ["staging", "live"]}, {"question": "Anything else?", "answer": ["No."]}])
    );
    assert_eq!(rig.round(&round).await.status, Status::Resolved);
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/list"})).await;
    assert_eq!(rig.upstream.hear().await["method"], "resources/list", "the server heard nothing of it");
}

#[tokio::test]
async fn declined_and_dismissed_questions_are_told_apart() {
    let mut rig = Rig::start(setup()).await;
    let round = asked(&mut rig, 1).await;
    answer(&rig, &round, Response::decline(Some("Ask Bob.".to_owned())), Response::cancel()).await;
    let result = rig.client.hear().await;
    assert!(text_of(&result).contains("declined to answer. The reason: Ask Bob."), "{result}");
    assert!(text_of(&result).contains("dismissed without an answer. Nobody refused."), "{result}");
    assert_eq!(result["result"]["structuredContent"]["answers"][0]["reason"], "Ask Bob.");
}

#[tokio::test]
async fn a_question_outlives_the_clients_patience_and_the_server() {
    let mut rig = Rig::start(Setup { hold: Duration::from_millis(30), ..setup() }).await;
    let round = asked(&mut rig, 1).await;
    let pending = rig.client.hear().await;
    assert!(text_of(&pending).contains("still waiting"));
    let execution = pending["result"]["structuredContent"]["paused"]["execution_id"].clone();
    rig.upstream_exits();
    answer(&rig, &round, accept(r#"{"answer":["live"]}"#), accept(r#"{"answer":["No."]}"#)).await;
    rig.until(&round, Status::Resolved).await;
    rig.call_tool(2, "sayso_wait", json!({"execution_id": execution})).await;
    assert!(text_of(&rig.client.hear().await).contains("live"));
    rig.call_tool(3, "ask_user", questions()).await;
    assert!(text_of(&rig.client.hear().await).contains("live"), "a retry reads the same answers");
    assert_eq!(rig.rounds().await.len(), 1);
}

#[tokio::test]
async fn a_question_that_nobody_can_be_asked_is_unavailable_and_a_wrong_one_says_why() {
    let mut rig = Rig::start(Setup { trouble: Some(Trouble::StoreIsAway), ..setup() }).await;
    rig.call_tool(1, "ask_user", questions()).await;
    assert!(text_of(&rig.client.hear().await).starts_with("Question unavailable"));
    for (wrong, words) in [
        (json!({}), "at least one question"),
        (json!({"questions": [{}]}), "questions[0].question"),
        (json!({"questions": [{"question": "a", "options": [1]}]}), "label"),
    ] {
        rig.call_tool(2, "ask_user", wrong).await;
        let refused = rig.client.hear().await;
        assert!(text_of(&refused).contains(words) && refused["result"]["isError"] == true, "{refused}");
    }
}

#[tokio::test]
async fn a_gateway_that_is_stopped_takes_its_agents_questions_along() {
    let mut rig = Rig::start(setup()).await;
    let round = asked(&mut rig, 1).await;
    rig.stop.take().unwrap().send(()).unwrap();
    assert_eq!(rig.until(&round, Status::Failed).await.failure.unwrap().code, Failure::WITHDRAWN);
}

#[tokio::test]
async fn the_tool_is_there_only_where_it_was_asked_for_and_under_a_name_that_is_free() {
    let names = |answer: &Value| -> Vec<String> {
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let tools = json!([{"name": "ask_user", "inputSchema": {"type": "object"}}]);
    for (ask_user, expected) in [
        (true, vec!["ask_user", "sayso_wait", "ask_user_2", "resume"]),
        (false, vec!["ask_user", "sayso_wait", "resume"]),
    ] {
        let mut rig = Rig::start(Setup { ask_user, tools: tools.clone(), ..setup() }).await;
        rig.client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        rig::answer_tools(&mut rig.upstream, &tools).await;
        assert_eq!(names(&rig.client.hear().await), expected);
        rig.call_tool(2, "ask_user", questions()).await;
        assert_eq!(rig.upstream.hear().await["params"]["name"], "ask_user", "the server's own tool is the server's");
    }
}
