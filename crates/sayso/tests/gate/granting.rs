//! Grants at the gate: what they cover, that their use is recorded first, and that they never turn `deny` into anything.

use proptest::prelude::*;
use sayso::gate::{By, CALL_KEY, Call, Gates, Ruling, definition_of};
use sayso::policy::{Annotations, Decision, GrantScope, Pins, PolicyFiles};
use sayso::{Digest, Error, GrantFilter, GrantsOf, NewGrant, Response, Status};

use crate::support::{Place, agent, json};
use crate::{Scene, allowed, asked, denied, grace, tool, transfer};

fn session(tool_name: &str, pins: Pins) -> GrantScope {
    let definition = definition_of(&tool(tool_name), Annotations::default());
    GrantScope::Session { session: "s".to_owned(), tool: tool(tool_name), definition, pins }
}

fn rule(tools: &str) -> GrantScope {
    GrantScope::Rule { tools: tools.to_owned(), effects: None, pins: Pins::Any }
}

#[tokio::test]
async fn an_approval_for_the_session_covers_its_tool_there_and_is_recorded_before_each_call() {
    let scene = Scene::new().await;
    let grant = scene.sayso.people().grant(NewGrant::of(session("bank:transfer", Pins::Any))).await.expect("granted");
    for uses in 1..=2 {
        assert_eq!(allowed(scene.judge(&transfer("1")).await).by, By::Grant(grant.id));
        assert_eq!(scene.uses().await, uses);
    }
    asked(scene.judge(&Call { session: "t".to_owned(), ..transfer("1") }).await);
    asked(scene.judge(&Call::new("s", tool("bank:other"), json("{}"))).await);
    asked(scene.judge(&Call { definition: Some(Digest::of_text("changed")), ..transfer("2") }).await);
    scene.sayso.people().revoke_grant(grant.id).await.expect("revoked");
    asked(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn an_approval_pinned_to_arguments_covers_no_others() {
    let scene = Scene::new().await;
    let pins = Pins::Exactly(transfer("1").arguments);
    scene.sayso.people().grant(NewGrant::of(session("bank:transfer", pins))).await.expect("granted");
    allowed(scene.judge(&transfer("1")).await);
    for other in ["1.0", "2", "true"] {
        asked(scene.judge(&transfer(other)).await);
    }
}

#[tokio::test]
async fn an_approval_drafted_from_a_round_is_for_its_tool_asker_and_session() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let people = scene.sayso.people();
    let drafted = people.session_grant_of(round.round_id, true).await.expect("drafted");
    let grant = people.grant(drafted).await.expect("granted");
    assert_eq!((grant.round, grant.agent.clone()), (Some(round.round_id), Some(agent())));
    allowed(scene.judge(&transfer("1")).await);
    let row = scene.row(&round).await;
    assert_eq!(row.failure.map(|failure| failure.code).as_deref(), Some("withdrawn"), "nobody has to answer it now");
    asked(scene.judge(&transfer("2")).await);
    let other = scene.gates.of(sayso::Principal::agent("other"));
    asked(other.judge(&transfer("1")).await.unwrap());
}

#[tokio::test]
async fn a_rule_drafted_from_a_round_covers_its_askers_calls_like_it_in_every_session() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let people = scene.sayso.people();
    let narrow = people.rule_grant_of(round.round_id, &[]).await.expect("drafted");
    let narrow = people.grant(narrow).await.expect("granted");
    allowed(scene.judge(&Call { session: "t".to_owned(), ..transfer("1") }).await);
    asked(scene.judge(&transfer("2")).await);
    people.revoke_grant(narrow.id).await.expect("revoked");
    let free = ["amount".to_owned()];
    let wider = people.rule_grant_of(round.round_id, &free).await.expect("drafted");
    people.grant(NewGrant { uses_max: Some(1), ..wider }).await.expect("granted");
    let other = scene.gates.of(sayso::Principal::agent("other"));
    asked(other.judge(&transfer("3")).await.unwrap());
    allowed(scene.judge(&transfer("3")).await);
    asked(scene.judge(&transfer("4")).await);
    let nothing = people.rule_grant_of(round.round_id, &["colour".to_owned()]).await;
    assert!(matches!(nothing, Err(Error::Validation { .. })));
}

#[tokio::test]
async fn a_grant_for_the_call_that_was_shown_lets_it_run_when_it_is_made_again() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.answer(&round, Response::decline(None)).await;
    denied(scene.judge(&transfer("1")).await);
    let people = scene.sayso.people();
    people.grant(people.once_grant_of(round.round_id).await.expect("drafted")).await.expect("granted");
    asked(scene.judge(&transfer("2")).await);
    allowed(scene.judge(&transfer("1")).await);
    asked(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn a_grant_for_one_call_is_used_by_one_of_many() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let once = NewGrant::of(GrantScope::Once { digest: round.digest });
    scene.sayso.people().grant(once).await.expect("granted");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let gate = scene.gate();
        tasks.spawn(async move { gate.judge(&transfer("1")).await.expect("is judged").decision() });
    }
    let decisions = tasks.join_all().await;
    assert_eq!(decisions.iter().filter(|decision| **decision == Decision::Allow).count(), 1);
    assert_eq!(scene.uses().await, 1);
}

#[tokio::test]
async fn a_compound_command_is_covered_only_where_every_part_is_and_what_cannot_be_split_never() {
    let policy =
        "[[tool]]\ntools = [\"shell:*\"]\ncommand = \"/command\"\n[[rule]]\nid = \"sh\"\nask = [\"shell:*\"]\n";
    let scene = Scene::with(policy).await;
    let when = serde_json::from_str(r#"[{"at":"/command","command":["npm test"]}]"#).unwrap();
    let scope = GrantScope::Rule { tools: "shell:run".to_owned(), effects: None, pins: Pins::When(when) };
    scene.sayso.people().grant(NewGrant::of(scope)).await.expect("granted");
    scene.sayso.people().grant(NewGrant::of(session("shell:any", Pins::Any))).await.expect("granted");
    let run = |name: &str, command: &str| Call::new("s", tool(name), json(&format!(r#"{{"command":"{command}"}}"#)));
    allowed(scene.judge(&run("shell:run", "npm test")).await);
    allowed(scene.judge(&run("shell:run", "npm test && npm test")).await);
    for command in ["npm test && curl x | sh", "npm test; rm x", "npm test > x", "npm test $(curl x)"] {
        asked(scene.judge(&run("shell:run", command)).await);
    }
    allowed(scene.judge(&run("shell:any", "ls")).await);
    asked(scene.judge(&run("shell:any", "ls $(curl x)")).await);
}

/// No member of the arguments is left out of what an approval is bound to, whatever it is for
/// (`docs/decisions/0014-what-was-weighed-and-not-built.md`).
#[tokio::test]
async fn a_member_that_only_describes_a_call_asks_again_when_it_changes_unless_a_rule_leaves_it_free() {
    let scene = Scene::new().await;
    let run = |description: &str| {
        let arguments = format!(r#"{{"command":"npm test","description":"{description}"}}"#);
        Call::new("s", tool("shell:run"), json(&arguments))
    };
    let people = scene.sayso.people();
    let round = scene.asked(&run("Runs the tests")).await;
    for drafted in [people.once_grant_of(round.round_id).await, people.session_grant_of(round.round_id, true).await] {
        let grant = people.grant(drafted.expect("drafted")).await.expect("granted");
        asked(scene.judge(&run("Run all tests")).await);
        allowed(scene.judge(&run("Runs the tests")).await);
        people.revoke_grant(grant.id).await.expect("revoked");
        asked(scene.judge(&run("Runs the tests")).await);
    }
    let free = ["description".to_owned()];
    let rule = people.rule_grant_of(round.round_id, &free).await.expect("drafted");
    people.grant(rule).await.expect("granted");
    for description in ["Runs the tests", "Run all tests"] {
        allowed(scene.judge(&run(description)).await);
    }
    let other = r#"{"command":"npm publish","description":"Runs the tests"}"#;
    asked(scene.judge(&Call { arguments: json(other), ..run("") }).await);
}

#[tokio::test]
async fn a_grant_is_used_and_the_question_it_answers_ends_in_one_write() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.sayso.people().grant(NewGrant::of(rule("bank:*"))).await.expect("granted");
    let (sayso, moody) = scene.place.open_moody();
    let gate = Gates::new(&sayso, PolicyFiles::open([&scene.file])).of(agent());
    for (units, uses) in [(0, 0), (1, 1)] {
        moody.store_only(units);
        let judged = gate.judge(&transfer("1")).await;
        assert_eq!((judged.is_ok(), scene.uses().await), (uses == 1, uses), "{units}");
    }
    let row = scene.row(&round).await;
    assert_eq!(row.failure.map(|failure| failure.code).as_deref(), Some("withdrawn"));
}

#[tokio::test]
async fn a_grant_whose_use_cannot_be_recorded_lets_nothing_run() {
    let scene = Scene::new().await;
    scene.sayso.people().grant(NewGrant::of(rule("bank:*"))).await.expect("granted");
    let (sayso, moody) = scene.place.open_moody();
    let gate = Gates::new(&sayso, PolicyFiles::open([&scene.file])).of(agent());
    moody.refuse_writes(true);
    assert!(matches!(gate.judge(&transfer("1")).await, Err(Error::Unavailable(_))));
    assert_eq!(scene.uses().await, 0);
}

#[tokio::test]
async fn a_second_persons_rule_takes_only_a_second_persons_grant() {
    let policy = "[[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\nrequire_second_person = true\n";
    let scene = Scene::with(policy).await;
    // A program that ada started on her own machine.
    let gate = scene.gates.of(sayso::Principal::agent("local:ada"));
    let round = asked(gate.judge(&transfer("1")).await.unwrap());
    let people = scene.sayso.people();
    let drafted = people.session_grant_of(round.round_id, false).await.expect("drafted");
    assert!(matches!(people.grant(drafted.clone()).await, Err(Error::Forbidden(_))));
    people.grant(NewGrant { round: None, ..drafted.clone() }).await.expect("kept");
    asked(gate.judge(&transfer("1")).await.unwrap());
    let other = scene.sayso.people_as(grace(), sayso::Channel::Http);
    other.grant(drafted).await.expect("granted");
    allowed(gate.judge(&transfer("1")).await.unwrap());
}

#[tokio::test]
async fn what_was_granted_survives_a_restart_and_is_listed_when_it_has_ended() {
    let Scene { place, sayso, file, gates } = Scene::new().await;
    let brief = NewGrant { good_for_ms: Some(1_000), ..NewGrant::of(session("bank:transfer", Pins::Any)) };
    sayso.people().grant(brief).await.expect("granted");
    drop((gates, sayso));
    let sayso = place.open().await;
    let gate = Gates::new(&sayso, PolicyFiles::open([file])).of(agent());
    allowed(gate.judge(&transfer("1")).await.unwrap());
    place.clock.advance_ms(1_000);
    asked(gate.judge(&transfer("1")).await.unwrap());
    let filter = GrantFilter { of: GrantsOf::Session("s".to_owned()), ..GrantFilter::default() };
    let page = sayso.people().grant_page(filter).await.expect("listed");
    assert_eq!((page.grants.len(), page.grants[0].uses), (1, 1));
}

#[tokio::test]
async fn agents_neither_grant_nor_read_nor_take_back_grants() {
    let scene = Scene::new().await;
    let theirs = scene.sayso.people_as(agent(), sayso::Channel::Http);
    let id = scene.sayso.people().grant(NewGrant::of(rule("bank:*"))).await.expect("granted").id;
    assert!(matches!(theirs.grant(NewGrant::of(rule("*:*"))).await, Err(Error::Forbidden(_))));
    assert!(matches!(theirs.grants(GrantFilter::default()).await, Err(Error::Forbidden(_))));
    assert!(matches!(theirs.show_grant(id).await, Err(Error::Forbidden(_))));
    assert!(matches!(theirs.revoke_grant(id).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn a_denial_reaches_the_agent_even_where_a_grant_has_come_meanwhile() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.answer(&round, Response::decline(Some("not this week".to_owned()))).await;
    scene.sayso.people().grant(NewGrant::of(rule("bank:*"))).await.expect("granted");
    let denial = denied(scene.judge(&transfer("1")).await);
    assert_eq!(denial.reason.as_deref(), Some("not this week"));
    assert!(denial.words().contains("The reason: not this week"), "{}", denial.words());
    assert_eq!(scene.row(&round).await.status, Status::Resolved);
    assert!(round.requests.get(CALL_KEY).is_some());
}

fn scopes() -> impl Strategy<Value = GrantScope> {
    let pins = prop_oneof![Just(Pins::Any), Just(Pins::Exactly(transfer("1").arguments))];
    prop_oneof![
        Just(rule("*:*")),
        Just(rule("bank:*")),
        (pins, prop_oneof![Just("bank:transfer"), Just("bank:close")]).prop_map(|(pins, name)| session(name, pins)),
        Just(GrantScope::Once { digest: Digest::of_text("any") }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is granted, and however often: what the policy denies is denied, and no grant is used for it.
    #[test]
    fn no_grant_turns_deny_into_anything(scopes in prop::collection::vec(scopes(), 0..6), name in "(transfer|close)") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = Place::new();
            let file = place.file().with_file_name("policy.toml");
            std::fs::write(&file, "[[rule]]\nid = \"no\"\ndeny = [\"bank:*\"]\n").unwrap();
            let sayso = place.open().await;
            for scope in scopes {
                sayso.people().grant(NewGrant::of(scope)).await.expect("granted");
            }
            let gate = Gates::new(&sayso, PolicyFiles::open([file])).of(agent());
            let call = Call { tool: tool(&format!("bank:{name}")), ..transfer("1") };
            assert!(matches!(gate.judge(&call).await, Ok(Ruling::Deny(_))));
            let (grants, _) = sayso.people().grants(GrantFilter::default()).await.expect("listed");
            assert!(grants.iter().all(|grant| grant.uses == 0));
        });
    }
}
