//! What may be answered to what, rule by rule as `docs/rounds.md` ("Responses and validation") has them.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::request::Requests;
use sayso_core::response::{CheckedResponses, check};
use sayso_core::wire::{Keyed, Request, Response, responses_from_wire, responses_to_wire};

fn requests(text: &str) -> Requests {
    serde_json::from_str::<Keyed<Request>>(text).expect("JSON").check().expect("can be asked")
}

fn try_answer(requests: &Requests, responses: &str) -> Result<CheckedResponses, Error> {
    let wire: Keyed<Response> = serde_json::from_str(responses).expect("a response map");
    check(requests, &responses_from_wire(&wire))
}

/// Pointer and message of every fault.
fn faults(requests: &Requests, responses: &str) -> Vec<(String, String)> {
    match try_answer(requests, responses) {
        Err(Error::Validation { fields, .. }) => {
            fields.into_iter().map(|field| (field.pointer, field.message)).collect()
        }
        other => panic!("{responses}: {other:?}"),
    }
}

const FORM: &str = r#"{"a":{"kind":"form","message":"?","schema":{"type":"object","properties":{
    "street":{"type":"string","minLength":1},"floor":{"type":"integer"},"note":{"type":"string","default":"none"}},
    "required":["street"]}}}"#;
const OPTIONAL_FORM: &str =
    r#"{"a":{"kind":"form","message":"?","schema":{"type":"object","properties":{"x":{"type":"string"}}}}}"#;
const URL: &str = r#"{"a":{"kind":"url","message":"?","url":"https://example.com/"}}"#;
const APPROVAL: &str = r#"{"a":{"kind":"approval","tool":"shop:buy","arguments":{"n":1}}}"#;
const ONE: &str = r#"{"a":{"kind":"choice","question":"?","options":[{"label":"red"},{"label":"green"}]}}"#;
const SEVERAL: &str =
    r#"{"a":{"kind":"choice","question":"?","multi_select":true,"options":[{"label":"red"},{"label":"green"}]}}"#;
const TEXT: &str = r#"{"a":{"kind":"text","question":"?"}}"#;
const ALL: [&str; 6] = [FORM, URL, APPROVAL, ONE, SEVERAL, TEXT];

#[test]
fn a_decline_and_a_cancel_fit_every_kind_and_carry_nothing() {
    for asked in ALL {
        let requests = requests(asked);
        for fits in [
            r#"{"a":{"action":"decline"}}"#,
            r#"{"a":{"action":"decline","reason":"not today"}}"#,
            r#"{"a":{"action":"decline","content":null}}"#,
            r#"{"a":{"action":"cancel"}}"#,
            r#"{"a":{"action":"cancel","content":null,"reason":null}}"#,
        ] {
            let checked = try_answer(&requests, fits).expect(fits);
            assert!(checked.effective.0.iter().all(|(_, response)| response.content.is_none()), "{fits}");
            assert_eq!(checked.submitted.action(), checked.effective.action(), "an action is never rewritten");
        }
        for (given, pointer) in [
            (r#"{"a":{"action":"decline","content":{}}}"#, "/responses/a/content"),
            (r#"{"a":{"action":"cancel","content":{"x":1}}}"#, "/responses/a/content"),
            (r#"{"a":{"action":"cancel","reason":"later"}}"#, "/responses/a/reason"),
            (r#"{"a":{"action":"accept","reason":"fine"}}"#, "/responses/a/reason"),
        ] {
            assert_eq!(faults(&requests, given)[0].0, pointer, "{asked} {given}");
        }
    }
}

#[test]
fn a_reason_has_a_limit() {
    let decline = |bytes: usize| format!(r#"{{"a":{{"action":"decline","reason":"{}"}}}}"#, "x".repeat(bytes));
    assert!(try_answer(&requests(TEXT), &decline(limits::REASON_BYTES_MAX)).is_ok());
    assert_eq!(faults(&requests(TEXT), &decline(limits::REASON_BYTES_MAX + 1))[0].0, "/responses/a/reason");
}

#[test]
fn a_form_takes_an_object_that_its_schema_allows() {
    for (content, pointer) in [
        ("null", "/responses/a/content"),
        ("[]", "/responses/a/content"),
        ("\"street\"", "/responses/a/content"),
        ("{}", "/responses/a/content/street"),
        (r#"{"street":""}"#, "/responses/a/content/street"),
        (r#"{"street":"s","floor":"2"}"#, "/responses/a/content/floor"),
    ] {
        let given = format!(r#"{{"a":{{"action":"accept","content":{content}}}}}"#);
        assert_eq!(faults(&requests(FORM), &given)[0].0, pointer, "{content}");
    }
    assert_eq!(faults(&requests(FORM), r#"{"a":{"action":"accept"}}"#)[0].0, "/responses/a/content");
    assert!(try_answer(&requests(OPTIONAL_FORM), r#"{"a":{"action":"accept","content":{}}}"#).is_ok());
    assert_eq!(faults(&requests(OPTIONAL_FORM), r#"{"a":{"action":"accept"}}"#)[0].0, "/responses/a/content");
}

#[test]
fn what_was_submitted_and_what_takes_effect_are_both_kept() {
    let given = r#"{"a":{"action":"accept","content":{"street":"1 Main Street","other":0.10}}}"#;
    let checked = try_answer(&requests(FORM), given).expect("fits");
    let content = |responses: &sayso_core::response::Responses| {
        responses.get("a").and_then(|response| response.content.clone()).map(|content| content.as_str().to_owned())
    };
    assert_eq!(content(&checked.submitted).as_deref(), Some(r#"{"street":"1 Main Street","other":0.10}"#));
    let effective = content(&checked.effective).expect("content");
    assert_eq!(effective, r#"{"street":"1 Main Street","other":0.10,"note":"none"}"#);
}

#[test]
fn consent_to_a_url_and_to_a_call_as_it_is_carry_no_content() {
    for asked in [URL, APPROVAL] {
        for fits in [r#"{"a":{"action":"accept"}}"#, r#"{"a":{"action":"accept","content":null}}"#] {
            let checked = try_answer(&requests(asked), fits).expect(fits);
            assert_eq!(checked.effective.get("a").and_then(|response| response.content.clone()), None);
        }
        if asked == APPROVAL {
            // What says nothing is nothing; edits and input are for calls that take them.
            let checked = try_answer(&requests(asked), r#"{"a":{"action":"accept","content":{}}}"#).expect("fits");
            assert_eq!(checked.effective.get("a").and_then(|response| response.content.clone()), None);
        } else {
            assert_eq!(
                faults(&requests(asked), r#"{"a":{"action":"accept","content":{}}}"#)[0].0,
                "/responses/a/content"
            );
        }
        for content in [r#"{"url":"https://example.org/"}"#, "true"] {
            let given = format!(r#"{{"a":{{"action":"accept","content":{content}}}}}"#);
            assert_eq!(faults(&requests(asked), &given)[0].0, "/responses/a/content", "{asked} {content}");
        }
    }
}

#[test]
fn a_choice_and_a_text_take_a_list_of_texts() {
    let accept = |content: &str| format!(r#"{{"a":{{"action":"accept","content":{content}}}}}"#);
    for (asked, content, fits) in [
        (ONE, r#"{"answer":["red"]}"#, true),
        (ONE, r#"{"answer":["something else"]}"#, true),
        (ONE, r#"{"answer":["red","green"]}"#, false),
        (ONE, r#"{"answer":[]}"#, false),
        (ONE, r#"{"answer":[" "]}"#, false),
        (ONE, r#"{"answer":"red"}"#, false),
        (ONE, r#"{"answer":[1]}"#, false),
        (ONE, r#"{"answer":["red"],"more":1}"#, false),
        (ONE, r#"["red"]"#, false),
        (ONE, "{}", false),
        (SEVERAL, r#"{"answer":["red","green","blue"]}"#, true),
        (SEVERAL, r#"{"answer":["red","red"]}"#, false),
        (SEVERAL, r#"{"answer":["red",""]}"#, false),
        (TEXT, r#"{"answer":["as you like"]}"#, true),
        (TEXT, r#"{"answer":["a","b"]}"#, false),
        (TEXT, r#"{"answer":[]}"#, false),
    ] {
        let checked = try_answer(&requests(asked), &accept(content));
        assert_eq!(checked.is_ok(), fits, "{asked} {content}");
        if !fits {
            assert_eq!(faults(&requests(asked), &accept(content))[0].0, "/responses/a/content/answer", "{content}");
        }
    }
    for asked in [ONE, SEVERAL, TEXT] {
        assert_eq!(faults(&requests(asked), r#"{"a":{"action":"accept"}}"#)[0].0, "/responses/a/content/answer");
    }
}

#[test]
fn extra_keys_are_reported_before_missing_ones_and_both_before_contents() {
    let two = requests(r#"{"a":{"kind":"text","question":"?"},"b":{"kind":"text","question":"?"}}"#);
    let wrong = r#"{"action":"accept","content":7}"#;
    let extra = faults(&two, &format!(r#"{{"a":{wrong},"c":{wrong}}}"#));
    assert_eq!(extra, [("/responses/c".to_owned(), "is not a request of this round".to_owned())]);
    let missing = faults(&two, &format!(r#"{{"b":{wrong}}}"#));
    assert_eq!(missing, [("/responses/a".to_owned(), "is not answered".to_owned())]);
    let contents = faults(&two, &format!(r#"{{"b":{wrong},"a":{wrong}}}"#));
    assert_eq!(
        contents.iter().map(|fault| fault.0.as_str()).collect::<Vec<_>>(),
        ["/responses/a/content/answer", "/responses/b/content/answer"]
    );
}

#[test]
fn an_answer_over_the_limit_is_refused_whole() {
    let big = "x".repeat(limits::ANSWER_BYTES_MAX);
    let given = format!(r#"{{"a":{{"action":"accept","content":{{"answer":["{big}"]}}}}}}"#);
    assert!(matches!(try_answer(&requests(TEXT), &given), Err(Error::Limit(_))));
}

#[test]
fn no_error_repeats_what_was_typed() {
    const SENTINEL: &str = "hunter2";
    for (asked, content) in [
        (FORM, format!(r#"{{"street":["{SENTINEL}"]}}"#)),
        (FORM, format!(r#"{{"street":"s","floor":"{SENTINEL}"}}"#)),
        (ONE, format!(r#"{{"answer":["{SENTINEL}","{SENTINEL}"]}}"#)),
        (TEXT, format!(r#"{{"answer":["{SENTINEL}","x"]}}"#)),
        (URL, format!(r#"{{"answer":["{SENTINEL}"]}}"#)),
    ] {
        let error = try_answer(&requests(asked), &format!(r#"{{"a":{{"action":"accept","content":{content}}}}}"#));
        let error = error.expect_err("does not fit");
        assert!(!format!("{error} {error:?}").contains(SENTINEL), "{error:?}");
    }
}

#[test]
fn the_same_answer_is_the_same_canonical_map_whatever_its_order_and_white_space() {
    let two = requests(
        r#"{"a":{"kind":"form","message":"?","schema":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}}}},
            "b":{"kind":"text","question":"?"}}"#,
    );
    let canonical = |given: &str| try_answer(&two, given).expect(given).canonical();
    let text = r#""b":{"action":"decline"}"#;
    let one = canonical(&format!(r#"{{"a":{{"action":"accept","content":{{"x":1,"y":2}}}},{text}}}"#));
    for (given, same) in [
        (format!(r#"{{{text},"a":{{"content":{{ "y":2, "x":1 }},"action":"accept"}}}}"#), true),
        (format!(r#"{{"a":{{"action":"accept","content":{{"x":1.0,"y":2}}}},{text}}}"#), false),
        (format!(r#"{{"a":{{"action":"accept","content":{{"x":1}}}},{text}}}"#), false),
        (format!(r#"{{"a":{{"action":"decline"}},{text}}}"#), false),
        (
            r#"{"a":{"action":"accept","content":{"x":1,"y":2}},"b":{"action":"decline","reason":"no"}}"#.to_owned(),
            false,
        ),
        (r#"{"a":{"action":"accept","content":{"x":1,"y":2}},"b":{"action":"cancel"}}"#.to_owned(), false),
    ] {
        assert_eq!(canonical(&given) == one, same, "{given}");
    }
}

proptest! {
    #[test]
    fn a_map_is_accepted_only_if_its_keys_are_exactly_the_rounds(
        asked in prop::collection::hash_set("[a-e~/]{1,2}", 1..5),
        given in prop::collection::vec("[a-e~/]{1,2}", 0..6),
    ) {
        let texts = asked.iter().map(|key| (key.clone(), Request {
            question: Some("?".to_owned()), ..Request::empty(sayso_core::wire::RequestKind::Text)
        }));
        let requests = Keyed(texts.collect()).check().expect("can be asked");
        let answer = |key: &String| (key.clone(), Response::accept(Json::parse(r#"{"answer":["x"]}"#).expect("JSON")));
        let wire = Keyed(given.iter().map(answer).collect());
        let exactly = given.len() == asked.len() && asked.iter().all(|key| given.contains(key));
        let checked = check(&requests, &responses_from_wire(&wire));
        prop_assert_eq!(checked.is_ok(), exactly);
        match checked {
            Ok(checked) => {
                let order: Vec<_> = requests.iter().map(|(key, _)| key.to_owned()).collect();
                let stored: Vec<_> = responses_to_wire(&checked.effective).0.into_iter().map(|(key, _)| key).collect();
                prop_assert_eq!(order, stored, "the answers stand in the order of the requests");
            }
            Err(Error::Validation { fields, .. }) => {
                prop_assert!(!fields.is_empty());
                prop_assert!(fields.iter().all(|field| field.pointer.starts_with("/responses/")));
                let unknown = given.iter().any(|key| !asked.contains(key));
                prop_assert_eq!(unknown, fields.iter().any(|field| field.message == "is not a request of this round"));
            }
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }
}
