//! Events, stored as lists: an array a column, as long as there were events in a transaction, or as there are in a part of the
//! chain.

use sayso_core::event::{Event, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::time::UnixMs;
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt, Key};
use super::row_count;

/// Lists that are read for a page of events, of which each list has at least one: so many in the first look, at least.
const LISTS_MIN: usize = 16;
/// What a list of a busy time holds at least.
const EVENTS_A_LIST: usize = 16;

/// Reads at, execution_id, round_id, principal, channel and body, which are the columns from `at`.
fn read_list(columns: &Columns<'_>, at: usize) -> Result<Vec<NewEvent>, Corrupt> {
    let times: Vec<i64> = columns.get(at)?;
    let executions: Vec<Option<Key>> = columns.get(at + 1)?;
    let rounds: Vec<Option<Key>> = columns.get(at + 2)?;
    let principals: Vec<Option<&str>> = columns.get(at + 3)?;
    let channels: Vec<Option<&str>> = columns.get(at + 4)?;
    let bodies: Vec<&str> = columns.get(at + 5)?;
    let lengths = [executions.len(), rounds.len(), principals.len(), channels.len(), bodies.len()];
    if times.is_empty() || lengths.iter().any(|length| *length != times.len()) {
        return Err(columns.corrupt());
    }
    let word = |ok: Option<()>| ok.ok_or(columns.corrupt());
    let mut events = Vec::with_capacity(times.len());
    let ids = executions.into_iter().zip(rounds);
    let who = principals.into_iter().zip(channels);
    for (((at, (execution, round)), (principal, channel)), body) in times.into_iter().zip(ids).zip(who).zip(bodies) {
        let (by, through) = (principal.and_then(Principal::parse), channel.and_then(Channel::parse));
        word((by.is_some() == principal.is_some() && through.is_some() == channel.is_some()).then_some(()))?;
        events.push(NewEvent {
            at: UnixMs(at),
            execution_id: execution.map(|key| ExecutionId::from_bytes(key.0)),
            round_id: round.map(|key| RoundId::from_bytes(key.0)),
            principal: by,
            channel: through,
            body: serde_json::from_str(body).map_err(|_| columns.corrupt())?,
        });
    }
    Ok(events)
}

/// Events that have no place in the chain yet, with where they were written.
pub(crate) fn read_new_events(row: &Row) -> Result<(i64, Vec<NewEvent>), Corrupt> {
    let columns = Columns::of(row, "event");
    Ok((columns.get(0)?, read_list(&columns, 1)?))
}

/// Reads a part of the chain.
fn read(row: &Row) -> Result<Vec<Event>, Corrupt> {
    let columns = Columns::of(row, "event");
    let last = u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?;
    let mut previous_hash = columns.hash(1)?;
    let list = read_list(&columns, 2)?;
    let hashes: Vec<&[u8]> = columns.get(8)?;
    if hashes.len() != list.len() {
        return Err(columns.corrupt());
    }
    let before = last.checked_sub(u64::try_from(list.len()).unwrap_or(u64::MAX)).ok_or(columns.corrupt())?;
    let mut events = Vec::with_capacity(list.len());
    for ((event, hash), seq) in list.into_iter().zip(hashes).zip(before + 1..) {
        let hash = hash.try_into().map_err(|_| columns.corrupt())?;
        events.push(Event { seq, event, previous_hash, hash });
        previous_hash = hash;
    }
    Ok(events)
}

pub(crate) async fn events_after(db: &mut Taken<'_>, seq: u64, limit: usize) -> Result<Vec<Event>, Failure> {
    let sql = "SELECT last_seq, previous_hash, at, execution_id, round_id, principal, channel, body, hash
        FROM event_groups WHERE last_seq > $1 ORDER BY last_seq LIMIT $2";
    let (mut events, mut after): (Vec<Event>, u64) = (Vec::new(), seq);
    while events.len() < limit {
        let lists = ((limit - events.len()) / EVENTS_A_LIST).max(LISTS_MIN);
        let found = db.query(sql, &[&i64::try_from(after).unwrap_or(i64::MAX), &row_count(lists)]).await?;
        for row in &found {
            events.extend(read(row)?.into_iter().filter(|event| event.seq > seq));
        }
        match events.last() {
            Some(last) if found.len() == lists => after = last.seq,
            _ => break,
        }
    }
    events.truncate(limit);
    Ok(events)
}

/// The number of the last event in the chain; 0 before the first.
pub(crate) async fn last_event(db: &mut Taken<'_>) -> Result<u64, Failure> {
    let found = db.first("SELECT last_seq FROM sequencer", &[]).await?.ok_or(Corrupt("event"))?;
    let columns = Columns::of(&found, "event");
    Ok(u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?)
}

/// Where the last events stand that wait for their place in the chain.
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
