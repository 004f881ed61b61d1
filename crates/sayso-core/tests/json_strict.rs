//! The strict reader: what it takes, what it refuses, and that it never shows what it read.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;
use sayso_core::json::{Json, JsonErrorKind as Kind};
use sayso_core::limits::JSON_DEPTH_CEILING;

fn kind(text: &str) -> Option<Kind> {
    Json::parse(text).err().map(|error| error.kind)
}

#[test]
fn takes_the_whole_grammar_and_keeps_it_as_written() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "0.10",
        "1e5",
        "1E-7",
        "-1.5e+3",
        "123456789012345678901234567890",
        "\"\"",
        r#""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#,
        "[]",
        "{}",
        "[ 1 , [ ] , { } ]",
        r#"{ "a" : 1 , "A" : [ null ] }"#,
        "\"\u{7f}\u{2028}\"",
    ] {
        let padded = format!(" \t\r\n{text} \n");
        assert_eq!(Json::parse(&padded).expect(text).as_str(), text);
    }
}

#[test]
fn refuses_what_the_grammar_does_not_have() {
    let cases = [
        ("", Kind::UnexpectedEnd),
        ("  ", Kind::UnexpectedEnd),
        ("{", Kind::UnexpectedEnd),
        ("[1,", Kind::UnexpectedEnd),
        ("[1,]", Kind::UnexpectedByte),
        ("{\"a\":1,}", Kind::UnexpectedByte),
        ("{a:1}", Kind::UnexpectedByte),
        ("{\"a\" 1}", Kind::UnexpectedByte),
        ("[1 2]", Kind::UnexpectedByte),
        ("[}", Kind::UnexpectedByte),
        ("{]", Kind::UnexpectedByte),
        ("nul", Kind::UnexpectedEnd),
        ("nuLl", Kind::UnexpectedByte),
        ("'a'", Kind::UnexpectedByte),
        ("NaN", Kind::UnexpectedByte),
        ("+1", Kind::UnexpectedByte),
        ("\u{feff}1", Kind::UnexpectedByte),
        ("\u{a0}1", Kind::UnexpectedByte),
        ("01", Kind::InvalidNumber),
        ("1.", Kind::UnexpectedEnd),
        ("1.e3", Kind::InvalidNumber),
        ("1e", Kind::UnexpectedEnd),
        ("-", Kind::UnexpectedEnd),
        ("-a", Kind::InvalidNumber),
        ("1.2.3", Kind::InvalidNumber),
        ("1e999", Kind::NumberOutOfRange),
        ("1 2", Kind::TrailingBytes),
        ("{}}", Kind::TrailingBytes),
        ("\"a", Kind::UnexpectedEnd),
        ("\"\n\"", Kind::ControlCharacter),
        ("\"\\x\"", Kind::InvalidEscape),
        ("\"\\u12g4\"", Kind::InvalidEscape),
        ("\"\\u12", Kind::UnexpectedEnd),
        ("\"\\ud800\"", Kind::LoneSurrogate),
        ("\"\\ud800\\n\"", Kind::LoneSurrogate),
        ("\"\\udc00\"", Kind::LoneSurrogate),
        ("\"\\ud800\\ud800\"", Kind::LoneSurrogate),
    ];
    for (text, expected) in cases {
        assert_eq!(kind(text), Some(expected), "{text:?}");
    }
}

#[test]
fn refuses_members_that_are_the_same_once_escapes_are_read() {
    assert_eq!(kind(r#"{"a":1,"a":1}"#), Some(Kind::DuplicateMember));
    assert_eq!(kind(r#"{"a":1,"\u0061":2}"#), Some(Kind::DuplicateMember));
    assert_eq!(kind(r#"[{"x":{"é":1,"\u00e9":2}}]"#), Some(Kind::DuplicateMember));
    assert_eq!(kind(r#"{"a":{"a":1},"b":{"a":1}}"#), None);
    let error = Json::parse(r#"{"hunter2":1,"hunter2":1}"#).expect_err("duplicate");
    assert_eq!(error.at_byte, 13);
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn names_are_compared_within_their_object_however_many_there_are() {
    for count in 1..40 {
        // Each holds an object of the same names, which are others than these.
        let object = |inner: &str| {
            let members: Vec<_> = (0..count).map(|n| format!("\"m{n}\":{inner}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let nested = object(&object("1"));
        assert_eq!(kind(&nested), None, "{count}");
        for repeated in 0..count {
            let outer = format!("{},\"m{repeated}\":2}}", nested.trim_end_matches('}').to_owned() + "}");
            assert_eq!(kind(&outer), Some(Kind::DuplicateMember), "{count}, {repeated}");
            let inner = nested.replacen("1}", &format!("1,\"m{repeated}\":2}}"), 1);
            assert_eq!(kind(&inner), Some(Kind::DuplicateMember), "{count}, {repeated}");
        }
    }
}

#[test]
fn bounds_bytes_and_depth() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(kind(&nested(64)), None);
    assert_eq!(kind(&nested(65)), Some(Kind::TooDeep));
    assert!(Json::parse_within(&nested(2), 4, 2).is_ok());
    assert_eq!(Json::parse_within(&nested(3), 100, 2).expect_err("depth").kind, Kind::TooDeep);
    assert_eq!(Json::parse_within("[ ]", 2, 2).expect_err("bytes").kind, Kind::TooLarge);
    let deepest = Json::parse_within(&nested(JSON_DEPTH_CEILING), 1000, usize::MAX).expect("the ceiling");
    assert_eq!(deepest.canonical(), nested(JSON_DEPTH_CEILING));
    assert!(Json::parse_within(&nested(200_000), 1_000_000, usize::MAX).is_err());
}

#[test]
fn debug_shows_the_length_only() {
    let json = Json::parse(r#"{"password":"hunter2"}"#).expect("json");
    assert_eq!(format!("{json:?}"), "Json(22 bytes)");
    assert!(!format!("{:?}", json.object()).contains("password"));
}

#[test]
fn travels_through_serde_unchanged_and_checked() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Carrier {
        content: Option<Json>,
    }
    let text = r#"{"content":{"z": 0.10, "a":123456789012345678901234567890,"\u0061b":1e2}}"#;
    let carrier: Carrier = serde_json::from_str(text).expect("carrier");
    assert_eq!(serde_json::to_string(&carrier).expect("text"), text);
    assert!(serde_json::from_str::<Carrier>(r#"{"content":null}"#).expect("null").content.is_none());
    let refused = serde_json::from_str::<Carrier>(r#"{"content":{"hunter2":1,"hunter2":2}}"#).err().expect("duplicate");
    assert!(!refused.to_string().contains("hunter2"));
    let from_value: Carrier = serde_json::from_value(serde_json::json!({"content": [1, "a"]})).expect("value");
    assert_eq!(from_value.content.expect("content").as_str(), r#"[1,"a"]"#);
}

/// `serde_json` gives this member name a meaning: its text would be read as the value itself.
#[test]
fn no_member_name_changes_what_the_value_is() {
    let text = r#"{"$serde_json::private::RawValue":"{\"approved\":true}"}"#;
    let value = Json::parse(text).expect("json").value();
    assert_eq!(value.as_object().expect("object").len(), 1);
    assert!(value.get("approved").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics_and_agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\ua0-9eE.+\\- ntrfls]{0,40}") {
        if let Ok(json) = Json::parse(&text) {
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("ours is stricter"), json.value());
        }
    }

    #[test]
    fn reading_arbitrary_text_never_panics(text in any::<String>(), bytes in 0..40_usize, depth in 0..4_usize) {
        let _ = Json::parse(&text);
        let _ = Json::parse_within(&text, bytes, depth);
    }

    #[test]
    fn numbers_read_as_serde_json_reads_them(number in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?") {
        let ours = Json::parse(&number);
        let theirs = serde_json::from_str::<serde_json::Value>(&number);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.value(), theirs);
        }
    }
}
