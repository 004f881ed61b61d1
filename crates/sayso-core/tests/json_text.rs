//! Canonical text, and changing one member while every other byte stays.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::json::{Json, ObjectView, splice};

fn canonical(text: &str) -> String {
    Json::parse(text).expect("json").canonical()
}

#[test]
fn canonical_orders_by_utf16_and_keeps_numbers_as_written() {
    assert_eq!(canonical(r#"{ "b" : 1.0 , "a" : [ 1, 0.10, 1E2, -0 ] }"#), r#"{"a":[1,0.10,1E2,-0],"b":1.0}"#);
    assert_ne!(canonical("1"), canonical("1.0"));
    assert_ne!(canonical("12345678901234567890123"), canonical("12345678901234567890124"));
    // The order example of RFC 8785, section 3.2.3: UTF-16 puts the emoji before the Hebrew presentation form.
    let mixed = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
    assert_eq!(canonical(mixed), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
}

#[test]
fn canonical_escapes_what_must_be_and_no_more() {
    let text = r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\b\f\t\u001b""#;
    assert_eq!(canonical(text), "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\\b\\f\\t\\u001b\"");
}

#[test]
fn a_member_is_found_with_its_exact_place() {
    let text = r#"{ "a" : 0.10 ,"\u0062":[1, {"a":2}], "c":"x"}"#;
    let view = ObjectView::read(text).expect("object");
    let names: Vec<_> = view.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(view.get("a"), Some("0.10"));
    assert_eq!(view.get("b"), Some(r#"[1, {"a":2}]"#));
    assert_eq!(view.get("c"), Some("\"x\""));
    assert_eq!(view.get("d"), None);
    assert_eq!(&text[view.members[1].name_range.clone()], r#""\u0062""#);
    assert_eq!(view.get_range("a"), Some(8..12));
    assert!(ObjectView::read("[1]").is_none());
    assert!(ObjectView::read("").is_none());
}

#[test]
fn one_member_changes_and_every_other_byte_stays() {
    let text = "{\n  \"id\" : 123456789012345678901234567890,\n  \"params\" : { } ,\n  \"x\": 0.10\n}";
    assert_eq!(ObjectView::with_member(text, "params", "[1]"), text.replace("{ }", "[1]"));
    assert_eq!(ObjectView::with_member(text, "x", "1"), text.replace("0.10", "1"));
    assert_eq!(ObjectView::with_member(text, "n\"w", "null"), text.replace("0.10\n", "0.10,\"n\\\"w\":null\n"));
    assert_eq!(ObjectView::with_member("{ }", "a", "1"), "{\"a\":1 }");
    assert_eq!(ObjectView::with_member("[]", "a", "1"), "[]");
    assert_eq!(
        ObjectView::without_member(text, "id"),
        text.replace("\"id\" : 123456789012345678901234567890,\n  ", "")
    );
    assert_eq!(ObjectView::without_member(text, "x"), text.replace(" ,\n  \"x\": 0.10", " ").replace("{ } ", "{ }"));
    assert_eq!(ObjectView::without_member("{ \"a\" : 1 }", "a"), "{  }");
    assert_eq!(ObjectView::without_member(text, "none"), text);
}

#[test]
fn splice_leaves_out_edits_it_cannot_make() {
    assert_eq!(splice("abcdef", vec![(4..5, "E".into()), (0..1, "A".into()), (2..2, "+".into())]), "Ab+cdEf");
    assert_eq!(splice("abc", vec![(0..2, "x".into()), (1..3, "y".into()), (9..10, "z".into())]), "xc");
    assert_eq!(splice("é", vec![(0..1, "x".into())]), "é");
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_is_a_fixpoint_and_the_same_value(value in any_json()) {
        let json = Json::from_value(&value);
        prop_assert_eq!(&json.value(), &value);
        let once = Json::parse(&json.canonical()).expect("canonical text is JSON");
        prop_assert_eq!(once.canonical(), once.as_str());
        prop_assert_eq!(once.value(), value);
    }

    #[test]
    fn splicing_nothing_is_identity_and_never_panics(
        text in any::<String>(), edits in proptest::collection::vec((0..20_usize, 0..20_usize), 0..5),
    ) {
        prop_assert_eq!(splice(&text, Vec::new()), text.clone());
        splice(&text, edits.into_iter().map(|(start, end)| (start..end, "x".to_owned())).collect());
    }

    #[test]
    fn views_of_arbitrary_text_never_panic(text in "[\\[\\]{}:,\"\\\\ua0-9é ]{0,40}") {
        ObjectView::with_member(&text, "a", "1");
        ObjectView::without_member(&text, "a");
    }

    #[test]
    fn a_member_set_is_read_back_and_taken_out_again(
        members in proptest::collection::btree_map("[a-cé\"]{0,3}", any_json(), 0..5), name in "[a-cé\"]{0,3}",
    ) {
        let text = Json::from_value(&serde_json::Value::Object(members.clone().into_iter().collect()));
        let with = ObjectView::with_member(text.as_str(), &name, "0.10");
        let with = Json::parse(&with).expect("still JSON");
        prop_assert_eq!(with.object().expect("object").get(&name), Some("0.10"));
        let without = ObjectView::without_member(with.as_str(), &name);
        let without = Json::parse(&without).expect("still JSON").value();
        let expected: serde_json::Map<_, _> = members.into_iter().filter(|(known, _)| *known != name).collect();
        prop_assert_eq!(without, serde_json::Value::Object(expected));
    }
}
