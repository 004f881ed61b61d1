//! JSON laid out for reading, and what differs between two such texts.

use super::text::Json;
use crate::limits::DIFF_LINES_MAX;

/// JSON longer than this is shown as it is written: laid out it would be many times as long, and nobody reads it.
const PRETTY_BYTES_MAX: usize = 64 * 1024;
/// Levels that are indented: deeper ones would only push the text out of sight.
const INDENT_LEVELS_MAX: usize = 12;

/// JSON laid out for reading: a member a line, numbers and escapes as they were written. It reads back as the same value.
/// Hidden characters are still in it: show it through [`super::visible_multiline`].
pub fn pretty(json: &Json) -> String {
    let text = json.as_str();
    if text.len() > PRETTY_BYTES_MAX { text.to_owned() } else { laid_out(text) }
}

fn laid_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_text, mut is_escaped, mut just_opened) = (0_usize, false, false, false);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth.min(INDENT_LEVELS_MAX)));
    };
    for next in text.chars() {
        if in_text {
            out.push(next);
            in_text = is_escaped || next != '"';
            is_escaped = !is_escaped && next == '\\';
            continue;
        }
        match next {
            ' ' | '\t' | '\r' | '\n' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !std::mem::take(&mut just_opened) {
                    new_line(&mut out, depth);
                }
                out.push(next);
                continue;
            }
            _ => {}
        }
        if std::mem::take(&mut just_opened) {
            new_line(&mut out, depth);
        }
        out.push(next);
        match next {
            '"' => in_text = true,
            '{' | '[' => {
                depth += 1;
                just_opened = true;
            }
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

/// A line of one text or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLine<'t> {
    /// In both.
    Same(&'t str),
    /// Only in the earlier text.
    Removed(&'t str),
    /// Only in the later text.
    Added(&'t str),
}

/// What differs between two texts, line by line: the fewest lines removed and added. Texts of more than
/// [`DIFF_LINES_MAX`] lines are not compared, but replaced.
pub fn line_diff<'t>(before: &'t str, after: &'t str) -> Vec<DiffLine<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tails = old.iter().skip(start).rev().zip(new.iter().skip(start).rev());
    let end = tails.take_while(|(old, new)| old == new).count();
    let middle =
        |lines: &[&'t str]| -> Vec<&'t str> { lines.iter().take(lines.len() - end).skip(start).copied().collect() };
    let (removed, added) = (middle(&old), middle(&new));
    let mut lines: Vec<_> = old.iter().take(start).map(|line| DiffLine::Same(line)).collect();
    if removed.len() > DIFF_LINES_MAX || added.len() > DIFF_LINES_MAX {
        lines.extend(removed.into_iter().map(DiffLine::Removed).chain(added.into_iter().map(DiffLine::Added)));
    } else {
        lines.extend(compared(&removed, &added));
    }
    lines.extend(old.iter().skip(old.len() - end).map(|line| DiffLine::Same(line)));
    lines
}

/// By the longest common subsequence. The table is a row a line of `old`, and counts what the rests have in common.
fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    let at = |common: &[u16], row: usize, column: usize| common.get(row * width + column).copied().unwrap_or_default();
    for (row, line) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let count = if line == other {
                at(&common, row + 1, column + 1) + 1
            } else {
                at(&common, row + 1, column).max(at(&common, row, column + 1))
            };
            if let Some(cell) = common.get_mut(row * width + column) {
                *cell = count;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(row), new.get(column)) {
            (None, None) => return lines,
            (Some(line), Some(other)) if line == other => {
                lines.push(DiffLine::Same(line));
                (row, column) = (row + 1, column + 1);
            }
            (Some(line), other) if other.is_none() || at(&common, row + 1, column) >= at(&common, row, column + 1) => {
                lines.push(DiffLine::Removed(line));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(DiffLine::Added(other));
                column += 1;
            }
            (Some(_), None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DiffLine::{Added, Removed, Same};
    use proptest::prelude::*;

    #[test]
    fn json_is_laid_out_with_every_number_and_escape_as_written() {
        let json = Json::parse(r#"{"a":[1.0,{},[]],"b\"}":"x, {y}: \\","n":123456789012345678901234567890}"#).unwrap();
        let expected = "{\n  \"a\": [\n    1.0,\n    {},\n    []\n  ],\n  \"b\\\"}\": \"x, {y}: \\\\\",\n  \"n\": 123456789012345678901234567890\n}";
        assert_eq!(pretty(&json), expected);
        assert_eq!(Json::parse(expected).unwrap().canonical(), json.canonical());
    }

    #[test]
    fn the_fewest_lines_are_removed_and_added() {
        let found = line_diff("{\n a\n b\n c\n}", "{\n a\n x\n c\n d\n}");
        assert_eq!(found, [Same("{"), Same(" a"), Removed(" b"), Added(" x"), Same(" c"), Added(" d"), Same("}")]);
        assert_eq!(line_diff("a", "a"), [Same("a")]);
        assert_eq!(line_diff("", "a\nb"), [Added("a"), Added("b")]);
        assert_eq!(line_diff("a\nb", ""), [Removed("a"), Removed("b")]);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_back_from_what_differs(
            old in prop::collection::vec("[abc]", 0..12),
            new in prop::collection::vec("[abc]", 0..12),
        ) {
            let (before, after) = (old.join("\n"), new.join("\n"));
            let found = line_diff(&before, &after);
            let left = found.iter().filter_map(|line| match line { Same(line) | Removed(line) => Some(*line), Added(_) => None });
            let right = found.iter().filter_map(|line| match line { Same(line) | Added(line) => Some(*line), Removed(_) => None });
            prop_assert_eq!(left.collect::<Vec<_>>(), old);
            prop_assert_eq!(right.collect::<Vec<_>>(), new);
        }
    }
}
