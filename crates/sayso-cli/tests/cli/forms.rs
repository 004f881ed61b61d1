//! The form on the terminal.

use sayso::Status;
use sayso_core::response::Action;

use crate::folder::{Folder, form, request};
use crate::terminal::{CTRL_C, DOWN, ENTER, ESC, Terminal};

const EVERY_KIND: &str = r#"{"type":"object",
    "required":["street","mail","day","weight","count","gift","size","extras"],
    "properties":{
        "street":{"type":"string","title":"Street and number","minLength":3},
        "mail":{"type":"string","format":"email"},
        "day":{"type":"string","format":"date"},
        "weight":{"type":"number","minimum":0.5},
        "count":{"type":"integer","maximum":9},
        "gift":{"type":"boolean"},
        "size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},
        "extras":{"type":"array","minItems":1,"items":{"type":"string","enum":["card","ribbon","box"]}},
        "city":{"type":"string","default":"Pune"},
        "note":{"type":"string"},
        "deep":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{}}}}"#;

#[test]
fn every_kind_of_field_is_asked_for_and_asked_again_until_it_fits() {
    let folder = Folder::new();
    let round = folder.ask(&[("address", form("Where to?", EVERY_KIND))]);
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("agent booking").expect("Where to?").expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("Street and number (street)").type_keys("ab\r").expect("must be at least 3 characters");
    terminal.type_keys("c\r");
    terminal.expect("? mail").type_keys("nope\r").expect("must be an e-mail address");
    terminal.type_keys("@example.com\r");
    terminal.expect("? day").type_keys("2026-13-01\r").expect("must be a date");
    terminal.type_keys(&"\x7f".repeat(10)).type_keys("2026-01-31\r");
    terminal.expect("? weight").type_keys("0.1\r").expect("must be at least 0.5").type_keys("\x7f\x7f1.50\r");
    // What was typed before the dot went stays: 0 and then 1.50 is no number.
    terminal.expect("must be a number").type_keys(&"\x7f".repeat(5)).type_keys("1.50\r");
    terminal.expect("? count").type_keys("many\r").expect("must be a whole number");
    terminal.type_keys(&"\x7f".repeat(4)).type_keys("7\r");
    terminal.expect("? gift").expect("no").type_keys(DOWN).type_keys(ENTER);
    terminal.expect("? size").expect("Large (l)").type_keys(DOWN).type_keys(ENTER);
    terminal.expect("? extras").expect("box").type_keys(ENTER).expect("must have at least 1 item");
    terminal.expect("? extras").expect("box").type_keys(" ").type_keys(DOWN).type_keys(DOWN).type_keys(" ");
    terminal.type_keys(ENTER);
    terminal.expect("city [Pune]").type_keys(ENTER);
    terminal.expect("? note").type_keys(ENTER);
    terminal.expect("? deep").type_keys("{\"a\":1.5}\r").expect("must be a whole number");
    terminal.type_keys(&"\x7f".repeat(9)).type_keys("{\"a\": 1}\r");
    terminal.expect("Send this answer?").type_keys(ENTER);
    terminal.end().expect_code(0);
    assert_eq!(
        folder.content(round.round_id, "address"),
        concat!(
            r#"{"street":"abc","mail":"nope@example.com","day":"2026-01-31","weight":1.50,"count":7,"gift":false,"#,
            r#""size":"l","extras":["card","box"],"deep":{"a": 1},"city":"Pune"}"#
        )
    );
}

#[test]
fn a_required_field_is_not_left_empty_and_fields_that_do_not_fit_together_are_asked_again() {
    let folder = Folder::new();
    let schema = r#"{"type":"object","required":["from"],
        "properties":{"from":{"type":"string"},"to":{"type":"string"}},
        "dependentRequired":{"from":["to"]}}"#;
    let round = folder.ask(&[("trip", form("Which way?", schema))]);
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("? from").type_keys(ENTER).expect("is required").type_keys("Pune\r");
    terminal.expect("? to").type_keys(ENTER);
    terminal.expect("The fields do not fit together").expect("/to");
    terminal.expect("? to").type_keys("Goa\r").expect("Send this answer?").type_keys(ENTER);
    terminal.end().expect_code(0);
    assert_eq!(folder.content(round.round_id, "trip"), r#"{"from":"Pune","to":"Goa"}"#);
}

#[test]
fn decline_takes_a_reason_and_esc_leads_back_to_the_beginning() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("? street").type_keys("ab").expect("ab").type_keys(ESC);
    terminal.expect("What do you want to do?").type_keys(DOWN).type_keys(ENTER);
    terminal.expect("Why not?").type_keys("not this week\r");
    let ended = terminal.end().expect_code(0);
    assert!(ended.stderr.contains("decline accepted at"), "{}", ended.stderr);
    let given = folder.collect(round.round_id);
    let response = given.get("address").unwrap();
    assert_eq!((response.action, response.reason.as_deref()), (Action::Decline, Some("not this week")));
}

#[test]
fn dismissing_is_a_cancel_and_leaving_changes_nothing() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    let before = folder.events();

    let mut terminal = Terminal::open(&folder, &["answer", &id]);
    terminal.expect("What do you want to do?").type_keys(ENTER).expect("? street").type_keys(CTRL_C);
    let ended = terminal.end().expect_code(130);
    assert!(ended.stderr.contains("error[interrupted]: interrupted; nothing was sent"), "{}", ended.stderr);
    let mut terminal = Terminal::open(&folder, &["answer", &id]);
    terminal.expect("What do you want to do?").type_keys(ESC);
    terminal.end().expect_code(130);
    assert_eq!(folder.events(), before);
    assert_eq!(folder.round(round.round_id), round);

    let mut terminal = Terminal::open(&folder, &["answer", &id]);
    terminal.expect("What do you want to do?").type_keys(DOWN).type_keys(DOWN).type_keys(ENTER);
    terminal.end().expect_code(0);
    assert_eq!(folder.collect(round.round_id).get("address").unwrap().action, Action::Cancel);
}

#[test]
fn a_url_an_approval_a_choice_and_a_question_are_answered_in_one_sitting() {
    let folder = Folder::new();
    let round = folder.ask(&[
        ("consent", request(r#"{"kind":"url","message":"Connect","url":"http://xn--80ak6aa92e.com/x?y=1"}"#)),
        ("call", request(r#"{"kind":"approval","tool":"bank:pay","arguments":{"amount":12345678901234567890.10}}"#)),
        (
            "targets",
            request(
                r#"{"kind":"choice","question":"Where?","multi_select":true,"options":[{"label":"staging"},{"label":"production"}]}"#,
            ),
        ),
        ("note", request(r#"{"kind":"text","question":"Anything else?"}"#)),
    ]);
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("URL:  http://xn--80ak6aa92e.com/x?y=1").expect("Host: xn--80ak6aa92e.com");
    terminal.expect("does not use https").expect("punycode").expect("What do you want to do?");
    // The cursor stands on "Decline": consent is never one Enter away.
    terminal.expect("> Decline").type_keys("\x1b[A\r");
    terminal.expect("bank:pay").expect(r#""amount": 12345678901234567890.10"#).expect("> Deny").type_keys("\x1b[A\r");
    terminal.expect("Where?").expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("Something else").type_keys(DOWN).type_keys(" ").type_keys(DOWN).type_keys(" ").type_keys(ENTER);
    terminal.expect("? Your answer").expect("? Your answer").type_keys("the moon\r");
    terminal.expect("Anything else?").expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("? Your answer").type_keys("no\r");
    terminal.end().expect_code(0);
    let given = folder.collect(round.round_id);
    let content = |key: &str| given.get(key).unwrap().content.as_ref().map(|content| content.as_str().to_owned());
    assert!(given.0.iter().all(|(_, response)| response.action == Action::Accept));
    assert_eq!((content("consent"), content("call")), (None, None));
    assert_eq!(content("targets").as_deref(), Some(r#"{"answer":["production","the moon"]}"#));
    assert_eq!(content("note").as_deref(), Some(r#"{"answer":["no"]}"#));
}

#[test]
fn a_round_that_has_ended_is_not_asked_again() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    Terminal::open(&folder, &["answer", &id, "--cancel"]).end().expect_code(0);
    assert_eq!(folder.round(round.round_id).status, Status::ResponseValidated);
    let ended = Terminal::open(&folder, &["answer", &id]).end().expect_code(4);
    assert!(ended.stderr.contains("answered by person local:"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("What do you want to do?"));
}

#[test]
fn a_group_and_the_rows_of_a_list_are_asked_for_field_by_field() {
    let folder = Folder::new();
    let schema = r#"{"type":"object","required":["to","parcels"],"properties":{
        "to":{"type":"object","title":"Address","properties":{"street":{"type":"string","minLength":3}},"required":["street"]},
        "back":{"type":"object","properties":{"street":{"type":"string"}}},
        "parcels":{"type":"array","items":{"type":"object","properties":{"kg":{"type":"number","maximum":9}},"required":["kg"]}}}}"#;
    let round = folder.ask(&[("f", form("Where to?", schema))]);
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("What do you want to do?").type_keys(ENTER);
    terminal.expect("Address (to):").expect("? to.street").type_keys("ab\r").expect("must be at least 3 characters");
    terminal.type_keys("c\r").expect("back: fill it in?").expect("> Leave it out").type_keys(ENTER);
    terminal.expect("parcels: add row 1?").expect("> Add one").type_keys(ENTER);
    terminal.expect("? parcels.0.kg").type_keys("10\r").expect("must be at most 9").type_keys("\x7f\x7f1.50\r");
    terminal.expect("parcels: add row 2?").expect("> No more").type_keys(ENTER);
    terminal.expect("Send this answer?").type_keys(ENTER);
    terminal.end().expect_code(0);
    assert_eq!(folder.content(round.round_id, "f"), r#"{"to":{"street":"abc"},"parcels":[{"kg":1.50}]}"#);
}

#[test]
fn the_arguments_of_a_call_are_changed_and_its_input_is_given_before_it_is_approved() {
    let folder = Folder::new();
    let call = r#"{"kind":"approval","tool":"bank:pay","arguments":{"n":1},"message":"Moves money.","rule":"money",
        "arguments_schema":{"type":"object","properties":{"n":{"type":"number","maximum":9}}},
        "schema":{"type":"object","properties":{"pin":{"type":"integer"}},"required":["pin"]}}"#;
    let round = folder.ask(&[("call", request(call))]);
    let mut terminal = Terminal::open(&folder, &["answer", &round.round_id.to_string()]);
    terminal.expect("Moves money.").expect("Nothing is known").expect("Asked by rule: money").expect("> Deny");
    terminal.type_keys(DOWN).type_keys(DOWN).type_keys(ENTER);
    terminal.expect("? The arguments").type_keys("\x7f\x7f12}\r").expect("must be at most 9");
    terminal.type_keys("\x7f\x7f\x7f2}\r").expect("What you changed").expect("-   \"n\": 1").expect("+   \"n\": 2");
    terminal.expect("Approve: run it with the changes").expect("> Deny").type_keys("\x1b[A\r");
    terminal.expect("? pin").type_keys(ENTER).expect("is required").type_keys("7\r");
    terminal.expect("Send this answer?").type_keys(ENTER);
    terminal.end().expect_code(0);
    assert_eq!(folder.content(round.round_id, "call"), r#"{"arguments":{"n":2},"input":{"pin":7}}"#);
}
