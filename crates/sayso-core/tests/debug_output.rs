//! Values never appear in `Debug` (invariant 8): every type that carries one is built with a sentinel and printed.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod memory;

use memory::{Memory, START, fence, new_round, round_id, submission};
use sayso_core::command::{Command, DeliveryContent, Reply, Write, apply};
use sayso_core::execution::Outcome;
use sayso_core::id::{ExecutionId, TokenId};
use sayso_core::json::Json;
use sayso_core::principal::Principal;
use sayso_core::response::{self, Action, Responses, check};
use sayso_core::round::{Claim, FenceToken};
use sayso_core::wire::{self, Answer, Keyed, NewRound, Request, RequestKind, Response};

const SENTINEL: &str = "hunter2";
const TOKEN: u128 = 0x6875_6e74_6572_3221_0000_0000_dead_beef;

fn value() -> Json {
    Json::parse(&format!(r#"{{"answer":["{SENTINEL}"]}}"#)).expect("JSON")
}

fn hides(printed: &str) {
    for secret in [SENTINEL.to_owned(), TOKEN.to_string(), format!("{TOKEN:x}"), format!("{TOKEN:X}")] {
        assert!(!printed.contains(&secret), "{printed}");
    }
    assert!(!printed.is_empty());
}

/// Both ways of printing: `{:#?}` goes through other code in some libraries.
fn hides_in(value: &dyn std::fmt::Debug) {
    hides(&format!("{value:?}"));
    hides(&format!("{value:#?}"));
}

#[test]
fn answers_are_not_printed() {
    let wire = Response::accept(value());
    let refused = Response::decline(Some(SENTINEL.to_owned()));
    let keyed = Keyed(vec![("a".to_owned(), wire.clone()), ("b".to_owned(), refused.clone())]);
    hides_in(&wire);
    hides_in(&refused);
    hides_in(&Answer { digest: None, responses: keyed.clone() });
    hides_in(&wire::ResponseRecord { redacted: false, submitted: keyed.clone(), effective: keyed });
    let domain =
        response::Response { action: Action::Accept, content: Some(value()), reason: Some(SENTINEL.to_owned()) };
    hides_in(&domain);
    let domain = response::Response { reason: None, ..domain };
    let responses = Responses(vec![("a".to_owned(), domain)]);
    hides_in(&responses);
    let text = Request { question: Some("?".to_owned()), ..Request::empty(RequestKind::Text) };
    let requests = Keyed(vec![("a".to_owned(), text)]).check().expect("can be asked");
    hides_in(&check(&requests, &responses).expect("fits"));
    hides_in(&value());
    hides_in(&value().object());
}

#[test]
fn what_is_handed_over_is_not_printed() {
    let content = DeliveryContent { responses: value(), request_state: Some(SENTINEL.to_owned()) };
    hides_in(&content);
    let mut memory = Memory::default();
    let reply = memory.run(&Command::CreateRound(Box::new(new_round(1, None))), START).expect("stored");
    let Reply::Created { round, .. } = reply else { unreachable!("a created round") };
    hides_in(&Reply::Handed { round: round.clone(), content });
    let requests = Keyed(vec![("a".to_owned(), Request::empty(RequestKind::Text))]);
    let seen = wire::Round::new(&round, requests, Vec::new());
    let responses = Keyed(vec![("a".to_owned(), Response::accept(value()))]);
    hides_in(&wire::Collected { round: seen, request_state: Some(SENTINEL.to_owned()), responses });
}

#[test]
fn fences_and_opaque_state_and_secrets_are_not_printed() {
    hides_in(&FenceToken(TOKEN));
    hides_in(&fence("own_a", TOKEN));
    hides_in(&Claim { fence: fence("own_a", TOKEN), expected: Some(FenceToken(TOKEN)), evidence: None });
    let new = sayso_core::command::NewRound {
        request_state: Some(SENTINEL.to_owned()),
        calls: value(),
        ..new_round(1, Some(fence("own_a", TOKEN)))
    };
    let create = Command::CreateRound(Box::new(new));
    hides_in(&create);
    let Ok(applied) = apply(&Memory::default(), &create, START);
    assert!(applied.writes.iter().any(|write| matches!(write, Write::NewRound { request_state: Some(_), .. })));
    hides_in(&applied);
    hides_in(&NewRound { request_state: Some(SENTINEL.to_owned()), ..NewRound::default() });
    hides_in(&wire::Token {
        token_id: TokenId::from_parts(START.0, 1),
        principal: Principal::agent("a"),
        created_at: START,
        revoked_at: None,
        secret: Some(SENTINEL.to_owned()),
    });
}

#[test]
fn commands_and_writes_do_not_print_what_they_carry() {
    let mut memory = Memory::default();
    memory.run(&Command::CreateRound(Box::new(new_round(1, None))), START).expect("stored");
    let submit = Command::Submit {
        round: round_id(1),
        submission: Box::new(submission("k", 0, &Principal::person("ada"))),
        verdicts: Vec::new(),
        submitted: value(),
        effective: value(),
    };
    hides_in(&submit);
    let Ok(applied) = apply(&memory, &submit, START);
    assert!(applied.writes.iter().any(|write| matches!(write, Write::Answer { .. })));
    hides_in(&applied);
    let execution = ExecutionId::from_parts(START.0, 1);
    hides_in(&Command::Finish { execution, outcome: Outcome::Completed, result: Some(value()) });
    hides_in(&Write::Result { execution, result: value() });
}
