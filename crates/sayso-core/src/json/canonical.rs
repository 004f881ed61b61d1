//! Canonical text: RFC 8785 order and escapes, every number as it was written.

use super::tree::{Kind, Tree};

/// Writes the canonical text. RFC 8785 would print numbers as doubles, which merges integers above 2^53; a digest of
/// what was shown must tell those apart, so a number stays as written and `1` is not `1.0`.
pub(super) fn canonical(tree: &Tree<'_>) -> String {
    let mut out = String::with_capacity(tree.raw.len());
    write(tree, &mut out);
    out
}

fn write(tree: &Tree<'_>, out: &mut String) {
    match &tree.kind {
        Kind::Null | Kind::Bool(_) | Kind::Number => out.push_str(tree.raw),
        Kind::Text(text) => write_text(text, out),
        Kind::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Kind::Object(members) => {
            let mut ordered: Vec<_> = members.iter().collect();
            ordered.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (index, (name, value)) in ordered.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// A text as a JSON literal, with the escapes of RFC 8785 and no others.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(text, &mut out);
    out
}

pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for next in text.chars() {
        match next {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(next))),
            _ => out.push(next),
        }
    }
    out.push('"');
}
