//! Typed input: validated before anything is claimed, laid over the call it was given for, and nothing else.

use sayso::{ErrorCode, Response};
use sayso_agents::native::{InputSchema, RunOutcome, ToolInputRequired, Toolbox};

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, approval, completed, input, json, keys, no, run, yes};
use crate::tools::{CITY, Kind};

#[tokio::test]
async fn values_are_checked_before_the_claim_and_laid_over_the_call() {
    let turn = Turn::Calls(vec![("c1", "ship", r#"{"city":"ModelGuess","note":"keep"}"#)]);
    let scene = Scene::new([turn, Turn::Says("Shipped.")]).await;
    let runtime = scene.runtime(&[("ship", Kind::Input)]);
    let (execution, outcome) = run(&runtime).await;
    let round = input(&outcome);
    assert_eq!(round.requests.get("c1").unwrap().schema, Some(json(CITY)));
    assert_eq!(round.calls[0].name, "native:ship");
    for bad in [r#"{"city":"X"}"#, "{}", r#"{"city":7}"#] {
        let refused = runtime.submit_input(&scene.people(), execution, answers([("c1", accept(bad))]), "k").await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::ManagedInputInvalid, "{bad}");
        assert_eq!(runtime.resume(execution).await.unwrap(), outcome, "nothing was consumed");
    }
    let wrong = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::ManagedInputState);
    let answer = answers([("c1", accept(r#"{"city":"Berlin","evil":"x"}"#))]);
    completed(&runtime.submit_input(&scene.people(), execution, answer, "k").await.unwrap());
    assert_eq!(scene.ran(), [r#"ship {"note":"keep","city":"Berlin"}"#]);
    let told = scene.model.told("c1");
    assert!(told.starts_with("A person gave the values of city") && told.ends_with("ship is done"), "{told}");
    assert!(scene.events().await.contains(&"input"));
}

#[tokio::test]
async fn several_inputs_of_a_turn_are_collected_together_by_call_id() {
    let turn = Turn::Calls(vec![
        ("c1", "ship", r#"{"n":1}"#),
        ("c2", "ship", r#"{"n":2}"#),
        ("c3", "look", "{}"),
        ("c4", "ship", r#"{"n":4}"#),
    ]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("ship", Kind::Input), ("look", Kind::Harmless)]);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(keys(&input(&outcome)), ["c1", "c2", "c4"]);
    let answer = answers([
        ("c1", accept(r#"{"city":"Oslo"}"#)),
        ("c2", accept(r#"{"city":"Pune"}"#)),
        ("c4", no("I do not know.")),
    ]);
    completed(&runtime.submit_input(&scene.people(), execution, answer, "k").await.unwrap());
    let ran = [r#"ship {"n":1,"city":"Oslo"}"#, r#"ship {"n":2,"city":"Pune"}"#, "look {}"];
    assert_eq!(scene.ran(), ran);
    assert!(scene.model.told("c4").contains("I do not know."));
}

#[tokio::test]
async fn a_runs_tool_loop_says_what_it_waits_for_and_goes_on_with_it() {
    let turn = Turn::Calls(vec![("c1", "pay", "{}"), ("c2", "ship", r#"{"city":"Rome","n":2}"#), ("c3", "ship", "{}")]);
    let scene = Scene::new([turn, Turn::Says("Shipped.")]).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval), ("ship", Kind::Input)]);
    let (execution, _) = run(&runtime).await;
    let elsewhere = scene.another().await;
    let tool_loop =
        scene.runtime_in(&elsewhere, &[("pay", Kind::Approval), ("ship", Kind::Input)]).tool_loop(execution);
    assert!(tool_loop.input_required().await.unwrap().is_none(), "it waits for approval");
    let people = scene.people();
    let values = |values: &[(&str, &str)]| -> Vec<_> {
        values.iter().map(|(id, text)| ((*id).to_owned(), json(text))).collect()
    };
    let oslo = [("c2", r#"{"city":"Oslo"}"#), ("c3", r#"{"city":"Pune"}"#)];
    let early = tool_loop.resume_with_input(&people, values(&oslo), "k").await.unwrap_err();
    assert_eq!(early.code(), ErrorCode::ManagedInputState);
    input(&runtime.approve(&people, execution, answers([("c1", yes())]), "k").await.unwrap());

    let Some(ToolInputRequired(state)) = tool_loop.input_required().await.unwrap() else { panic!("it waits") };
    assert_eq!((state.input_tool_name().as_deref(), state.iterations), (Some("native:ship"), 1));
    assert!(InputSchema::is_usable(state.input_schema().unwrap()));
    let waiting: Vec<_> = state.pending_calls.iter().filter(|call| call.needs_input()).map(|call| &call.id).collect();
    assert_eq!(waiting, ["c2", "c3"]);
    for bad in [&oslo[..1], &[oslo[0], ("c3", r#"{"city":7}"#)]] {
        let refused = tool_loop.resume_with_input(&people, values(bad), "bad").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
    }
    completed(&tool_loop.resume_with_input(&people, values(&oslo), "good").await.unwrap());
    assert_eq!(scene.ran(), ["pay {}", r#"ship {"n":2,"city":"Oslo"}"#, r#"ship {"city":"Pune"}"#]);
    assert!(tool_loop.input_required().await.unwrap().is_none(), "it has ended");
}

#[tokio::test]
async fn approvals_of_a_turn_come_first_then_the_inputs_of_what_was_approved() {
    let turn =
        Turn::Calls(vec![("c1", "ship", r#"{"n":1}"#), ("c2", "ship", r#"{"n":2}"#), ("c3", "pay", r#"{"amount":3}"#)]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let policy = scene.policy("[[rule]]\nid = \"ships\"\nask = [\"native:ship\"]\n");
    let runtime = scene.runtime(&[("ship", Kind::Input), ("pay", Kind::Approval)]).policy(policy, None);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(keys(&approval(&outcome)), ["c1", "c2", "c3"]);
    let verdicts = answers([("c1", yes()), ("c2", no("not that")), ("c3", yes())]);
    let next = runtime.approve(&scene.people(), execution, verdicts, "k1").await.unwrap();
    assert_eq!(keys(&input(&next)), ["c1"]);
    assert_eq!(input(&next).round_index, 1);
    assert!(scene.ran().is_empty(), "nothing ran between the two rounds");
    let answer = answers([("c1", accept(r#"{"city":"Oslo"}"#))]);
    completed(&runtime.submit_input(&scene.people(), execution, answer, "k2").await.unwrap());
    assert_eq!(scene.ran(), [r#"ship {"n":1,"city":"Oslo"}"#, r#"pay {"amount":3}"#]);
    assert!(scene.model.told("c2").contains("not that"));
}

#[tokio::test]
async fn an_approval_and_its_input_are_on_one_card() {
    let turn = Turn::Calls(vec![("c1", "ship", r#"{"city":"Guess","amount":1}"#)]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("ship", Kind::ApprovedInput)]);
    let (execution, outcome) = run(&runtime).await;
    let request = approval(&outcome).requests.get("c1").unwrap().clone();
    assert_eq!(request.schema, Some(json(CITY)));
    let bare = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(bare.code(), ErrorCode::ManagedInputInvalid, "it cannot be approved without its input");
    let answer = answers([("c1", accept(r#"{"arguments":{"amount":5},"input":{"city":"Rome"}}"#))]);
    completed(&runtime.approve(&scene.people(), execution, answer, "k").await.unwrap());
    assert_eq!(scene.ran(), [r#"ship {"amount":5,"city":"Rome"}"#]);
}

#[tokio::test]
async fn an_input_that_is_dismissed_runs_nothing_and_a_dismissal_is_no_refusal() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "ship", "{}")]), Turn::Says("Well.")]).await;
    let runtime = scene.runtime(&[("ship", Kind::Input)]);
    let (execution, _) = run(&runtime).await;
    let answer = answers([("c1", Response::cancel())]);
    completed(&runtime.submit_input(&scene.people(), execution, answer, "k").await.unwrap());
    assert!(scene.ran().is_empty() && scene.model.told("c1").contains("Nobody refused."));
}

#[tokio::test]
async fn what_cannot_work_is_refused_when_it_is_registered() {
    let scene = Scene::new([]).await;
    let mut degenerate = scene.tool("ship", Kind::Input);
    for (tool, words) in [
        (scene.tool("ship", Kind::Both), "a tool has one marker"),
        (scene.tool("no good", Kind::Plain), "its name must have"),
        (scene.tool("", Kind::Plain), "its name must have"),
    ] {
        let refused = Toolbox::new().with(tool).unwrap_err();
        assert!(refused.code() == ErrorCode::ModelValidation && refused.to_string().contains(words), "{refused}");
    }
    for schema in ["{}", r#"{"type":"object"}"#, r#"{"type":"string"}"#, r#"{"type":"object","properties":{}}"#] {
        degenerate.schema = schema.to_owned();
        let refused = Toolbox::new().with(degenerate.clone()).unwrap_err();
        assert!(refused.to_string().contains("cannot be used"), "{refused}");
    }
    let twice = Toolbox::new().with(scene.tool("ship", Kind::Plain)).unwrap();
    assert!(twice.with(scene.tool("ship", Kind::Harmless)).unwrap_err().to_string().contains("taken"));
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_and_an_unmarked_one_asks_as_the_policy_says() {
    let turn = Turn::Calls(vec![("c1", "look", "{}"), ("c2", "pay", "{}")]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let mut look = scene.tool("look", Kind::Harmless);
    look.fails = true;
    let runtime = scene.runtime_of(&scene.sayso, [look, scene.tool("pay", Kind::Plain)]);
    let (execution, outcome) = run(&runtime).await;
    // Of a tool that says nothing of itself nothing is known: it asks.
    assert_eq!(keys(&approval(&outcome)), ["c2"]);
    let done = runtime.approve(&scene.people(), execution, answers([("c2", yes())]), "k").await.unwrap();
    assert!(matches!(done, RunOutcome::Completed(_)));
    assert_eq!(scene.model.told("c1"), "Error: it broke");
}
