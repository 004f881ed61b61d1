//! The nine invariants of ARCHITECTURE.md, each with a test that names it, as far as they show in the library.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use sayso::{
    Answer, Ask, Channel, Desk, Digest, Error, ErrorCode, ExecutionFilter, Failure, Outcome, People, Principal,
    Request, Response, RoundFilter, Sayso, Status, Step, limits, wire, words,
};
use sayso_core::command::Command;
use sayso_core::wire::{Keyed, RequestKind};
use support::{LONG, Place, ada, address, agent, code, fields, json, live, street};

fn approval(arguments: &str) -> Ask {
    let request = Request {
        tool: Some("shop:buy".to_owned()),
        arguments: Some(json(arguments)),
        ..Request::empty(RequestKind::Approval)
    };
    Ask::one("call", request)
}

fn text() -> Ask {
    Ask::one("note", Request { question: Some("?".to_owned()), ..Request::empty(RequestKind::Text) })
}

async fn pending(sayso: &Sayso) -> usize {
    let filter = RoundFilter { status: Some(Status::Pending), ..RoundFilter::default() };
    sayso.people().list(filter).await.expect("a list").rounds.len()
}

#[tokio::test]
async fn invariant_1_nothing_is_shown_before_it_is_stored() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let desk = sayso.desk(agent());
    store.refuse_writes(true);
    for ask in [address(), live(address())] {
        assert_eq!(code(desk.open(ask, None).await), ErrorCode::Unavailable, "unavailable, never denied");
    }
    assert!(words::QUESTION_UNAVAILABLE.contains("nobody could be asked, nothing was denied"));
    assert_eq!(pending(&sayso).await, 0);
    assert_eq!(sayso.last_event().await, Ok(0));
    store.refuse_writes(false);
    let round = desk.ask(address(), None).await.expect("stored");
    assert_eq!(sayso.people().show(round.round_id).await, Ok(round.clone()));
    assert_eq!(place.open_deaf().people().show(round.round_id).await, Ok(round), "and stays stored");
}

#[tokio::test]
async fn invariant_1_whoever_stored_a_question_is_told_so() {
    let place = Place::new();
    let (sayso, store) = place.open_moody();
    let desk = sayso.desk(agent());
    store.refuse_reads_after_the_next_write(true);
    let asked = desk.open(live(address()), None).await.expect("it is stored; not being able to read it is no failure");
    store.refuse_reads_after_the_next_write(false);
    assert_eq!(sayso.people().show(asked.round.round_id).await, Ok(asked.round.clone()));
    sayso.people().answer(asked.round.round_id, street("x"), "key").await.expect("accepted");
    store.refuse_reads_after_the_next_write(true);
    let handed = desk.start(asked.round.round_id, asked.fence.expect("held")).await.expect("it is handed over");
    assert_eq!(handed.round.status, Status::DeliveryStarted);
}

#[tokio::test]
async fn invariant_2_an_invalid_answer_changes_nothing() {
    let place = Place::new();
    let sayso = place.open().await;
    let round = sayso.desk(agent()).ask(address(), None).await.expect("stored");
    let content = |text: &str| Answer::one("address", Response::accept(json(text)));
    for (answer, pointer) in [
        (content("{}"), "/responses/address/content/street"),
        (content(r#"{"street":7}"#), "/responses/address/content/street"),
        (content("[]"), "/responses/address/content"),
        (Answer::one("address", Response::consent()), "/responses/address/content"),
        (Answer::one("other", Response::cancel()), "/responses/other"),
        (Answer { digest: None, responses: Keyed(Vec::new()) }, "/responses/address"),
    ] {
        assert_eq!(fields(sayso.people().answer(round.round_id, answer, "key").await), [pointer]);
        assert_eq!(sayso.people().show(round.round_id).await, Ok(round.clone()), "as it was, to the last member");
        assert_eq!(sayso.people().responses(round.round_id).await, Ok(None));
    }
    let refused = sayso.events_after(&ada(), 0).await.expect("events").split_off(2);
    assert_eq!(refused.len(), 6);
    assert!(refused.iter().all(|event| event.event.body.name() == "response_refused"));
    let answered = sayso.people().answer(round.round_id, street("x"), "key").await.expect("the key is still free");
    assert_eq!(answered.status, Status::ResponseValidated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_3_one_answer_wins() {
    let place = Place::new();
    let sayso = place.open().await;
    let round = sayso.desk(agent()).ask(address(), None).await.expect("stored").round_id;
    let mut answers = tokio::task::JoinSet::new();
    for n in 0..50 {
        let people = sayso.people_as(Principal::person(format!("p{n}")), Channel::Http);
        answers.spawn(async move { (n, people.answer(round, street(&format!("{n} Street")), &format!("k{n}")).await) });
    }
    let (won, lost): (Vec<_>, Vec<_>) = answers.join_all().await.into_iter().partition(|(_, outcome)| outcome.is_ok());
    assert_eq!((won.len(), lost.len()), (1, 49));
    let n = won[0].0;
    let record = won[0].1.clone().expect("won");
    for (_, outcome) in lost {
        let Err(Error::Conflict { winner: Some(winner), .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((winner.principal, winner.channel), (Principal::person(format!("p{n}")), Channel::Http));
        assert_eq!(Some(winner.at), record.answered.as_ref().map(|answered| answered.at));
    }
    let winner = sayso.people_as(Principal::person(format!("p{n}")), Channel::Cli);
    let again = winner.answer(round, street(&format!("{n} Street")), &format!("k{n}")).await;
    assert_eq!(again, Ok(record), "the same key with the same answer is the same record");
    let other = winner.answer(round, street("elsewhere"), &format!("k{n}")).await;
    assert_eq!(code(other), ErrorCode::ManagedInputConflict);
    let invalid = winner.answer(round, Answer::one("address", Response::consent()), &format!("k{n}")).await;
    assert_eq!(code(invalid), ErrorCode::ManagedInputConflict, "the key is compared before the payload is looked at");
    let collected = sayso.desk(agent()).collect(round, "once", LONG).await.expect("collected");
    let content = collected.responses.get("address").and_then(|response| response.content.clone());
    assert_eq!(
        content.map(|content| content.as_str().to_owned()),
        Some(format!(r#"{{"street":"{n} Street","floor":0}}"#))
    );
    assert_eq!(
        winner.answer(round, street(&format!("{n} Street")), &format!("k{n}")).await.map(|round| round.status),
        Ok(Status::Resolved),
        "also when it has been handed over"
    );
}

#[tokio::test]
async fn invariant_4_an_approval_is_bound_to_what_was_shown() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let mut digests = Vec::new();
    for arguments in [r#"{"n":1}"#, r#"{"n":1.0}"#, r#"{"n":2}"#, r#"{"n":1,"to":"x"}"#] {
        digests.push(desk.ask(approval(arguments), None).await.expect("stored").digest);
    }
    let distinct: std::collections::HashSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len(), "whatever would run differently has another digest");
    let same = desk.ask(approval(r#"{ "n":1 }"#), None).await.expect("stored").digest;
    assert_eq!(same, digests[0], "white space runs nothing");

    let round = desk.ask(approval(r#"{"n":1}"#), None).await.expect("stored");
    let approve = |digest| Answer { digest, ..Answer::one("call", Response::consent()) };
    for channel in [Channel::Http, Channel::Inbox, Channel::Cli] {
        let people = sayso.people_as(ada(), channel);
        assert_eq!(fields(people.answer(round.round_id, approve(None), "key").await), ["/digest"]);
        let stale = people.answer(round.round_id, approve(Some(Digest::of_text("other"))), "key").await;
        assert_eq!(code(stale), ErrorCode::ManagedInputStale);
    }
    drop(sayso);
    let people = place.open().await.people_as(ada(), Channel::Cli);
    let shown = people.show(round.round_id).await.expect("shown");
    assert_eq!(shown.digest, round.digest, "the same after a restart");
    let requests = json(&serde_json::to_string(&shown.requests).expect("is written"));
    assert_eq!(Digest::of_requests(&requests), shown.digest, "whoever is shown it can compute it");
    people.answer(round.round_id, approve(Some(shown.digest)), "key").await.expect("approved");
}

#[tokio::test]
async fn invariant_5_silence_never_approves_and_every_end_is_told_apart() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let store = place.store();
    let mut told = std::collections::HashSet::new();
    for end in [Failure::EXPIRED, Failure::CANCELLED, Failure::WITHDRAWN, Failure::SUPERSEDED] {
        let deadline = Some(support::START.plus_ms(10)).filter(|_| end == Failure::EXPIRED);
        let round = desk.ask(Ask { deadline, ..approval("{}") }, None).await.expect("stored");
        match end {
            Failure::EXPIRED => {
                place.clock.advance_ms(11);
                store.commit(vec![Command::Expire { round: round.round_id }]).await.map(drop)
            }
            Failure::CANCELLED => sayso.people().cancel(round.execution_id).await.map(drop),
            _ => desk.settle(vec![Step::Failed(round.round_id, None, Failure::new(end, "because"))]).await,
        }
        .expect("ended");
        let Err(Error::State { failure: Some(failure), .. }) = desk.collect(round.round_id, "once", LONG).await else {
            panic!("{end} was collected")
        };
        assert_eq!(failure.code, end);
        assert_eq!(sayso.people().responses(round.round_id).await, Ok(None));
        let late = Answer { digest: Some(round.digest), ..Answer::one("call", Response::consent()) };
        assert_eq!(code(sayso.people().answer(round.round_id, late, "key").await), ErrorCode::ManagedInputState);
        let words = words::ended(&failure);
        assert!(!words.to_lowercase().contains("denied") && !words.contains("declined"), "{words}");
        assert!(told.insert(words));
    }
    assert!(told.insert(words::QUESTION_UNAVAILABLE.to_owned()));
    let denied = desk.ask(approval("{}"), None).await.expect("stored");
    let no = Answer::one("call", Response::decline(Some("not today".to_owned())));
    sayso.people().answer(denied.round_id, no, "key").await.expect("accepted");
    let collected = desk.collect(denied.round_id, "once", LONG).await.expect("a refusal is an answer");
    assert_eq!(collected.responses.get("call"), Some(&Response::decline(Some("not today".to_owned()))));
}

#[tokio::test]
async fn invariant_6_an_agents_credential_cannot_answer_and_a_persons_cannot_collect() {
    let place = Place::new();
    let sayso = place.open().await;
    let new = wire::NewToken { kind: wire::NewTokenKind::Agent, name: "booking".to_owned() };
    let secret = sayso.new_token(&ada(), new).await.expect("made").token.secret.expect("shown once");
    let caller = sayso.authenticate(&secret).await.expect("known");
    assert_eq!(caller, agent());
    let round = sayso.desk(caller.clone()).ask(address(), None).await.expect("stored");
    for principal in [caller, Principal { kind: sayso::PrincipalKind::Service, name: "booking".into() }] {
        for channel in [Channel::Http, Channel::Library, Channel::Inbox, Channel::Cli, Channel::Thread] {
            let refused = sayso.people_as(principal.clone(), channel).answer(round.round_id, street("x"), "k").await;
            assert_eq!(code(refused), ErrorCode::Forbidden);
        }
    }
    assert_eq!(sayso.people().show(round.round_id).await, Ok(round.clone()));
    sayso.people().answer(round.round_id, street("x"), "k").await.expect("accepted");
    let person = sayso.desk(ada());
    assert_eq!(code(person.collect(round.round_id, "once", LONG).await), ErrorCode::Forbidden);
    assert_eq!(code(person.ask(address(), None).await), ErrorCode::Forbidden);
    assert_eq!(code(person.begin().await), ErrorCode::Forbidden);
    let withdraw = Step::Failed(round.round_id, None, Failure::new(Failure::WITHDRAWN, "because"));
    assert_eq!(code(person.settle(vec![withdraw]).await), ErrorCode::Forbidden);
    sayso.desk(agent()).collect(round.round_id, "once", LONG).await.expect("its agent collects");
}

#[tokio::test]
async fn invariant_7_neither_side_smuggles_a_value_into_the_others_field() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(approval(r#"{"n":1}"#), None).await.expect("stored").round_id;
    let smuggled = json(r#"{"arguments":{"n":100}}"#);
    let with = |response: Response| Answer::one("call", response);
    for (answer, pointer) in [
        (with(Response::accept(smuggled.clone())), "/responses/call/content/arguments"),
        (with(Response { content: Some(smuggled.clone()), ..Response::decline(None) }), "/responses/call/content"),
        (with(Response { content: Some(smuggled), ..Response::cancel() }), "/responses/call/content"),
        (with(Response { reason: Some("n = 100".to_owned()), ..Response::consent() }), "/responses/call/reason"),
        (with(Response { reason: Some("n = 100".to_owned()), ..Response::cancel() }), "/responses/call/reason"),
    ] {
        assert_eq!(fields(sayso.people().answer(round, answer, "key").await), [pointer]);
    }
    assert_eq!(sayso.people().responses(round).await, Ok(None));
    // What the asker says of itself stays its own: the answer's fields are filled by the answer alone.
    for body in [
        r#"{"requests":{"a":{"kind":"text","question":"?","answer":["yes"]}}}"#,
        r#"{"requests":{"a":{"kind":"text","question":"?"}},"responses":{"a":{"action":"accept"}}}"#,
        r#"{"requests":{"a":{"kind":"text","question":"?"}},"asked_by":"person local:ada"}"#,
    ] {
        assert!(serde_json::from_str::<Ask>(body).is_err(), "{body}");
    }
}

#[tokio::test]
async fn invariant_8_values_appear_in_the_answers_own_endpoints_only() {
    const TYPED: &str = "hunter2";
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(Ask { request_state: Some("sealed-state".to_owned()), ..address() }, None).await;
    let round = round.expect("stored").round_id;
    let invalid = Answer::one("address", Response::accept(json(&format!(r#"{{"street":["{TYPED}"]}}"#))));
    let refused = sayso.people().answer(round, invalid, TYPED).await.expect_err("is refused");
    assert!(!format!("{refused} {refused:?}").contains(TYPED));
    let content = json(&format!(r#"{{"street":"{TYPED}","pin":"{TYPED}"}}"#));
    let answer = Answer::one("address", Response::accept(content));
    let answered = sayso.people().answer(round, answer.clone(), "key").await.expect("accepted");
    let late = sayso.people().answer(round, street(TYPED), "other").await.expect_err("is refused");
    let seen_by_agent = desk.wait(round, 0, LONG).await.expect("seen");
    let list = sayso.people().list(RoundFilter::default()).await.expect("a list");
    let events = sayso.events_after(&ada(), 0).await.expect("events");
    let executions = sayso.executions(&ada(), ExecutionFilter::default()).await.expect("executions");
    for printed in [
        format!("{answer:?} {answered:?} {late} {late:?} {seen_by_agent:?} {list:?} {events:?} {executions:?}"),
        serde_json::to_string(&(&answered, &seen_by_agent, &list, &executions)).expect("is written"),
    ] {
        assert!(!printed.contains(TYPED) && !printed.contains("sealed-state"), "{printed}");
    }
    let for_agent = sayso.people_as(agent(), Channel::Http).responses(round).await.expect("read").expect("answered");
    assert!(for_agent.redacted);
    assert!(!serde_json::to_string(&for_agent).expect("is written").contains(r#""pin":"hunter2""#));
    let for_person = sayso.people().responses(round).await.expect("read").expect("answered");
    assert!(!for_person.redacted && serde_json::to_string(&for_person).expect("is written").contains(TYPED));
    let collected = desk.collect(round, "once", LONG).await.expect("collected");
    assert_eq!(collected.request_state.as_deref(), Some("sealed-state"));
    assert!(!format!("{for_agent:?} {for_person:?} {collected:?}").contains(TYPED));
}

#[tokio::test]
async fn invariant_9_every_input_has_a_limit() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let long = |bytes: usize| "x".repeat(bytes);
    let name = || Some(long(limits::NAME_BYTES_MAX + 1));
    for (ask, key, pointer) in [
        (Ask { server: name(), ..text() }, None, "/server"),
        (Ask { operation_name: name(), ..text() }, None, "/operation_name"),
        (Ask { logical_operation_id: name(), ..text() }, None, "/logical_operation_id"),
        (Ask { server: Some(String::new()), ..text() }, None, "/server"),
        (Ask { request_state: Some(long(limits::REQUEST_STATE_BYTES_MAX + 1)), ..text() }, None, "/request_state"),
        (Ask { round_limit: Some(limits::ROUND_LIMIT_MAX + 1), ..text() }, None, "/round_limit"),
        (Ask { requests: Keyed(Vec::new()), ..text() }, None, "/requests"),
        (text(), name(), "/idempotency_key"),
        (text(), Some(String::new()), "/idempotency_key"),
    ] {
        assert_eq!(fields(desk.ask(ask, key).await), [pointer]);
    }
    let many = (0..=limits::REQUESTS_MAX).map(|n| (format!("k{n}"), text().requests.0[0].1.clone()));
    assert_eq!(fields(desk.ask(Ask { requests: Keyed(many.collect()), ..text() }, None).await), ["/requests"]);
    let calls = vec![wire::Call { name: long(limits::ROUND_BYTES_MAX), arguments: None }];
    assert_eq!(code(desk.ask(Ask { calls, ..text() }, None).await), ErrorCode::LimitExceeded);

    let round = desk.ask(text(), None).await.expect("stored").round_id;
    let people = sayso.people();
    let note = |text: String| Answer::one("note", Response::accept(json(&format!(r#"{{"answer":["{text}"]}}"#))));
    for key in [String::new(), long(limits::NAME_BYTES_MAX + 1)] {
        assert_eq!(fields(people.answer(round, note("x".to_owned()), &key).await), ["/idempotency_key"]);
    }
    let big = people.answer(round, note(long(limits::ANSWER_BYTES_MAX)), "key").await;
    assert_eq!(code(big), ErrorCode::LimitExceeded);
    let reason = Answer::one("note", Response::decline(Some(long(limits::REASON_BYTES_MAX + 1))));
    assert_eq!(fields(people.answer(round, reason, "key").await), ["/responses/note/reason"]);
    for key in [String::new(), long(limits::NAME_BYTES_MAX + 1)] {
        assert_eq!(fields(desk.collect(round, &key, LONG).await), ["/idempotency_key"]);
    }
    let rows = people.list(RoundFilter { limit: usize::MAX, ..RoundFilter::default() }).await;
    assert_eq!(rows.expect("a list, of a page at most").rounds.len(), 1);
}

#[tokio::test]
async fn invariant_9_what_a_worker_says_has_a_limit_too() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(text(), None).await.expect("stored");
    let failed = |code: usize, message: usize| {
        let failure = Failure { code: "x".repeat(code), message: "x".repeat(message) };
        Step::Failed(round.round_id, None, failure)
    };
    for (step, pointer) in [
        (failed(0, 1), "/failure/code"),
        (failed(limits::NAME_BYTES_MAX + 1, 1), "/failure/code"),
        (failed(1, limits::MESSAGE_BYTES_MAX + 1), "/failure/message"),
    ] {
        assert_eq!(fields(desk.settle(vec![step]).await), [pointer]);
    }
    let steps = vec![failed(1, 1); limits::COMMIT_COMMANDS_MAX + 1];
    assert_eq!(code(desk.settle(steps).await), ErrorCode::LimitExceeded);
    let huge = sayso_core::json::Json::from_text(&"x".repeat(limits::RESULT_BYTES_MAX));
    let execution = desk.begin().await.expect("started");
    let finish = Step::Finished(execution, Outcome::Completed, Some(huge));
    assert_eq!(code(desk.settle(vec![finish]).await), ErrorCode::LimitExceeded);
    assert_eq!(sayso.people().show(round.round_id).await, Ok(round));
}
