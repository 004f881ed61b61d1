use std::sync::LazyLock;

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
use crate::pending::PENDING;

/// The columns of an execution's row in the order they are read and written. How many of its rounds are pending is counted.
pub(crate) const COLUMNS: &str = "id, kind, started_by, owner, ends_with_round, created_at, finished_at, outcome, \
    failure_code, failure_message, collected_at";
pub(crate) const COLUMN_COUNT: usize = 11;

/// An execution's pending rounds in order of their creation, and whether each has an approval.
static PENDING_ROUNDS: LazyLock<String> = LazyLock::new(|| {
    let array = |column: &str| {
        format!(
            "ARRAY(SELECT r.{column} FROM rounds r WHERE r.execution_id = executions.id AND {PENDING} ORDER BY r.id)"
        )
    };
    format!("{}, {}", array("id"), array("has_approval"))
});

/// The row; its pending rounds are not counted yet.
pub(crate) fn read(row: &Row) -> Result<Execution, Corrupt> {
    read_from(row, 0)
}

/// Reads the columns that follow column `at`, as [`read`].
pub(crate) fn read_from(row: &Row, at: usize) -> Result<Execution, Corrupt> {
    let columns = Columns::of(row, "execution");
    let failure = columns.pair(columns.get::<Option<String>>(at + 8)?, columns.get::<Option<String>>(at + 9)?)?;
    let failure = failure.map(|(code, message)| round::Failure { code, message });
    let outcome = match (columns.get::<Option<&str>>(at + 7)?, failure) {
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
        pending_inputs: 0,
        pending_approvals: 0,
        created_at: columns.time(at + 5)?,
        finished_at: columns.maybe_time(at + 6)?,
        outcome,
        collected_at: columns.maybe_time(at + 10)?,
    })
}

fn read_with_pending(row: &Row) -> Result<(Execution, Vec<RoundId>), Corrupt> {
    let columns = Columns::of(row, "execution");
    let pending: Vec<Key> = columns.get(COLUMN_COUNT)?;
    let mut execution = read(row)?;
    for has_approval in columns.get::<Vec<bool>>(COLUMN_COUNT + 1)? {
        let count = if has_approval { &mut execution.pending_approvals } else { &mut execution.pending_inputs };
        *count = count.saturating_add(1);
    }
    Ok((execution, pending.into_iter().map(|key| RoundId::from_bytes(key.0)).collect()))
}

pub(crate) async fn execution_with_pending(
    db: &mut Taken<'_>,
    id: ExecutionId,
) -> Result<Option<(Execution, Vec<RoundId>)>, Failure> {
    let sql = format!("SELECT {COLUMNS}, {} FROM executions WHERE id = $1", *PENDING_ROUNDS);
    let found = db.first(&sql, &[&Key(id.to_bytes())]).await?;
    Ok(found.as_ref().map(read_with_pending).transpose()?)
}

pub(crate) async fn executions(
    db: &mut Taken<'_>,
    filter: &ExecutionFilter,
) -> Result<Vec<(Execution, Vec<RoundId>)>, Failure> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM executions
         WHERE ($1::text IS NULL OR started_by = $1) AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3",
        *PENDING_ROUNDS
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
