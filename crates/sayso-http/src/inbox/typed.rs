//! What a person typed, as the form posted it, and the names its controls have.
//!
//! Controls are numbered, not named after keys and fields: those are the asker's words and may be anything.

use std::fmt;

/// The hidden control with the digest of what was shown.
pub(super) const DIGEST: &str = "digest";
/// The hidden control with the idempotency key that was made when the form was drawn.
pub(super) const KEY: &str = "key";
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

/// A field of a form.
pub(super) fn field_id(request: usize, field: usize) -> String {
    format!("r{request}-f{field}")
}

/// The offset from UTC beside a date and time.
pub(super) fn offset_id(field_id: &str) -> String {
    format!("{field_id}-offset")
}

/// The posted pairs, in order, with the line breaks that were typed instead of those that forms send.
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

    /// What the controls of one name hold.
    pub(super) fn all<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Every text that a person may have typed, without knowing what it was typed into.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let is_typed = |name: &str| name.starts_with('r') && !name.ends_with("-action") && !name.ends_with("-offset");
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
