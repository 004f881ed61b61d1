use sayso_core::json::visible;
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

/// What a field takes, in words: `text, required, 3 to 20 characters; default "x"`.
pub fn describe(field: &Field) -> String {
    let mut parts = vec![kind(&field.kind)];
    if field.required {
        parts.push("required".to_owned());
    }
    parts.extend(limits(&field.kind));
    let mut text = parts.join(", ");
    if let Some(default) = &field.default {
        text.push_str(&format!("; default {}", visible(default.as_str())));
    }
    text
}

fn kind(kind: &FieldKind) -> String {
    let words = match kind {
        FieldKind::Text { format, .. } => match format {
            Some(TextFormat::Email) => "e-mail address",
            Some(TextFormat::Uri) => "full URL",
            Some(TextFormat::Date) => "date such as 2026-01-31",
            Some(TextFormat::DateTime) => "date and time with zone such as 2026-01-31T09:30:00Z",
            Some(TextFormat::Password) => "password",
            Some(TextFormat::Other) | None => "text",
        },
        FieldKind::Number { integer: true, .. } => "whole number",
        FieldKind::Number { .. } => "number",
        FieldKind::Boolean => "yes or no",
        FieldKind::Choice { .. } => "one of a list",
        FieldKind::MultiChoice { .. } => "any of a list",
        FieldKind::Group { .. } => "a group of fields",
        FieldKind::Rows { .. } => "a list of rows",
        FieldKind::Json => "JSON",
    };
    words.to_owned()
}

fn limits(kind: &FieldKind) -> Vec<String> {
    match kind {
        FieldKind::Text { min_length, max_length, pattern, .. } => {
            let pattern = pattern.as_ref().map(|pattern| format!("matching {}", visible(pattern)));
            range(*min_length, *max_length, "character").into_iter().chain(pattern).collect()
        }
        FieldKind::Number { minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of, .. } => [
            ("at least", minimum),
            ("more than", exclusive_minimum),
            ("at most", maximum),
            ("less than", exclusive_maximum),
            ("a multiple of", multiple_of),
        ]
        .into_iter()
        .filter_map(|(words, limit)| limit.as_ref().map(|limit| format!("{words} {limit}")))
        .collect(),
        FieldKind::MultiChoice { min_items, max_items, .. } | FieldKind::Rows { min_items, max_items, .. } => {
            range(*min_items, *max_items, "item").into_iter().collect()
        }
        FieldKind::Boolean | FieldKind::Choice { .. } | FieldKind::Group { .. } | FieldKind::Json => Vec::new(),
    }
}

fn range(min: Option<u64>, max: Option<u64>, what: &str) -> Option<String> {
    let counted = |n: u64| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    match (min.filter(|min| *min > 0), max) {
        (Some(min), Some(max)) if min == max => Some(format!("exactly {}", counted(min))),
        (Some(min), Some(max)) => Some(format!("{min} to {}", counted(max))),
        (Some(min), None) => Some(format!("at least {}", counted(min))),
        (None, Some(max)) => Some(format!("at most {}", counted(max))),
        (None, None) => None,
    }
}

/// An option as it is shown: its label, and the value where that is another word.
pub fn option_label(option: &ChoiceOption) -> String {
    let value = option.value_text();
    if option.label == value {
        visible(&value).into_owned()
    } else {
        format!("{} ({})", visible(&option.label), visible(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso::Json;
    use sayso_core::schema::FormSchema;

    #[test]
    fn a_field_is_described_with_its_limits_and_its_default() {
        let schema = r#"{"type":"object","required":["a"],"properties":{
            "a":{"type":"string","minLength":3,"maxLength":20},
            "b":{"type":"string","format":"email","default":"a@b.example"},
            "c":{"type":"integer","minimum":1,"exclusiveMaximum":10},
            "d":{"type":"array","items":{"enum":["x"]},"minItems":1,"maxItems":1},
            "e":{"type":"string","pattern":"^\u202e"}}}"#;
        let form = FormSchema::open(&Json::parse(schema).unwrap()).unwrap();
        let described: Vec<_> = form.fields().iter().map(describe).collect();
        assert_eq!(
            described,
            [
                "text, required, 3 to 20 characters",
                "e-mail address; default \"a@b.example\"",
                "whole number, at least 1, less than 10",
                "any of a list, exactly 1 item",
                "text, matching ^⟦U+202E⟧",
            ]
        );
    }
}
