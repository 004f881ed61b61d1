//! Server-sent events, read piece by piece (HTML, "Interpreting an event stream").

use std::time::Duration;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its type; empty stands for `message`.
    pub kind: String,
    /// Its lines.
    pub data: String,
    /// Where the stream can be gone on from after it, as the last event that said so had it.
    pub id: Option<String>,
}

/// An event or a line over the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Oversized;

/// Reads events of pieces that may begin and end anywhere.
pub(super) struct EventReader {
    bytes_max: usize,
    line: Vec<u8>,
    /// Whether a line feed belongs to the carriage return before it.
    after_return: bool,
    /// Whether no line was read yet: the first one may begin with a byte order mark.
    at_start: bool,
    event: Event,
    has_data: bool,
    /// How long the server wants us to wait before we come again.
    pub retry: Option<Duration>,
}

impl EventReader {
    /// Reads events of at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            has_data: false,
            retry: None,
        }
    }

    /// Takes a piece, and gives the events that it ends, those without data too: they may move the id.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<Vec<Event>, Oversized> {
        let mut events = Vec::new();
        loop {
            if std::mem::take(&mut self.after_return) {
                match piece.split_first() {
                    Some((b'\n', rest)) => piece = rest,
                    Some(_) => {}
                    None => {
                        self.after_return = true;
                        return Ok(events);
                    }
                }
            }
            let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.extend(piece)?;
                return Ok(events);
            };
            let (part, rest) = piece.split_at(end);
            self.extend(part)?;
            self.after_return = rest.first() == Some(&b'\r');
            piece = rest.get(1..).unwrap_or_default();
            events.extend(self.end_line());
        }
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), Oversized> {
        if self.line.len() + self.event.data.len() + part.len() > self.bytes_max {
            return Err(Oversized);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        // A line that begins with a colon is a comment: it keeps the connection alive.
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.kind),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis);
            }
            _ => {}
        }
        None
    }

    /// The id stays with the stream until another one replaces it.
    fn end_event(&mut self) -> Option<Event> {
        self.has_data = false;
        let id = self.event.id.clone();
        let event = std::mem::replace(&mut self.event, Event { id, ..Event::default() });
        (!event.data.is_empty() || event.id.is_some()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\n\r\nid: 1\rdata: {\"a\":\rdata: \"é\"}\r\rretry: 25\nretry: soon\nid: 2\ndata:\n\n\
                          event: ping\ndata: x\nunknown: y\nid: no\0\n\ndata\r\n\r\ndata: cut off";

    fn events() -> Vec<Event> {
        let event = |kind: &str, data: &str, id: &str| Event {
            kind: kind.to_owned(),
            data: data.to_owned(),
            id: Some(id.to_owned()),
        };
        vec![event("", "{\"a\":\n\"é\"}", "1"), event("", "", "2"), event("ping", "x", "2"), event("", "", "2")]
    }

    #[test]
    fn a_stream_is_the_same_wherever_it_is_cut() {
        let bytes = STREAM.as_bytes();
        for size in 1..=bytes.len() {
            let mut reader = EventReader::new(100);
            let read: Vec<_> = bytes.chunks(size).flat_map(|piece| reader.feed(piece).unwrap()).collect();
            assert_eq!(read, events(), "pieces of {size} bytes");
            assert_eq!(reader.retry, Some(Duration::from_millis(25)));
        }
    }

    #[test]
    fn an_event_without_an_end_is_bounded() {
        let mut reader = EventReader::new(100);
        assert_eq!(reader.feed(&[b'x'; 101]), Err(Oversized));
        let mut reader = EventReader::new(100);
        let endless = (0..50).find_map(|_| reader.feed(b"data: 1234\n").err());
        assert_eq!(endless, Some(Oversized));
    }
}
