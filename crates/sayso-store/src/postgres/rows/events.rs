use sayso_core::event::{Event, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt};
use super::row_count;

/// An event that has no place in the chain yet, with where it was written.
pub(crate) struct EventRow {
    pub(crate) position: i64,
    pub(crate) event: NewEvent,
}

/// Reads at, execution_id, round_id, principal, channel and body, which follow column `at`.
fn read_body(columns: &Columns<'_>, at: usize) -> Result<NewEvent, Corrupt> {
    Ok(NewEvent {
        at: columns.time(at)?,
        execution_id: columns.maybe_id(at + 1, ExecutionId::from_bytes)?,
        round_id: columns.maybe_id(at + 2, RoundId::from_bytes)?,
        principal: columns.maybe_word(at + 3, Principal::parse)?,
        channel: columns.maybe_word(at + 4, Channel::parse)?,
        body: serde_json::from_str(columns.get(at + 5)?).map_err(|_| columns.corrupt())?,
    })
}

pub(crate) fn read_new_event(row: &Row) -> Result<EventRow, Corrupt> {
    let columns = Columns::of(row, "event");
    Ok(EventRow { position: columns.get(0)?, event: read_body(&columns, 1)? })
}

fn read(row: &Row) -> Result<Event, Corrupt> {
    let columns = Columns::of(row, "event");
    Ok(Event {
        seq: u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?,
        event: read_body(&columns, 1)?,
        previous_hash: columns.hash(7)?,
        hash: columns.hash(8)?,
    })
}

pub(crate) async fn events_after(db: &mut Taken<'_>, seq: u64, limit: usize) -> Result<Vec<Event>, Failure> {
    let sql = "SELECT seq, at, execution_id, round_id, principal, channel, body, previous_hash, hash FROM events
        WHERE seq > $1 ORDER BY seq LIMIT $2";
    let after = i64::try_from(seq).unwrap_or(i64::MAX);
    let found = db.query(sql, &[&after, &row_count(limit)]).await?;
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

/// The number of the last event in the chain; 0 before the first.
pub(crate) async fn last_event(db: &mut Taken<'_>) -> Result<u64, Failure> {
    let found = db.first("SELECT last_seq FROM sequencer", &[]).await?.ok_or(Corrupt("event"))?;
    let columns = Columns::of(&found, "event");
    Ok(u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?)
}

/// Where the last event stands that waits for its place in the chain.
pub(crate) async fn unsequenced(db: &mut Taken<'_>) -> Result<Option<i64>, Failure> {
    let found = db.first("SELECT max(position) FROM new_events", &[]).await?.ok_or(Corrupt("event"))?;
    Ok(Columns::of(&found, "event").get(0)?)
}

/// Whether an event up to `position` still waits.
pub(crate) async fn unsequenced_up_to(db: &mut Taken<'_>, position: i64) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM new_events WHERE position <= $1)";
    let found = db.first(sql, &[&position]).await?.ok_or(Corrupt("event"))?;
    Ok(Columns::of(&found, "event").get(0)?)
}
