//! Our wire: what goes out comes back the same, order kept; what we do not know or cannot tell apart is refused.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::error::{Error, FieldError};
use sayso_core::event::{Event, EventBody, NewEvent};
use sayso_core::execution::{ExecutionKind, Lifecycle};
use sayso_core::id::{ExecutionId, RoundId, TokenId};
use sayso_core::json::Json;
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{self, Delivery, Digest, Failure, OperationKind, Status};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Answer, Call, Keyed, NewRound, Request, RequestKind, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

const AT: UnixMs = UnixMs(1_796_000_000_123);

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn round_trips<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("is written");
    assert_eq!(&serde_json::from_str::<T>(&text).expect("is read"), value, "{text}");
    text
}

fn every_kind() -> Keyed<Request> {
    let choice = Request {
        question: Some("Target?".to_owned()),
        multi_select: Some(false),
        options: Some(vec![
            wire::ChoiceOption { label: "staging".to_owned(), description: Some("the copy".to_owned()) },
            wire::ChoiceOption { label: "production".to_owned(), description: None },
        ]),
        ..Request::empty(RequestKind::Choice)
    };
    let approval = Request {
        tool: Some("github:create".to_owned()),
        arguments: Some(json(r#"{"n":0.10}"#)),
        preview: Some(vec!["opens an issue".to_owned()]),
        ..Request::empty(RequestKind::Approval)
    };
    let url = Request {
        message: Some("Connect".to_owned()),
        url: Some("https://example.com/".to_owned()),
        elicitation_id: Some("e-1".to_owned()),
        ..Request::empty(RequestKind::Url)
    };
    let schema =
        json(r#"{ "type": "object", "properties": {"z":{"type":"string"},"a":{"type":"number","minimum":1.0}} }"#);
    let form = Request { meta: Some(json(r#"{"k":1}"#)), ..Request::form("Where to?", schema) };
    let text = Request { question: Some("Why?".to_owned()), ..Request::empty(RequestKind::Text) };
    Keyed(
        [("zebra", form), ("url", url), ("call_7", approval), ("q0", choice), ("a", text)]
            .into_iter()
            .map(|(key, request)| (key.to_owned(), request))
            .collect(),
    )
}

fn round() -> wire::Round {
    wire::Round {
        round_id: RoundId::from_parts(AT.0, 1),
        execution_id: ExecutionId::from_parts(AT.0, 2),
        logical_operation_id: "main".to_owned(),
        server: "shipping".to_owned(),
        operation_kind: OperationKind::Tool,
        operation_name: "book".to_owned(),
        asked_by: Principal::agent("a"),
        status: Status::Failed,
        delivery: Delivery::Live,
        round_index: 1,
        round_limit: 10,
        created_at: AT,
        deadline: Some(AT),
        digest: Digest::of_text("x"),
        rev: 3,
        failure: Some(Failure::new(Failure::EXPIRED, "late")),
        answered: Some(wire::Answered {
            principal: Principal::person("local:ada"),
            channel: Channel::Inbox,
            at: AT,
            action: Some(Action::Accept),
        }),
        url_completed_at: Some(AT),
        calls: vec![Call { name: "book".to_owned(), arguments: Some(json(r#"{"b":1,"a":2}"#)) }],
        suggestion_of: Some(RoundId::from_parts(AT.0, 3)),
        requests: every_kind(),
    }
}

#[test]
fn a_round_with_every_kind_of_request_round_trips_in_the_askers_order() {
    let text = round_trips(&round());
    let keys = ["zebra", "url", "call_7", "q0", "a"];
    let order = keys.map(|key| text.find(&format!("\"{key}\":{{\"kind\"")));
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{text}");
    assert!(text.contains(r#"{ "type": "object", "properties": {"z""#), "the schema stays as written: {text}");
    assert!(text.contains(r#""created_at":"2026-11-30T00:53:20.123Z""#), "{text}");
    every_kind().check().expect("every kind can be asked");
}

#[test]
fn everything_else_we_send_round_trips() {
    let ask = NewRound {
        execution_id: Some(ExecutionId::from_parts(AT.0, 9)),
        delivery: Some(Delivery::Resumable),
        deadline: Some(AT),
        request_state: Some("sealed".to_owned()),
        calls: round().calls,
        requests: every_kind(),
        ..NewRound::default()
    };
    round_trips(&ask);
    let responses = Keyed(vec![
        ("b".to_owned(), Response::accept(json(r#"{"x":0.10}"#))),
        ("a".to_owned(), Response::decline(Some("no".to_owned()))),
        ("c".to_owned(), Response::cancel()),
        ("d".to_owned(), Response::consent()),
    ]);
    round_trips(&Answer { digest: Some(Digest::of_text("x")), responses: responses.clone() });
    round_trips(&wire::Collected {
        round: round(),
        request_state: Some("sealed".to_owned()),
        responses: responses.clone(),
    });
    round_trips(&wire::ResponseRecord { redacted: true, submitted: responses.clone(), effective: responses });
    round_trips(&wire::RoundPage { rounds: vec![round()], next_cursor: Some(RoundId::from_parts(AT.0, 3)) });
    let execution = wire::Execution {
        execution_id: ExecutionId::from_parts(AT.0, 2),
        kind: ExecutionKind::Operation,
        lifecycle: Lifecycle::Finished,
        outcome: Some(wire::ExecutionOutcome {
            status: "failed".to_owned(),
            code: Some("expired".to_owned()),
            message: Some("late".to_owned()),
        }),
        pending: vec![RoundId::from_parts(AT.0, 1)],
        created_at: AT,
        finished_at: Some(AT),
    };
    round_trips(&wire::ExecutionResult { execution: execution.clone(), result: Some(json("{\"n\":1.0}")) });
    round_trips(&wire::ExecutionPage { executions: vec![execution], next_cursor: None });
    round_trips(&wire::NewToken { kind: wire::NewTokenKind::Agent, name: "gateway".to_owned() });
    let token = wire::Token {
        token_id: TokenId::from_parts(AT.0, 1),
        principal: Principal::agent("gateway"),
        created_at: AT,
        revoked_at: None,
        secret: Some("sayso_agent_0".to_owned()),
    };
    round_trips(&wire::TokenPage { tokens: vec![token] });
}

#[test]
fn every_event_round_trips_and_its_hash_covers_all_of_it() {
    let ada = Principal::person("local:ada");
    let bodies = [
        EventBody::ExecutionCreated,
        EventBody::ExecutionState { outcome: "lost".to_owned() },
        EventBody::RoundCreated,
        EventBody::ResponseRefused { code: "managed_input_conflict".to_owned() },
        EventBody::Approval { request_key: "call_7".to_owned(), approved: true, decided_by: ada.clone(), tool: None },
        EventBody::Input { submitted_by: ada.clone() },
        EventBody::Answered,
        EventBody::Resolved,
        EventBody::Failed { code: "expired".to_owned() },
        EventBody::UrlCompleted,
        EventBody::TokenAdded { token_id: TokenId::from_parts(AT.0, 1) },
        EventBody::TokenRevoked { token_id: TokenId::from_parts(AT.0, 1) },
    ];
    for body in bodies {
        let event = NewEvent {
            at: AT,
            execution_id: Some(ExecutionId::from_parts(AT.0, 2)),
            round_id: Some(RoundId::from_parts(AT.0, 1)),
            principal: Some(ada.clone()),
            channel: Some(Channel::Cli),
            body,
        };
        let chained = Event::chained(event.clone(), 7, [1; 32]);
        assert!(chained.is_intact());
        let text = round_trips(&wire::StoredEvent::from(&chained));
        assert!(text.contains(&format!(r#""event":"{}""#, event.body.name())), "{text}");
        let mut changed = [chained.clone(), chained.clone(), chained.clone(), chained.clone(), chained.clone()];
        changed[0].seq += 1;
        changed[1].event.at = AT.plus_ms(1);
        changed[2].event.principal = None;
        changed[3].event.round_id = None;
        changed[4].previous_hash = [2; 32];
        assert!(changed.iter().all(|event| !event.is_intact()));
    }
}

/// By another program; stored chains would break with another hash.
#[test]
fn an_event_hashes_to_what_is_stored_of_it() {
    let id = |digits: &str| u128::from_str_radix(digits, 16).unwrap().to_be_bytes();
    let first = NewEvent {
        at: UnixMs(7),
        execution_id: None,
        round_id: None,
        principal: None,
        channel: None,
        body: EventBody::Resolved,
    };
    let full = NewEvent {
        execution_id: Some(ExecutionId::from_bytes(id("01a22caddea2770f9f4d63a618cb6401"))),
        round_id: Some(RoundId::from_bytes(id("01a22caddea27dd2b5caac105bc1fb09"))),
        principal: Some(Principal::person("local:ada")),
        channel: Some(Channel::Inbox),
        body: EventBody::Failed { code: "expired".to_owned() },
        ..first.clone()
    };
    for (event, seq, previous, hash) in [
        (first, 1, [0; 32], "13c6c2621b969234deaf995af9f4e68725f9a9c1f4ca3f1f601ed843120c6258"),
        (full, 5, [9; 32], "5ed4462b5710eca5bca0f95d5451ba4217fce9e7ab414d9fb2317b121e64bded"),
    ] {
        let hashed: String =
            Event::chained(event, seq, previous).hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hashed, hash);
    }
}

#[test]
fn unknown_members_and_repeated_keys_are_refused_coming_in() {
    assert!(serde_json::from_str::<Keyed<u8>>(r#"{"a":1,"b":2,"a":3}"#).is_err());
    let text = r#"{"kind":"text","question":"?"}"#;
    for (given, fits) in [
        (format!(r#"{{"requests":{{"a":{text}}}}}"#), true),
        (format!(r#"{{"requests":{{"a":{text}}},"more":1}}"#), false),
        (format!(r#"{{"requests":{{"a":{text},"a":{text}}}}}"#), false),
        (r#"{"requests":{"a":{"kind":"text","question":"?","more":1}}}"#.to_owned(), false),
        (r#"{"requests":{"a":{"kind":"sound"}}}"#.to_owned(), false),
        ("{}".to_owned(), false),
    ] {
        assert_eq!(serde_json::from_str::<NewRound>(&given).is_ok(), fits, "{given}");
    }
    for (given, fits) in [
        (r#"{"responses":{"a":{"action":"accept"}}}"#, true),
        (r#"{"responses":{"a":{"action":"accept"}},"digest":null}"#, true),
        (r#"{"responses":{"a":{"action":"accept"}},"principal":"person local:eve"}"#, false),
        (r#"{"responses":{"a":{"action":"accept","by":"eve"}}}"#, false),
        (r#"{"responses":{"a":{"action":"approve"}}}"#, false),
        (r#"{"responses":{"a":{"action":"accept","content":{"x":1,"x":2}}}}"#, false),
        (r#"{"responses":{"a":{"action":"accept"}},"digest":"sha256:00"}"#, false),
    ] {
        assert_eq!(serde_json::from_str::<Answer>(given).is_ok(), fits, "{given}");
    }
    assert!(serde_json::from_str::<wire::NewToken>(r#"{"kind":"agent","name":"a","admin":true}"#).is_err());
}

#[test]
fn a_request_says_only_what_its_kind_has() {
    let members = [
        ("message", r#""m""#),
        ("schema", r#"{"type":"object","properties":{}}"#),
        ("meta", "{}"),
        ("url", r#""https://example.com/""#),
        ("elicitation_id", r#""e""#),
        ("tool", r#""t""#),
        ("arguments", "{}"),
        ("preview", "[]"),
        ("question", r#""q""#),
        ("multi_select", "true"),
        ("options", r#"[{"label":"l"}]"#),
    ];
    for (kind, own) in [
        ("form", &["message", "schema", "meta"][..]),
        ("url", &["message", "url", "elicitation_id"]),
        ("approval", &["tool", "arguments", "preview", "message"]),
        ("choice", &["question", "multi_select", "options"]),
        ("text", &["question"]),
    ] {
        let written = |names: &[&str]| {
            let parts: Vec<_> = members
                .iter()
                .filter(|(name, _)| names.contains(name))
                .map(|(name, value)| format!(r#","{name}":{value}"#))
                .collect();
            let text = format!(r#"{{"a":{{"kind":"{kind}"{}}}}}"#, parts.concat());
            serde_json::from_str::<Keyed<Request>>(&text).expect("is read").check()
        };
        assert!(written(own).is_ok(), "{kind}");
        for (foreign, _) in members.iter().filter(|(name, _)| !own.contains(name)) {
            let Err(Error::Validation { fields, .. }) = written(&[own, &[*foreign]].concat()) else {
                panic!("{kind} with {foreign}")
            };
            assert_eq!(fields[0].pointer, format!("/requests/a/{foreign}"));
        }
    }
}

#[test]
fn a_digest_reads_only_as_it_is_written() {
    let digest = Digest::of_text("x");
    round_trips(&digest);
    let hex = digest.to_string();
    for odd in
        [hex.replacen("sha256:", "sha256:+", 1).chars().take(71).collect(), hex.replace("sha256", "md5"), hex + "0"]
    {
        assert_eq!(Digest::parse(&odd), None, "{odd}");
    }
    assert_eq!(Digest::parse(&format!("sha256:{}", "+f".repeat(32))), None);
}

#[test]
fn a_problem_carries_code_winner_and_fields() {
    let answered = round::Answered {
        principal: Principal::person("local:ada"),
        channel: Channel::Cli,
        at: AT,
        action: Some(Action::Decline),
    };
    let lost = Error::Conflict { detail: "late".to_owned(), winner: Some(answered) };
    let problem = wire::Problem::new(&lost, Some(RoundId::from_parts(AT.0, 1)));
    round_trips(&problem);
    assert_eq!((problem.status, problem.code.as_str()), (409, "managed_input_conflict"));
    assert_eq!(problem.winner.map(|winner| winner.channel), Some(Channel::Cli));
    let fields = vec![FieldError { pointer: "/a".to_owned(), message: "is wrong".to_owned() }];
    let problem = wire::Problem::new(&Error::fields(fields.clone()), None);
    assert_eq!((problem.status, problem.fields), (422, fields));
}

proptest! {
    #[test]
    fn a_keyed_map_keeps_its_order(keys in prop::collection::hash_set("\\PC{0,8}", 0..20)) {
        let map = Keyed(keys.into_iter().zip(0u32..).collect());
        let text = serde_json::to_string(&map).expect("is written");
        prop_assert_eq!(serde_json::from_str::<Keyed<u32>>(&text).expect("is read"), map);
    }

    #[test]
    fn an_answer_round_trips_byte_for_byte(number in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,12})?", text in "\\PC{0,20}", which in 0u8..4) {
        let quoted = Json::from_text(&text);
        let content = Json::parse(&format!(r#"{{"n":{number},"t":{}}}"#, quoted.as_str())).expect("JSON");
        let response = match which {
            0 => Response::accept(content),
            1 => Response::decline(Some(text)),
            2 => Response::decline(None),
            _ => Response::cancel(),
        };
        let answer = Answer::one("key", response);
        let written = serde_json::to_string(&answer).expect("is written");
        let read: Answer = serde_json::from_str(&written).expect("is read");
        prop_assert_eq!(&read, &answer);
        prop_assert_eq!(serde_json::to_string(&read).expect("is written"), written);
    }
}
