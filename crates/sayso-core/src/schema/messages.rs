//! What a person reads when an answer does not fit. A message quotes the schema, which the asker wrote, and never the
//! answer.

use crate::limits::PATTERN_SHOWN_CHARS_MAX;
use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::json::visible;

/// Reads on from the field's name, as in "age must be at least 18".
pub(super) fn message(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Enum { .. } => "must be one of the listed options".to_owned(),
        Kind::Constant { .. } => "must be the one value that is allowed".to_owned(),
        Kind::MinLength { limit } => format!("must be at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must be at most {}", counted(*limit, "character")),
        Kind::Minimum { limit } => format!("must be at least {}", number(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", number(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {}", number(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", number(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => pattern_message(pattern),
        Kind::Format { format } => format_message(format),
        Kind::Required { .. } => "is required".to_owned(),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => "lacks an item that is required".to_owned(),
        Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => "has too many items".to_owned(),
        Kind::MinProperties { limit } => {
            format!("must have at least {}", counted(*limit, "member"))
        }
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "member")),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => "is not asked for".to_owned(),
        Kind::PropertyNames { .. } => "has a member whose name is not allowed".to_owned(),
        Kind::FalseSchema => "must be left out".to_owned(),
        Kind::Not { .. } => "has a value that is ruled out".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "fits none of the allowed forms".to_owned(),
        Kind::OneOfMultipleValid { .. } => "fits more than one of the allowed forms".to_owned(),
        Kind::ContentEncoding { .. } | Kind::ContentMediaType { .. } | Kind::FromUtf8 { .. } => {
            "is not encoded as asked".to_owned()
        }
        Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Custom { .. }
        | Kind::Referencing(_) => "could not be checked".to_owned(),
    }
}

fn counted(limit: u64, what: &str) -> String {
    if limit == 1 { format!("1 {what}") } else { format!("{limit} {what}s") }
}

fn number(limit: &Value) -> String {
    limit.to_string()
}

fn types(kind: &TypeKind) -> String {
    let name = |kind: JsonType| match kind {
        JsonType::String => "text",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::Boolean => "true or false",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
        JsonType::Null => "null",
    };
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn pattern_message(pattern: &str) -> String {
    let mut shown: String = pattern.chars().take(PATTERN_SHOWN_CHARS_MAX).collect();
    if shown.len() < pattern.len() {
        shown.push('…');
    }
    format!("must match the pattern {}", visible(&shown))
}

fn format_message(format: &str) -> String {
    match format {
        "email" | "idn-email" => "must be an e-mail address, such as ada@example.com".to_owned(),
        "uri" | "iri" => "must be a full URL, such as https://example.com/page".to_owned(),
        "date" => "must be a date, such as 2026-01-31".to_owned(),
        "date-time" => "must be a date and time with zone, such as 2026-01-31T09:30:00Z".to_owned(),
        "time" => "must be a time with zone, such as 09:30:00Z".to_owned(),
        _ => format!("must have the format {}", visible(format)),
    }
}
