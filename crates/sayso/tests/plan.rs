//! Scripted plans: what each expectation takes, what it answers, and the sentences where a plan does not hold.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use sayso::plan::{
    DEFAULT_KEY, Elicitation, Malformed, Plan, PlanError, expect_form, expect_url, maybe_form, maybe_url, one_of,
    optional, round_of, sequence,
};
use sayso::wire::RequestKind;
use sayso::{Json, OperationKind, Request};

const ADDRESS: &str = r#"{"type":"object","properties":{"street":{"type":"string","minLength":3},
    "insured":{"type":"boolean","default":false}},"required":["street"]}"#;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn address() -> Elicitation {
    let asked = Elicitation::new(DEFAULT_KEY, Request::form("Where should the kettle go?", json(ADDRESS)));
    let operation = Some((OperationKind::Tool, "book_shipment".to_owned()));
    Elicitation { server: Some("shipping".to_owned()), operation, ..asked }
}

fn form(key: &str) -> Elicitation {
    Elicitation::new(key, Request::form("What?", json(r#"{"type":"object","properties":{}}"#)))
}

fn url(key: &str) -> Elicitation {
    let url = Some("https://example.com/login".to_owned());
    let request = Request { message: Some("Log in".to_owned()), url, ..Request::empty(RequestKind::Url) };
    Elicitation::new(key, request)
}

/// What the plan answers to the rounds in turn, by action and content, and how it ends.
fn follow(plan: &Plan, rounds: &[&[Elicitation]]) -> Result<Vec<String>, PlanError> {
    let mut run = plan.begin()?;
    let mut told = Vec::new();
    for round in rounds {
        for (key, response) in run.answer(round)?.0 {
            let content = response.content.as_ref().map_or("", Json::as_str);
            told.push(format!("{key} {} {content}", response.action.as_str()));
        }
    }
    run.finish()?;
    Ok(told)
}

fn words(plan: &Plan, rounds: &[&[Elicitation]]) -> String {
    follow(plan, rounds).unwrap_err().to_string()
}

#[test]
fn an_accept_is_checked_as_any_answer_is_and_gets_the_defaults() {
    let plan = expect_form(DEFAULT_KEY).accept(json(r#"{"street":"1 Main Street"}"#));
    assert_eq!(
        follow(&plan, &[&[address()]]).unwrap(),
        [r#"elicitation accept {"street":"1 Main Street","insured":false}"#]
    );
    assert_eq!(
        words(&expect_form(DEFAULT_KEY).accept(json(r#"{"street":"x"}"#)), &[&[address()]]),
        "the plan's answer to a form \"Where should the kettle go?\" does not fit: \
         /content/street must be at least 3 characters"
    );
    let no_object = expect_form(DEFAULT_KEY).accept(json("7"));
    assert!(words(&no_object, &[&[address()]]).contains("/content must be an object"));
}

#[test]
fn every_matcher_takes_what_it_names_and_nothing_else() {
    let base = || expect_form(DEFAULT_KEY);
    for (plan, fits) in [
        (base().message("kettle").cancel(), true),
        (base().message("teapot").cancel(), false),
        (base().message_is("Where should the kettle go?").cancel(), true),
        (base().message_is("kettle").cancel(), false),
        (base().schema(json(r#"{"properties":{"street":{"minLength":3.0}}}"#)).cancel(), true),
        (base().schema(json(r#"{"properties":{"city":{}}}"#)).cancel(), false),
        (base().schema_is(json(ADDRESS)).cancel(), true),
        (base().schema_is(json(r#"{"type":"object"}"#)).cancel(), false),
        (base().server("shipping").cancel(), true),
        (base().server("billing").cancel(), false),
        (base().operation(OperationKind::Tool, "book_shipment").cancel(), true),
        (base().operation(OperationKind::Prompt, "book_shipment").cancel(), false),
        (expect_form("other").cancel(), false),
        (expect_url(DEFAULT_KEY).cancel(), false),
    ] {
        assert_eq!(follow(&plan, &[&[address()]]).is_ok(), fits, "{plan:?}");
    }
    let to = |text: &str| expect_url("u").url(text).accept();
    assert!(follow(&to("https://example.com/login"), &[&[url("u")]]).is_ok());
    assert!(follow(&to("https://example.com/"), &[&[url("u")]]).is_err());
}

#[test]
fn what_was_not_expected_is_said_with_what_was() {
    let plan = sequence([maybe_url("u").cancel(), expect_form("a").message("kettle").decline("no")]);
    assert_eq!(
        words(&plan, &[&[form("b")]]),
        "nobody expected a form \"What?\" under the key b; expected was perhaps consent to a URL under the key u or a \
         form under the key a whose message contains \"kettle\""
    );
    assert_eq!(
        words(&Plan::nothing(), &[&[url("u")]]),
        "nobody expected consent to a URL \"Log in\" (https://example.com/login) under the key u; \
         nothing more was expected"
    );
}

#[test]
fn an_unfinished_plan_says_what_did_not_come() {
    let plan = sequence([maybe_form("a").cancel(), one_of([expect_form("b").cancel(), expect_url("c").accept()])]);
    assert_eq!(
        words(&plan, &[]),
        "a form under the key b or consent to a URL under the key c was expected and did not come"
    );
    assert_eq!(follow(&plan, &[&[url("c")]]).unwrap(), ["c accept "]);
    let begun = optional(sequence([expect_form("a").cancel(), expect_form("d").cancel()]));
    let with_optional = sequence([begun, plan.clone()]);
    assert_eq!(words(&with_optional, &[]), words(&plan, &[]), "what is optional is not missed");
    assert!(words(&with_optional, &[&[form("d")]]).contains("expected was perhaps a form under the key a or "));
    assert_eq!(follow(&optional(plan), &[]).unwrap(), Vec::<String>::new());
}

#[test]
fn different_answers_to_the_same_question_are_ambiguous_and_the_same_are_not() {
    let yes = |text: &str| json(&format!(r#"{{"n":{text}}}"#));
    let plan = one_of([expect_form("a").message("Wh").accept(yes("1")), expect_form("a").accept(yes("2"))]);
    assert_eq!(
        words(&plan, &[&[form("a")]]),
        "the plan is ambiguous: a form \"What?\" under the key a fits a form under the key a whose message contains \
         \"Wh\" (accept {\"n\":1}), and it fits a form under the key a (accept {\"n\":2}), which answers differently"
    );
    let same = sequence([maybe_form("a").accept(yes("1")), expect_form("a").accept(yes("1.0"))]);
    assert_eq!(follow(&same, &[&[form("a")]]).unwrap().len(), 1);
    assert_eq!(follow(&same, &[&[form("a")], &[form("a")]]).unwrap().len(), 2);
}

#[test]
fn a_round_of_several_questions_is_taken_whole_and_in_any_order() {
    let plan = round_of([expect_form("a").accept(json("{}")), expect_url("u").decline(None)]);
    assert_eq!(follow(&plan, &[&[url("u"), form("a")]]).unwrap(), ["u decline ", "a accept {}"]);
    for rounds in [&[&[url("u")][..], &[form("a")]][..], &[&[url("u"), form("a"), form("b")]], &[&[]]] {
        assert!(matches!(follow(&plan, rounds), Err(PlanError::Unexpected { .. })));
    }
}

#[test]
fn the_round_limit_ends_an_operation_that_asks_too_often() {
    let plan = sequence(std::iter::repeat_with(|| expect_form("a").cancel()).take(11));
    let mut run = plan.begin().unwrap();
    for _ in 0..10 {
        run.answer(&[form("a")]).unwrap();
    }
    let error = run.answer(&[form("a")]).unwrap_err();
    assert_eq!((error.code(), &error), ("elicitation_round_limit", &PlanError::RoundLimit(10)));
    let mut run = plan.begin().unwrap().with_round_limit(0);
    assert_eq!(run.answer(&[form("a")]), Err(PlanError::RoundLimit(0)));
}

#[test]
fn the_first_failure_is_what_a_run_ends_with() {
    let mut run = expect_form("a").cancel().begin().unwrap();
    let first = run.answer(&[form("b")]).unwrap_err();
    assert_eq!(run.answer(&[form("a")]).unwrap_err(), first);
    assert_eq!(run.finish().unwrap_err(), first);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let broken = Elicitation::new("a", Request::form("What?", json(r#"{"type":"object","pattern":7}"#)));
    let error = follow(&expect_form("a").accept(json("{}")), &[&[broken]]).unwrap_err();
    assert!(matches!(error, PlanError::Unaskable { .. }), "{error}");
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_before_it_begins() {
    let one = || expect_form("a").cancel();
    for (plan, expected) in [
        (sequence([one()]), Malformed::TooFew { combinator: "sequence", least: 2 }),
        (one_of([]), Malformed::TooFew { combinator: "one_of", least: 2 }),
        (round_of([one()]), Malformed::TooFew { combinator: "round_of", least: 2 }),
        (one_of([one(), maybe_form("b").cancel()]), Malformed::EmptyAlternative),
        (one_of([one(), one()]), Malformed::SameAlternatives("a form under the key a".to_owned())),
        (round_of([one(), maybe_form("b").cancel()]), Malformed::MaybeInRound),
        (round_of([one(), one()]), Malformed::SameKeys("a".to_owned())),
        (round_of([one(), optional(one())]), Malformed::NotSingle),
        ((0..70).fold(one(), |plan, _| optional(plan)), Malformed::TooLarge("64 levels".to_owned())),
        (sequence((0..1001).map(|_| one())), Malformed::TooLarge("1000 expectations".to_owned())),
    ] {
        assert_eq!(plan.begin().unwrap_err(), PlanError::Malformed(expected));
    }
}
