//! What the policy decides in a person's place is on record, and what the mode lets run is so before it runs; the mode
//! `guarded` without a policy runs nothing at all.

use std::sync::Arc;

use sayso::policy::{Mode, PolicyFiles};
use sayso::{ErrorCode, Principal};
use sayso_agents::native::RunOutcome;
use sayso_core::event::EventBody;
use tokio::sync::Semaphore;

use crate::model::Turn;
use crate::scene::{AGENT, Scene, answers, approval, completed, run, yes};
use crate::tools::Kind;

const ASKS: &str = "[[rule]]\nid = \"pay\"\nask = [\"native:pay\"]\n";
const DENIES: &str = "[[rule]]\nid = \"never\"\ndeny = [\"native:*\"]\n";
const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Plain), ("look", Kind::Harmless)];
/// No event that names the tool `pay` is stored from now on: a ruling's does, those of rounds and executions do not.
const REFUSES_RULINGS: &str = "CREATE TRIGGER full BEFORE INSERT ON event_lists \
    WHEN instr(NEW.events, CAST('native:pay' AS BLOB)) BEGIN SELECT RAISE(ABORT, 'full'); END";

fn pays() -> [Turn; 2] {
    [Turn::Calls(vec![("c1", "pay", r#"{"amount":1}"#), ("c2", "look", "{}")]), Turn::Says("Done.")]
}

/// The rulings in the events: whether the call may run, its tool, and whose word that is.
async fn rulings(scene: &Scene) -> Vec<(bool, String, String)> {
    let events = scene.sayso.events_after(scene.sayso.person(), 0).await.unwrap();
    assert!(!format!("{events:?}").contains("amount"), "no argument is in an event");
    let ruling = |event: &sayso_core::event::Event| match &event.event.body {
        EventBody::Approval { approved, decided_by, tool: Some(tool), .. } => {
            assert_eq!(event.event.principal, Some(Principal::agent(AGENT)));
            Some((*approved, tool.clone(), decided_by.to_string()))
        }
        _ => None,
    };
    events.iter().filter_map(ruling).collect()
}

fn denied(tool: &str) -> (bool, String, String) {
    (false, tool.to_owned(), "policy operator never".to_owned())
}

#[tokio::test]
async fn a_denial_before_anybody_was_asked_leaves_its_event() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(DENIES), None);
    completed(&run(&runtime).await.1);
    assert_eq!(rulings(&scene).await, [denied("native:pay"), denied("native:look")], "one for each call");
}

#[tokio::test]
async fn a_denial_after_the_answer_leaves_its_event_too() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    approval(&outcome);
    assert!(rulings(&scene).await.is_empty());
    scene.policy(DENIES);
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap());
    // The one that was approved, and the one that nobody had to be asked about.
    assert_eq!(rulings(&scene).await, [denied("native:pay"), denied("native:look")]);
    assert!(scene.ran().is_empty());
}

#[tokio::test]
async fn a_denial_stands_whether_or_not_its_event_can_be_stored() {
    let scene = Scene::new(pays()).await;
    scene.tamper(REFUSES_RULINGS);
    let deny = "[[rule]]\nid = \"never\"\ndeny = [\"native:pay\"]\n";
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(deny), None);
    completed(&run(&runtime).await.1);
    assert_eq!(scene.ran(), ["look {}"]);
    assert!(scene.model.told("c1").contains("The policy denies this call"));
}

#[tokio::test]
async fn what_an_autonomous_session_lets_run_is_on_record_before_it_runs() {
    let scene = Scene::new(pays()).await;
    let held = Arc::new(Semaphore::new(0));
    let mut pay = scene.tool("pay", Kind::Plain);
    pay.gate = Some(held.clone());
    let runtime = scene.runtime_of(&scene.sayso, [pay, scene.tool("look", Kind::Harmless)]);
    let runtime = runtime.policy(scene.policy(ASKS), Some(Mode::Autonomous));
    let execution = runtime.begin().await.unwrap();
    let at_work = tokio::spawn(async move { runtime.run(execution, "Do it.").await });
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    while scene.ran().is_empty() {
        look.tick().await;
    }
    let said = |tool: &str, rule: &str| (true, tool.to_owned(), format!("policy {rule}"));
    let found = rulings(&scene).await;
    assert!(found.contains(&said("native:pay", "operator pay")), "it runs now, and is on record: {found:?}");
    held.add_permits(1);
    completed(&at_work.await.unwrap().unwrap());
}

#[tokio::test]
async fn what_an_autonomous_session_cannot_put_on_record_does_not_run() {
    let scene = Scene::new(pays()).await;
    scene.tamper(REFUSES_RULINGS);
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(ASKS), Some(Mode::Autonomous));
    let (execution, outcome) = run(&runtime).await;
    assert!(matches!(&outcome, RunOutcome::Failed(failure) if failure.code == "unavailable"), "{outcome:?}");
    assert!(scene.ran().is_empty(), "no sibling has run either");
    assert_eq!(scene.ended(execution).await.as_deref(), Some("unavailable"));
}

#[tokio::test]
async fn the_mode_guarded_without_a_policy_is_refused_and_consumes_nothing() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    let guarded = scene.runtime(&TOOLS).policy(PolicyFiles::none(), Some(Mode::Guarded));
    let refusals = [
        guarded.check().unwrap_err(),
        guarded.begin().await.unwrap_err(),
        guarded.run(execution, "Do it.").await.unwrap_err(),
        guarded.resume(execution).await.unwrap_err(),
    ];
    for refused in refusals {
        assert_eq!(refused.code(), ErrorCode::ModelValidation);
        assert!(refused.to_string().contains("`guarded` needs a policy"), "{refused}");
    }
    assert_eq!(runtime.resume(execution).await.unwrap(), outcome, "it waits as it did");
    let allows = "[[rule]]\nid = \"pay\"\nallow = [\"native:pay\"]\n";
    let guarded = scene.runtime(&TOOLS).policy(scene.policy(allows), Some(Mode::Guarded));
    guarded.check().unwrap();
    guarded.begin().await.unwrap();
}
