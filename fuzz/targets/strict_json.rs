//! The strict JSON reader on arbitrary bytes: it never panics, never accepts what a second reader refuses, and its
//! canonical form is a fixpoint, and splicing what is already there changes no byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_core::json::{Json, ObjectView, splice};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(json) = Json::parse(text) else {
        return;
    };
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        panic!("accepted what serde_json refuses: {error}");
    }
    let canonical = json.canonical();
    let again = Json::parse(&canonical).expect("a canonical form is strict JSON");
    assert_eq!(again.canonical(), canonical, "canonical is a fixpoint");

    let text = json.as_str();
    assert_eq!(splice(text, Vec::new()), text, "no edit, no change");
    let Some(object) = json.object() else {
        return;
    };
    for member in object.members {
        let value = &text[member.value_range];
        let same = ObjectView::with_member(text, &member.name, value);
        assert_eq!(same, text, "a member replaced by itself changes nothing");
        let without = ObjectView::without_member(text, &member.name);
        Json::parse(&without).expect("an object without a member is strict JSON");
    }
});
