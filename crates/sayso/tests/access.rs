//! Who sees what, and how credentials are kept.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use sayso::{Ask, Channel, Desk, ErrorCode, ExecutionFilter, People, Principal, RoundFilter, Step, wire};
use support::{LONG, Place, ada, address, agent, code, fields, live, street};

fn new_token(kind: wire::NewTokenKind, name: &str) -> wire::NewToken {
    wire::NewToken { kind, name: name.to_owned() }
}

#[tokio::test]
async fn an_agent_sees_and_moves_only_what_is_its_own() {
    let place = Place::new();
    let sayso = place.open().await;
    let own = sayso.desk(agent()).ask(address(), None).await.expect("stored");
    let other = Principal::agent("other");
    let desk = sayso.desk(other.clone());
    let opened = desk.open(live(address()), None).await.expect("stored");
    sayso.people().answer(own.round_id, street("x"), "k").await.expect("accepted");

    let not_found = ErrorCode::NotFound;
    assert_eq!(code(sayso.round(&other, own.round_id).await), not_found);
    assert_eq!(code(desk.wait(own.round_id, 0, LONG).await), not_found);
    assert_eq!(code(desk.collect(own.round_id, "once", LONG).await), not_found);
    assert_eq!(code(desk.execution(own.execution_id).await), not_found);
    assert_eq!(code(desk.result(own.execution_id, LONG).await), not_found);
    let fence = opened.fence.expect("held");
    assert_eq!(code(desk.settle(vec![Step::Resolved(own.round_id, fence)]).await), not_found);
    assert_eq!(code(desk.settle(vec![Step::Collected(own.execution_id)]).await), not_found);
    let more = Ask { execution_id: Some(own.execution_id), ..address() };
    assert_eq!(code(desk.ask(more, None).await), not_found);
    let people = sayso.people_as(other.clone(), Channel::Http);
    assert_eq!(code(people.responses(own.round_id).await), not_found);
    assert_eq!(code(people.cancel(own.execution_id).await), not_found);

    for (caller, rounds) in [(&agent(), 1), (&other, 1), (&ada(), 2)] {
        let list = sayso.rounds(caller, RoundFilter::default()).await.expect("a list");
        assert_eq!(list.rounds.len(), rounds, "{caller}");
        let asked_for_all = RoundFilter { asked_by: Some(agent()), ..RoundFilter::default() };
        let seen = sayso.rounds(caller, asked_for_all).await.expect("a list").rounds;
        assert!(*caller == ada() || seen.iter().all(|round| round.asked_by == *caller));
        let executions = sayso.executions(caller, ExecutionFilter::default()).await.expect("a list");
        assert_eq!(executions.executions.len(), rounds, "{caller}");
    }
    let events = sayso.events_after(&other, 0).await.expect("events");
    assert!(events.iter().all(|event| event.event.execution_id == Some(opened.round.execution_id)));
    sayso.people_as(agent(), Channel::Http).cancel(own.execution_id).await.expect("its own it may cancel");
}

#[tokio::test]
async fn rounds_are_paged_with_a_cursor() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(desk.ask(address(), None).await.expect("stored").round_id);
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = sayso.people().list(RoundFilter { limit: 2, before, ..RoundFilter::default() }).await;
        let page = page.expect("a page");
        seen.extend(page.rounds.iter().map(|round| round.round_id));
        before = page.next_cursor;
        if before.is_none() {
            break;
        }
    }
    asked.sort_by(|a, b| b.cmp(a));
    assert_eq!(seen, asked, "each once, none skipped");
}

#[tokio::test]
async fn asking_again_under_a_key_asks_once() {
    let place = Place::new();
    let sayso = place.open().await;
    let key = || Some("booking-17".to_owned());
    let first = sayso.desk(agent()).ask(address(), key()).await.expect("stored");
    drop(sayso);
    let sayso = place.open().await;
    assert_eq!(sayso.desk(agent()).ask(address(), key()).await, Ok(first.clone()), "also after a restart");
    let other = Ask { server: Some("elsewhere".to_owned()), ..address() };
    assert_eq!(code(sayso.desk(agent()).ask(other, key()).await), ErrorCode::ManagedInputConflict);
    let another = sayso.desk(Principal::agent("other")).ask(address(), key()).await.expect("stored");
    assert_ne!(another.round_id, first.round_id, "keys are each principal's own");
}

#[tokio::test]
async fn a_secret_is_shown_once_and_stored_nowhere() {
    let place = Place::new();
    let sayso = place.open().await;
    let token = sayso.new_token(&ada(), new_token(wire::NewTokenKind::Agent, " booking ")).await.expect("made").token;
    let secret = token.secret.clone().expect("shown once");
    let login = sayso.new_login(&ada()).await.expect("made").secret;
    let session = sayso.use_login(&login).await.expect("used");
    assert_eq!(sayso.authenticate(&secret).await, Ok(agent()));
    assert_eq!(sayso.authenticate_session(&session).await, Ok(ada()));
    let listed = sayso.tokens(&ada()).await.expect("a list");
    assert_eq!(listed.tokens, [wire::Token { secret: None, ..token.clone() }]);
    let events = format!("{:?}", sayso.events_after(&ada(), 0).await.expect("events"));
    drop(sayso);
    let bytes = std::fs::read(place.file()).expect("read");
    for secret in [&secret, &login, &session] {
        let bare = secret.trim_start_matches("sayso_agent_");
        assert_eq!(bare.len(), 64, "256 bits");
        assert!(!bytes.windows(bare.len()).any(|window| window == bare.as_bytes()));
        assert!(!events.contains(bare) && !format!("{token:?}").contains(bare));
    }
}

#[tokio::test]
async fn a_revoked_token_is_good_for_nothing() {
    let place = Place::new();
    let sayso = place.open().await;
    let token = sayso.new_token(&ada(), new_token(wire::NewTokenKind::Person, "bob")).await.expect("made").token;
    let secret = token.secret.clone().expect("shown once");
    assert_eq!(sayso.authenticate(&secret).await, Ok(Principal::person("bob")));
    let revoked = sayso.revoke_token(&ada(), token.token_id).await.expect("revoked");
    assert!(revoked.revoked_at.is_some());
    assert_eq!(code(sayso.authenticate(&secret).await), ErrorCode::Unauthenticated);
    assert_eq!(sayso.revoke_token(&ada(), token.token_id).await, Ok(revoked), "a repeat");
    for unknown in ["", "sayso_agent_", &secret.to_uppercase(), &format!("{secret} ")] {
        assert_eq!(code(sayso.authenticate(unknown).await), ErrorCode::Unauthenticated);
    }
}

/// A process believes for a moment what it read of a token. Whoever revokes it is told so only after that moment.
#[tokio::test]
async fn a_revoked_token_is_refused_at_once_also_by_a_process_that_has_just_taken_it() {
    let place = Place::new();
    let (here, there) = (place.open().await, place.open().await);
    for n in 0..10 {
        let new = new_token(wire::NewTokenKind::Agent, &format!("agent {n}"));
        let token = here.new_token(&ada(), new).await.expect("made").token;
        let secret = token.secret.clone().expect("shown once");
        let known = Ok(Principal::agent(format!("agent {n}")));
        assert_eq!((here.recognize(&secret).await, there.recognize(&secret).await), (known.clone(), known));
        here.revoke_token(&ada(), token.token_id).await.expect("revoked");
        for sayso in [&here, &there] {
            assert_eq!(code(sayso.recognize(&secret).await), ErrorCode::Unauthenticated);
        }
    }
}

#[tokio::test]
async fn what_is_no_token_of_the_api_is_never_taken_for_one() {
    let place = Place::new();
    let sayso = place.open().await;
    let login = sayso.new_login(&ada()).await.expect("made").secret;
    let session = sayso.use_login(&login).await.expect("used");
    for secret in [login.as_str(), &session, "", "sayso_agent_"] {
        assert_eq!(code(sayso.recognize(secret).await), ErrorCode::Unauthenticated);
        assert_eq!(code(sayso.recognize(secret).await), ErrorCode::Unauthenticated, "again");
    }
}

#[tokio::test]
async fn only_the_owner_of_the_data_makes_and_revokes_tokens() {
    let place = Place::new();
    let sayso = place.open().await;
    let token = sayso.new_token(&ada(), new_token(wire::NewTokenKind::Agent, "booking")).await.expect("made").token;
    for caller in [Principal::person("bob"), agent(), Principal::agent("local:ada")] {
        let new = new_token(wire::NewTokenKind::Agent, "more");
        assert_eq!(code(sayso.new_token(&caller, new).await), ErrorCode::Forbidden);
        assert_eq!(code(sayso.tokens(&caller).await), ErrorCode::Forbidden);
        assert_eq!(code(sayso.revoke_token(&caller, token.token_id).await), ErrorCode::Forbidden);
    }
    for name in ["", "  ", "local:ada", " local:eve", "a\nb", &"x".repeat(sayso::limits::NAME_BYTES_MAX + 1)] {
        for kind in [wire::NewTokenKind::Agent, wire::NewTokenKind::Person] {
            assert_eq!(fields(sayso.new_token(&ada(), new_token(kind, name)).await), ["/name"], "{name:?}");
        }
    }
}

#[tokio::test]
async fn a_login_link_is_used_once_in_time_and_by_a_person() {
    let place = Place::new();
    let sayso = place.open().await;
    let refused = ErrorCode::Unauthenticated;
    let login = sayso.new_login(&ada()).await.expect("made");
    let session = sayso.use_login(&login.secret).await.expect("used");
    assert_eq!(code(sayso.use_login(&login.secret).await), refused, "once");
    assert_eq!(code(sayso.use_login(&session).await), refused, "a session is no link");
    assert_eq!(code(sayso.authenticate(&session).await), refused, "nor a token of the API");
    assert_eq!(code(sayso.authenticate_session(&login.secret).await), refused);
    let late = sayso.new_login(&ada()).await.expect("made");
    place.clock.advance_ms(sayso::limits::LOGIN_LINK_MS);
    assert_eq!(code(sayso.use_login(&late.secret).await), refused, "in time");
    assert_eq!(code(sayso.new_login(&agent()).await), ErrorCode::Forbidden);
    assert_eq!(sayso.authenticate_session(&session).await, Ok(ada()));
    place.clock.advance_ms(sayso::limits::SESSION_MS);
    assert_eq!(code(sayso.authenticate_session(&session).await), refused, "a session ends");
}

#[tokio::test]
async fn ending_a_session_ends_nothing_else() {
    let place = Place::new();
    let sayso = place.open().await;
    let secret = sayso.new_token(&ada(), new_token(wire::NewTokenKind::Agent, "booking")).await;
    let secret = secret.expect("made").token.secret.expect("shown once");
    let login = sayso.new_login(&ada()).await.expect("made");
    let session = sayso.use_login(&login.secret).await.expect("used");
    for other in [secret.as_str(), "unknown"] {
        sayso.end_session(other).await.expect("ends nothing");
    }
    assert_eq!(sayso.authenticate(&secret).await, Ok(agent()));
    sayso.end_session(&session).await.expect("ended");
    assert_eq!(code(sayso.authenticate_session(&session).await), ErrorCode::Unauthenticated);
}
