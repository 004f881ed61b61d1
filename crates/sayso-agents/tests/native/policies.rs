//! What the policy says, before the turn runs and again when it is about to; and grants in a person's place.

use sayso::policy::{GrantScope, Mode, Pins};
use sayso::{Failure, GrantFilter, NewGrant, Status};
use sayso_agents::native::RunOutcome;

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, approval, completed, input, keys, run, yes};
use crate::tools::Kind;

const ASKS: &str = "[[rule]]\nid = \"pay\"\nask = [\"native:pay\"]\n";
const ASKS_OTHERWISE: &str = "[[rule]]\nid = \"pay\"\nask = [\"native:*\"]\n";
const DENIES: &str = "[[rule]]\nid = \"pay\"\ndeny = [\"native:pay\"]\nreason = \"Not today.\"\n";

fn pays() -> [Turn; 2] {
    [Turn::Calls(vec![("c1", "pay", r#"{"amount":1}"#), ("c2", "look", "{}")]), Turn::Says("Done.")]
}

const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Plain), ("look", Kind::Harmless)];

#[tokio::test]
async fn a_denied_call_is_told_by_which_rule_and_asks_nobody() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(DENIES), None);
    let (_, outcome) = run(&runtime).await;
    completed(&outcome);
    assert_eq!(scene.ran(), ["look {}"]);
    let told = scene.model.told("c1");
    assert!(told.contains("rule") && told.contains("Not today."), "{told}");
}

#[tokio::test]
async fn the_policy_is_judged_again_before_an_approved_call_runs() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    let rule = approval(&outcome).requests.get("c1").unwrap().rule.clone();
    assert!(rule.is_some_and(|rule| rule.contains("pay")));
    scene.policy(DENIES);
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap());
    assert_eq!(scene.ran(), ["look {}"]);
    assert!(scene.model.told("c1").contains("Not today."));
}

#[tokio::test]
async fn a_rule_that_changed_asks_again_in_the_transaction_that_ends_the_answer() {
    let scene = Scene::new(pays()).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    let first = approval(&outcome).round_id;
    scene.policy(ASKS_OTHERWISE);
    let edit = answers([("c1", accept(r#"{"arguments":{"amount":2}}"#))]);
    let next = runtime.approve(&scene.people(), execution, edit, "k").await.unwrap();
    let second = approval(&next);
    assert!(scene.ran().is_empty());
    let first = scene.sayso.round(scene.sayso.person(), first).await.unwrap();
    let failure = first.failure.unwrap();
    assert_eq!((first.status, failure.code.as_str()), (Status::Failed, Failure::SUPERSEDED));
    // What a person edited is what the next one is asked about; `look` is asked about, too, since the rule says so now.
    assert_eq!(keys(&second), ["c1", "c2"]);
    assert_eq!(second.requests.get("c1").unwrap().arguments.as_ref().unwrap().as_str(), r#"{"amount":2}"#);
    let both = answers([("c1", yes()), ("c2", yes())]);
    completed(&runtime.approve(&scene.people(), execution, both, "k2").await.unwrap());
    assert_eq!(scene.ran(), [r#"pay {"amount":2}"#, "look {}"]);
}

#[tokio::test]
async fn a_tool_that_became_another_is_asked_about_again() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "pay", "{}")]), Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("pay", Kind::Approval)]);
    let (execution, _) = run(&runtime).await;
    let mut other = scene.tool("pay", Kind::Approval);
    other.description = "Gives everything away.";
    let elsewhere = scene.another().await;
    let runtime = scene.runtime_of(&elsewhere, [other]);
    let next = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    assert!(approval(&next).requests.get("c1").unwrap().message.as_ref().unwrap().contains("everything"));
    assert!(scene.ran().is_empty());
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k2").await.unwrap());
    assert_eq!(scene.ran(), ["pay {}"]);
}

#[tokio::test]
async fn an_answer_given_before_the_rule_changed_is_kept_for_what_it_still_holds_for() {
    let turn = Turn::Calls(vec![("c1", "ship", r#"{"n":1}"#), ("c2", "pay", "{}")]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("ship", Kind::Input), ("pay", Kind::Plain)]);
    let runtime = runtime.policy(scene.policy("[[rule]]\nid = \"a\"\nallow = [\"native:ship\"]\n"), None);
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(keys(&approval(&outcome)), ["c2"]);
    let next = runtime.approve(&scene.people(), execution, answers([("c2", yes())]), "k1").await.unwrap();
    assert_eq!(keys(&input(&next)), ["c1"]);
    // Now shipping is asked about: the values stay, and only the approval is new.
    scene.policy("[[rule]]\nid = \"a\"\nask = [\"native:ship\"]\n");
    let values = answers([("c1", accept(r#"{"city":"Oslo"}"#))]);
    let next = runtime.submit_input(&scene.people(), execution, values, "k2").await.unwrap();
    assert_eq!(keys(&approval(&next)), ["c1"]);
    assert!(scene.ran().is_empty());
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k3").await.unwrap());
    assert_eq!(scene.ran(), [r#"ship {"n":1,"city":"Oslo"}"#, "pay {}"]);
}

#[tokio::test]
async fn a_grant_stands_in_for_a_person_and_its_use_is_recorded_before_the_call() {
    let turns =
        [Turn::Calls(vec![("c1", "pay", "{}"), ("c2", "pay", "{}"), ("c3", "mail", "{}")]), Turn::Says("Done.")];
    let scene = Scene::new(turns).await;
    let scope = GrantScope::Rule { tools: "native:pay".to_owned(), effects: None, pins: Pins::Any };
    let grant = NewGrant { uses_max: Some(1), ..NewGrant::of(scope) };
    scene.people().grant(grant).await.unwrap();
    let runtime = scene.runtime(&[("pay", Kind::Plain), ("mail", Kind::Plain)]).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    // Both calls of `pay` are covered when they are looked at; the grant is good for one, which shows when it is used.
    assert_eq!(keys(&approval(&outcome)), ["c3"]);
    let (grants, _) = scene.people().grants(GrantFilter::default()).await.unwrap();
    assert_eq!(grants[0].uses, 0, "a turn that waits uses nothing up");
    let next = runtime.approve(&scene.people(), execution, answers([("c3", yes())]), "k1").await.unwrap();
    assert_eq!(keys(&approval(&next)), ["c2"]);
    assert!(scene.ran().is_empty());
    assert!(scene.events().await.contains(&"grant_used"));
    completed(&runtime.approve(&scene.people(), execution, answers([("c2", yes())]), "k2").await.unwrap());
    assert_eq!(scene.ran(), ["pay {}", "pay {}", "mail {}"]);
    let (grants, _) = scene.people().grants(GrantFilter::default()).await.unwrap();
    assert_eq!(grants[0].uses, 1);
}

#[tokio::test]
async fn an_approval_for_the_session_is_drafted_from_the_round_and_good_for_this_run_alone() {
    let pays = |id| Turn::Calls(vec![(id, "pay", "{}")]);
    let scene = Scene::new([pays("c1"), pays("c2"), Turn::Says("Done."), pays("c1")]).await;
    let runtime = scene.runtime(&[("pay", Kind::Plain)]).policy(scene.policy(ASKS), None);
    let (execution, outcome) = run(&runtime).await;
    let draft = scene.people().session_grant_of(approval(&outcome).round_id, false).await.unwrap();
    scene.people().grant(draft).await.unwrap();
    // The second call of the run is covered; the first was asked about and is answered.
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap());
    assert_eq!(scene.ran(), ["pay {}", "pay {}"]);
    assert_eq!(keys(&approval(&run(&runtime).await.1)), ["c1"], "another run is another session");
}

#[tokio::test]
async fn an_autonomous_session_asks_nobody_by_rule_and_still_by_marker() {
    let turn = Turn::Calls(vec![("c1", "pay", "{}"), ("c2", "sign", "{}")]);
    let scene = Scene::new([turn, Turn::Says("Done.")]).await;
    let runtime = scene.runtime(&[("pay", Kind::Plain), ("sign", Kind::Approval)]);
    let runtime = runtime.policy(scene.policy(ASKS), Some(Mode::Autonomous));
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(keys(&approval(&outcome)), ["c2"]);
    let done = runtime.approve(&scene.people(), execution, answers([("c2", yes())]), "k").await.unwrap();
    assert!(matches!(done, RunOutcome::Completed(_)));
    assert_eq!(scene.ran(), ["pay {}", "sign {}"]);
}

#[tokio::test]
async fn whoever_started_the_run_does_not_approve_where_a_second_person_must() {
    let policy = format!("{ASKS}require_second_person = true\n");
    let scene = Scene::new([Turn::Calls(vec![("c1", "pay", "{}")]), Turn::Says("Done.")]).await;
    let ada = sayso::Principal::agent("local:ada");
    let model = sayso_agents::native::ChatEndpoint::new(&scene.model.url, "scripted", None).unwrap();
    let tools = sayso_agents::native::Toolbox::new().with(scene.tool("pay", Kind::Plain)).unwrap();
    let runtime = sayso_agents::native::AgentRuntime::new(&scene.sayso, ada, model).tools(tools);
    let runtime = runtime.policy(scene.policy(&policy), None);
    let (execution, _) = run(&runtime).await;
    let own = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap_err();
    assert_eq!(own.code(), sayso::ErrorCode::Forbidden);
    let grace = scene.sayso.people_as(sayso::Principal::person("grace"), sayso::Channel::Library);
    completed(&runtime.approve(&grace, execution, answers([("c1", yes())]), "k").await.unwrap());
    assert_eq!(scene.ran(), ["pay {}"]);
}
