//! One level of an object, with the place of every member, so that one can be changed and the rest left as it came.

use std::fmt;
use std::ops::Range;

use super::canonical::quoted;
use super::strict::{Scanner, Token, unescape};

/// A member of an object and where it stands in the object's text, in bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Member {
    /// The name, escapes read.
    pub name: String,
    /// The name as written, quotes included.
    pub name_range: Range<usize>,
    /// The value as written, without the white space around it.
    pub value_range: Range<usize>,
}

/// The members of one object in the order in which they were written. Names and values never show in `Debug`.
#[derive(Clone)]
pub struct ObjectView<'a> {
    text: &'a str,
    /// The members in order.
    pub members: Vec<Member>,
    /// Just after the opening brace.
    inside: usize,
}

impl fmt::Debug for Member {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Member({:?}: {:?})", self.name_range, self.value_range)
    }
}

impl fmt::Debug for ObjectView<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ObjectView({} members)", self.members.len())
    }
}

impl<'a> ObjectView<'a> {
    /// Views the object that `text` holds: the text of a [`super::Json`] or of a part of one. None if it is no object.
    pub fn read(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::trusted(text);
        let start = scanner.next_event().ok()??;
        if start.token != Token::ObjectStart {
            return None;
        }
        let mut members = Vec::new();
        let mut depth = 0_usize;
        let mut name: Option<(String, Range<usize>)> = None;
        let mut value_start = 0;
        while let Some(event) = scanner.next_event().ok()? {
            match event.token {
                Token::Name if depth == 0 => {
                    let literal = text.get(event.range.clone())?;
                    name = Some((unescape(literal).into_owned(), event.range));
                    continue;
                }
                Token::ObjectStart | Token::ArrayStart => {
                    if depth == 0 {
                        value_start = event.range.start;
                    }
                    depth += 1;
                    continue;
                }
                Token::ObjectEnd | Token::ArrayEnd if depth == 0 => continue,
                Token::ObjectEnd | Token::ArrayEnd => depth -= 1,
                _ if depth == 0 => value_start = event.range.start,
                _ => {}
            }
            if depth == 0
                && let Some((name, name_range)) = name.take()
            {
                members.push(Member { name, name_range, value_range: value_start..event.range.end });
            }
        }
        Some(Self { text, members, inside: start.range.end })
    }

    /// The text of a member's value, as written.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.text.get(self.get_range(name)?)
    }

    /// Where a member's value stands.
    pub fn get_range(&self, name: &str) -> Option<Range<usize>> {
        self.member(name).map(|member| member.value_range.clone())
    }

    /// The text of the object `text` with the member set to `json_text`: in its place if there is one of that name,
    /// else after the last. Every other byte stays. A text that is no object comes back as it is.
    pub fn with_member(text: &str, name: &str, json_text: &str) -> String {
        ObjectView::read(text).map_or_else(|| text.to_owned(), |view| view.setting(&[(name, json_text)]))
    }

    /// The text of the object `text` without the member and its comma. Every other byte stays.
    pub fn without_member(text: &str, name: &str) -> String {
        let Some(view) = ObjectView::read(text) else {
            return text.to_owned();
        };
        let Some(index) = view.members.iter().position(|member| member.name == name) else {
            return text.to_owned();
        };
        let before = index.checked_sub(1).and_then(|before| view.members.get(before));
        let cut = match (view.members.get(index), view.members.get(index + 1), before) {
            (Some(member), Some(after), _) => member.name_range.start..after.name_range.start,
            (Some(member), None, Some(before)) => before.value_range.end..member.value_range.end,
            (Some(member), None, None) => member.name_range.start..member.value_range.end,
            (None, ..) => return text.to_owned(),
        };
        splice(text, vec![(cut, String::new())])
    }

    /// The object's text with several members set at once, new ones in the order given.
    pub(crate) fn setting(&self, changes: &[(&str, &str)]) -> String {
        let mut edits = Vec::new();
        let mut added = String::new();
        for (name, json_text) in changes {
            if let Some(range) = self.get_range(name) {
                edits.push((range, (*json_text).to_owned()));
                continue;
            }
            if !(self.members.is_empty() && added.is_empty()) {
                added.push(',');
            }
            added.push_str(&quoted(name));
            added.push(':');
            added.push_str(json_text);
        }
        let end = self.members.last().map_or(self.inside, |member| member.value_range.end);
        // After a replacement of the last member, which ends here too; the sort in `splice` is stable.
        edits.push((end..end, added));
        splice(self.text, edits)
    }

    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// The text with each byte range replaced by its text, every other byte kept. An edit that overlaps an earlier one,
/// leaves the text or cuts a character in two is left out.
pub fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut copied = 0;
    for (range, new) in edits {
        let Some(kept) = text.get(copied..range.start) else {
            continue;
        };
        if text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(kept);
        out.push_str(&new);
        copied = range.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}
