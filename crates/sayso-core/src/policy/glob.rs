//! Patterns with `*` and `?`.

use std::fmt;

use super::error::PolicyError;
use crate::limits::{NAME_BYTES_MAX, POLICY_TEXT_BYTES_MAX};

/// A pattern: `*` is any run of characters, `?` any one, a backslash takes the next character as it is. Case counts.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    One,
    Any,
}

impl Glob {
    /// Reads a pattern of 1 to [`NAME_BYTES_MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(PolicyError::new("", format!("a pattern has 1 to {NAME_BYTES_MAX} bytes")));
        }
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(next) = chars.next() {
            match next {
                '*' if parts.last() == Some(&Part::Any) => {}
                '*' => parts.push(Part::Any),
                '?' => parts.push(Part::One),
                '\\' => match chars.next() {
                    Some(literal) => parts.push(Part::Literal(literal)),
                    None => return Err(PolicyError::new("", "a pattern does not end in a backslash")),
                },
                literal => parts.push(Part::Literal(literal)),
            }
        }
        Ok(Self { parts, text: text.to_owned() })
    }

    /// The pattern that is this text and nothing else.
    pub(crate) fn escaped(text: &str) -> String {
        text.chars().fold(String::new(), |mut out, next| {
            if matches!(next, '*' | '?' | '\\') {
                out.push('\\');
            }
            out.push(next);
            out
        })
    }

    /// Whether the whole text is as the pattern says. A text over [`POLICY_TEXT_BYTES_MAX`] never is; whoever decides
    /// by it asks first whether it is too long.
    pub fn matches(&self, text: &str) -> bool {
        if is_too_long(text) {
            return false;
        }
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut part) = (0, 0);
        // Where to go on when a later part fails: the last `*` takes one character more.
        let mut retry: Option<(usize, usize)> = None;
        while let Some(&next) = text.get(at) {
            match self.parts.get(part) {
                Some(Part::Any) => {
                    retry = Some((part, at));
                    part += 1;
                    continue;
                }
                Some(Part::One) => (at, part) = (at + 1, part + 1),
                Some(Part::Literal(literal)) if *literal == next => (at, part) = (at + 1, part + 1),
                _ => match retry {
                    Some((any, taken)) => {
                        retry = Some((any, taken + 1));
                        (at, part) = (taken + 1, any + 1);
                    }
                    None => return false,
                },
            }
        }
        self.parts.iter().skip(part).all(|part| *part == Part::Any)
    }

    /// As [`Glob::matches`], for what permits: a pattern of a path with a wildcard does not take a text that climbs by
    /// `..`, which could leave the folder that the pattern names.
    pub(super) fn covers(&self, text: &str) -> bool {
        let names_folder = self.parts.contains(&Part::Literal('/'));
        let is_open = self.parts.iter().any(|part| !matches!(part, Part::Literal(_)));
        let climbs = text.split(['/', '\\']).any(|segment| segment == "..");
        !(names_folder && is_open && climbs) && self.matches(text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether a text is longer than patterns are tried on.
pub(super) fn is_too_long(text: &str) -> bool {
    text.len() > POLICY_TEXT_BYTES_MAX
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_take_any_run_and_question_marks_one_character() {
        for (pattern, text, matches) in [
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "unread_file", false),
            ("*", "", true),
            ("?", "é", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-c-d", false),
            ("**x", "xx", true),
            (r"\*", "*", true),
            (r"\*", "x", false),
            ("Read", "read", false),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().matches(text), matches, "{pattern} {text}");
        }
        assert!(Glob::parse("").is_err() && Glob::parse(r"a\").is_err());
    }

    #[test]
    fn what_permits_does_not_follow_a_text_out_of_its_folder() {
        let glob = Glob::parse("/srv/*").unwrap();
        assert!(glob.covers("/srv/a/b") && glob.covers("/srv/a..b"));
        assert!(glob.matches("/srv/../etc/passwd") && !glob.covers("/srv/../etc/passwd"));
        assert!(Glob::parse("/srv/../etc").unwrap().covers("/srv/../etc"), "written out, it is meant");
    }

    proptest! {
        #[test]
        fn an_escaped_text_matches_itself_alone(text in ".{1,20}", other in ".{0,20}") {
            let glob = Glob::parse(&Glob::escaped(&text)).unwrap();
            prop_assert!(glob.matches(&text));
            prop_assert_eq!(glob.matches(&other), text == other);
        }
    }
}
