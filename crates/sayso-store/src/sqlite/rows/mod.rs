//! Reading rows back into what core knows. A row that says something else is corrupt, and is never guessed at.

mod events;
mod executions;
mod grants;
mod reviewed;
mod rounds;
mod sweep;
mod tokens;

pub(super) use events::{events_after, last_event, list as event_list};
pub(super) use executions::{
    COLUMNS as EXECUTION_COLUMNS, execution, execution_with_pending, executions, owner, result,
};
pub(super) use grants::{COLUMNS as GRANT_COLUMNS, grant, grants};
pub(super) use reviewed::{reviewed, tools_reviewed};
pub(super) use rounds::{
    FACT_COLUMNS, answer, content, creation, details, numbered_round, operation, request_state, stored_round,
    stored_rounds, unfinished_rounds,
};
pub(super) use sweep::{abandoned, last_wait_ms, next_deadline, overdue};
pub(super) use tokens::{COLUMNS as TOKEN_COLUMNS, sessions, token, token_by_hash, tokens};

use rusqlite::Row;
use sayso_core::json::Json;
use sayso_core::time::UnixMs;

use super::reader::ReadError;

/// The rounds of an execution: each is in one of two indexes. `id` stands for the execution's.
fn of_execution(id: &str) -> String {
    format!("(own_execution IS NULL AND execution_id = {id} OR own_execution IS NOT NULL AND execution_id = {id})")
}

/// A text column as JSON that was checked when it was written.
fn json(text: &str, what: &'static str) -> Result<Json, ReadError> {
    Json::parse_within(text, usize::MAX, sayso_core::limits::JSON_DEPTH_CEILING).map_err(|_| ReadError::Corrupt(what))
}

fn moment(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<UnixMs>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(UnixMs))
}

/// A word of a closed set.
fn word<T>(
    row: &Row<'_>,
    at: usize,
    parse: impl FnOnce(&str) -> Option<T>,
    what: &'static str,
) -> Result<T, ReadError> {
    parse(row.get_ref(at)?.as_str().map_err(|_| ReadError::Corrupt(what))?).ok_or(ReadError::Corrupt(what))
}

/// A word of a closed set, or nothing.
fn maybe_word<T>(
    row: &Row<'_>,
    at: usize,
    parse: impl FnOnce(&str) -> Option<T>,
    what: &'static str,
) -> Result<Option<T>, ReadError> {
    match row.get_ref(at)?.as_str_or_null().map_err(|_| ReadError::Corrupt(what))? {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or(ReadError::Corrupt(what)),
    }
}

/// The first row, read by `read`.
fn first<T>(
    rows: &mut rusqlite::Rows<'_>,
    read: impl FnOnce(&Row<'_>) -> Result<T, ReadError>,
) -> Result<Option<T>, ReadError> {
    rows.next()?.map(read).transpose()
}

/// Every row, read by `read`.
fn every<T>(
    mut rows: rusqlite::Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

fn row_count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
