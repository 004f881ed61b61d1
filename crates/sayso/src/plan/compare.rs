//! When two JSON values are the same for a plan: members in any order, and `1` is `1.0`.

use sayso_core::json::{Json, ObjectView};

/// A text that is equal for equal values: canonical, with every number in one spelling. Exact, however long a number.
pub(super) fn normalized(json: &Json) -> String {
    let text = json.canonical();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        let end = match next {
            '"' => after_text(rest),
            '-' | '0'..='9' => {
                let end = rest.find([',', ']', '}']).unwrap_or(rest.len());
                out.push_str(&number(rest.get(..end).unwrap_or_default()));
                rest = rest.get(end..).unwrap_or_default();
                continue;
            }
            other => other.len_utf8(),
        };
        out.push_str(rest.get(..end).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
    out
}

/// Where the string literal that `text` begins with ends.
fn after_text(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A number as its digits and a power of ten: `1`, `1.0` and `10e-1` all become `1e0`.
fn number(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let Ok(exponent) = exponent.parse::<i64>() else { return text.to_owned() };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return "0e0".to_owned();
    }
    let dropped = digits.len() - digits.trim_end_matches('0').len();
    let shift = i64::try_from(dropped).unwrap_or(i64::MAX).saturating_sub(i64::try_from(fraction.len()).unwrap_or(0));
    format!("{sign}{significant}e{}", exponent.saturating_add(shift))
}

/// Whether `actual` has everything that `expected` has: of objects the members, inside each other too; anything else
/// must be the same.
pub(super) fn contains(actual: &Json, expected: &Json) -> bool {
    contains_text(actual.as_str(), expected.as_str())
}

fn contains_text(actual: &str, expected: &str) -> bool {
    match (ObjectView::read(actual), ObjectView::read(expected)) {
        (Some(actual), Some(expected)) => expected.members.iter().all(|member| {
            let of = |view: &ObjectView<'_>| view.get(&member.name).map(str::to_owned);
            matches!((of(&actual), of(&expected)), (Some(actual), Some(expected)) if contains_text(&actual, &expected))
        }),
        (None, None) => match (Json::parse(actual), Json::parse(expected)) {
            (Ok(actual), Ok(expected)) => normalized(&actual) == normalized(&expected),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn numbers_compare_by_value_and_texts_as_they_are() {
        for (left, right, same) in [
            ("1", "1.0", true),
            ("10e-1", "1", true),
            ("-0.0", "0", true),
            ("100", "1e2", true),
            ("0.10", "1e-1", true),
            ("123456789012345678901234567890", "123456789012345678901234567891", false),
            ("1", "-1", false),
            ("1", "true", false),
            ("1", "\"1\"", false),
            (r#"{"a":1,"b":[2.50]}"#, r#"{"b":[2.5],"a":1.00}"#, true),
            (r#"{"a":"1.0\"2.0"}"#, r#"{"a":"1\"2"}"#, false),
            ("[1,2]", "[2,1]", false),
        ] {
            assert_eq!(normalized(&json(left)) == normalized(&json(right)), same, "{left} and {right}");
        }
    }

    #[test]
    fn a_schema_contains_what_all_of_its_levels_have() {
        let schema = json(r#"{"type":"object","properties":{"n":{"type":"integer","maximum":10}},"required":["n"]}"#);
        assert!(contains(&schema, &json(r#"{"properties":{"n":{"maximum":10.0}}}"#)));
        assert!(!contains(&schema, &json(r#"{"properties":{"n":{"maximum":11}}}"#)));
        assert!(!contains(&schema, &json(r#"{"properties":{"m":{}}}"#)));
        assert!(!contains(&schema, &json(r#"{"required":[]}"#)));
    }
}
