//! What a grant covers, in words. Everything that it rests on is told: nobody allows what they have not seen.

use maud::{Markup, html};
use sayso::policy::{GrantScope, Pins};
use sayso::{Json, Principal};
use sayso_core::policy::{Condition, ConditionText, Effect};

use super::words;

/// The tool and how far it reaches, on one line.
pub(super) fn title(scope: &GrantScope) -> String {
    match scope {
        GrantScope::Once { .. } => "One call, as it was shown".to_owned(),
        GrantScope::Session { session, tool, .. } => {
            format!("{} in session {}", words::line(&tool.to_string()), words::line(session))
        }
        GrantScope::Rule { tools, .. } => format!("{} in every session", words::line(tools)),
    }
}

/// All of it, as the rows of a list of facts.
pub(super) fn facts(scope: &GrantScope, agent: Option<&Principal>) -> Markup {
    html! {
        @match scope {
            GrantScope::Once { .. } => {
                dt { "Calls" } dd { "The one call that was shown, with exactly what was shown" }
            }
            GrantScope::Session { session, tool, .. } => {
                dt { "Tool" } dd { code { (words::line(&tool.to_string())) } ", as long as it stays the tool that was shown" }
                dt { "Session" } dd { code { (words::line(session)) } }
            }
            GrantScope::Rule { tools, effects, .. } => {
                dt { "Tool" } dd { code { (words::line(tools)) } }
                dt { "Session" } dd { "Every session" }
                dt { "May at most" } dd {
                    @match effects {
                        Some(effects) => (effects.iter().map(Effect::as_str).collect::<Vec<_>>().join(", ")),
                        None => "do anything that the tool can",
                    }
                }
            }
        }
        dt { "Agent" } dd { @match agent { Some(agent) => (words::who(agent)), None => "Every agent" } }
        @if let Some(pins) = pins(scope) { dt { "Arguments" } dd { (arguments(pins)) } }
    }
}

/// How far the arguments are open, in a few words.
pub(super) fn openness(scope: &GrantScope) -> &'static str {
    match pins(scope) {
        None | Some(Pins::Exactly(_)) => "With these arguments alone",
        Some(Pins::Any) => "With any arguments",
        Some(Pins::When(_)) => "With arguments that meet its conditions",
    }
}

fn pins(scope: &GrantScope) -> Option<&Pins> {
    match scope {
        GrantScope::Once { .. } => None,
        GrantScope::Session { pins, .. } | GrantScope::Rule { pins, .. } => Some(pins),
    }
}

fn arguments(pins: &Pins) -> Markup {
    html! {
        @match pins {
            Pins::Any => "Any",
            Pins::Exactly(arguments) => {
                "Exactly these"
                details open { summary { "Show or hide them" } (shown(arguments)) }
            }
            Pins::When(conditions) => {
                "All of this must hold:"
                ul.conditions { @for condition in conditions { li { (holds(condition)) } } }
            }
        }
    }
}

/// The arguments that a grant is pinned to, folded away.
pub(super) fn folded(scope: &GrantScope) -> Markup {
    html! {
        @match pins(scope) {
            Some(Pins::Exactly(arguments)) => details { summary { "The arguments" } (shown(arguments)) },
            Some(Pins::When(conditions)) => {
                details {
                    summary { "The conditions" }
                    ul.conditions { @for condition in conditions { li { (holds(condition)) } } }
                }
            }
            Some(Pins::Any) | None => {}
        }
    }
}

fn shown(arguments: &Json) -> Markup {
    html! { pre tabindex="0" role="group" aria-label="Arguments" { code { (words::pretty(arguments)) } } }
}

/// One condition as a sentence without its end.
fn holds(condition: &Condition) -> Markup {
    let ConditionText { at, equals, one_of, glob, within, command, exists, only, min, max } = condition.text();
    let list = |texts: Vec<String>| {
        html! {
            @for (index, text) in texts.iter().enumerate() { @if index > 0 { ", " } code { (words::line(text)) } }
        }
    };
    let jsons = |values: &[Json]| list(values.iter().map(|value| value.as_str().to_owned()).collect());
    html! {
        @if at.is_empty() { "the arguments" } @else { code { (words::line(at)) } }
        @if let Some(value) = equals { " is " (jsons(std::slice::from_ref(value))) }
        @if let Some(values) = one_of { " is one of " (jsons(values)) }
        @if let Some(glob) = glob { " is like " (list(vec![glob.clone()])) }
        @if let Some(folder) = within { " is a path in " (list(vec![folder.clone()])) }
        @if let Some(patterns) = command { " is a command of nothing but " (list(patterns.clone())) }
        @match exists { Some(true) => " is there", Some(false) => " is absent", None => "" }
        @if let Some(names) = only {
            @if names.is_empty() { " have no members" } @else { " have no members but " (list(names.clone())) }
        }
        @if let Some(bound) = min { " is at least " (jsons(std::slice::from_ref(bound))) }
        @if min.is_some() && max.is_some() { " and" }
        @if let Some(bound) = max { " is at most " (jsons(std::slice::from_ref(bound))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_told_with_all_that_it_says() {
        for (text, said) in [
            (r#"{"at":"","only":["to","amount"]}"#, "the arguments have no members but to, amount"),
            (r#"{"at":"/amount","equals":12.50}"#, "/amount is 12.50"),
            (r#"{"at":"/land","in":["DE","FR"]}"#, r#"/land is one of &quot;DE&quot;, &quot;FR&quot;"#),
            (r#"{"at":"/branch","glob":"release-*"}"#, "/branch is like release-*"),
            (r#"{"at":"/path","within":"/srv/shop"}"#, "/path is a path in /srv/shop"),
            (
                r#"{"at":"/command","command":["npm test","git status"]}"#,
                "/command is a command of nothing but npm test, git status",
            ),
            (r#"{"at":"/force","exists":false}"#, "/force is absent"),
            (r#"{"at":"/n","min":1,"max":2}"#, "/n is at least 1 and is at most 2"),
            ("{\"at\":\"/a\u{202e}b\",\"exists\":true}", "/a⟦U+202E⟧b is there"),
        ] {
            let told = holds(&serde_json::from_str(text).unwrap()).into_string();
            assert_eq!(told.replace("<code>", "").replace("</code>", ""), said);
        }
    }
}
