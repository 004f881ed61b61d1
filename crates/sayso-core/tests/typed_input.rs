//! Typed input for a tool: recorded behaviour of another system (`tests/data/nrllm_vectors.jsonl`) with what this design
//! decides instead, and the rule that neither side can put a value into the other's field.
//!
//! `follow` says whether the other system is to be reproduced (`yes`), may be (`may`), or was wrong and `should` says
//! what is right (`no`). Where the design decides otherwise the vector is listed here, with the reason.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod schemas;

use std::collections::BTreeMap;

use proptest::prelude::*;
use sayso_core::json::Json;
use sayso_core::policy::{Annotations, Context, Decision, Effect, LayerText, Policy, RuleText, ToolName, ToolText};
use sayso_core::round::Digest;
use sayso_core::schema::{FormSchema, InputSchema, Needs, read_arguments};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("data/nrllm_vectors.jsonl");

/// Vectors that the design decides otherwise: what comes out, and why.
const DECIDED: [(&str, &str, &str); 19] = [
    ("overlay/properties_only", "schema_refused", "a usable schema says `type: object`"),
    ("overlay/all_of_is_not_checked", "schema_refused", "NR-04: keys declared behind `allOf` refuse the schema"),
    ("overlay/properties_behind_ref", "schema_refused", "NR-04: keys declared behind `$ref` refuse the schema"),
    ("overlay/nested_undeclared_human_key_passes", "run", "NR-05: below a declared key the schema decides"),
    ("overlay/model_arguments_scalar", "call_refused", "NR-09: arguments are an object or the call is refused"),
    ("overlay/ref_only", "schema_refused", "NR-03: only `properties` declares keys"),
    ("overlay/default_is_not_applied", "run", "NR-11: defaults are applied before the check"),
    ("digest/one_vs_one_point_zero", "differ", "a number counts as it is written"),
    ("register/both_markers", "refused", "two markers are refused; needing both is a marker of its own"),
    ("register/input_and_declared_write", "registered", "a write is asked by the policy, its input by the marker"),
    ("needs_approval/unknown_tool", "asks", "NR-20: of an unknown tool nothing is known, so it asks"),
    ("validate/annotations_only", "valid", "NR-12: unknown keywords are ignored"),
    ("validate/pattern_too_long", "invalid", "NR-12: long patterns are tried too, and this value is not like it"),
    ("coerce/leading_zeros", "refused", "NR-14: `007` is no JSON number"),
    ("coerce/arabic_digits", "refused", "NR-14: a form's numbers are JSON's"),
    ("coerce/checkbox_off", r#"{"age":1,"agree":false,"news":false}"#, "NR-15: an explicit off is false, not absent"),
    ("coerce/untyped_field", r#"{"age":1,"agree":false,"loose":5}"#, "NR-16: a field without a type is typed as JSON"),
    ("coerce/undeclared_field", "refused", "a field nobody asked for is refused, not dropped"),
    ("coerce/plus_sign", "refused", "NR-14: `+7` is no JSON number"),
];

/// Groups that run where their subject is: whole turns, their stored state, and the order of checks around a decision.
const ELSEWHERE: [(&str, usize); 3] = [("decision", 30), ("rehydrate", 11), ("turn", 23)];

struct Vector {
    raw: Json,
    value: Value,
}

impl Vector {
    fn id(&self) -> String {
        format!("{}/{}", self.value["group"].as_str().unwrap(), self.value["name"].as_str().unwrap())
    }

    fn raw(&self, member: &str) -> &str {
        self.raw.object().unwrap().get(member).unwrap_or_else(|| panic!("{}: {member}", self.id()))
    }

    fn json(&self, member: &str) -> Json {
        Json::parse(self.raw(member)).unwrap()
    }

    fn decided(&self) -> Option<&'static str> {
        DECIDED.iter().find(|(id, ..)| *id == self.id()).map(|(_, outcome, _)| *outcome)
    }

    /// What is expected where the design does not decide: the recorded outcome, or what `should` says instead.
    fn expected(&self) -> &Value {
        match self.value["follow"].as_str() {
            Some("no") => &self.value["should"],
            _ => &self.value["outcome"],
        }
    }
}

fn group(name: &str, count: usize) -> Vec<Vector> {
    let vectors: Vec<_> = VECTORS
        .lines()
        .map(|line| Vector { raw: Json::parse(line).unwrap(), value: serde_json::from_str(line).unwrap() })
        .filter(|vector| vector.value["group"] == name)
        .collect();
    assert_eq!(vectors.len(), count, "vectors of {name}");
    vectors
}

#[test]
fn every_vector_belongs_to_a_group_that_is_run_and_every_decision_to_a_vector() {
    let here = [
        ("overlay", 42),
        ("usable", 11),
        ("validate", 24),
        ("coerce", 16),
        ("digest", 8),
        ("needs_approval", 6),
        ("register", 4),
    ];
    let all: Vec<_> = here.iter().chain(&ELSEWHERE).flat_map(|(name, count)| group(name, *count)).collect();
    assert_eq!(all.len(), VECTORS.lines().count());
    for (id, ..) in DECIDED {
        assert!(all.iter().any(|vector| vector.id() == id), "{id}");
    }
}

/// What comes of a call, a schema and a person's content.
fn outcome(vector: &Vector) -> (&'static str, Option<Json>) {
    let Ok(schema) = InputSchema::open(&vector.json("schema")) else {
        return ("schema_refused", None);
    };
    let proposed = match &vector.value["model_arguments"] {
        // Arguments given as text are the raw text that the model wrote.
        Value::String(text) => read_arguments(text),
        _ => read_arguments(vector.raw("model_arguments")),
    };
    let Ok(proposed) = proposed else {
        return ("call_refused", None);
    };
    let Ok(effective) = schema.effective(&vector.json("human_input")) else {
        return ("input_refused", None);
    };
    ("run", Some(schema.overlay(&proposed, &effective).unwrap()))
}

#[test]
fn values_are_laid_over_a_call_as_recorded_or_better() {
    for vector in group("overlay", 42) {
        let (found, arguments) = outcome(&vector);
        if let Some(decided) = vector.decided() {
            assert_eq!(found, decided, "{}", vector.id());
            continue;
        }
        let expected = vector.expected();
        assert_eq!(expected["outcome"], found, "{}", vector.id());
        if let Some(arguments) = arguments {
            let expected = Json::from_value(&expected["arguments"]);
            assert_eq!(arguments.canonical(), expected.canonical(), "{}", vector.id());
        }
    }
}

#[test]
fn a_schema_is_usable_only_where_its_keys_are_known() {
    for vector in group("usable", 11) {
        let usable = InputSchema::is_usable(&vector.json("schema"));
        let recorded = vector.value["outcome"]["usable"].as_bool().unwrap();
        match vector.value["follow"].as_str().unwrap() {
            "yes" => assert_eq!(usable, recorded, "{}", vector.id()),
            "no" => assert_eq!(usable, vector.value["should"].as_bool().unwrap(), "{}", vector.id()),
            _ => assert!(!usable, "{}: neither of the two names its keys as the design demands", vector.id()),
        }
    }
}

#[test]
fn content_is_checked_by_the_whole_of_json_schema() {
    for vector in group("validate", 24) {
        let wrapped = format!(r#"{{"type":"object","required":["v"],"properties":{{"v":{}}}}}"#, vector.raw("schema"));
        let form = FormSchema::open(&Json::parse(&wrapped).unwrap());
        let content = Json::parse(&format!(r#"{{"v":{}}}"#, vector.raw("value"))).unwrap();
        let valid = form.is_ok_and(|form| form.validate(&content).is_ok());
        let expected = match (vector.decided(), vector.value["follow"].as_str().unwrap()) {
            (Some(decided), _) => decided == "valid",
            (None, "no") => vector.value["should"]["valid"].as_bool().unwrap(),
            (None, "yes") => vector.value["outcome"]["strict"].as_bool().unwrap(),
            // The other system's strict mode refuses keywords it does not know; here all of them are known or ignored.
            (None, _) => true,
        };
        assert_eq!(valid, expected, "{}", vector.id());
    }
}

#[test]
fn what_a_form_posts_is_read_as_recorded_or_refused() {
    for vector in group("coerce", 16) {
        let form = FormSchema::open(&vector.json("schema")).unwrap();
        let mut posted: Vec<(String, String)> = Vec::new();
        for (name, value) in vector.value["form"].as_object().unwrap() {
            match value {
                Value::Array(texts) => posted.extend(texts.iter().map(|text| (format!("{name}[]"), text.to_string()))),
                text => posted.push((name.clone(), text.as_str().unwrap().to_owned())),
            }
        }
        if !posted.iter().any(|(name, _)| name == "agree") {
            // An unticked box posts nothing; our pages post what it means.
            posted.push(("agree".to_owned(), "false".to_owned()));
        }
        let read = form.read(&posted).ok().filter(|content| form.validate(content).is_ok());
        let (id, expected) = (vector.id(), vector.expected());
        let (valid, result) = match vector.decided() {
            Some("refused") => (false, Value::Null),
            Some(content) => (true, serde_json::from_str(content).unwrap()),
            None => (expected["then_valid"].as_bool().unwrap(), expected["result"].clone()),
        };
        assert_eq!(read.is_some(), valid, "{id}");
        if let Some(read) = read {
            assert_eq!(read.canonical(), Json::from_value(&result).canonical(), "{id}");
        }
    }
}

#[test]
fn digests_bind_to_values_and_not_to_the_order_of_keys() {
    for vector in group("digest", 8) {
        let side = |name: &str, members: &[&str]| {
            let side = &vector.value[name];
            let bound: BTreeMap<&str, &Value> = members.iter().map(|member| (*member, &side[*member])).collect();
            Digest::of_requests(&Json::from_value(&json!(bound)))
        };
        let approval = side("a", &["calls"]) == side("b", &["calls"]);
        let input = side("a", &["calls", "tool", "schema"]) == side("b", &["calls", "tool", "schema"]);
        let expected = vector.expected();
        let differ = vector.decided() == Some("differ");
        for (found, member) in [(approval, "approval_equal"), (input, "input_equal")] {
            let wanted = !differ && expected[member].as_bool().unwrap();
            assert_eq!(found, wanted, "{} {member}", vector.id());
        }
        assert_ne!(side("a", &["calls"]), side("a", &["calls", "tool", "schema"]), "{}", vector.id());
    }
}

#[test]
fn a_tool_asks_unless_it_is_known_only_to_read() {
    // The other system's tool kinds, in the words of a policy: local tools are a trusted server's, with their effects.
    let mut layer = LayerText::new(
        sayso_core::policy::Layer::Operator,
        vec![RuleText::new("declared", Decision::Ask, &["remote_ask:*"])],
    );
    layer.trusted = ["write", "idempotent_write", "read"].map(str::to_owned).to_vec();
    let declared = |kind: &str, effect| ToolText {
        tools: vec![format!("{kind}:*")],
        effects: Some([effect].into_iter().collect()),
        command: None,
    };
    layer.tools = vec![
        declared("write", Effect::Write),
        declared("idempotent_write", Effect::Write),
        declared("read", Effect::Read),
    ];
    let policy = Policy::new(vec![layer]).unwrap();
    for vector in group("needs_approval", 6) {
        let kind = vector.value["tool"]["kind"].as_str().unwrap_or("unknown");
        let tool = ToolName::new(kind, "t").unwrap();
        let context = Context { annotations: Annotations::default(), ..Context::default() };
        let asks = policy.evaluate(&tool, &Json::parse("{}").unwrap(), &context).decision == Decision::Ask;
        let expected = vector.decided().is_some() || vector.expected()["needs_approval"].as_bool().unwrap();
        assert_eq!(asks, expected, "{}", vector.id());
    }
}

#[test]
fn a_tool_has_one_marker() {
    let schema = Json::parse(r#"{"type":"object","properties":{"a":{}}}"#).unwrap();
    let mut registered = 0;
    for vector in group("register", 4) {
        let tools = vector.value["tools"].as_array().unwrap();
        let marked = match tools[0]["kind"].as_str().unwrap() {
            // The same name twice is the registry's to refuse.
            "plain" => continue,
            "dual" => Needs::of(true, Some(&schema), None),
            _ => Needs::of(false, Some(&schema), None),
        };
        let expected = vector.decided().unwrap_or_else(|| vector.value["outcome"]["outcome"].as_str().unwrap());
        assert_eq!(if marked.is_ok() { "registered" } else { "refused" }, expected, "{}", vector.id());
        registered += 1;
    }
    assert_eq!(registered, 3);
    assert!(matches!(Needs::of(false, None, Some(&schema)), Ok(Needs::ApprovedInput(_))));
    assert!(matches!(Needs::of(true, None, None), Ok(Needs::Approval)));
    let empty = Json::parse("{}").unwrap();
    assert!(Needs::of(false, Some(&empty), None).is_err() && Needs::of(true, None, Some(&schema)).is_err());
}

#[test]
fn numbers_and_escapes_stay_as_they_were_written() {
    let schema = Json::parse(r#"{"type":"object","properties":{"n":{"type":"number"},"a/b":{}}}"#).unwrap();
    let schema = InputSchema::open(&schema).unwrap();
    let proposed = read_arguments(r#"{ "big": 123456789012345678901234567890, "\u006e": 1, "x": 1.50, "a/b": {} }"#);
    let given = Json::parse(r#"{"n": 9007199254740993.0, "x": 2, "evil": {"n": 3}}"#).unwrap();
    let ran = schema.overlay(&proposed.unwrap(), &given).unwrap();
    assert_eq!(ran.as_str(), r#"{"big": 123456789012345678901234567890,"x": 1.50,"n": 9007199254740993.0}"#);
    for refused in [r#"{"a":1,"a":2}"#, r#"{"a":1"#, "[]", "5", "null", "{} {}", r#"{"a":1e999}"#] {
        assert!(read_arguments(refused).is_err(), "{refused}");
    }
    assert_eq!(read_arguments(" ").unwrap().as_str(), "{}");
}

proptest! {
    /// Invariant 7, for every schema, whatever either side sends.
    #[test]
    fn no_declared_key_keeps_the_models_value_and_no_undeclared_key_takes_the_persons(case in schemas::cases()) {
        let schema = InputSchema::open(&Json::from_value(&case.schema)).unwrap();
        let effective = schema.effective(&Json::from_value(&Value::Object(case.person.clone()))).unwrap();
        let ran = schema.overlay(&Json::from_value(&Value::Object(case.model.clone())), &effective).unwrap();
        prop_assert_eq!(ran.value(), case.runs_with());
    }

    #[test]
    fn content_of_any_kind_is_refused_or_sets_what_is_declared(case in schemas::cases(), other in schemas::objects()) {
        let schema = InputSchema::open(&Json::from_value(&case.schema)).unwrap();
        let person = case.person.clone().into_iter().chain(other).collect();
        let case = schemas::Case { person, ..case };
        if let Ok(effective) = schema.effective(&Json::from_value(&Value::Object(case.person.clone()))) {
            let ran = schema.overlay(&Json::from_value(&Value::Object(case.model.clone())), &effective).unwrap();
            prop_assert_eq!(ran.value(), case.runs_with());
        }
    }

    #[test]
    fn reading_arguments_is_total(text in r#"[{}\[\]":,a0-9e.\\ \n-]{0,24}"#) {
        if let Ok(arguments) = read_arguments(&text) {
            prop_assert!(arguments.is_object());
        }
    }
}
