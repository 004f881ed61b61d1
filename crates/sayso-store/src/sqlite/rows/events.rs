//! Events, stored as lists: those of a transaction are a row or a few, and cost what a row costs.
//!
//! An event in a list is written as far as it differs from the one before it, and its number and its hashes not at all: they
//! follow from those of the list. First comes a byte that says which members follow, then these, each behind its length
//! (empty: there is none), then what happened, as JSON.

use std::io::Write as _;

use rusqlite::Connection;
use rusqlite::params;
use sayso_core::event::{Event, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{first, row_count};

const AT: u8 = 1;
const EXECUTION: u8 = 2;
const ROUND: u8 = 4;
const PRINCIPAL: u8 = 8;
const CHANNEL: u8 = 16;
const ALL: u8 = AT | EXECUTION | ROUND | PRINCIPAL | CHANNEL;

/// What most events take in a list; longer ones take longer.
const LISTED_BYTES: usize = 72;

const CORRUPT: ReadError = ReadError::Corrupt("event");

/// The bytes of a list of events. Written by hand: every transaction does it for all that happened in it.
pub(crate) fn list<'e>(events: impl ExactSizeIterator<Item = &'e NewEvent>) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::with_capacity(LISTED_BYTES * events.len());
    let mut before: Option<&NewEvent> = None;
    for event in events {
        let mut differs = ALL;
        if let Some(before) = before {
            let same = [
                (AT, event.at == before.at),
                (EXECUTION, event.execution_id == before.execution_id),
                (ROUND, event.round_id == before.round_id),
                (PRINCIPAL, event.principal == before.principal),
                (CHANNEL, event.channel == before.channel),
            ];
            differs = same.iter().filter(|(_, same)| !same).fold(0, |all, (member, _)| all | member);
        }
        bytes.push(differs);
        if differs & AT != 0 {
            part(&mut bytes, |to| to.extend_from_slice(&event.at.0.to_be_bytes()));
        }
        if differs & EXECUTION != 0 {
            let id = event.execution_id.map(ExecutionId::to_bytes);
            part(&mut bytes, |to| to.extend_from_slice(id.as_ref().map_or(&[], |id| id)));
        }
        if differs & ROUND != 0 {
            let id = event.round_id.map(RoundId::to_bytes);
            part(&mut bytes, |to| to.extend_from_slice(id.as_ref().map_or(&[], |id| id)));
        }
        if differs & PRINCIPAL != 0 {
            part(&mut bytes, |to| event.principal.as_ref().map_or(Ok(()), |principal| write!(to, "{principal}")))
                .map_err(|_| CORRUPT)?;
        }
        if differs & CHANNEL != 0 {
            let channel = event.channel.map(Channel::as_str).unwrap_or_default();
            part(&mut bytes, |to| to.extend_from_slice(channel.as_bytes()));
        }
        part(&mut bytes, |to| serde_json::to_writer(to, &event.body)).map_err(|_| CORRUPT)?;
        before = Some(event);
    }
    Ok(bytes)
}

/// Writes a part behind its length: seven bits a byte, the lowest first, all but the last with the eighth set.
fn part<T>(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = bytes.len();
    let written = write(bytes);
    let mut length = bytes.len() - start;
    let mut at = start;
    while length > 127 {
        bytes.insert(at, u8::try_from(length & 127).unwrap_or_default() | 128);
        length >>= 7;
        at += 1;
    }
    bytes.insert(at, u8::try_from(length).unwrap_or_default());
    written
}

/// What is still to be read of a list.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let mut length = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            length |= usize::from(byte & 127).checked_shl(shift)?;
            if byte < 128 {
                let (part, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                return Some(part);
            }
        }
        None
    }

    /// The next event, which differs from `before` in what is written of it.
    fn event(&mut self, before: Option<&NewEvent>) -> Option<NewEvent> {
        let differs = self.byte()?;
        if differs & !ALL != 0 || (before.is_none() && differs != ALL) {
            return None;
        }
        let mut member = |which: u8| if differs & which == 0 { Some(None) } else { self.part().map(Some) };
        let at = match member(AT)? {
            Some(at) => UnixMs(i64::from_be_bytes(at.try_into().ok()?)),
            None => before?.at,
        };
        let execution_id = match member(EXECUTION)? {
            Some(id) => maybe(id, |id| Some(ExecutionId::from_bytes(id.try_into().ok()?)))?,
            None => before?.execution_id,
        };
        let round_id = match member(ROUND)? {
            Some(id) => maybe(id, |id| Some(RoundId::from_bytes(id.try_into().ok()?)))?,
            None => before?.round_id,
        };
        let principal = match member(PRINCIPAL)? {
            Some(name) => maybe(name, |name| Principal::parse(str::from_utf8(name).ok()?))?,
            None => before?.principal.clone(),
        };
        let channel = match member(CHANNEL)? {
            Some(name) => maybe(name, |name| Channel::parse(str::from_utf8(name).ok()?))?,
            None => before?.channel,
        };
        let body = serde_json::from_slice(self.part()?).ok()?;
        Some(NewEvent { at, execution_id, round_id, principal, channel, body })
    }
}

/// What a part says; nothing where it is empty.
fn maybe<T>(part: &[u8], read: impl FnOnce(&[u8]) -> Option<T>) -> Option<Option<T>> {
    if part.is_empty() { Some(None) } else { read(part).map(Some) }
}

/// What happened, by a list's bytes.
fn unlist(bytes: &[u8]) -> Option<Vec<NewEvent>> {
    let mut events: Vec<NewEvent> = Vec::new();
    let mut rest = Rest(bytes);
    while !rest.0.is_empty() {
        let event = rest.event(events.last())?;
        events.push(event);
    }
    Some(events)
}

/// The events of a list that ends with number `last_seq`, in their places. The last one has the hash that is stored, which
/// is its own where none of them was changed.
fn placed(last_seq: u64, (previous_hash, hash): ([u8; 32], [u8; 32]), bytes: &[u8]) -> Result<Vec<Event>, ReadError> {
    let events = unlist(bytes).filter(|events| !events.is_empty()).ok_or(CORRUPT)?;
    let before = u64::try_from(events.len()).ok().and_then(|count| last_seq.checked_sub(count)).ok_or(CORRUPT)?;
    let mut previous_hash = previous_hash;
    let chained = events.into_iter().zip(before.saturating_add(1)..).map(|(event, seq)| {
        let event = Event::chained(event, seq, previous_hash);
        previous_hash = event.hash;
        event
    });
    let mut events: Vec<_> = chained.collect();
    if let Some(last) = events.last_mut() {
        last.hash = hash;
    }
    Ok(events)
}

pub(crate) fn events_after(db: &Connection, seq: u64, limit: usize) -> Result<Vec<Event>, ReadError> {
    let after = i64::try_from(seq).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(
        "SELECT last_seq, previous_hash, hash, events FROM event_lists WHERE last_seq > ?1 ORDER BY last_seq LIMIT ?2",
    )?;
    let mut lists = statement.query(params![after, row_count(limit)])?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = lists.next()?
    {
        let last_seq = u64::try_from(row.get::<_, i64>(0)?).map_err(|_| CORRUPT)?;
        let bytes = row.get_ref(3)?.as_blob().map_err(|_| CORRUPT)?;
        let hashes = (row.get(1)?, row.get(2)?);
        events.extend(placed(last_seq, hashes, bytes)?.into_iter().filter(|event| event.seq > seq));
    }
    events.truncate(limit);
    Ok(events)
}

/// The number and hash of the last event; zeros before the first.
pub(crate) fn last_event(db: &Connection) -> Result<(u64, [u8; 32]), ReadError> {
    let mut statement = db.prepare_cached("SELECT last_seq, hash FROM event_lists ORDER BY last_seq DESC LIMIT 1")?;
    let last = first(&mut statement.query([])?, |row| {
        Ok((u64::try_from(row.get::<_, i64>(0)?).map_err(|_| CORRUPT)?, row.get(1)?))
    })?;
    Ok(last.unwrap_or((0, [0; 32])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;
    use sayso_core::event::EventBody;

    /// Few values of each member, so that neighbours are often alike.
    fn any_event() -> impl Strategy<Value = NewEvent> {
        let names = prop_oneof![Just("ada".to_owned()), "[a-z é]{0,200}"];
        let principal = proptest::option::of(names.prop_map(Principal::person));
        let channel = prop_oneof![Just(None), Just(Some(Channel::Inbox)), Just(Some(Channel::Thread))];
        let body = prop_oneof![
            Just(EventBody::Answered),
            "[ -~é]{0,300}".prop_map(|code| EventBody::ResponseRefused { code }),
        ];
        let id = || proptest::option::of(0..3_u128);
        (0..3_i64, id(), id(), principal, channel, body).prop_map(|(at, execution, round, principal, channel, body)| {
            NewEvent {
                at: UnixMs(at),
                execution_id: execution.map(|random| ExecutionId::from_parts(1, random)),
                round_id: round.map(|random| RoundId::from_parts(1, random)),
                principal,
                channel,
                body,
            }
        })
    }

    proptest! {
        #[test]
        fn a_list_says_what_happened(events in proptest::collection::vec(any_event(), 0..20)) {
            let bytes = list(events.iter()).expect("is written");
            prop_assert_eq!(unlist(&bytes), Some(events));
        }

        #[test]
        fn bytes_that_say_nothing_are_refused(
            events in proptest::collection::vec(any_event(), 1..4),
            at: proptest::sample::Index,
            byte: u8,
        ) {
            let mut bytes = list(events.iter()).expect("is written");
            let at = at.index(bytes.len());
            prop_assert_eq!(unlist(&bytes[..at]).filter(|read| read.len() == events.len()), None);
            bytes[at] = byte;
            let _ = unlist(&bytes);
        }
    }

    #[test]
    fn a_list_that_was_changed_is_found_out_at_its_end() {
        let event = |code: &str| NewEvent {
            at: UnixMs(7),
            execution_id: None,
            round_id: None,
            principal: None,
            channel: None,
            body: EventBody::ResponseRefused { code: code.to_owned() },
        };
        let first = Event::chained(event("conflict"), 4, [9; 32]);
        let second = Event::chained(event("stale"), 5, first.hash);
        let read = |events: [&str; 2]| {
            let bytes = list(events.map(event).iter()).expect("is written");
            placed(5, ([9; 32], second.hash), &bytes).expect("is read")
        };
        assert_eq!(read(["conflict", "stale"]), [first, second.clone()]);
        let changed = read(["forbidden", "stale"]);
        assert!(changed[0].is_intact() && !changed[1].is_intact());
        assert!(
            placed(1, ([9; 32], second.hash), &list([event("a"), event("b")].iter()).expect("is written")).is_err()
        );
        assert!(placed(1, ([9; 32], second.hash), &[]).is_err());
    }
}
