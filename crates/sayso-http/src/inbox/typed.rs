//! What a person typed, as the form posted it, and the names its controls have.
//!
//! Controls are numbered, not named after keys and fields: those are the asker's words and may be anything.

use std::fmt;

use sayso_core::limits;

/// The hidden control with the digest of what was shown.
pub(super) const DIGEST: &str = "digest";
/// The hidden control with the idempotency key that was made when the form was drawn.
pub(super) const KEY: &str = "key";
/// The button that adds a row to the list whose control is its value.
pub(super) const MORE: &str = "more";
/// The button that takes out the row whose control is its value.
pub(super) const LESS: &str = "less";
/// The button that shows what was changed and sends nothing.
pub(super) const CHECK: &str = "check";
/// The value of a choice's "Other".
pub(super) const OTHER: &str = "other";

/// The control that says what is done with a request.
pub(super) fn action_id(request: usize) -> String {
    format!("r{request}-action")
}

/// The reason for a decline.
pub(super) fn reason_id(request: usize) -> String {
    format!("r{request}-reason")
}

/// The answer to a choice or a text.
pub(super) fn answer_id(request: usize) -> String {
    format!("r{request}-answer")
}

/// The free text beside a choice's options.
pub(super) fn other_id(request: usize) -> String {
    format!("r{request}-other")
}

/// What a list of fields is filled in for: each has control names of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The content of a form.
    Form,
    /// What a person adds to a call.
    Input,
    /// The arguments of a call, edited.
    Arguments,
}

/// What the names of a part's controls begin with.
pub(super) fn part_id(request: usize, part: Part) -> String {
    let letter = match part {
        Part::Form => 'f',
        Part::Input => 'i',
        Part::Arguments => 'a',
    };
    format!("r{request}-{letter}")
}

/// A field of a form.
pub(super) fn field_id(request: usize, field: usize) -> String {
    top_id(&part_id(request, Part::Form), field)
}

/// Whether a control belongs to a part.
pub(super) fn is_in_part(id: &str, part: &str) -> bool {
    id.strip_prefix(part).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// A field at the top of a part.
pub(super) fn top_id(part: &str, field: usize) -> String {
    format!("{part}{field}")
}

/// A field of a group, or a row of a list.
pub(super) fn child_id(id: &str, at: usize) -> String {
    format!("{id}_{at}")
}

/// The hidden control that says how many rows a list has.
pub(super) fn rows_id(id: &str) -> String {
    format!("{id}-rows")
}

/// The arguments of a call as JSON, for editing.
pub(super) fn arguments_id(request: usize) -> String {
    format!("r{request}-arguments")
}

/// The hidden control that says that the arguments were offered for editing in fields.
pub(super) fn edits_id(request: usize) -> String {
    format!("r{request}-edits")
}

/// The hidden control with the digest of the edited arguments whose changes were shown.
pub(super) fn reviewed_id(request: usize) -> String {
    format!("r{request}-reviewed")
}

/// The offset from UTC beside a date and time.
pub(super) fn offset_id(field_id: &str) -> String {
    format!("{field_id}-offset")
}

/// The posted pairs, in order, with the line breaks that were typed instead of those that forms send.
#[derive(Clone)]
pub(super) struct Typed(Vec<(String, String)>);

/// Values never appear in `Debug` (invariant 8).
impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Typed({} values)", self.0.len())
    }
}

impl Typed {
    pub(super) fn new(pairs: Vec<(String, String)>) -> Self {
        Self(pairs.into_iter().map(|(name, text)| (name, text.replace("\r\n", "\n"))).collect())
    }

    /// What a control holds; of several of one name the first.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Whether a control was posted at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.one(name).is_some()
    }

    /// What the controls of one name hold.
    pub(super) fn all<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Whether a control was posted with anything in it.
    pub(super) fn has_text(&self, name: &str) -> bool {
        self.all(name).any(|text| !text.trim().is_empty())
    }

    /// The pairs of some controls only.
    pub(super) fn only(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        self.0.iter().filter(|(name, _)| is_wanted(name)).cloned().collect()
    }

    /// How many rows of a list were posted.
    pub(super) fn rows(&self, id: &str) -> Option<usize> {
        self.one(&rows_id(id))?.parse().ok().map(|rows: usize| rows.min(limits::FORM_ROWS_MAX))
    }

    /// With one row more at the end of a list.
    pub(super) fn with_row(mut self, id: &str) -> Self {
        let (name, rows) = (rows_id(id), self.rows(id).unwrap_or_default());
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, (rows + 1).min(limits::FORM_ROWS_MAX).to_string()));
        self
    }

    /// Without the row of a list that the control `row_id` stands for; those after it move up.
    pub(super) fn without_row(self, row_id: &str) -> Self {
        let parts = row_id.rsplit_once('_').and_then(|(id, row)| Some((id, row.parse::<usize>().ok()?)));
        let Some((id, gone)) = parts.filter(|(id, gone)| self.rows(id).is_some_and(|rows| *gone < rows)) else {
            return self;
        };
        let (counter, prefix) = (rows_id(id), format!("{id}_"));
        let moved = |(name, text): (String, String)| {
            if name == counter {
                let rows = text.parse::<usize>().unwrap_or_default().saturating_sub(1);
                return Some((name, rows.to_string()));
            }
            let Some((row, rest)) = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('_')) else {
                return Some((name, text));
            };
            match row.parse::<usize>() {
                Ok(row) if row == gone => None,
                Ok(row) if row > gone => Some((format!("{prefix}{}_{rest}", row - 1), text)),
                _ => Some((name, text)),
            }
        };
        Self(self.0.into_iter().filter_map(moved).collect())
    }

    /// Every text that a person may have typed, without knowing what it was typed into.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let is_typed = |name: &str| {
            name.starts_with('r')
                && !["-action", "-offset", "-rows", "-edits", "-reviewed"].iter().any(|ending| name.ends_with(ending))
        };
        self.0.iter().filter(move |(name, text)| is_typed(name) && !text.is_empty()).map(|(_, text)| text.as_str())
    }
}

/// A date and time as its two controls hold it: `2026-01-31T09:30`, and the offset from UTC.
pub(super) fn split_date_time(text: &str) -> Option<(&str, &str)> {
    let is_local = text.get(10..11) == Some("T");
    let zone = text.get(11..)?.find(['Z', '+', '-']).map(|at| at + 11)?;
    Some((text.get(..zone)?, text.get(zone..)?)).filter(|_| is_local)
}

/// The text that the two controls of a date and time make: with seconds, which browsers leave out, and the offset.
pub(super) fn join_date_time(local: &str, offset: &str) -> String {
    let (local, offset) = (local.trim(), offset.trim());
    if local.is_empty() || split_date_time(local).is_some() {
        return local.to_owned();
    }
    let seconds = if local.len() == "2026-01-31T09:30".len() { ":00" } else { "" };
    format!("{local}{seconds}{}", if offset.is_empty() { "Z" } else { offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_taken_out_and_those_after_it_move_up() {
        let pair = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        let posted =
            [("r0-f1-rows", "3"), ("r0-f1_0_0", "a"), ("r0-f1_1_0", "b"), ("r0-f1_2_0", "c"), ("r0-f1_2_1_0_0", "d")];
        let typed = Typed::new(posted.map(pair).to_vec()).without_row("r0-f1_1");
        let left = [("r0-f1-rows", "2"), ("r0-f1_0_0", "a"), ("r0-f1_1_0", "c"), ("r0-f1_1_1_0_0", "d")];
        assert_eq!(typed.0, left.map(pair));
        assert_eq!(typed.rows("r0-f1"), Some(2));
        let same = typed.without_row("r0-f1_7").without_row("nonsense");
        assert_eq!(same.with_row("r0-f1").rows("r0-f1"), Some(3));
    }

    #[test]
    fn a_date_and_time_goes_through_its_two_controls_unchanged() {
        for text in ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00.5+02:00", "2026-01-31T09:30:15-05:00"] {
            let (local, offset) = split_date_time(text).unwrap();
            assert_eq!(join_date_time(local, offset), text);
        }
        assert_eq!(join_date_time("2026-01-31T09:30", "+02:00"), "2026-01-31T09:30:00+02:00");
        assert_eq!(join_date_time("2026-01-31T09:30", ""), "2026-01-31T09:30:00Z");
        assert_eq!(join_date_time("2026-01-31T09:30:00Z", "+02:00"), "2026-01-31T09:30:00Z");
        assert_eq!(join_date_time("", "+02:00"), "");
        for odd in ["", "2026", "2026-01-31", "ä2026-01-31T", "2026-01-31 09:30Z"] {
            assert!(split_date_time(odd).is_none(), "{odd}");
        }
    }
}
