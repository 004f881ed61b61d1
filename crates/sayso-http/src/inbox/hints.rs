//! What stands beside a control: what the asker says of it, what fits, and what its default is, in words.

use maud::{Markup, html};
use sayso::Json;
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

use super::words;

/// The default as a text control holds it.
pub(super) fn default_text(field: &Field) -> String {
    match &field.default {
        None => String::new(),
        Some(default) => match (&field.kind, default.value().as_str()) {
            (FieldKind::Json, _) => words::pretty(default),
            (_, Some(text)) => text.to_owned(),
            (_, None) => default.as_str().to_owned(),
        },
    }
}

/// Whether an option is the default, or one of several.
pub(super) fn is_default(field: &Field, option: &ChoiceOption) -> bool {
    let Some(default) = &field.default else { return false };
    match default.value() {
        serde_json::Value::Array(items) => items.contains(&option.value.value()),
        value => value == option.value.value(),
    }
}

/// The words beside a control. `schema` is the field's own, as the asker wrote it.
pub(super) fn hint(id: &str, field: &Field, schema: Option<&Json>) -> Option<Markup> {
    let description = field.description.as_deref().filter(|text| !text.trim().is_empty());
    let limits = limits(field);
    let schema = schema.filter(|_| matches!(field.kind, FieldKind::Json));
    let is_grouped = matches!(field.kind, FieldKind::Group { .. } | FieldKind::Rows { .. });
    // The default of a group is that there is none, or that its fields have theirs.
    let default = field.default.as_ref().filter(|_| !is_grouped);
    if description.is_none() && limits.is_none() && default.is_none() && schema.is_none() {
        return None;
    }
    Some(html! {
        div.hint id=(format!("{id}-hint")) {
            @if let Some(text) = description { p.multiline { (words::lines(text)) } }
            @if let Some(text) = limits { p { (text) } }
            @if default.is_some() {
                p { (default_note(id, field)) code { (words::line(&default_said(field))) } }
            }
        }
        @if let Some(schema) = schema {
            details { summary { "What is allowed" } pre tabindex="0" { code { (words::pretty(schema)) } } }
        }
    })
}

/// What leaving the field alone comes to. Radio buttons that are marked stay marked.
fn default_note(id: &str, field: &Field) -> &'static str {
    match field.kind {
        FieldKind::MultiChoice { .. } => "If you choose none, the default applies: ",
        _ if super::problems::focus(id, field) != id => "The default is: ",
        _ => "If you leave this empty, the default applies: ",
    }
}

/// The default in the words of its options.
fn default_said(field: &Field) -> String {
    let options = match &field.kind {
        FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => options.as_slice(),
        FieldKind::Boolean => {
            let is_yes = field.default.as_ref().is_some_and(|default| default.as_str() == "true");
            return if is_yes { "Yes" } else { "No" }.to_owned();
        }
        _ => &[],
    };
    let said: Vec<&str> =
        options.iter().filter(|option| is_default(field, option)).map(|option| option.label.as_str()).collect();
    match (said.is_empty(), &field.default) {
        (true, Some(default)) if matches!(field.kind, FieldKind::Json) => default.as_str().to_owned(),
        (true, _) => default_text(field),
        (false, _) => said.join(", "),
    }
}

/// What fits, in words.
fn limits(field: &Field) -> Option<String> {
    let said: Vec<String> = match &field.kind {
        FieldKind::Text { min_length, max_length, pattern, format } => {
            let example = match format {
                Some(TextFormat::DateTime) => Some("The offset is such as +02:00, or Z for UTC.".to_owned()),
                _ => None,
            };
            // Where the asker has said in words what fits, the expression only frightens.
            let shown = pattern.as_ref().filter(|_| field.description.is_none());
            let pattern = shown.map(|pattern| format!("Must match the pattern {}", words::excerpt(pattern)));
            between(*min_length, *max_length, "character").into_iter().chain(pattern).chain(example).collect()
        }
        FieldKind::Number { integer, minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of } => {
            let mut parts = Vec::new();
            let mut part = |said: &str, limit: &Option<String>| {
                if let Some(limit) = limit {
                    parts.push(format!("{said} {limit}"));
                }
            };
            part("at least", minimum);
            part("more than", exclusive_minimum);
            part("at most", maximum);
            part("less than", exclusive_maximum);
            part("a multiple of", multiple_of);
            let what = if *integer { "A whole number" } else { "A number" };
            vec![if parts.is_empty() { format!("{what}.") } else { format!("{what}, {}.", parts.join(", ")) }]
        }
        FieldKind::MultiChoice { min_items, max_items, .. } => {
            let counted = between(*min_items, *max_items, "option");
            vec![counted.map_or_else(
                || "Choose any number.".to_owned(),
                |counted| format!("Choose: {}", counted.to_lowercase()),
            )]
        }
        FieldKind::Json => vec!["Enter JSON.".to_owned()],
        FieldKind::Rows { min_items, max_items, .. } => between(*min_items, *max_items, "row").into_iter().collect(),
        FieldKind::Boolean | FieldKind::Choice { .. } | FieldKind::Group { .. } => Vec::new(),
    };
    (!said.is_empty()).then(|| said.join(" "))
}

fn between(least: Option<u64>, most: Option<u64>, unit: &str) -> Option<String> {
    let units = |count: u64| if count == 1 { unit.to_owned() } else { format!("{unit}s") };
    match (least.filter(|least| *least > 0), most) {
        (None, None) => None,
        (Some(least), None) => Some(format!("At least {least} {}.", units(least))),
        (None, Some(most)) => Some(format!("At most {most} {}.", units(most))),
        (Some(least), Some(most)) if least == most => Some(format!("Exactly {most} {}.", units(most))),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {}.", units(most))),
    }
}
