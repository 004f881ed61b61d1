use sayso_core::execution::{Execution, ExecutionKind, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::principal::Principal;
use sayso_core::round;
use sayso_core::time::UnixMs;
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt, Key};
use super::row_count;
use crate::ExecutionFilter;

pub(crate) const COLUMNS: &str = "id, kind, started_by, owner, ends_with_round, pending_inputs, pending_approvals, \
    created_at, finished_at, outcome, failure_code, failure_message, collected_at";
pub(crate) const COLUMN_COUNT: usize = 13;

/// An execution's pending rounds, in order of their creation.
const PENDING: &str = "ARRAY(SELECT r.id FROM rounds r WHERE r.execution_id = executions.id AND r.answered_at IS NULL
           AND r.finished_at IS NULL ORDER BY r.id)";

pub(crate) fn read(row: &Row) -> Result<Execution, Corrupt> {
    read_from(row, 0)
}

/// Reads the columns that follow column `at`.
pub(crate) fn read_from(row: &Row, at: usize) -> Result<Execution, Corrupt> {
    let columns = Columns::of(row, "execution");
    let failure = columns.pair(columns.get::<Option<String>>(at + 10)?, columns.get::<Option<String>>(at + 11)?)?;
    let failure = failure.map(|(code, message)| round::Failure { code, message });
    let outcome = match (columns.get::<Option<&str>>(at + 9)?, failure) {
        (None, None) => None,
        (Some("completed"), None) => Some(Outcome::Completed),
        (Some("cancelled"), None) => Some(Outcome::Cancelled),
        (Some("lost"), None) => Some(Outcome::Lost),
        (Some("failed"), Some(failure)) => Some(Outcome::Failed(failure)),
        _ => return Err(columns.corrupt()),
    };
    Ok(Execution {
        id: columns.id(at, ExecutionId::from_bytes)?,
        kind: columns.word(at + 1, ExecutionKind::parse)?,
        started_by: columns.word(at + 2, Principal::parse)?,
        owner: columns.get(at + 3)?,
        ends_with_round: columns.get(at + 4)?,
        pending_inputs: columns.count(at + 5)?,
        pending_approvals: columns.count(at + 6)?,
        created_at: columns.time(at + 7)?,
        finished_at: columns.maybe_time(at + 8)?,
        outcome,
        collected_at: columns.maybe_time(at + 12)?,
    })
}

fn read_with_pending(row: &Row) -> Result<(Execution, Vec<RoundId>), Corrupt> {
    let pending: Vec<Key> = Columns::of(row, "execution").get(COLUMN_COUNT)?;
    Ok((read(row)?, pending.into_iter().map(|key| RoundId::from_bytes(key.0)).collect()))
}

pub(crate) async fn execution_with_pending(
    db: &mut Taken<'_>,
    id: ExecutionId,
) -> Result<Option<(Execution, Vec<RoundId>)>, Failure> {
    let sql = format!("SELECT {COLUMNS}, {PENDING} FROM executions WHERE id = $1");
    let found = db.first(&sql, &[&Key(id.to_bytes())]).await?;
    Ok(found.as_ref().map(read_with_pending).transpose()?)
}

pub(crate) async fn executions(
    db: &mut Taken<'_>,
    filter: &ExecutionFilter,
) -> Result<Vec<(Execution, Vec<RoundId>)>, Failure> {
    let sql = format!(
        "SELECT {COLUMNS}, {PENDING} FROM executions
         WHERE ($1::text IS NULL OR started_by = $1) AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
    );
    let starter = filter.started_by.as_ref().map(ToString::to_string);
    let before = filter.before.map(|id| Key(id.to_bytes()));
    let found = db.query(&sql, &[&starter, &before, &row_count(filter.limit)]).await?;
    Ok(found.iter().map(read_with_pending).collect::<Result<_, _>>()?)
}

pub(crate) async fn result(db: &mut Taken<'_>, id: ExecutionId) -> Result<Option<Json>, Failure> {
    let found = db.first("SELECT result FROM results WHERE execution_id = $1", &[&Key(id.to_bytes())]).await?;
    Ok(found.map(|row| Columns::of(&row, "result").json(0)).transpose()?)
}

pub(crate) async fn owner(db: &mut Taken<'_>, owner: &str) -> Result<Option<UnixMs>, Failure> {
    let Some(row) = db.first("SELECT expires_at FROM owners WHERE owner = $1", &[&owner]).await? else {
        return Ok(None);
    };
    Ok(Some(Columns::of(&row, "owner").time(0)?))
}
