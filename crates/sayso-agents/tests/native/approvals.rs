//! Approvals: asked before anything of the turn runs, by call id, and told to the model in its words.

use sayso::{ErrorCode, Principal, Response, Status};
use sayso_agents::native::RunOutcome;

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, approval, completed, keys, no, run, yes};
use crate::tools::Kind;

const PAY: &str = r#"{"amount":12}"#;

fn pays() -> Vec<Turn> {
    vec![Turn::Calls(vec![("c1", "pay", PAY)]), Turn::Says("Paid.")]
}

#[tokio::test]
async fn an_approved_call_runs_once_and_the_run_goes_on() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome);
    assert_eq!((round.execution_id, keys(&round)), (execution, vec!["c1"]));
    let request = round.requests.get("c1").unwrap();
    assert_eq!(request.tool.as_deref(), Some("native:pay"));
    assert_eq!(request.arguments.as_ref().unwrap().as_str(), PAY);
    assert_eq!((request.rule.as_deref(), &request.session), (Some("the tool requires approval"), &None));
    assert!(scene.ran().is_empty());

    let done = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    assert_eq!(completed(&done), "Paid.");
    assert_eq!(scene.ran(), [format!("pay {PAY}")]);
    assert_eq!(scene.model.told("c1"), "pay is done");
    assert_eq!(scene.model.asked()[0]["authorization"], "Bearer s3cret");
    assert_eq!(scene.ended(execution).await.as_deref(), Some("completed"));
    let events = scene.events().await;
    assert_eq!(
        events,
        ["execution_created", "round_created", "approval", "answered", "execution_state", "resolved"],
        "the approval is on record before the call runs"
    );
    // A repeat of the same answer says how it ended; nothing runs again.
    let again = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    assert_eq!(completed(&again), "Paid.");
    assert_eq!(scene.ran().len(), 1);
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_reads_why() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, _) = run(&runtime).await;
    let answer = answers([("c1", no("Too dear."))]);
    assert_eq!(completed(&runtime.approve(&scene.people(), execution, answer, "k").await.unwrap()), "Paid.");
    assert!(scene.ran().is_empty());
    let told = scene.model.told("c1");
    assert!(told.starts_with("A person refused this call.") && told.ends_with("Too dear."), "{told}");
}

#[tokio::test]
async fn edited_arguments_run_and_the_model_is_told_which() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, _) = run(&runtime).await;
    let bad = answers([("c1", accept(r#"{"arguments":{"amount":"much"}}"#))]);
    let refused = runtime.approve(&scene.people(), execution, bad, "k").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid, "edits fit the tool's own schema");
    let answer = answers([("c1", accept(r#"{"arguments":{"amount":7}}"#))]);
    runtime.approve(&scene.people(), execution, answer, "k").await.unwrap();
    assert_eq!(scene.ran(), [r#"pay {"amount":7}"#]);
    let told = scene.model.told("c1");
    assert!(told.contains(r#"It ran with: {"amount":7}"#) && told.ends_with("pay is done"), "{told}");
}

#[tokio::test]
async fn calls_of_one_turn_are_one_round_with_a_verdict_each() {
    let turn = Turn::Calls(vec![
        ("c1", "pay", r#"{"amount":1}"#),
        ("c2", "look", "{}"),
        ("c3", "pay", r#"{"amount":3}"#),
        ("c4", "pay", r#"{"amount":4}"#),
        ("c5", "nope", "{}"),
        ("c6", "pay", r#"{"amount":6,"amount":7}"#),
    ]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval), ("look", Kind::Harmless)]);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(keys(&approval(&outcome)), ["c1", "c3", "c4"]);
    assert!(scene.ran().is_empty(), "no sibling of a call that suspends has run");
    let missing = answers([("c1", yes()), ("c3", no("no"))]);
    let refused = runtime.approve(&scene.people(), execution, missing, "k").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
    let verdicts = answers([("c1", yes()), ("c3", no("no")), ("c4", Response::cancel())]);
    completed(&runtime.approve(&scene.people(), execution, verdicts, "k").await.unwrap());
    assert_eq!(scene.ran(), [r#"pay {"amount":1}"#, "look {}"]);
    assert!(scene.model.told("c3").starts_with("A person refused this call."));
    assert!(scene.model.told("c4").contains("Nobody refused."));
    assert!(scene.model.told("c5").contains("is not offered"));
    assert!(scene.model.told("c6").contains("was not run"));
}

#[tokio::test]
async fn a_run_suspends_again_and_again() {
    let turns = [
        Turn::Calls(vec![("c1", "pay", r#"{"amount":1}"#)]),
        Turn::Calls(vec![("c1", "pay", r#"{"amount":2}"#)]),
        Turn::Says("Both."),
    ];
    let scene = Scene::new(turns).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, outcome) = run(&runtime).await;
    let first = approval(&outcome);
    let next = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k1").await.unwrap();
    let second = approval(&next);
    assert_eq!((scene.ran().len(), second.execution_id), (1, execution));
    let first = scene.sayso.round(scene.sayso.person(), first.round_id).await.unwrap();
    assert_eq!(first.status, Status::Resolved, "the first ended in the transaction that stored the second");
    assert_eq!(scene.ended(execution).await, None);
    let done = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k2").await.unwrap();
    let RunOutcome::Completed(said) = &done else { panic!("{done:?}") };
    assert_eq!((said.text.as_str(), said.iterations, said.prompt_tokens, said.completion_tokens), ("Both.", 3, 9, 6));
    assert_eq!(scene.ran(), [r#"pay {"amount":1}"#, r#"pay {"amount":2}"#]);
}

#[tokio::test]
async fn only_a_person_answers_and_what_is_not_awaited_is_a_state_error() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, outcome) = run(&runtime).await;
    let agent = scene.sayso.people_as(Principal::agent(crate::scene::AGENT), sayso::Channel::Library);
    let forbidden = runtime.approve(&agent, execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(forbidden.code(), ErrorCode::Forbidden);
    let wrong =
        runtime.submit_input(&scene.people(), execution, answers([("c1", accept("{}"))]), "k").await.unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::ManagedInputState);
    assert!(wrong.to_string().contains("waits for approval"), "{wrong}");
    let mut stale = answers([("c1", yes())]);
    stale.digest = Some(sayso::Digest::of_text("another turn"));
    let stale = runtime.approve(&scene.people(), execution, stale, "k").await.unwrap_err();
    assert_eq!(stale.code(), ErrorCode::ManagedInputStale);
    assert_eq!(runtime.resume(execution).await.unwrap(), outcome, "it waits as it did");
    assert_eq!(runtime.answered().await.unwrap(), []);
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap());
    let over = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "other").await.unwrap_err();
    assert_eq!(over.code(), ErrorCode::ManagedInputConflict);
}
