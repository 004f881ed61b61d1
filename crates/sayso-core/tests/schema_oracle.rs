//! Recorded answers of another system and of a reference validator (`tests/data/m3_validation.jsonl`), as far as they
//! are about the content of a form.
//!
//! `follow` says whether the other system is to be reproduced (`yes`), may be (`may`), or was wrong and `should` says
//! what is right (`no`). `spec_2020_12_with_formats` is the reference validator's word.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use sayso_core::json::Json;
use sayso_core::schema::FormSchema;

const VECTORS: &str = include_str!("data/m3_validation.jsonl");

/// Right by the specification, but references by anchor or to another identifier are refused when the round opens:
/// only `#/…` is supported (`docs/rounds.md`, "Responses and validation").
const REFUSED_BY_DESIGN: [&str; 2] = ["ref/anchor", "ref/id_inside"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Refused,
    Valid,
    Invalid,
}

fn outcome(schema: &str, content: &str) -> Outcome {
    let Ok(form) = FormSchema::open(&Json::parse(schema).expect("schema")) else {
        return Outcome::Refused;
    };
    match form.validate(&form.fill_defaults(&Json::parse(content).expect("content"))) {
        Ok(()) => Outcome::Valid,
        Err(errors) => {
            assert!(!errors.is_empty());
            Outcome::Invalid
        }
    }
}

#[test]
fn form_content_is_judged_as_recorded_or_better() {
    let mut judged = 0;
    for line in VECTORS.lines() {
        let vector = Json::parse(line).expect("vector");
        let view = vector.object().expect("object");
        let word = |name: &str| view.get(name).map(|text| text.trim_matches('"').to_owned()).unwrap_or_default();
        let Some(schema) = view.get("schema") else {
            continue;
        };
        let response = Json::parse(view.get("response").expect("response")).expect("response");
        let response = response.object().expect("object");
        let content = match (response.get("action"), response.get("content")) {
            (Some("\"accept\""), Some(content)) if content != "null" => content,
            _ => continue,
        };
        let (name, follow, should) = (word("name"), word("follow"), word("should"));
        let found = outcome(schema, content);
        let recorded = if word("valid") == "true" { Outcome::Valid } else { Outcome::Invalid };
        let by_should = match should.as_str() {
            "valid" => Some(Outcome::Valid),
            "invalid" => Some(Outcome::Invalid),
            "refused when the round opens" => Some(Outcome::Refused),
            _ => None,
        };
        let expected = match follow.as_str() {
            "yes" if REFUSED_BY_DESIGN.contains(&name.as_str()) => vec![Outcome::Refused],
            // An unknown member or a missing action is the response's matter, not the content's.
            "yes" if name == "action/unknown_member" => vec![Outcome::Valid],
            "yes" => vec![recorded],
            "no" => vec![by_should.expect(&name)],
            // Binary floats there, decimals here: 0.3 is a multiple of 0.1.
            _ if name.starts_with("multiple_of_tenth/") => vec![Outcome::Valid],
            _ => vec![recorded, by_should.unwrap_or(Outcome::Refused)],
        };
        assert!(expected.contains(&found), "{name}: {found:?}, expected {expected:?}");
        let specified = word("spec_2020_12_with_formats");
        let comparable = matches!(specified.as_str(), "true" | "false");
        // Defaults are no part of validation, and that validator divides in binary.
        let ours_alone = name.starts_with("default/") || (follow == "may" && name.starts_with("multiple_of_tenth/"));
        if found != Outcome::Refused && comparable && !ours_alone {
            assert_eq!(found == Outcome::Valid, specified == "true", "{name}");
        }
        judged += 1;
    }
    assert_eq!(judged, 101, "form vectors");
}
