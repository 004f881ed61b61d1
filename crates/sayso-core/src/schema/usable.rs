//! The one predicate on schemas of typed tool input, used at capture and again when read back.

use crate::json::{Json, Kind};

/// The schema of a tool's typed input: what a person adds to a call that the agent proposed.
pub struct InputSchema;

/// Keywords that could declare keys elsewhere than in `properties`, so that the person's keys would not be known.
const UNDECLARED: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "unevaluatedProperties"];

impl InputSchema {
    /// Whether a schema names the keys a person fills in (`docs/rounds.md`, "Responses and validation"): `type` is `object`,
    /// `properties` is an object with members, every `required` is one of them, and nothing at the top declares others.
    pub fn is_usable(schema: &Json) -> bool {
        let tree = schema.tree();
        let Some(properties) = tree.get("properties") else {
            return false;
        };
        let requires_only_declared = match tree.get("required").map(|required| &required.kind) {
            None => true,
            Some(Kind::Array(names)) => {
                names.iter().all(|name| name.text().is_some_and(|name| properties.get(name).is_some()))
            }
            Some(_) => false,
        };
        tree.get("type").and_then(|kind| kind.text()) == Some("object")
            && !properties.members().is_empty()
            && requires_only_declared
            && UNDECLARED.iter().all(|keyword| tree.get(keyword).is_none())
    }
}
