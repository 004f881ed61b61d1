//! Approving a call and allowing more like it: both are stored or neither, and once.

use sayso::policy::Grant;
use sayso::wire::Round;
use sayso::{Answer, Channel, Error, ErrorCode, GrantFilter, LocalPeople, NewGrant, Response, Sayso, Status};

use crate::support::{ada, agent, code, fields};
use crate::{CALL_KEY, Scene, allowed, asked, edited, grace, transfer};

fn approval(round: &Round) -> Answer {
    Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, Response::consent()) }
}

async fn drafted(people: &LocalPeople, round: &Round) -> NewGrant {
    let id = Some(people.new_grant_id().await.expect("an id"));
    NewGrant { id, ..people.session_grant_of(round.round_id, false).await.expect("drafted") }
}

async fn grants(sayso: &Sayso) -> Vec<Grant> {
    sayso.people().grants(GrantFilter::default()).await.expect("listed").0
}

#[tokio::test]
async fn an_approval_with_a_grant_runs_this_call_and_lets_the_next_ones_run() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let people = scene.sayso.people();
    let new = drafted(&people, &round).await;
    for _ in 0..2 {
        let answered = people.approve_and_grant(round.round_id, approval(&round), "k", new.clone()).await;
        assert_eq!(answered.expect("approved").status, Status::ResponseValidated);
    }
    let known = grants(&scene.sayso).await;
    assert_eq!(
        known.iter().map(|grant| (Some(grant.id), grant.round)).collect::<Vec<_>>(),
        [(new.id, Some(round.round_id))]
    );
    for amount in ["1", "2", "3"] {
        allowed(scene.judge(&transfer(amount)).await);
    }
    assert_eq!(scene.uses().await, 2, "the call that asked needed no grant");
}

#[tokio::test]
async fn nothing_is_granted_where_the_approval_is_refused_and_nothing_approved_where_the_grant_is() {
    let policy = "[[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\nrequire_second_person = true\n";
    let scene = Scene::with(policy).await;
    let gate = scene.gates.of(sayso::Principal::agent("local:ada"));
    let round = asked(gate.judge(&transfer("1")).await.unwrap());
    let own = scene.sayso.people_as(ada(), Channel::Inbox);
    let other = scene.sayso.people_as(grace(), Channel::Inbox);
    let new = drafted(&own, &round).await;
    let try_it = async |people: &LocalPeople, answer: Answer, new: NewGrant| {
        code(people.approve_and_grant(round.round_id, answer, "k", new).await)
    };
    let stale = Answer { digest: Some(sayso::Digest::of_text("another")), ..approval(&round) };
    assert_eq!(try_it(&own, approval(&round), new.clone()).await, ErrorCode::Forbidden, "no second person");
    assert_eq!(try_it(&other, stale, new.clone()).await, ErrorCode::ManagedInputStale);
    let endless = NewGrant { uses_max: Some(0), ..new.clone() };
    assert_eq!(try_it(&other, approval(&round), endless).await, ErrorCode::ManagedInputInvalid);
    assert_eq!(scene.sayso.people().grants(GrantFilter::default()).await.expect("listed").0.len(), 0);
    let shown = sayso::People::show(&other, round.round_id).await.expect("shown");
    assert_eq!(shown.status, Status::Pending);
    assert!(scene.events().await.contains(&"response_refused"), "a refusal leaves its event");

    let (moody_sayso, moody) = scene.place.open_moody();
    moody.refuse_writes(true);
    let away = moody_sayso.people_as(grace(), Channel::Inbox);
    assert_eq!(try_it(&away, approval(&round), new.clone()).await, ErrorCode::Unavailable);
    other.approve_and_grant(round.round_id, approval(&round), "k", new).await.expect("approved");
    allowed(gate.judge(&transfer("1")).await.unwrap());
    allowed(gate.judge(&transfer("2")).await.unwrap());
}

#[tokio::test]
async fn more_is_allowed_only_of_a_call_that_is_approved_as_it_was_shown_and_by_a_person() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("1")).await;
    let people = scene.sayso.people();
    let new = drafted(&people, &round).await;
    for response in [Response::decline(None), Response::cancel(), edited(r#"{"to":"x"}"#)] {
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, response) };
        let refused = people.approve_and_grant(round.round_id, answer, "k", new.clone()).await;
        assert_eq!(fields(refused), ["/responses"]);
    }
    let theirs = scene.sayso.people_as(agent(), Channel::Http);
    let refused = theirs.approve_and_grant(round.round_id, approval(&round), "k", new).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    assert!(grants(&scene.sayso).await.is_empty());
    assert_eq!(scene.row(&round).await.status, Status::Pending);
}

#[tokio::test]
async fn the_uses_of_a_grant_are_listed_in_pages_the_last_one_first() {
    let scene = Scene::new().await;
    let round = scene.asked(&transfer("0")).await;
    let people = scene.sayso.people();
    let new = drafted(&people, &round).await;
    people.approve_and_grant(round.round_id, approval(&round), "k", new).await.expect("approved");
    let rows = sayso::limits::PAGE_ROWS_MAX;
    for _ in 0..rows + 3 {
        allowed(scene.judge(&transfer("1")).await);
    }
    let grant = grants(&scene.sayso).await.remove(0);
    let (first, next) = people.grant_uses(&grant, None).await.expect("listed");
    let (second, end) = people.grant_uses(&grant, next).await.expect("listed");
    assert_eq!((first.len(), second.len(), end), (rows, 3, None));
    let seqs: Vec<_> = first.iter().chain(&second).map(|event| event.seq).collect();
    assert!(seqs.is_sorted_by(|later, earlier| later > earlier));
    assert!(first.iter().all(|event| event.event.principal == Some(agent())));
    let theirs = scene.sayso.people_as(agent(), Channel::Http);
    assert!(matches!(theirs.grant_uses(&grant, None).await, Err(Error::Forbidden(_))));
}
