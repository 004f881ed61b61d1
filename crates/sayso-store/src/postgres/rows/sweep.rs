//! What a sweeper looks for.

use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::{Fence, FenceToken};
use sayso_core::time::UnixMs;
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt};
use super::row_count;
use crate::Abandoned;
use crate::pending::PENDING;

pub(crate) async fn overdue(db: &mut Taken<'_>, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Failure> {
    let sql = format!(
        "SELECT id FROM round_states WHERE {PENDING} AND deadline IS NOT NULL AND deadline < $1 ORDER BY deadline LIMIT $2"
    );
    let found = db.query(&sql, &[&now.0, &row_count(limit)]).await?;
    Ok(found.iter().map(|row| Columns::of(row, "round").id(0, RoundId::from_bytes)).collect::<Result<_, _>>()?)
}

pub(crate) async fn next_deadline(db: &mut Taken<'_>) -> Result<Option<UnixMs>, Failure> {
    let sql =
        format!("SELECT deadline FROM round_states WHERE {PENDING} AND deadline IS NOT NULL ORDER BY deadline LIMIT 1");
    let found = db.first(&sql, &[]).await?;
    Ok(found.map(|row| Columns::of(&row, "round").time(0)).transpose()?)
}

fn read_held(row: &Row) -> Result<Abandoned, Corrupt> {
    let columns = Columns::of(row, "round");
    let owner: String = columns.get(2)?;
    let token = columns.id(3, |bytes| FenceToken(u128::from_be_bytes(bytes)))?;
    Ok(Abandoned {
        round: Some((columns.id(0, RoundId::from_bytes)?, Fence { owner: owner.clone(), token })),
        execution: columns.id(1, ExecutionId::from_bytes)?,
        owner,
        expired_at: columns.maybe_time(4)?,
    })
}

fn read_running(row: &Row) -> Result<Abandoned, Corrupt> {
    let columns = Columns::of(row, "execution");
    Ok(Abandoned {
        round: None,
        execution: columns.id(0, ExecutionId::from_bytes)?,
        owner: columns.get(1)?,
        expired_at: columns.maybe_time(2)?,
    })
}

pub(crate) async fn abandoned(db: &mut Taken<'_>, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Failure> {
    let held = "SELECT rounds.id, rounds.execution_id, rounds.owner, rounds.token, owners.expires_at
        FROM rounds LEFT JOIN owners ON owners.owner = rounds.owner
        WHERE rounds.owner IS NOT NULL AND rounds.finished_at IS NULL AND rounds.delivery = 'live'
          AND (owners.expires_at IS NULL OR owners.expires_at <= $1)
        ORDER BY rounds.owner, rounds.id LIMIT $2";
    let running = "SELECT executions.id, executions.owner, owners.expires_at
        FROM executions LEFT JOIN owners ON owners.owner = executions.owner
        WHERE executions.owner IS NOT NULL AND executions.outcome IS NULL
          AND (owners.expires_at IS NULL OR owners.expires_at <= $1)
          AND NOT EXISTS (SELECT 1 FROM rounds WHERE rounds.execution_id = executions.id
                          AND rounds.finished_at IS NULL)
        ORDER BY executions.owner, executions.id LIMIT $2";
    let found = db.query(held, &[&now.0, &row_count(limit)]).await?;
    let mut all: Vec<_> = found.iter().map(read_held).collect::<Result<_, _>>()?;
    for row in db.query(running, &[&now.0, &row_count(limit)]).await? {
        all.push(read_running(&row)?);
    }
    Ok(all)
}

pub(crate) async fn last_wait_ms(db: &mut Taken<'_>, server: &str) -> Result<Option<i64>, Failure> {
    let sql = "SELECT finished_at - created_at FROM rounds WHERE withdrawn_from = $1
        ORDER BY finished_at DESC LIMIT 1";
    let found = db.first(sql, &[&server]).await?;
    Ok(found.map(|row| Columns::of(&row, "round").get(0)).transpose()?)
}
