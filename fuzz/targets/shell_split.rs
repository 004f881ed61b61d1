//! The splitter of shell commands, and patterns on what it finds: no panic, and what a pattern allows as a whole it allows
//! in each part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_core::json::Json;
use sayso_core::policy::{Context, Decision, Layer, LayerText, Policy, RuleText, ToolName, split};

fuzz_target!(|bytes: &[u8]| {
    let Some((pattern, command)) = std::str::from_utf8(bytes).ok().and_then(|text| text.split_once('\0')) else {
        return;
    };
    let parts = split(command);
    let written = serde_json::json!([{ "at": "/command", "command": [pattern] }]);
    let Ok(when) = serde_json::from_value(written) else {
        return;
    };
    let (Ok(tool), allow) = (ToolName::parse("a:b"), RuleText::new("r", Decision::Allow, &["*:*"])) else {
        return;
    };
    let layer = LayerText::new(Layer::Operator, vec![RuleText { when, ..allow }]);
    let Ok(policy) = Policy::new(vec![layer]) else {
        return;
    };
    let is_allowed = |command: &str| {
        let arguments = Json::from_value(&serde_json::json!({ "command": command }));
        policy.evaluate(&tool, &arguments, &Context::default()).decision == Decision::Allow
    };
    if is_allowed(command) {
        for part in parts.expect("a command that cannot be split is not allowed") {
            let quoted: Vec<_> = part.words.iter().map(|word| format!("'{word}'")).collect();
            // A single quote cannot stand within single quotes.
            assert!(part.words.iter().any(|word| word.contains('\'')) || is_allowed(&quoted.join(" ")));
        }
    }
});
