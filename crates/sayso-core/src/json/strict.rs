//! The strict reader: RFC 8259 text without duplicate members, lone surrogates or numbers nobody can hold.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use super::error::{JsonError, JsonErrorKind};
use crate::limits::JSON_DEPTH_CEILING;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Name,
    Text,
    Number,
    True,
    False,
    Null,
}

/// A token and the bytes it covers; quotes included, colons and commas never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) token: Token,
    pub(super) range: Range<usize>,
}

/// Names of an object that are compared one by one; where there are more, all are sorted.
const FEW_NAMES: usize = 16;

enum Frame<'a> {
    Array,
    /// The names met so far are those of the scanner from `first`, or all in `many`; none are kept when the text is known
    /// to be good.
    Object {
        first: usize,
        many: BTreeSet<Cow<'a, str>>,
    },
}

#[derive(Clone, Copy)]
enum State {
    Value,
    FirstItem,
    FirstName,
    Name,
    AfterValue,
}

/// Reads tokens one by one and keeps its own stack, so no text can exhaust the thread's.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
    trusted: bool,
    stack: Vec<Frame<'a>>,
    /// The names of the objects that are open, few of each.
    names: Vec<Cow<'a, str>>,
    state: State,
}

impl<'a> Scanner<'a> {
    pub(super) fn strict(text: &'a str, depth_max: usize) -> Self {
        let depth_max = depth_max.min(JSON_DEPTH_CEILING);
        Self { text, at: 0, depth_max, trusted: false, stack: Vec::new(), names: Vec::new(), state: State::Value }
    }

    /// For text that has been read strictly before: names are not compared again and depth is not bounded.
    pub(super) fn trusted(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth_max: usize::MAX,
            trusted: true,
            stack: Vec::new(),
            names: Vec::new(),
            state: State::Value,
        }
    }

    /// The next token, or none at the end of the text.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, JsonError> {
        loop {
            self.skip_whitespace();
            match self.state {
                State::Value => return self.value().map(Some),
                State::FirstItem if self.peek() == Some(b']') => {
                    return Ok(Some(self.close(Token::ArrayEnd)));
                }
                State::FirstItem => return self.value().map(Some),
                State::FirstName if self.peek() == Some(b'}') => {
                    return Ok(Some(self.close(Token::ObjectEnd)));
                }
                State::FirstName | State::Name => return self.name().map(Some),
                State::AfterValue => match (self.stack.last(), self.peek()) {
                    (None, None) => return Ok(None),
                    (None, Some(_)) => return Err(self.error(JsonErrorKind::TrailingBytes)),
                    (Some(Frame::Array), Some(b',')) => self.step(State::Value),
                    (Some(Frame::Array), Some(b']')) => {
                        return Ok(Some(self.close(Token::ArrayEnd)));
                    }
                    (Some(Frame::Object { .. }), Some(b',')) => self.step(State::Name),
                    (Some(Frame::Object { .. }), Some(b'}')) => {
                        return Ok(Some(self.close(Token::ObjectEnd)));
                    }
                    (Some(_), _) => return Err(self.unexpected()),
                },
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, at_byte: self.at }
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.peek().is_some() { JsonErrorKind::UnexpectedByte } else { JsonErrorKind::UnexpectedEnd })
    }

    fn step(&mut self, state: State) {
        self.at += 1;
        self.state = state;
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn open(&mut self, frame: Frame<'a>, state: State, token: Token) -> Result<Event, JsonError> {
        if self.stack.len() >= self.depth_max {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.stack.push(frame);
        let start = self.at;
        self.step(state);
        Ok(Event { token, range: start..self.at })
    }

    fn close(&mut self, token: Token) -> Event {
        if let Some(Frame::Object { first, .. }) = self.stack.pop() {
            self.names.truncate(first);
        }
        let start = self.at;
        self.step(State::AfterValue);
        Event { token, range: start..self.at }
    }

    fn value(&mut self) -> Result<Event, JsonError> {
        let start = self.at;
        let token = match self.peek() {
            Some(b'{') => {
                let frame = Frame::Object { first: self.names.len(), many: BTreeSet::new() };
                return self.open(frame, State::FirstName, Token::ObjectStart);
            }
            Some(b'[') => return self.open(Frame::Array, State::FirstItem, Token::ArrayStart),
            Some(b'"') => {
                self.string()?;
                Token::Text
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Token::Number
            }
            Some(b't') => self.word("true", Token::True)?,
            Some(b'f') => self.word("false", Token::False)?,
            Some(b'n') => self.word("null", Token::Null)?,
            _ => return Err(self.unexpected()),
        };
        self.state = State::AfterValue;
        Ok(Event { token, range: start..self.at })
    }

    fn name(&mut self) -> Result<Event, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let start = self.at;
        self.string()?;
        let range = start..self.at;
        if !self.trusted {
            let name = unescape(self.text.get(range.clone()).unwrap_or_default());
            if !self.is_new(name) {
                return Err(JsonError { kind: JsonErrorKind::DuplicateMember, at_byte: start });
            }
        }
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.step(State::Value);
        Ok(Event { token: Token::Name, range })
    }

    /// Whether the innermost object has had no such name, which it has from now on.
    fn is_new(&mut self, name: Cow<'a, str>) -> bool {
        let Some(Frame::Object { first, many }) = self.stack.last_mut() else { return true };
        let few = self.names.get(*first..).unwrap_or_default();
        if few.len() < FEW_NAMES && many.is_empty() {
            let is_new = !few.contains(&name);
            self.names.push(name);
            return is_new;
        }
        many.extend(self.names.drain(*first..));
        many.insert(name)
    }

    fn word(&mut self, word: &str, token: Token) -> Result<Token, JsonError> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        Ok(token)
    }

    fn string(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                return Ok(());
            }
            Some(b'u') => self.at += 1,
            Some(_) => {
                return Err(JsonError { kind: JsonErrorKind::InvalidEscape, at_byte: start });
            }
        }
        let lone = JsonError { kind: JsonErrorKind::LoneSurrogate, at_byte: start };
        match self.four_hex(start)? {
            0xDC00..=0xDFFF => Err(lone),
            0xD800..=0xDBFF => {
                if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
                    return Err(lone);
                }
                self.at += 2;
                match self.four_hex(start)? {
                    0xDC00..=0xDFFF => Ok(()),
                    _ => Err(lone),
                }
            }
            _ => Ok(()),
        }
    }

    fn four_hex(&mut self, start: usize) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else {
                return Err(self.error(JsonErrorKind::UnexpectedEnd));
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(JsonError { kind: JsonErrorKind::InvalidEscape, at_byte: start });
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            return Err(self.error(JsonErrorKind::InvalidNumber));
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if literal.parse::<f64>().is_ok_and(f64::is_finite) {
            Ok(())
        } else {
            Err(JsonError { kind: JsonErrorKind::NumberOutOfRange, at_byte: start })
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(_) => return Err(self.error(JsonErrorKind::InvalidNumber)),
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }
}

/// Reads the whole text and answers with the bytes of its value, outer white space left out.
pub(super) fn check(text: &str, bytes_max: usize, depth_max: usize) -> Result<Range<usize>, JsonError> {
    if text.len() > bytes_max {
        return Err(JsonError { kind: JsonErrorKind::TooLarge, at_byte: bytes_max });
    }
    let mut scanner = Scanner::strict(text, depth_max);
    let mut value = 0..0;
    let mut first = true;
    while let Some(event) = scanner.next_event()? {
        if first {
            value.start = event.range.start;
            first = false;
        }
        value.end = event.range.end;
    }
    Ok(value)
}

/// The text that a quoted literal stands for. The literal has been read before; whatever it does not understand it
/// leaves out.
pub(super) fn unescape(literal: &str) -> Cow<'_, str> {
    let inner = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(literal);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    let mut high: Option<u32> = None;
    while let Some(next) = chars.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let unit = (0..4).filter_map(|_| chars.next()?.to_digit(16)).fold(0, |sum, digit| sum * 16 + digit);
                match (high.take(), unit) {
                    (_, 0xD800..=0xDBFF) => high = Some(unit),
                    (Some(high), low @ 0xDC00..=0xDFFF) => {
                        out.extend(char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
                    }
                    (_, unit) => out.extend(char::from_u32(unit)),
                }
            }
            Some(plain) => out.push(plain),
            None => {}
        }
    }
    Cow::Owned(out)
}
