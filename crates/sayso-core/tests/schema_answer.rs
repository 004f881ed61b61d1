//! Answers: what was typed becomes JSON, defaults are filled in, and errors name the field and not the value.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::json::Json;
use sayso_core::schema::{FieldError, FormSchema};
use serde_json::{Value, json};

fn form(schema: &str) -> FormSchema {
    FormSchema::open(&Json::parse(schema).expect("json")).expect("opens")
}

fn form_of(property: Value, required: bool) -> FormSchema {
    let required = if required { json!(["v"]) } else { json!([]) };
    FormSchema::open(&Json::from_value(&json!({"type": "object", "properties": {"v": property}, "required": required})))
        .expect("opens")
}

/// What the property `v` makes of the texts: the content, or the error's message.
fn typed(property: Value, required: bool, raw: &[&str]) -> Result<String, String> {
    let raw: Vec<_> = raw.iter().map(|text| ("v".to_owned(), (*text).to_owned())).collect();
    match form_of(property, required).read(&raw) {
        Ok(content) => Ok(content.as_str().to_owned()),
        Err(errors) => {
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].pointer, "/v");
            Err(errors[0].message.clone())
        }
    }
}

fn errors(form: &FormSchema, content: &str) -> Vec<(String, String)> {
    let errors = form.validate(&Json::parse(content).expect("json")).expect_err("invalid");
    errors.into_iter().map(|FieldError { pointer, message }| (pointer, message)).collect()
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn err(text: &str) -> Result<String, String> {
    Err(text.to_owned())
}

#[test]
fn numbers_stay_as_typed_or_are_refused() {
    let number = || json!({"type": "number"});
    let integer = || json!({"type": "integer"});
    for literal in ["0.10", "-1e3", "123456789012345678901234567890", "-0"] {
        assert_eq!(typed(number(), true, &[literal]), Ok(format!("{{\"v\":{literal}}}")));
    }
    assert_eq!(typed(number(), true, &[" 5 "]), ok(r#"{"v":5}"#));
    for text in ["5,5", "+5", "05", ".5", "1e999", "0x10", "five", "NaN", "true", "[1]", "1 2"] {
        assert_eq!(typed(number(), true, &[text]), err("must be a number"), "{text}");
    }
    for literal in ["5", "5.0", "5e2", "-123456789012345678901234567890"] {
        assert_eq!(typed(integer(), true, &[literal]), Ok(format!("{{\"v\":{literal}}}")));
    }
    for text in ["5.9", "5e-1", "x"] {
        assert_eq!(typed(integer(), true, &[text]), err("must be a whole number"), "{text}");
    }
}

#[test]
fn texts_are_taken_as_they_are() {
    assert_eq!(typed(json!({"type": "string"}), true, &[" a\"\n"]), ok(r#"{"v":" a\"\n"}"#));
    assert_eq!(typed(json!({"type": "string"}), true, &["a", "b"]), err("takes one value, not several"));
}

#[test]
fn booleans_take_the_usual_words() {
    for (word, truth) in [
        ("true", true),
        ("Yes", true),
        ("on", true),
        ("1", true),
        ("FALSE", false),
        ("no", false),
        ("off", false),
        ("0", false),
    ] {
        assert_eq!(typed(json!({"type": "boolean"}), true, &[word]), Ok(format!("{{\"v\":{truth}}}")));
    }
    assert_eq!(typed(json!({"type": "boolean"}), true, &["maybe"]), err("must be yes or no"));
}

#[test]
fn nothing_typed_leaves_an_optional_field_out() {
    for property in [
        json!({"type": "string"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"enum": ["a"]}),
        json!({"type": "array", "items": {"enum": ["a"]}}),
        json!({}),
    ] {
        for raw in [&[][..], &[""]] {
            assert_eq!(typed(property.clone(), false, raw), ok("{}"), "{property}");
        }
        assert_eq!(typed(property.clone(), true, &[]), err("is required"), "{property}");
    }
    assert_eq!(typed(json!({"type": "string"}), true, &[""]), err("is required"));
    assert_eq!(typed(json!({"type": "string", "default": "x"}), true, &[]), ok("{}"));
    assert_eq!(typed(json!({"type": ["string", "null"]}), true, &[""]), ok(r#"{"v":null}"#));
    assert_eq!(typed(json!({"enum": ["", "a"]}), false, &[""]), ok(r#"{"v":""}"#));
}

#[test]
fn choices_go_by_value_then_by_label() {
    let titled = || json!({"oneOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "Bear"}, {"const": "c", "title": "Twin"}, {"const": "d", "title": "Twin"}]});
    assert_eq!(typed(titled(), true, &["b"]), ok(r#"{"v":"b"}"#));
    assert_eq!(typed(titled(), true, &["Bear"]), ok(r#"{"v":"b"}"#));
    assert_eq!(typed(titled(), true, &["bear"]), err("must be one of the listed options"));
    assert!(typed(titled(), true, &["Twin"]).expect_err("two").starts_with("names more than one option"));
    assert_eq!(typed(json!({"type": "integer", "enum": [1, 2]}), true, &["2"]), ok(r#"{"v":2}"#));
}

#[test]
fn several_choices_come_one_by_one_or_with_commas() {
    let list = || json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "Red, dark"}, {"const": "b", "title": "Blue"}]}});
    assert_eq!(typed(list(), true, &["b", "a", "b"]), ok(r#"{"v":["b","a"]}"#));
    assert_eq!(typed(list(), true, &["Red, dark"]), ok(r#"{"v":["a"]}"#));
    assert_eq!(typed(list(), true, &["a, Blue"]), ok(r#"{"v":["a","b"]}"#));
    assert_eq!(typed(list(), true, &["", "a"]), ok(r#"{"v":["a"]}"#));
    assert_eq!(typed(list(), true, &[""]), ok(r#"{"v":[]}"#));
    assert_eq!(typed(list(), true, &["a,z"]), err("must be one of the listed options"));
}

#[test]
fn anything_else_is_typed_as_json() {
    assert_eq!(typed(json!({"type": "object"}), true, &[r#" {"a": 0.10} "#]), ok(r#"{"v":{"a": 0.10}}"#));
    let message = typed(json!({"type": "object"}), true, &[r#"{"hunter2":1,"hunter2":1}"#]).expect_err("duplicate");
    assert!(message.starts_with("must be JSON: an object has two members") && !message.contains("hunter2"));
}

#[test]
fn unknown_names_are_told_the_known_ones() {
    let form = form(r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}"#);
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let errors = form.read(&[pair("c", "hunter2"), pair("a", "hunter2")]).expect_err("two errors");
    let found: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.message.as_str())).collect();
    assert_eq!(found, [("/a", "must be a number"), ("/c", "is not asked for; the fields are: b, a")]);
    assert_eq!(form.read(&[pair("a", "1"), pair("b", "x")]).expect("content").as_str(), r#"{"b":"x","a":1}"#);
}

#[test]
fn errors_name_the_field_and_never_the_value() {
    let form = form(
        r##"{"type":"object","required":["name","age"],"additionalProperties":false,"properties":{
        "name":{"type":"string","minLength":3},"age":{"type":"integer","minimum":18},"mail":{"type":"string","format":"email"},
        "color":{"oneOf":[{"const":"r"},{"const":"g"}]},"many":{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"r"},{"const":"g"}]}},
        "maybe":{"anyOf":[{"type":"string","maxLength":1},{"type":"null"}]},"a/b":{"type":"object","required":["z~"]},"code":{"type":"string","pattern":"^[a-z]+$"}}}"##,
    );
    let pair = |pointer: &str, message: &str| (pointer.to_owned(), message.to_owned());
    assert_eq!(errors(&form, "{}"), [pair("/name", "is required"), pair("/age", "is required")]);
    let all = errors(
        &form,
        r#"{"name":"ab","age":17.5,"mail":"hunter2","color":"hunter2","many":["r","hunter2"],"maybe":"hunter2","a/b":{},"code":"HUNTER2","hunter":1}"#,
    );
    for expected in [
        pair("/name", "must be at least 3 characters"),
        pair("/age", "must be a whole number"),
        pair("/mail", "must be an e-mail address, such as ada@example.com"),
        pair("/color", "must be one of the listed options"),
        pair("/many/1", "must be one of the listed options"),
        pair("/many", "must have at most 1 item"),
        pair("/maybe", "must be at most 1 character"),
        pair("/a~1b/z~0", "is required"),
        pair("/code", "must match the pattern ^[a-z]+$"),
        pair("/hunter", "is not asked for"),
    ] {
        assert!(all.contains(&expected), "{expected:?} in {all:?}");
    }
    assert!(!format!("{all:?}").to_lowercase().contains("hunter2"));
    assert_eq!(errors(&form, "[]"), [pair("", "must be an object")]);
    assert!(form.validate(&Json::parse(r#"{"name":"abc","age":18.0}"#).expect("json")).is_ok());
}

#[test]
fn the_number_of_errors_is_bounded() {
    let many: Vec<_> = (0..500).map(|_| json!("x")).collect();
    let form = form_of(json!({"type": "array", "items": {"type": "integer"}}), true);
    let found = form.validate(&Json::from_value(&json!({"v": many}))).expect_err("invalid");
    assert_eq!(found.len(), 32);
}

#[test]
fn defaults_are_filled_in_and_what_was_typed_stays() {
    let form = form(
        r##"{"type":"object","$defs":{"d":{"type":"object","properties":{"q":{"default":1}}}},"properties":{
        "a":{"type":"number","default":0.10},"b":{"type":"object","properties":{"x":{"default":"X"},"y":{"type":"string"}}},
        "c":{"type":"object","default":{"k": 1},"properties":{"z":{"default":[ ]}}},
        "d":{"$ref":"#/$defs/d"},"e":{"type":"string","default":null},"f":{"anyOf":[{"type":"object","properties":{"n":{"default":1}}}]}}}"##,
    );
    let filled = |content: &str| form.fill_defaults(&Json::parse(content).expect("json")).as_str().to_owned();
    assert_eq!(filled("{}"), r#"{"a":0.10,"c":{"k": 1,"z":[ ]}}"#);
    assert_eq!(
        filled(r#"{ "b" : { "y":"é" } , "d":{}, "f":{}, "c":{"z":1e2 }, "a" : 1.00 }"#),
        r#"{ "b" : { "y":"é","x":"X" } , "d":{}, "f":{}, "c":{"z":1e2 }, "a" : 1.00 }"#
    );
    assert_eq!(filled(r#"{"b":"not an object","a":null,"c":1}"#), r#"{"b":"not an object","a":null,"c":1}"#);
    assert_eq!(filled("[]"), "[]");
    assert!(
        form.fields().iter().all(|field| field.name != "e" || field.default.is_none()),
        "a default that its own field refuses"
    );
}

/// A property, texts that a person may type for it, and the JSON they make.
fn flat_field() -> impl Strategy<Value = (Value, String, String)> {
    let quoted = |text: &str| Json::from_text(text).as_str().to_owned();
    prop_oneof![
        "[a-zé 😀\"]{1,8}".prop_map(move |text| (json!({"type": "string", "minLength": 1, "maxLength": 8}), text.clone(), quoted(&text))),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,5})?".prop_map(|text| (json!({"type": "number"}), text.clone(), text)),
        "-?(0|[1-9][0-9]{0,25})".prop_map(|text| (json!({"type": "integer"}), text.clone(), text)),
        any::<bool>().prop_map(|truth| (json!({"type": "boolean"}), truth.to_string(), truth.to_string())),
        (0..3_usize).prop_map(move |at| (json!({"type": "string", "enum": ["a", "b", "c,d"]}), ["a", "b", "c,d"][at].to_owned(), quoted(["a", "b", "c,d"][at]))),
        (0..2_usize).prop_map(move |at| (json!({"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]}, "minItems": 1}), ["X", "Y"][at].to_owned(), format!("[{}]", quoted(["x", "y"][at])))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_for_a_flat_form_is_valid_and_exact(fields in proptest::collection::btree_map("[a-z/~é]{1,4}", flat_field(), 0..6)) {
        let properties: serde_json::Map<_, _> = fields.iter().map(|(name, (schema, ..))| (name.clone(), schema.clone())).collect();
        let required: Vec<_> = fields.keys().cloned().collect();
        let form = FormSchema::open(&Json::from_value(&json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))).expect("opens");
        let raw: Vec<_> = fields.iter().map(|(name, (_, text, _))| (name.clone(), text.clone())).collect();
        let content = form.read(&raw).expect("reads");
        for (name, (.., json)) in &fields {
            prop_assert_eq!(content.object().expect("object").get(name), Some(json.as_str()));
        }
        prop_assert_eq!(form.fill_defaults(&content), content.clone());
        prop_assert_eq!(form.validate(&content), Ok(()));
    }

    #[test]
    fn reading_arbitrary_text_never_panics_nor_repeats_it(text in "[ -~é]{12,20}", name in any::<String>()) {
        let secret = format!("~{text}~");
        for property in [json!({"type": "number"}), json!({"type": "boolean"}), json!({"enum": ["a"]}), json!({"type": "array", "items": {"enum": ["a"]}}), json!({"type": "object"})] {
            let errors = form_of(property, false).read(&[("v".to_owned(), secret.clone()), (name.clone(), String::new())]).expect_err("refused");
            prop_assert!(errors.iter().all(|error| !error.message.contains(&secret)));
        }
    }
}
