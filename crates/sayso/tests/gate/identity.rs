//! Who decides.

use sayso::gate::{CALL_KEY, Call};
use sayso::{Answer, Channel, Desk, Error, ErrorCode, Options, People, Principal, Response, Sayso, Status};
use sayso_core::event::EventBody;

use crate::support::{ada, agent, code};
use crate::{Scene, allowed, asked, denied, grace, transfer};

const FOUR_EYES: &str = "[[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\nrequire_second_person = true\n";

#[tokio::test]
async fn whoever_started_it_may_deny_and_not_approve_where_a_second_person_is_required() {
    let scene = Scene::with(FOUR_EYES).await;
    let gate = scene.gates.of(Principal::agent("local:ada"));
    let round = asked(gate.judge(&transfer("1")).await.unwrap());
    let approval = || Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    let ada_answers = scene.sayso.people_as(ada(), Channel::Cli).answer(round.round_id, approval(), "a").await;
    assert_eq!(code(ada_answers), ErrorCode::Forbidden);
    let shown = scene.sayso.people().show(round.round_id).await.expect("shown");
    assert_eq!(shown.status, Status::Pending, "it is as it was");
    assert!(scene.events().await.contains(&"response_refused"));
    scene.sayso.people_as(grace(), Channel::Http).answer(round.round_id, approval(), "g").await.expect("approved");
    allowed(gate.judge(&transfer("1")).await.unwrap());

    let round = asked(gate.judge(&transfer("1")).await.unwrap());
    let denial = Answer::one(CALL_KEY, Response::decline(None));
    scene.sayso.people_as(ada(), Channel::Cli).answer(round.round_id, denial, "a").await.expect("denying is allowed");
    denied(gate.judge(&transfer("1")).await.unwrap());
}

#[tokio::test]
async fn where_no_second_person_is_required_whoever_started_it_approves_it_and_that_is_recorded() {
    let scene = Scene::new().await;
    let starter = Principal::agent("local:ada");
    let gate = scene.gates.of(starter.clone());
    let round = asked(gate.judge(&transfer("1")).await.unwrap());
    let approval = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    scene.sayso.people_as(ada(), Channel::Cli).answer(round.round_id, approval, "a").await.expect("approved");
    allowed(gate.judge(&transfer("1")).await.unwrap());
    let events = scene.sayso.events_after(scene.sayso.person(), 0).await.expect("events");
    let decided = events.iter().find_map(|event| match &event.event.body {
        EventBody::Approval { decided_by, .. } => Some((event.event.execution_id, decided_by.clone())),
        _ => None,
    });
    assert_eq!(decided, Some((Some(round.execution_id), ada())), "both are known, so that one sees that they are one");
}

#[tokio::test]
async fn an_agent_approves_nothing_neither_its_own_nor_anothers() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    for caller in [agent(), Principal::agent("other"), Principal::agent("local:ada")] {
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
        let answered = scene.sayso.people_as(caller, Channel::Http).answer(round.round_id, answer, "k").await;
        assert_eq!(code(answered), ErrorCode::Forbidden);
    }
    assert!(matches!(scene.gates.of(ada()).judge(&transfer("1")).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn of_two_people_who_decide_at_once_one_decides_and_the_other_is_told_who() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let decide = async |who: Principal, response: Response| {
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, response) };
        scene.sayso.people_as(who, Channel::Http).answer(round.round_id, answer, "k").await
    };
    let (yes, no) = tokio::join!(decide(ada(), Response::consent()), decide(grace(), Response::decline(None)));
    let (winner, loser) = if yes.is_ok() { (ada(), no) } else { (grace(), yes) };
    let told = match loser {
        Err(Error::Conflict { winner: Some(told), .. }) => told,
        other => panic!("{other:?}"),
    };
    assert_eq!(told.principal, winner);
    match scene.judge(&transfer("1")).await {
        sayso::gate::Ruling::Allow(_) => assert_eq!(winner, ada()),
        ruling => assert_eq!((denied(ruling).round, winner), (Some(round.round_id), grace())),
    }
}

#[tokio::test]
async fn an_approval_is_taken_only_by_the_agent_that_asked() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    let other = scene.gates.of(Principal::agent("other"));
    assert_ne!(asked(other.judge(&transfer("1")).await.unwrap()).round_id, round.round_id);
    allowed(scene.judge(&transfer("1")).await);
}

#[tokio::test]
async fn who_approved_is_recorded_before_the_call_may_run() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    scene.approve(&round).await;
    let events = scene.sayso.events_after(scene.sayso.person(), 0).await.expect("events");
    let approval = events.iter().find(|event| event.event.body.name() == "approval").expect("is recorded");
    assert_eq!(approval.event.principal, Some(ada()));
    allowed(scene.judge(&transfer("1")).await);
    assert!(!format!("{events:?}").contains("grace"), "no value is in an event");
}

#[tokio::test]
async fn a_call_without_a_session_or_with_arguments_that_are_no_object_is_refused() {
    let scene = Scene::new().await;
    let nowhere = Call { session: String::new(), ..transfer("1") };
    assert_eq!(crate::support::fields(scene.gate().judge(&nowhere).await), ["/session_id"]);
    let list = Call { arguments: crate::json("[1]"), ..transfer("1") };
    assert_eq!(crate::support::fields(scene.gate().judge(&list).await), ["/arguments"]);
}

#[tokio::test]
async fn an_agents_word_is_no_answer_unless_whoever_opened_the_store_trusts_it_and_never_a_second_persons() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let said = || Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    let refused = scene.sayso.desk(agent()).relay(round.round_id, said(), "k").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    let options = Options::at(scene.place.file().parent().unwrap()).trusting_agent_relay();
    let trusting = Sayso::open(options).await.unwrap();
    let by_answering = trusting.people_as(agent(), Channel::Http).answer(round.round_id, said(), "k").await;
    assert!(matches!(by_answering, Err(Error::Forbidden(_))), "there is one door for it");
    let others = trusting.desk(Principal::agent("other")).relay(round.round_id, said(), "k").await;
    assert!(matches!(others, Err(Error::NotFound(_))));
    let undigested = Answer::one(CALL_KEY, Response::consent());
    let unseen = trusting.desk(agent()).relay(round.round_id, undigested, "k").await;
    assert!(matches!(unseen, Err(Error::Validation { .. })), "it is bound to what was shown");
    let relayed = trusting.desk(agent()).relay(round.round_id, said(), "k").await.unwrap();
    let answered = relayed.answered.unwrap();
    assert_eq!((answered.principal, answered.channel), (agent(), Channel::Relay));

    let scene = Scene::with("[[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\nrequire_second_person = true\n").await;
    let round = scene.asked(&transfer("1")).await;
    let options = Options::at(scene.place.file().parent().unwrap()).trusting_agent_relay();
    let trusting = Sayso::open(options).await.unwrap();
    let said = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) };
    let refused = trusting.desk(agent()).relay(round.round_id, said, "k").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
}
