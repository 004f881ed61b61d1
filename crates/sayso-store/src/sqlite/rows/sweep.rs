//! What a sweeper looks for.

use rusqlite::{Connection, params};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::{Fence, FenceToken};
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, of_execution, row_count};
use crate::Abandoned;
use crate::pending::PENDING;

pub(crate) fn overdue(db: &Connection, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT id FROM round_states WHERE {PENDING} AND deadline IS NOT NULL AND deadline < ?1 ORDER BY deadline LIMIT ?2"
    ))?;
    every(statement.query(params![now.0, row_count(limit)])?, |row| Ok(RoundId::from_bytes(row.get(0)?)))
}

pub(crate) fn next_deadline(db: &Connection) -> Result<Option<UnixMs>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT deadline FROM round_states WHERE {PENDING} AND deadline IS NOT NULL ORDER BY deadline LIMIT 1"
    ))?;
    first(&mut statement.query([])?, |row| Ok(UnixMs(row.get(0)?)))
}

pub(crate) fn abandoned(db: &Connection, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, ReadError> {
    let mut held = db.prepare_cached(
        "SELECT states.id, execution_id, owner, token, expires_at
         FROM owners CROSS JOIN round_states AS states ON held = owners.n CROSS JOIN round_facts AS facts ON facts.n = states.n
         WHERE (expires_at IS NULL OR expires_at <= ?1) AND finished_at IS NULL
         ORDER BY held, states.n LIMIT ?2",
    )?;
    let mut all = every(held.query(params![now.0, row_count(limit)])?, |row| {
        let owner: String = row.get(2)?;
        let token = FenceToken(u128::from_be_bytes(row.get(3)?));
        Ok(Abandoned {
            round: Some((RoundId::from_bytes(row.get(0)?), Fence { owner: owner.clone(), token })),
            execution: ExecutionId::from_bytes(row.get(1)?),
            owner,
            expired_at: row.get::<_, Option<i64>>(4)?.map(UnixMs),
        })
    })?;
    let mut running = db.prepare_cached(&format!(
        "SELECT states.id, owner, expires_at, holder FROM owners CROSS JOIN execution_states AS states ON holder = owners.n
         WHERE (expires_at IS NULL OR expires_at <= ?1) AND outcome IS NULL
           AND NOT EXISTS (SELECT 1 FROM round_facts JOIN round_states USING (n)
                           WHERE {} AND round_states.finished_at IS NULL)
         UNION ALL
         SELECT execution_id, owner, expires_at, held
         FROM owners CROSS JOIN round_states AS states ON held = owners.n CROSS JOIN round_facts AS facts ON facts.n = states.n
         WHERE (expires_at IS NULL OR expires_at <= ?1) AND finished_at IS NOT NULL
         ORDER BY 4, 1 LIMIT ?2",
        of_execution("states.id")
    ))?;
    all.extend(every(running.query(params![now.0, row_count(limit)])?, |row| {
        Ok(Abandoned {
            round: None,
            execution: ExecutionId::from_bytes(row.get(0)?),
            owner: row.get(1)?,
            expired_at: row.get::<_, Option<i64>>(2)?.map(UnixMs),
        })
    })?);
    Ok(all)
}

pub(crate) fn last_wait_ms(db: &Connection, server: &str) -> Result<Option<i64>, ReadError> {
    let mut statement = db.prepare_cached(
        "SELECT finished_at - created_at FROM round_states JOIN round_facts USING (n) WHERE withdrawn_from = ?1
         ORDER BY finished_at DESC LIMIT 1",
    )?;
    first(&mut statement.query(params![server])?, |row| Ok(row.get(0)?))
}
