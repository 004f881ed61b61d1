//! A text taken apart, with the exact text of every part still at hand.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::strict::{Scanner, Token, unescape};

/// A value and the text it was read from.
#[derive(Clone)]
pub(crate) struct Tree<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: Kind<'a>,
}

/// What a value is. Members keep the order in which they were written.
#[derive(Clone)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    /// The literal is in [`Tree::raw`].
    Number,
    Text(Cow<'a, str>),
    Array(Vec<Tree<'a>>),
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

struct Open<'a> {
    start: usize,
    name: Option<Cow<'a, str>>,
    kind: Kind<'a>,
}

impl<'a> Tree<'a> {
    /// Takes a text apart that the strict reader has accepted. What it could not have accepted reads as null.
    pub(crate) fn read(text: &'a str) -> Self {
        let null = Self { raw: text, kind: Kind::Null };
        let mut scanner = Scanner::trusted(text);
        let mut open: Vec<Open<'a>> = Vec::new();
        let mut name = None;
        while let Ok(Some(event)) = scanner.next_event() {
            let raw = text.get(event.range.clone()).unwrap_or_default();
            let kind = match event.token {
                Token::Name => {
                    name = Some(unescape(raw));
                    continue;
                }
                Token::ObjectStart | Token::ArrayStart => {
                    let kind = match event.token {
                        Token::ObjectStart => Kind::Object(Vec::new()),
                        _ => Kind::Array(Vec::new()),
                    };
                    open.push(Open { start: event.range.start, name: name.take(), kind });
                    continue;
                }
                Token::ObjectEnd | Token::ArrayEnd => {
                    let Some(closed) = open.pop() else {
                        return null;
                    };
                    let raw = text.get(closed.start..event.range.end).unwrap_or_default();
                    name = closed.name;
                    match attach(&mut open, name.take(), Self { raw, kind: closed.kind }) {
                        Some(root) => return root,
                        None => continue,
                    }
                }
                Token::Text => Kind::Text(unescape(raw)),
                Token::Number => Kind::Number,
                Token::True => Kind::Bool(true),
                Token::False => Kind::Bool(false),
                Token::Null => Kind::Null,
            };
            if let Some(root) = attach(&mut open, name.take(), Self { raw, kind }) {
                return root;
            }
        }
        null
    }

    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Tree<'a>)] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Tree<'a>] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tree<'a>> {
        self.members().iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<&'a str> {
        matches!(self.kind, Kind::Number).then_some(self.raw)
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    /// The value under a JSON pointer whose segments are already unescaped.
    pub(crate) fn at(&self, segments: &[String]) -> Option<&Tree<'a>> {
        segments.iter().try_fold(self, |tree, segment| match &tree.kind {
            Kind::Object(_) => tree.get(segment),
            Kind::Array(items) => items.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The same value for libraries that want one. It is built here and not by `serde_json`, which gives one member
    /// name a meaning of its own (the one its raw values travel under) and would then read another value than ours.
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(truth) => Value::Bool(*truth),
            Kind::Number => number(self.raw).map_or(Value::Null, Value::Number),
            Kind::Text(text) => Value::String(text.to_string()),
            Kind::Array(items) => Value::Array(items.iter().map(Tree::value).collect()),
            Kind::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.to_string(), value.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

fn number(literal: &str) -> Option<Number> {
    literal.parse::<Number>().ok().or_else(|| Number::from_f64(literal.parse().ok()?))
}

/// Puts a finished value where it belongs; without an open container it is the root.
fn attach<'a>(open: &mut [Open<'a>], name: Option<Cow<'a, str>>, tree: Tree<'a>) -> Option<Tree<'a>> {
    match open.last_mut().map(|parent| &mut parent.kind) {
        Some(Kind::Object(members)) => members.push((name.unwrap_or_default(), tree)),
        Some(Kind::Array(items)) => items.push(tree),
        _ => return Some(tree),
    }
    None
}
