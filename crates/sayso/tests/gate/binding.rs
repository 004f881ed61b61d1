//! What was approved is what runs, once.

use sayso::gate::{By, CALL_KEY, Call};
use sayso::policy::{GrantScope, Mode, Pins};
use sayso::{Answer, Desk, Digest, Error, ErrorCode, Failure, NewGrant, People, Response, Status};

use crate::support::{LONG, code, json};
use crate::{Scene, allowed, asked, denied, edited, shown, tool, transfer};

#[tokio::test]
async fn an_approval_is_for_one_call_and_the_next_is_asked_anew() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let request = round.requests.get(CALL_KEY).unwrap();
    assert_eq!(request.rule.as_deref(), Some("operator pay"));
    assert_eq!((request.session.as_deref(), request.tool.as_deref()), (Some("s"), Some("bank:transfer")));
    assert_eq!(scene.asked(&transfer("1")).await.round_id, round.round_id, "the same call is the same question");
    scene.approve(&round).await;
    let run = allowed(scene.judge(&transfer("1")).await);
    assert_eq!((run.by, run.is_changed), (By::Person(round.round_id), false));
    assert_eq!(run.arguments, json(r#"{"to":"grace","amount":1}"#));
    assert_eq!(scene.row(&round).await.status, Status::Resolved);
    assert_ne!(scene.asked(&transfer("1")).await.round_id, round.round_id, "spent");
    let result = scene.sayso.desk(crate::agent()).result(round.execution_id, LONG).await.expect("it is over");
    let stored = result.result.expect("is stored");
    assert_eq!(stored.as_str(), r#"{"verdict":"allow","arguments":{"to":"grace","amount":1}}"#);
}

#[tokio::test]
async fn an_approval_of_one_call_covers_no_other_whatever_looks_alike() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    let one = transfer("1");
    let others = [
        transfer("1.0"),
        transfer("true"),
        transfer("\"1\""),
        transfer("9007199254740993"),
        Call { session: "t".to_owned(), ..one.clone() },
        Call { tool: tool("bank:transfer2"), ..one.clone() },
        Call { arguments: json(r#"{"amount":1,"to":"grace","note":null}"#), ..one.clone() },
    ];
    for other in &others {
        assert_ne!(scene.asked(other).await.round_id, round.round_id, "{:?}", other.arguments.as_str());
    }
    let reordered = Call { arguments: json(r#"{ "amount": 1, "to": "grace" }"#), ..one };
    allowed(scene.judge(&reordered).await);
}

#[tokio::test]
async fn of_many_that_take_an_answer_one_gets_it() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let gate = scene.gate();
        tasks.spawn(async move { gate.judge(&transfer("1")).await.expect("is judged") });
    }
    let rulings = tasks.join_all().await;
    let spent = |ruling: &sayso::gate::Ruling| matches!(ruling, sayso::gate::Ruling::Allow(_));
    assert_eq!(rulings.iter().filter(|ruling| spent(ruling)).count(), 1);
}

#[tokio::test]
async fn two_equal_calls_at_once_are_two_calls() {
    let scene = Scene::new().await;
    let (told, mut rounds) = tokio::sync::mpsc::channel(8);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (gate, told) = (scene.gate(), told.clone());
        tasks.spawn(async move {
            gate.pass(&transfer("1"), None, |round| told.try_send(round.clone()).unwrap()).await.expect("is judged")
        });
    }
    let (first, second) = (rounds.recv().await.unwrap(), rounds.recv().await.unwrap());
    assert_ne!(first.round_id, second.round_id);
    scene.answer(&second, Response::decline(Some("no".to_owned()))).await;
    let one = tasks.join_next().await.unwrap().unwrap();
    assert_eq!(denied(one).reason.as_deref(), Some("no"));
    scene.approve(&first).await;
    allowed(tasks.join_next().await.unwrap().unwrap());
}

#[tokio::test]
async fn parallel_calls_of_one_tool_are_told_apart_and_each_gets_its_own_verdict() {
    let scene = Scene::new().await;
    let (one, two) = (scene.asked(&transfer("1")).await, scene.asked(&transfer("2")).await);
    scene.approve(&two).await;
    scene.answer(&one, Response::decline(None)).await;
    assert_eq!(allowed(scene.judge(&transfer("2")).await).arguments, *shown(&two));
    assert_eq!(denied(scene.judge(&transfer("1")).await).round, Some(one.round_id));
}

#[tokio::test]
async fn an_unrelated_edit_of_the_policy_spends_no_approval() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    scene.write_policy(&format!("{}\n[[rule]]\nid = \"new\"\nask = [\"mail:*\"]\n", crate::POLICY));
    allowed(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn another_rule_that_asks_by_now_asks_again_and_the_first_round_is_superseded() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    scene.write_policy("[[rule]]\nid = \"stricter\"\nask = [\"bank:*\"]\nrequire_second_person = true\n");
    let next = asked(scene.judge(&transfer("1")).await);
    let first = scene.row(&round).await;
    assert_eq!(first.failure.map(|failure| failure.code).as_deref(), Some(Failure::SUPERSEDED));
    assert_eq!((next.execution_id, next.round_index), (round.execution_id, 1), "the same call goes on");
    assert_eq!(next.requests.get(CALL_KEY).unwrap().rule.as_deref(), Some("operator stricter"));
    assert_eq!(scene.asked(&transfer("1")).await.round_id, next.round_id);
}

#[tokio::test]
async fn what_is_denied_by_the_time_it_would_run_does_not_run() {
    let scene = Scene::new().await;
    let call = transfer("1");
    let round = scene.asked(&call).await;
    let waiting = tokio::spawn({
        let (gate, call) = (scene.gate(), call.clone());
        async move { gate.pass(&call, None, |_| ()).await.expect("is judged") }
    });
    scene.write_policy("[[rule]]\nid = \"closed\"\ndeny = [\"bank:*\"]\nreason = \"Closed.\"\n");
    scene.approve(&round).await;
    let denial = denied(waiting.await.unwrap());
    assert_eq!((denial.reason.as_deref(), denial.round), (Some("Closed."), None), "the policy denies, nobody else");
    assert_eq!(denied(scene.judge(&call).await).rules[0].id, "closed");
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_shown_is_asked_again() {
    let scene = Scene::new().await;
    let call = Call { definition: Some(Digest::of_text("one")), ..transfer("1") };
    let round = scene.asked(&call).await;
    scene.approve(&round).await;
    let changed = Call { definition: Some(Digest::of_text("two")), ..call };
    let next = asked(scene.judge(&changed).await);
    assert_eq!(next.requests.get(CALL_KEY).unwrap().definition, Some(Digest::of_text("two")));
    assert_eq!(scene.row(&round).await.status, Status::Failed);
}

#[tokio::test]
async fn edited_arguments_run_and_are_judged_by_the_policy_as_any_others() {
    let policy = r#"
[[rule]]
id = "too-much"
deny = ["bank:*"]
when = [{ at = "/amount", min = 100 }]
[[rule]]
id = "pay"
ask = ["bank:*"]
"#;
    let scene = Scene::with(policy).await;
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"integer"}}}"#;
    let call = Call { arguments_schema: Some(json(schema)), ..transfer("1") };
    let round = scene.asked(&call).await;
    scene.answer(&round, edited(r#"{"to":"grace","amount":7}"#)).await;
    let run = allowed(scene.judge(&call).await);
    assert_eq!((run.arguments.as_str(), run.is_changed), (r#"{"to":"grace","amount":7}"#, true));
    assert!(run.words().contains(r#""amount":7"#), "the agent is told which ran: {}", run.words());

    let round = scene.asked(&call).await;
    scene.answer(&round, edited(r#"{"to":"grace","amount":700}"#)).await;
    assert_eq!(denied(scene.judge(&call).await).rules[0].id, "too-much", "a person's edit opens nothing");

    let round = scene.asked(&call).await;
    let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, edited(r#"{"amount":"lots"}"#)) };
    let refused = scene.sayso.people().answer(round.round_id, answer, "k").await;
    assert_eq!(code(refused), ErrorCode::ManagedInputInvalid);
    assert_eq!(scene.row(&round).await.status, Status::Pending, "an answer that does not fit consumes nothing");
}

#[tokio::test]
async fn a_persons_values_replace_the_agents_and_set_nothing_else() {
    let scene = Scene::new().await;
    let schema = r#"{"type":"object","properties":{"pin":{"type":"string"}},"required":["pin"]}"#;
    let arguments = json(r#"{"to":"grace","pin":"guessed"}"#);
    let call = Call { input: Some(json(schema)), ..Call::new("s", tool("bank:transfer"), arguments) };
    let round = scene.asked(&call).await;
    let bare = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    let refused = scene.sayso.people().answer(round.round_id, bare, "k").await;
    assert_eq!(code(refused), ErrorCode::ManagedInputInvalid, "it never runs without what a person must give");
    scene.answer(&round, Response::accept(json(r#"{"input":{"pin":"1234","to":"mallory"}}"#))).await;
    let run = allowed(scene.judge(&call).await);
    assert_eq!(run.arguments.as_str(), r#"{"to":"grace","pin":"1234"}"#);
}

#[tokio::test]
async fn a_call_that_needs_a_persons_values_asks_for_them_whatever_allows_it() {
    let scene = Scene::with("[[rule]]\nid = \"all\"\nallow = [\"bank:*\"]\n").await;
    let scope = GrantScope::Rule { tools: "*:*".to_owned(), effects: None, pins: Pins::Any };
    scene.sayso.people().grant(NewGrant::of(scope)).await.expect("granted");
    let input = Some(json(r#"{"type":"object","properties":{"pin":{"type":"string"}},"required":["pin"]}"#));
    for name in ["bank:transfer", "shop:buy"] {
        let call = Call { input: input.clone(), tool: tool(name), is_harmless: true, ..transfer("1") };
        let round = scene.asked(&call).await;
        scene.answer(&round, Response::accept(json(r#"{"input":{"pin":"1234"}}"#))).await;
        let run = allowed(scene.judge(&call).await);
        assert_eq!(run.arguments.as_str(), r#"{"to":"grace","amount":1,"pin":"1234"}"#);
        asked(scene.gate().in_mode(Mode::Autonomous).judge(&call).await.expect("is judged"));
    }
    assert_eq!(scene.uses().await, 0);
}

#[tokio::test]
async fn an_edit_changes_arguments_and_never_the_tool() {
    let scene = Scene::new().await;
    let schema = Some(json(r#"{"type":"object","properties":{"to":{"type":"string"}}}"#));
    let call = Call { arguments_schema: schema, ..transfer("1") };
    let round = scene.asked(&call).await;
    for content in
        [r#"{"tool":"bank:close","arguments":{"to":"x"}}"#, r#"{"name":"close"}"#, r#"{"arguments":["bank:close"]}"#]
    {
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::accept(json(content))) };
        let refused = scene.sayso.people().answer(round.round_id, answer, content).await;
        assert_eq!(code(refused), ErrorCode::ManagedInputInvalid, "{content}");
    }
    scene.answer(&round, edited(r#"{"to":"x"}"#)).await;
    assert_eq!(allowed(scene.judge(&call).await).arguments.as_str(), r#"{"to":"x"}"#);
}

#[tokio::test]
async fn an_agent_that_makes_its_own_call_again_after_a_person_edited_it_is_asked_anew() {
    let scene = Scene::new().await;
    let schema = Some(json(r#"{"type":"object"}"#));
    let proposed = Call { arguments_schema: schema, ..transfer("5000") };
    let round = scene.asked(&proposed).await;
    scene.answer(&round, edited(r#"{"to":"grace","amount":5}"#)).await;
    let run = allowed(scene.judge(&proposed).await);
    assert_eq!((run.arguments.as_str(), run.is_changed), (r#"{"to":"grace","amount":5}"#, true));
    assert!(run.words().contains(r#"{"to":"grace","amount":5}"#), "it is told which ran: {}", run.words());
    let stored = scene.sayso.desk(crate::agent()).result(round.execution_id, LONG).await.expect("it is over").result;
    assert_eq!(stored.unwrap().as_str(), r#"{"verdict":"allow","arguments":{"to":"grace","amount":5}}"#);
    // The approval is spent, for what the agent proposed and for what the person made of it.
    let again = scene.asked(&proposed).await;
    assert_ne!(again.round_id, round.round_id);
    assert_eq!(*shown(&again), proposed.arguments, "it is asked as it is proposed");
    let corrected = Call { arguments: run.arguments, ..proposed };
    assert_ne!(scene.asked(&corrected).await.round_id, round.round_id);
}

#[tokio::test]
async fn tools_of_one_name_on_two_servers_are_two_tools() {
    let scene = Scene::new().await;
    let there = Call { tool: tool("bank2:transfer"), ..transfer("1") };
    let round = scene.asked(&transfer("1")).await;
    let people = scene.sayso.people();
    let grant = people.session_grant_of(round.round_id, false).await.expect("drafted");
    people.grant(grant).await.expect("granted");
    scene.approve(&round).await;
    assert_ne!(scene.asked(&there).await.round_id, round.round_id);
    allowed(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn an_approval_that_was_spent_is_spent_after_a_restart() {
    let Scene { place, sayso, file, gates } = Scene::new().await;
    let call = transfer("1");
    let round = asked(gates.of(crate::agent()).judge(&call).await.unwrap());
    let approval = || Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    sayso.people().answer(round.round_id, approval(), "k").await.expect("accepted");
    allowed(gates.of(crate::agent()).judge(&call).await.unwrap());
    drop((gates, sayso));
    let sayso = place.open().await;
    sayso.people().answer(round.round_id, approval(), "k").await.expect("the same answer is the same record");
    let gates = sayso::gate::Gates::new(&sayso, sayso::policy::PolicyFiles::open([file]));
    assert_ne!(asked(gates.of(crate::agent()).judge(&call).await.unwrap()).round_id, round.round_id);
}

#[tokio::test]
async fn the_same_call_asked_again_is_the_same_question() {
    let scene = Scene::new().await;
    let first = scene.asked(&transfer("1")).await;
    for _ in 0..3 {
        assert_eq!(scene.asked(&transfer("1")).await.round_id, first.round_id);
    }
    assert_eq!(scene.sayso.people().list(sayso::RoundFilter::default()).await.expect("listed").rounds.len(), 1);
}

#[tokio::test]
async fn a_round_that_an_agent_makes_itself_is_no_gates() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let forged = sayso::Ask {
        logical_operation_id: Some(round.logical_operation_id.clone()),
        requests: round.requests.clone(),
        ..sayso::Ask::default()
    };
    let refused = scene.sayso.desk(crate::agent()).ask(forged, None).await;
    assert_eq!(crate::support::fields(refused), ["/logical_operation_id"]);
}

#[tokio::test]
async fn an_answer_that_came_before_the_wait_is_found_after_a_restart() {
    let Scene { place, sayso, file, gates } = Scene::new().await;
    let call = transfer("1");
    let round = asked(gates.of(crate::agent()).judge(&call).await.unwrap());
    drop((gates, sayso));
    let sayso = place.open().await;
    let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    sayso.people().answer(round.round_id, answer, "k").await.expect("accepted");
    let gates = sayso::gate::Gates::new(&sayso, sayso::policy::PolicyFiles::open([file]));
    let run = gates.of(crate::agent()).pass(&call, None, |_| panic!("asked again")).await.unwrap();
    assert_eq!(allowed(run).by, By::Person(round.round_id));
}

#[tokio::test]
async fn a_round_cut_off_while_it_was_taken_is_taken_up_again() {
    let scene = Scene::new().await;
    let call = transfer("1");
    let round = scene.asked(&call).await;
    scene.approve(&round).await;
    // As after a crash between taking the answer and storing what became of it.
    let desk = scene.sayso.desk(crate::agent());
    let claimed = desk.claim(round.round_id, sayso::ClaimOf::default(), None).await.expect("claimed");
    desk.start(round.round_id, claimed.fence).await.expect("started");
    scene.place.clock.advance_ms(sayso::limits::LEASE_MS);
    allowed(scene.judge(&call).await);
}

#[tokio::test]
async fn what_cannot_be_stored_is_unavailable_and_never_denied() {
    let scene = Scene::new().await;
    let (sayso, moody) = scene.place.open_moody();
    let gate = sayso::gate::Gates::new(&sayso, sayso::policy::PolicyFiles::open([&scene.file])).of(crate::agent());
    moody.refuse_writes(true);
    let Err(Error::Unavailable(words)) = gate.judge(&transfer("1")).await else { panic!("nobody could be asked") };
    assert!(words.starts_with(sayso::words::APPROVAL_UNAVAILABLE) && words.contains("disk is full"), "{words}");
    moody.refuse_writes(false);
    asked(gate.judge(&transfer("1")).await.unwrap());
}
