//! What may be asked: the gate, and the fields that come out of it.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::json::{Json, JsonErrorKind};
use sayso_core::limits;
use sayso_core::schema::{ChoiceOption, Field, FieldKind, FormSchema, InputSchema, SchemaError, TextFormat};
use serde_json::{Value, json};

fn open(schema: Value) -> Result<FormSchema, SchemaError> {
    FormSchema::open(&Json::from_value(&schema))
}

fn refused_at(schema: Value) -> String {
    let error = open(schema).expect_err("must be refused");
    assert!(!error.message.is_empty());
    error.pointer
}

fn with_property(property: Value) -> Value {
    json!({"type": "object", "properties": {"v": property}})
}

fn kind_of(property: Value) -> FieldKind {
    open(with_property(property)).expect("opens").fields()[0].kind.clone()
}

fn options(kind: FieldKind) -> Vec<(String, String)> {
    match kind {
        FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => {
            options.into_iter().map(|ChoiceOption { value, label }| (value.as_str().to_owned(), label)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_checked_is_refused_with_the_place() {
    let cases = [
        (json!([]), ""),
        (json!({"properties": {}}), ""),
        (json!({"type": "array"}), "/type"),
        (json!({"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}), "/$schema"),
        (json!({"type": "object", "$schema": 1}), "/$schema"),
        (with_property(json!({"type": "str"})), "/properties/v/type"),
        (with_property(json!({"type": "string", "pattern": "("})), "/properties/v/pattern"),
        (with_property(json!({"type": "string", "pattern": "^(?=a)"})), "/properties/v/pattern"),
        (with_property(json!({"type": "string", "pattern": "(a)\\1"})), "/properties/v/pattern"),
        (with_property(json!({"type": "string", "pattern": "(?:a{1000}){1000}"})), "/properties/v/pattern"),
        (json!({"type": "object", "patternProperties": {"(?!a)": {}}}), "/patternProperties/(?!a)"),
        (with_property(json!({"minLength": "2"})), "/properties/v/minLength"),
        (with_property(json!({"minLength": 3, "maxLength": 2})), "/properties/v/minLength"),
        (with_property(json!({"minimum": 1, "exclusiveMaximum": 1})), "/properties/v/minimum"),
        (with_property(json!({"enum": []})), "/properties/v/enum"),
    ];
    for (schema, pointer) in cases {
        assert_eq!(refused_at(schema.clone()), pointer, "{schema}");
    }
}

#[test]
fn only_references_within_the_schema_are_followed() {
    let cases = [
        (with_property(json!({"$ref": "#/$defs/none"})), "/properties/v/$ref"),
        (with_property(json!({"$ref": "https://example.com/s.json"})), "/properties/v/$ref"),
        (with_property(json!({"$ref": "file:///etc/passwd"})), "/properties/v/$ref"),
        (with_property(json!({"$ref": "#anchor"})), "/properties/v/$ref"),
        (with_property(json!({"$ref": "#/properties/v"})), "/properties/v"),
        (with_property(json!({"$dynamicRef": "#a"})), "/properties/v/$dynamicRef"),
        (with_property(json!({"$id": "https://example.com/inner"})), "/properties/v/$id"),
        (with_property(json!({"items": [{"type": "string"}]})), "/properties/v/items"),
        (json!({"type": "object", "required": "ab"}), "/required"),
        (json!({"type": "object", "properties": {"a/b": 5}}), "/properties/a~1b"),
        (json!({"type": "object", "allOf": [{"$ref": "#"}]}), ""),
    ];
    for (schema, pointer) in cases {
        assert_eq!(refused_at(schema.clone()), pointer, "{schema}");
    }
}

#[test]
fn an_integer_that_would_be_compared_inexactly_is_refused() {
    for keyword in ["const", "minimum", "multipleOf"] {
        let text =
            format!(r#"{{"type":"object","properties":{{"v":{{"{keyword}":123456789012345678901234567890}}}}}}"#);
        let error = FormSchema::open(&Json::parse(&text).expect("json")).expect_err("refused");
        assert_eq!(error.pointer, format!("/properties/v/{keyword}"));
    }
    let text = r#"{"type":"object","properties":{"v":{"oneOf":[{"const":123456789012345678901234567890}]}}}"#;
    let error = FormSchema::open(&Json::parse(text).expect("json")).expect_err("refused");
    assert_eq!(error.pointer, "/properties/v/oneOf/0/const");
}

#[test]
fn the_gate_bounds_size_depth_and_expansion() {
    assert_eq!(refused_at(json!({"type": "object", "description": "x".repeat(70_000)})), "");
    let deep = (0..8).fold(json!({"type": "string"}), |inner, _| json!({"properties": {"a": inner}}));
    assert_eq!(refused_at(json!({"type": "object", "properties": {"v": deep}})), "");
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("p{n}"), json!({}))).collect();
    assert_eq!(refused_at(json!({"type": "object", "properties": many})), "/properties");
    let some: serde_json::Map<_, _> = (0..64).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    assert!(open(json!({"type": "object", "properties": some.clone()})).is_ok());
    let groups: serde_json::Map<_, _> = (0..5).map(|n| (format!("g{n}"), json!({"properties": some}))).collect();
    assert!(refused_at(json!({"type": "object", "properties": groups})).contains("/properties/p"));
    let patterns: Vec<_> = (0..65).map(|n| json!({"pattern": format!("a{n}")})).collect();
    assert_eq!(refused_at(json!({"type": "object", "anyOf": patterns})), "/anyOf/64/pattern");
    let countries: Vec<_> =
        (0..250).map(|n| json!({"const": format!("c{n}"), "title": format!("Country {n}")})).collect();
    let two_lists = json!({"type": "object", "properties": {"from": {"oneOf": countries}, "to": {"oneOf": countries}}});
    assert!(open(two_lists).is_ok());
}

/// 26 definitions that each name the one before twice took the validator 2^25 steps.
#[test]
fn references_that_double_are_refused_and_plain_recursion_is_not() {
    let doubling = |levels: usize, below: fn(Value) -> Value| {
        let mut definitions = serde_json::Map::new();
        definitions.insert("d0".into(), json!({"type": "string"}));
        for level in 1..levels {
            let before = below(json!({"$ref": format!("#/$defs/d{}", level - 1)}));
            definitions.insert(format!("d{level}"), json!({"anyOf": [before, before]}));
        }
        json!({"type": "object", "$defs": definitions, "properties": {"v": {"$ref": format!("#/$defs/d{}", levels - 1)}}})
    };
    assert!(open(doubling(26, |before| before)).is_err());
    assert!(open(doubling(26, |before| json!({"items": before}))).is_err());
    assert!(open(doubling(6, |before| before)).is_ok());
    let either = json!({"type": "object", "anyOf": [{"properties": {"v": {"$ref": "#"}}}, {"properties": {"v": {"$ref": "#"}}}]});
    assert!(open(either).is_err(), "doubles with every level of the answer");
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "more": {"type": "array", "items": {"$ref": "#"}}}});
    assert!(open(tree).is_ok());
    let mutual = json!({"type": "object", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}});
    assert!(open(mutual).is_err());
}

#[test]
fn what_real_servers_send_is_taken() {
    let zod = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
        "properties": {"a": {"type": "string", "pattern": "^\\d+$", "x-order": 1}}, "required": ["a"]});
    let form = open(zod).expect("draft-07");
    assert!(form.validate(&Json::parse(r#"{"a":"12"}"#).expect("json")).is_ok());
    assert!(form.validate(&Json::parse("{\"a\":\"12\\n\"}").expect("json")).is_err());
    assert!(form.validate(&Json::parse("{\"a\":\"٣\"}").expect("json")).is_err(), "digits are ASCII in ECMA-262");
    assert!(open(json!({"type": "object"})).expect("confirm only").fields().is_empty());
    assert!(open(json!({"$id": "https://example.com/root", "type": ["object", "null"], "properties": {"v": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": {"type": "string"}}})).is_ok());
    assert!(open(with_property(json!({"type": "string", "format": "no-such-format", "unknown": [1]}))).is_ok());
}

#[test]
fn fields_keep_the_askers_order_words_and_numbers() {
    let text = r#"{"type":"object","required":["b"],"properties":{
        "b":{"type":"number","title":"Bee","description":"how much","minimum":0.10,"exclusiveMaximum":1e2,"multipleOf":0.10,"default":0.50},
        "a":{"type":"string","minLength":2,"maxLength":4.0,"pattern":"x","format":"date-time"},
        "c":{"type":"boolean"}, "d":{"type":"integer","maximum":9007199254740993}, "e":{"type":"object"}, "f":true}}"#;
    let form = FormSchema::open(&Json::parse(text).expect("json")).expect("opens");
    let names: Vec<_> = form.fields().iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c", "d", "e", "f"]);
    let bee = &form.fields()[0];
    assert_eq!((bee.title.as_deref(), bee.description.as_deref(), bee.required), (Some("Bee"), Some("how much"), true));
    assert_eq!(bee.default.as_ref().map(Json::as_str), Some("0.50"));
    let number = |literal: &str| Some(literal.to_owned());
    let expected = FieldKind::Number {
        integer: false,
        minimum: number("0.10"),
        maximum: None,
        exclusive_minimum: None,
        exclusive_maximum: number("1e2"),
        multiple_of: number("0.10"),
    };
    assert_eq!(bee.kind, expected);
    let text = FieldKind::Text {
        min_length: Some(2),
        max_length: Some(4),
        pattern: Some("x".into()),
        format: Some(TextFormat::DateTime),
    };
    assert_eq!(form.fields()[1].kind, text);
    assert_eq!(form.fields()[2].kind, FieldKind::Boolean);
    assert!(
        matches!(&form.fields()[3].kind, FieldKind::Number { integer: true, maximum: Some(max), .. } if max == "9007199254740993")
    );
    assert_eq!(form.fields()[4].kind, FieldKind::Json);
    assert_eq!(form.fields()[5].kind, FieldKind::Json);
    assert!(!form.fields()[0].required || !form.fields()[1].required);
}

#[test]
fn every_spelling_of_a_choice_is_read() {
    let pair = |value: &str, label: &str| (value.to_owned(), label.to_owned());
    let titled = vec![pair("\"a\"", "Apple"), pair("\"b\"", "Bear")];
    let plain = vec![pair("\"a\"", "a"), pair("\"b\"", "b")];
    let constants = json!([{"const": "a", "title": "Apple"}, {"const": "b", "title": "Bear"}]);
    assert_eq!(options(kind_of(json!({"type": "string", "enum": ["a", "b"]}))), plain);
    assert_eq!(options(kind_of(json!({"type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bear"]}))), titled);
    assert_eq!(options(kind_of(json!({"type": "string", "enum": ["a", "b"], "enumNames": ["Apple"]}))), plain);
    assert_eq!(options(kind_of(json!({"type": "string", "oneOf": constants}))), titled);
    assert_eq!(options(kind_of(json!({"anyOf": constants}))), titled);
    let several = |items: Value| json!({"type": "array", "items": items, "minItems": 1, "maxItems": 2});
    for items in
        [json!({"type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bear"]}), json!({"anyOf": constants})]
    {
        let kind = kind_of(several(items));
        assert!(matches!(kind, FieldKind::MultiChoice { min_items: Some(1), max_items: Some(2), .. }));
        assert_eq!(options(kind), titled);
    }
    assert_eq!(
        options(kind_of(json!({"enum": [1, 2.50, true, null]}))),
        [pair("1", "1"), pair("2.5", "2.5"), pair("true", "true"), pair("null", "null")]
    );
    assert_eq!(options(kind_of(json!({"const": "a"}))), [pair("\"a\"", "a")]);
    assert_eq!(kind_of(json!({"enum": [[1], 2]})), FieldKind::Json);
    assert_eq!(kind_of(json!({"type": "array", "items": {"type": "string"}})), FieldKind::Json);
    assert_eq!(kind_of(json!({"oneOf": [{"const": 1}, {"type": "string"}]})), FieldKind::Json);
}

#[test]
fn references_and_nullable_spellings_are_seen_through() {
    let schema = json!({"type": "object", "$defs": {"color": {"title": "Color", "type": "string", "enum": ["red"]}}, "properties": {
        "a": {"$ref": "#/$defs/color"}, "b": {"anyOf": [{"$ref": "#/$defs/color"}, {"type": "null"}], "default": null},
        "c": {"type": ["integer", "null"]}, "d": {"type": ["integer", "string"]}}});
    let form = open(schema).expect("opens");
    assert!(matches!(form.fields()[0].kind, FieldKind::Choice { .. }));
    assert_eq!(form.fields()[0].title.as_deref(), Some("Color"));
    assert!(matches!(form.fields()[1].kind, FieldKind::Choice { .. }));
    assert_eq!(form.fields()[1].default.as_ref().map(Json::as_str), Some("null"));
    assert!(matches!(form.fields()[2].kind, FieldKind::Number { integer: true, .. }));
    assert_eq!(form.fields()[3].kind, FieldKind::Json);
}

#[test]
fn typed_tool_input_is_usable_only_if_its_keys_are_declared() {
    let usable = |schema: Value| InputSchema::is_usable(&Json::from_value(&schema));
    assert!(usable(json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})));
    assert!(usable(json!({"type": "object", "properties": {"city": {"anyOf": [{}]}}})));
    for schema in [
        json!({}),
        json!(true),
        json!({"properties": {"a": {}}}),
        json!({"type": "object"}),
        json!({"type": "form", "properties": {"a": {}}}),
        json!({"type": ["object"], "properties": {"a": {}}}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": ["a"]}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["b"]}),
        json!({"type": "object", "properties": {"a": {}}, "required": "a"}),
        json!({"type": "object", "properties": {"a": {}}, "required": [1]}),
    ] {
        assert!(!usable(schema.clone()), "{schema}");
    }
    for keyword in [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "patternProperties",
        "dependentSchemas",
        "unevaluatedProperties",
        "$ref",
    ] {
        assert!(!usable(json!({"type": "object", "properties": {"a": {}}, keyword: {}})), "{keyword}");
    }
}

#[test]
fn debug_shows_no_values() {
    let form = open(with_property(json!({"type": "string", "default": "hunter2"}))).expect("opens");
    assert!(!format!("{form:?} {:?}", form.fields()).contains("hunter2"));
    assert_eq!(Json::parse("{").expect_err("json").kind, JsonErrorKind::UnexpectedEnd);
}

fn any_schema() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("anyOf"),
        Just("$ref"),
        Just("enum"),
        Just("const"),
        Just("required"),
        Just("pattern"),
        Just("default"),
        Just("$defs"),
        Just("minimum"),
        Just("format"),
        Just("additionalProperties"),
        Just("a"),
        Just("not"),
        Just("$id"),
        Just("$anchor"),
        Just("unevaluatedProperties"),
        Just("dependencies"),
        Just("contains"),
    ];
    let leaf = prop_oneof![
        Just(json!("object")),
        Just(json!("string")),
        Just(json!("#")),
        Just(json!("#/$defs/a")),
        Just(json!("#/properties/a")),
        Just(json!(true)),
        Just(json!(["a"])),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z()\\[\\]?*+{}\\\\^$|.0-9]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::btree_map(word.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn opening_and_answering_never_panics(mut schema in any_schema(), content in any_schema()) {
        if let Some(members) = schema.as_object_mut() {
            members.insert("type".into(), json!("object"));
        }
        if let Ok(form) = open(schema) {
            let content = Json::from_value(&content);
            let filled = form.fill_defaults(&content);
            prop_assert_eq!(form.fill_defaults(&filled), filled.clone());
            if let Err(errors) = form.validate(&filled) {
                prop_assert!(!errors.is_empty() && errors.len() <= 32);
            }
        }
    }
}

#[test]
fn objects_are_groups_and_lists_of_objects_are_rows_where_fields_can_give_all_of_them() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let names = |fields: &[Field]| fields.iter().map(|field| (field.name.clone(), field.required)).collect::<Vec<_>>();
    let FieldKind::Group { fields } = kind_of(object.clone()) else { panic!("a group") };
    assert_eq!(names(&fields), [("a".to_owned(), true)]);
    let kind = kind_of(json!({"type": "array", "items": object, "minItems": 1, "maxItems": 3}));
    let FieldKind::Rows { fields, min_items: Some(1), max_items: Some(3) } = kind else { panic!("rows") };
    assert_eq!(names(&fields), [("a".to_owned(), true)]);
    for (keyword, value) in [
        ("additionalProperties", json!({"type": "string"})),
        ("patternProperties", json!({"^x": {}})),
        ("allOf", json!([{}])),
        ("if", json!({})),
        ("required", json!(["b"])),
        ("default", json!({"a": "x"})),
        ("properties", json!({})),
        ("const", json!({"a": "x"})),
    ] {
        let mut odd = object.clone();
        odd[keyword] = value;
        assert_eq!(kind_of(odd), FieldKind::Json, "{keyword}");
    }
    let optional = json!({"anyOf": [object, {"type": "null"}], "default": null});
    assert!(matches!(kind_of(optional), FieldKind::Group { .. }));
}

#[test]
fn groups_end_at_their_depth_and_their_number_and_defaults_follow_what_is_filled_in() {
    let mut deep = json!({"type": "object", "properties": {"x": {"type": "string", "default": "d"}}});
    for _ in 0..4 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    let form = open(deep).expect("opens");
    let (mut fields, mut depth) = (form.fields(), 0);
    while let FieldKind::Group { fields: inner } = &fields[0].kind {
        (fields, depth) = (inner, depth + 1);
    }
    assert_eq!((depth, &fields[0].kind), (limits::FORM_DEPTH_MAX, &FieldKind::Json));

    let nested = json!({"type": "object", "properties": {"x": {"type": "string", "default": "d"}}});
    let schema =
        json!({"type": "object", "$defs": {"n": nested}, "properties": {"own": nested, "ref": {"$ref": "#/$defs/n"}}});
    let form = open(schema).expect("opens");
    let default = |at: usize| match &form.fields()[at].kind {
        FieldKind::Group { fields } => fields[0].default.is_some(),
        _ => panic!("a group"),
    };
    assert!(default(0) && !default(1), "through a reference nothing is filled in, and nothing is promised");

    let property = json!({"type": "string"});
    let many: serde_json::Map<_, _> = (0..40).map(|at| (format!("p{at}"), property.clone())).collect();
    let many = json!({"type": "object", "properties": many});
    let form =
        open(json!({"type": "object", "properties": {"a": many, "b": many, "c": many, "d": many}})).expect("opens");
    let groups = form.fields().iter().filter(|field| matches!(field.kind, FieldKind::Group { .. })).count();
    assert_eq!(groups, 3, "{} fields in all", limits::FORM_FIELDS_MAX);
}
