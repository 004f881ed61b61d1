use rusqlite::{Connection, params};
use sayso_core::event::{Event, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, maybe_word, row_count};

pub(crate) fn events_after(db: &Connection, seq: u64, limit: usize) -> Result<Vec<Event>, ReadError> {
    let corrupt = || ReadError::Corrupt("event");
    let mut statement = db.prepare_cached(
        "SELECT seq, at, execution_id, round_id, principal, channel, body, previous_hash, hash FROM events
         WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let after = i64::try_from(seq).unwrap_or(i64::MAX);
    every(statement.query(params![after, row_count(limit)])?, |row| {
        Ok(Event {
            seq: u64::try_from(row.get::<_, i64>(0)?).map_err(|_| corrupt())?,
            event: NewEvent {
                at: UnixMs(row.get(1)?),
                execution_id: row.get::<_, Option<_>>(2)?.map(ExecutionId::from_bytes),
                round_id: row.get::<_, Option<_>>(3)?.map(RoundId::from_bytes),
                principal: maybe_word(row, 4, Principal::parse, "event")?,
                channel: maybe_word(row, 5, Channel::parse, "event")?,
                body: serde_json::from_str(&row.get::<_, String>(6)?).map_err(|_| corrupt())?,
            },
            previous_hash: row.get(7)?,
            hash: row.get(8)?,
        })
    })
}

/// The number and hash of the last event; zeros before the first.
pub(crate) fn last_event(db: &Connection) -> Result<(u64, [u8; 32]), ReadError> {
    let mut statement = db.prepare_cached("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")?;
    let last = first(&mut statement.query([])?, |row| {
        let seq = u64::try_from(row.get::<_, i64>(0)?).map_err(|_| ReadError::Corrupt("event"))?;
        Ok((seq, row.get(1)?))
    })?;
    Ok(last.unwrap_or((0, [0; 32])))
}
