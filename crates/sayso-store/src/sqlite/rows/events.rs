//! Events, stored as lists: those of a transaction are a row or a few, and cost what a row costs.

use std::borrow::Cow;

use rusqlite::{Connection, params};
use sayso_core::event::{Event, EventBody, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::time::UnixMs;
use serde::{Deserialize, Serialize};

use super::super::reader::ReadError;
use super::{first, row_count};

/// An event as it stands in its list. Its number follows from its place, and the hash before it stands there too.
#[derive(Deserialize)]
struct Listed {
    at: i64,
    execution: Option<Hex<16>>,
    round: Option<Hex<16>>,
    principal: Option<Principal>,
    channel: Option<Channel>,
    body: EventBody,
    hash: Hex<32>,
}

/// Bytes, as twice as many lower-case hexadecimal digits.
struct Hex<const BYTES: usize>([u8; BYTES]);

impl<'de, const BYTES: usize> Deserialize<'de> for Hex<BYTES> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        let wrong = || serde::de::Error::custom("not as many hexadecimal digits as expected");
        let digits = text.as_bytes();
        if digits.len() != 2 * BYTES {
            return Err(wrong());
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = match pair {
                [high, low] => digit(*high).ok_or_else(wrong)? << 4 | digit(*low).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            };
        }
        Ok(Self(bytes))
    }
}

/// The text of a list of events. Written by hand: every transaction does it for all that happened in it.
pub(crate) fn list(events: &[Event]) -> Result<String, ReadError> {
    let mut text = Vec::with_capacity(LISTED_BYTES * events.len());
    for Event { event, hash, .. } in events {
        text.extend_from_slice(if text.is_empty() { b"[{\"at\":" } else { b",{\"at\":" });
        value(&mut text, &event.at.0)?;
        if let Some(id) = event.execution_id {
            hex(&mut text, b",\"execution\":\"", &id.to_bytes());
        }
        if let Some(id) = event.round_id {
            hex(&mut text, b",\"round\":\"", &id.to_bytes());
        }
        if let Some(principal) = &event.principal {
            text.extend_from_slice(b",\"principal\":");
            value(&mut text, principal)?;
        }
        if let Some(channel) = event.channel {
            text.extend_from_slice(b",\"channel\":");
            value(&mut text, &channel)?;
        }
        text.extend_from_slice(b",\"body\":");
        value(&mut text, &event.body)?;
        hex(&mut text, b",\"hash\":\"", hash);
        text.push(b'}');
    }
    text.push(b']');
    String::from_utf8(text).map_err(|_| ReadError::Corrupt("event"))
}

/// What most events take in a list; longer ones take longer.
const LISTED_BYTES: usize = 352;

fn value(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), ReadError> {
    serde_json::to_writer(text, value).map_err(|_| ReadError::Corrupt("event"))
}

fn hex<const BYTES: usize>(text: &mut Vec<u8>, before: &[u8], bytes: &[u8; BYTES]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| DIGITS.get(usize::from(four)).copied().unwrap_or_default();
    let mut digits = [[0; 2]; BYTES];
    for (pair, byte) in digits.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    text.extend_from_slice(before);
    text.extend_from_slice(digits.as_flattened());
    text.push(b'"');
}

/// The events of a list that ends with number `last_seq`.
fn unlist(last_seq: u64, previous_hash: [u8; 32], text: &str) -> Result<Vec<Event>, ReadError> {
    let corrupt = || ReadError::Corrupt("event");
    let listed: Vec<Listed> = serde_json::from_str(text).map_err(|_| corrupt())?;
    let before = u64::try_from(listed.len()).ok().and_then(|count| last_seq.checked_sub(count)).ok_or_else(corrupt)?;
    let mut previous_hash = previous_hash;
    let events = listed.into_iter().zip(before.saturating_add(1)..).map(|(event, seq)| {
        let hash = event.hash.0;
        let placed = Event {
            seq,
            event: NewEvent {
                at: UnixMs(event.at),
                execution_id: event.execution.map(|id| ExecutionId::from_bytes(id.0)),
                round_id: event.round.map(|id| RoundId::from_bytes(id.0)),
                principal: event.principal,
                channel: event.channel,
                body: event.body,
            },
            previous_hash,
            hash,
        };
        previous_hash = hash;
        placed
    });
    Ok(events.collect())
}

pub(crate) fn events_after(db: &Connection, seq: u64, limit: usize) -> Result<Vec<Event>, ReadError> {
    let after = i64::try_from(seq).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(
        "SELECT last_seq, previous_hash, events FROM event_groups WHERE last_seq > ?1 ORDER BY last_seq LIMIT ?2",
    )?;
    let mut groups = statement.query(params![after, row_count(limit)])?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = groups.next()?
    {
        let last_seq = u64::try_from(row.get::<_, i64>(0)?).map_err(|_| ReadError::Corrupt("event"))?;
        let text = row.get_ref(2)?.as_str().map_err(|_| ReadError::Corrupt("event"))?;
        events.extend(unlist(last_seq, row.get(1)?, text)?.into_iter().filter(|event| event.seq > seq));
    }
    events.truncate(limit);
    Ok(events)
}

/// The number and hash of the last event; zeros before the first.
pub(crate) fn last_event(db: &Connection) -> Result<(u64, [u8; 32]), ReadError> {
    let mut statement =
        db.prepare_cached("SELECT last_seq, previous_hash, events FROM event_groups ORDER BY last_seq DESC LIMIT 1")?;
    let last = first(&mut statement.query([])?, |row| {
        let corrupt = || ReadError::Corrupt("event");
        let last_seq = u64::try_from(row.get::<_, i64>(0)?).map_err(|_| corrupt())?;
        let text = row.get_ref(2)?.as_str().map_err(|_| corrupt())?;
        let events = unlist(last_seq, row.get(1)?, text)?;
        events.last().map(|event| (event.seq, event.hash)).ok_or_else(corrupt)
    })?;
    Ok(last.unwrap_or((0, [0; 32])))
}
