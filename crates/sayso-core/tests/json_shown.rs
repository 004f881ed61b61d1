//! What people and operators are shown: nothing hidden in a text, no secret in a diagnostic.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::json::{Json, redacted, visible, visible_multiline};
use serde_json::json;

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c), 0x200B..=0x200F | 0x202A..=0x202E | 0x2060 | 0x2066..=0x2069 | 0x61C | 0xFEFF | 0xAD | 0x180E | 0xE0000..=0xE007F)
}

fn shown(value: serde_json::Value, schema: Option<serde_json::Value>) -> serde_json::Value {
    redacted(&Json::from_value(&value), schema.as_ref().map(Json::from_value).as_ref()).value()
}

#[test]
fn hidden_characters_are_made_visible() {
    assert_eq!(visible("abc\u{202e}cod.exe"), "abc⟦U+202E⟧cod.exe");
    assert_eq!(visible("a\u{e0041}\u{200b}\n\0"), "a⟦U+E0041⟧⟦U+200B⟧⟦U+000A⟧⟦U+0000⟧");
    assert_eq!(visible_multiline("a\n\tb\r"), "a\n\tb⟦U+000D⟧");
    assert!(matches!(visible("plain é 😀 שלום ❤\u{fe0f}"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn secrets_are_recognised_by_name() {
    let secret = [
        "password",
        "userPassword",
        "PASSWD",
        "client_secret",
        "access-token",
        "accesstoken",
        "apiKey",
        "X-API-Key",
        "APIKey2",
        "Authorization",
        "aws credentials",
        "card_pin",
        "PIN",
        "otp",
        "otpCode",
        "privateKey",
        "Set-Cookie",
        "sessionId",
        "session",
        "auth",
    ];
    for name in secret {
        assert_eq!(shown(json!({name: "x"}), None), json!({name: "[redacted]"}), "{name}");
    }
    for name in ["shipping", "option", "author", "spinner", "key", "obsession", "city", "pinned"] {
        assert_eq!(shown(json!({name: "x"}), None), json!({name: "x"}), "{name}");
    }
    let nested = json!({"tokens": [1, true, null, {"a": "b", "c": []}], "ok": 1});
    let expected = json!({"tokens": ["[redacted]", "[redacted]", "[redacted]", {"a": "[redacted]", "c": []}], "ok": 1});
    assert_eq!(shown(nested, None), expected);
}

#[test]
fn secrets_are_recognised_by_schema_wherever_it_may_apply() {
    let schema = json!({
        "type": "object", "$defs": {"s": {"format": "password"}},
        "properties": {
            "a": {"type": "string", "format": "password"}, "b": {"writeOnly": true}, "c": {"$ref": "#/$defs/s"},
            "d": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/s"}]}]},
            "e": {"type": "array", "items": {"properties": {"x": {"writeOnly": true}}}},
            "f": {"$ref": "#/$defs/missing"}, "g": {"$ref": "#"}, "h": {"writeOnly": false}
        },
        "patternProperties": {"^z": {"writeOnly": true}},
    });
    let content = json!({"a": "1", "b": 2, "c": "3", "d": "4", "e": [{"x": 5, "y": 6}], "f": 7, "g": {"a": 8, "h": 9}});
    // What might match a secret pattern is secret: no expression is run here.
    let hidden = "[redacted]";
    assert_eq!(
        shown(content.clone(), Some(schema.clone())),
        json!({"a": hidden, "b": hidden, "c": hidden, "d": hidden, "e": [{"x": hidden, "y": hidden}], "f": hidden, "g": {"a": hidden, "h": hidden}})
    );
    let mut open = schema;
    open.as_object_mut().expect("object").remove("patternProperties");
    assert_eq!(
        shown(content, Some(open)),
        json!({"a": hidden, "b": hidden, "c": hidden, "d": hidden, "e": [{"x": hidden, "y": 6}], "f": hidden, "g": {"a": hidden, "h": 9}})
    );
}

#[test]
fn urls_lose_user_password_query_values_and_fragment() {
    let cases = [
        (
            "https://bob:hunter2@example.com:8080/a?token=x&b=#frag",
            "https://example.com:8080/a?token=[redacted]&b=[redacted]",
        ),
        ("see (postgres://u:p@db/x) and https://h/?k", "see (postgres://db/x) and https://h/?[redacted]"),
        ("https://u:p@[::1]:80/", "https://[::1]:80/"),
        ("//u:p@h/x", "//h/x"),
        ("https:\\\\u:p@h\\x", "https:\\\\h\\x"),
        ("https://user:pass/word@h", "https://[redacted]/word@h"),
        ("https://proxy/https://u:p@h/?a=1", "https://proxy/https://h/?a=[redacted]"),
        ("what? #1 a//b", "what? #1 a//b"),
        ("https://example.com/@medium", "https://example.com/@medium"),
        ("http://a?b#c d#e?f", "http://a?[redacted] d#e?f"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(json!([text]), None), json!([expected]));
    }
    assert_eq!(shown(json!({"https://u:p@h": 1}), None), json!({"[redacted 0]": 1}));
}

#[test]
fn what_is_too_deep_or_too_entangled_is_not_shown() {
    let deep = (0..20).fold(json!("leaf"), |inner, _| json!([inner]));
    assert!(!shown(deep, None).to_string().contains("leaf"));
    let definitions: serde_json::Map<_, _> = (0..30)
        .map(|n| {
            (format!("d{n}"), json!({"properties": {"a": {"anyOf": (0..200).map(|_| json!({})).collect::<Vec<_>>()}}}))
        })
        .collect();
    let schema = json!({"allOf": (0..30).map(|n| json!({"$ref": format!("#/$defs/d{n}")})).collect::<Vec<_>>(), "$defs": definitions});
    assert_eq!(shown(json!({"a": "leaf"}), Some(schema)), json!({"a": "[redacted]"}));
}

#[test]
fn what_is_not_secret_stays_as_written() {
    let json = Json::parse(r#"{ "a": 0.10, "b": "\u00e9", "c": 123456789012345678901234567890 }"#).expect("json");
    assert_eq!(redacted(&json, None).as_str(), r#"{"a":0.10,"b":"\u00e9","c":123456789012345678901234567890}"#);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_hidden_is_left(text in any::<String>(), hidden in "[\\u{0}-\\u{1f}\\u{200b}-\\u{200f}\\u{202a}-\\u{202e}\\u{2060}-\\u{2069}\\u{feff}\\u{e0000}-\\u{e007f}a]{0,12}") {
        let text = format!("{text}{hidden}");
        prop_assert!(!visible(&text).chars().any(is_hidden));
        prop_assert!(!visible_multiline(&text).chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'));
    }

    #[test]
    fn a_password_in_a_url_never_survives(before in "[ -~]{0,12}", scheme in "[a-z]{1,5}", user in "[a-z]{0,4}", after in "[ -~]{0,12}") {
        let text = format!("{before} {scheme}://{user}:hunter2@example.com/{after}");
        let safe = redacted(&Json::from_text(&text), None);
        prop_assert!(!safe.as_str().contains("hunter2"), "{}", safe.as_str());
    }

    #[test]
    fn redacting_never_panics(text in "[\\[\\]{}:,\"\\\\ua0-9/?#@ ]{0,60}", loose in any::<String>()) {
        if let Ok(json) = Json::parse(&text) {
            redacted(&json, Some(&json));
        }
        redacted(&Json::from_text(&loose), None);
    }
}
