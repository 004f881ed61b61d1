//! Recorded coverage of another system's grants (`tests/data/blobhub_grants.jsonl`): a stored `tool:command` against a
//! requested one, `/w/out` being a link that leaves the work folder `/w`.

use sayso_core::policy::{CommandPattern, ConditionText, GrantedCall, Pins, WorkFolder};
use serde_json::{Value, json};

use crate::granting::{Called, NOW, grant, session};

const VECTORS: &str = include_str!("../data/blobhub_grants.jsonl");

/// A grant for the command of `tool:command`, word for word, or for exactly no arguments at all (BH-19: a grant names
/// its call).
fn pins(command: Option<&str>) -> Pins {
    let Some(command) = command else {
        return Pins::Exactly(crate::json("{}"));
    };
    match CommandPattern::text_of(command) {
        Some(pattern) => {
            let text = ConditionText { at: "/command".to_owned(), command: Some(vec![pattern]), ..Default::default() };
            Pins::When(vec![text.try_into().unwrap()])
        }
        None => Pins::Exactly(crate::json(&json!({ "command": command }).to_string())),
    }
}

#[test]
fn commands_are_covered_as_recorded_or_more_strictly() {
    let mut counts = [0; 3];
    for line in VECTORS.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let text = |member: &str| vector[member].as_str().unwrap().to_owned();
        let (stored, requested, folder) = (text("stored"), text("requested"), text("work_folder"));
        let split = |call: &str| match call.split_once(':') {
            Some((tool, command)) => (format!("h:{tool}"), Some(command.to_owned())),
            None => (format!("h:{call}"), None),
        };
        let ((stored_tool, stored_command), (tool, command)) = (split(&stored), split(&requested));
        let arguments = command.map_or(json!({}), |command| json!({ "command": command }));
        let called = Called::new(&tool, &arguments.to_string());
        let stays = |path: &str| path != "/w/out" && !path.starts_with("/w/out/");
        let work_folder = WorkFolder::new(&folder, &stays).ok();
        let call = GrantedCall { work_folder: work_folder.as_ref(), ..called.call() };
        let covered = grant(session(&stored_tool, pins(stored_command.as_deref()))).covers(&call, NOW).is_ok();

        let recorded = vector["result"].as_bool().unwrap();
        let (at, expected) = match vector["follow"].as_str().unwrap() {
            "yes" => (0, recorded),
            // BH-19: exactly no arguments is what was granted. BH-23: a line break within quotes.
            "may" => (1, vector["should"].as_bool().unwrap_or(recorded)),
            _ => (2, vector["should"].as_bool().unwrap()),
        };
        counts[at] += 1;
        assert_eq!(covered, expected, "{line}");
    }
    assert_eq!(counts, [26, 2, 2], "vectors by whether they are followed");
}
