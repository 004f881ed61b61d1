use rusqlite::{Connection, Row, params};
use sayso_core::execution::{Execution, ExecutionKind, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::principal::Principal;
use sayso_core::round::Failure;
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, json, maybe_word, moment, of_execution, row_count, word};
use crate::ExecutionFilter;
use crate::pending::PENDING;

/// The columns of an execution's row in the order they are written. How many of its rounds are pending is counted.
pub(crate) const COLUMNS: &str = "id, kind, started_by, holder, ends_with_round, created_at, finished_at, outcome, failure_code, \
    failure_message, collected_at";
/// The columns of the view in the order they are read.
const READ: &str = "id, kind, started_by, owner, ends_with_round, created_at, finished_at, outcome, failure_code, \
    failure_message, collected_at";

/// The row; its pending rounds are not counted yet.
fn read(row: &Row<'_>) -> Result<Execution, ReadError> {
    let failure = match (row.get(8)?, row.get(9)?) {
        (Some(code), Some(message)) => Some(Failure { code, message }),
        _ => None,
    };
    let outcome = maybe_word(row, 7, |word| Some(word.to_owned()), "execution")?;
    let outcome = match (outcome.as_deref(), failure) {
        (None, None) => None,
        (Some("completed"), None) => Some(Outcome::Completed),
        (Some("cancelled"), None) => Some(Outcome::Cancelled),
        (Some("lost"), None) => Some(Outcome::Lost),
        (Some("failed"), Some(failure)) => Some(Outcome::Failed(failure)),
        _ => return Err(ReadError::Corrupt("execution")),
    };
    Ok(Execution {
        id: ExecutionId::from_bytes(row.get(0)?),
        kind: word(row, 1, ExecutionKind::parse, "execution")?,
        started_by: word(row, 2, Principal::parse, "execution")?,
        owner: row.get(3)?,
        ends_with_round: row.get(4)?,
        pending_inputs: 0,
        pending_approvals: 0,
        created_at: UnixMs(row.get(5)?),
        finished_at: moment(row, 6)?,
        outcome,
        collected_at: moment(row, 10)?,
    })
}

/// The execution, and the round that says it where it has no row.
pub(crate) fn execution(db: &Connection, id: ExecutionId) -> Result<Option<(Execution, Option<RoundId>)>, ReadError> {
    let mut statement = db.prepare_cached(&format!("SELECT {READ}, own_round FROM executions WHERE id = ?1"))?;
    let found = first(&mut statement.query(params![id.to_bytes()])?, |row| {
        Ok((read(row)?, row.get::<_, Option<_>>(11)?.map(RoundId::from_bytes)))
    })?;
    found.map(|(execution, own)| Ok((with_pending(db, execution)?.0, own))).transpose()
}

pub(crate) fn execution_with_pending(
    db: &Connection,
    id: ExecutionId,
) -> Result<Option<(Execution, Vec<RoundId>)>, ReadError> {
    let mut statement = db.prepare_cached(&format!("SELECT {READ} FROM executions WHERE id = ?1"))?;
    first(&mut statement.query(params![id.to_bytes()])?, read)?.map(|found| with_pending(db, found)).transpose()
}

/// Counts the pending rounds of an execution, and names them.
fn with_pending(db: &Connection, mut execution: Execution) -> Result<(Execution, Vec<RoundId>), ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT facts.id, has_approval FROM round_facts AS facts CROSS JOIN round_states AS states ON states.n = facts.n
         WHERE {} AND {PENDING} ORDER BY facts.id",
        of_execution("?1")
    ))?;
    let pending = every(statement.query(params![execution.id.to_bytes()])?, |row| {
        Ok((RoundId::from_bytes(row.get(0)?), row.get::<_, bool>(1)?))
    })?;
    for (_, has_approval) in &pending {
        let count = if *has_approval { &mut execution.pending_approvals } else { &mut execution.pending_inputs };
        *count = count.saturating_add(1);
    }
    Ok((execution, pending.into_iter().map(|(id, _)| id).collect()))
}

/// A page of those with rows and one of the others, each in the order of its index, and the newest of both.
fn page() -> String {
    let page = "id < ?2 AND (?1 IS NULL OR started_by = ?1) ORDER BY id DESC LIMIT ?3";
    format!(
        "SELECT * FROM (SELECT {READ} FROM execution_states LEFT JOIN owners ON owners.n = holder WHERE {page})
         UNION ALL SELECT * FROM (SELECT {READ} FROM own_executions WHERE {page})
         ORDER BY id DESC LIMIT ?3"
    )
}

pub(crate) fn executions(
    db: &Connection,
    filter: &ExecutionFilter,
) -> Result<Vec<(Execution, Vec<RoundId>)>, ReadError> {
    let mut statement = db.prepare_cached(&page())?;
    let starter = filter.started_by.as_ref().map(ToString::to_string);
    let before = filter.before.map_or([u8::MAX; 16], ExecutionId::to_bytes);
    let found = every(statement.query(params![starter, before, row_count(filter.limit)])?, read)?;
    found.into_iter().map(|execution| with_pending(db, execution)).collect()
}

pub(crate) fn result(db: &Connection, id: ExecutionId) -> Result<Option<Json>, ReadError> {
    let mut statement = db.prepare_cached("SELECT result FROM results WHERE execution_id = ?1")?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| json(&row.get::<_, String>(0)?, "result"))
}

pub(crate) fn owner(db: &Connection, owner: &str) -> Result<Option<UnixMs>, ReadError> {
    let mut statement = db.prepare_cached("SELECT expires_at FROM owners WHERE owner = ?1")?;
    Ok(first(&mut statement.query(params![owner])?, |row| Ok(moment(row, 0)?))?.flatten())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::sqlite::{open, rows};

    /// A database with so many executions of each kind and a round in each, all in a worker that lives.
    fn filled(folder: &tempfile::TempDir, many: usize) -> Connection {
        let path = open::prepare_file(&folder.path().join(format!("{many}.sqlite"))).expect("a file");
        let db = open::connection(&path).expect("opens");
        open::migrate(&db).expect("has its schema");
        let id = "CAST(printf('%016d', i) AS BLOB)";
        db.execute_batch(&format!(
            "INSERT INTO owners VALUES (1, 'own_lives', 9);
             CREATE TEMP TABLE numbers AS
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2 * {many}) SELECT i FROM n;
             INSERT INTO round_facts SELECT i, {id}, {id}, 'main', 'files', 'tool', 'read', 'agent a', 'live', 0, 10, 1, zeroblob(32), 0,
                 '{{}}', '[]', NULL, iif(i % 2, 'agent', NULL) FROM numbers;
             INSERT INTO round_states (n, id, status, rev, holder, token, held, delivery_attempts)
                 SELECT i, {id}, 'pending', 1, 1, zeroblob(16), 1, 0 FROM numbers;
             INSERT INTO execution_states (id, kind, started_by, holder, ends_with_round, created_at)
                 SELECT {id}, 'agent', 'agent a', 1, 0, 1 FROM numbers WHERE i % 2 = 0;"
        ))
        .expect("is filled");
        db
    }

    #[test]
    fn what_is_asked_of_executions_takes_as_many_steps_however_many_there_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let [few, many] = [10, 2_000].map(|many| {
            let mut db = filled(&folder, many);
            let steps = Arc::new(AtomicUsize::new(0));
            let counting = steps.clone();
            let count = move || {
                counting.fetch_add(1, Ordering::Relaxed);
                false
            };
            db.progress_handler(1, Some(count)).expect("counts");
            let mut taken = Vec::new();
            let mut took = |what| taken.push((what, steps.swap(0, Ordering::Relaxed)));
            let filter = ExecutionFilter { limit: 4, ..ExecutionFilter::default() };
            assert_eq!(executions(&db, &filter).expect("are read").len(), 4);
            took("a page");
            for n in 7..=8_u8 {
                let id = ExecutionId::from_bytes(format!("{n:016}").into_bytes().try_into().expect("16 bytes"));
                let (_, own) = execution(&db, id).expect("is read").expect("is there");
                assert_eq!(own.is_some(), n == 7);
                took("one");
                assert_eq!(rows::unfinished_rounds(&db, id).expect("are read").len(), 1);
                took("its rounds");
                assert!(rows::operation(&db, id, "main").expect("is read").is_some());
                took("its operation");
            }
            assert_eq!(rows::abandoned(&db, UnixMs(8), 4).expect("are read"), []);
            took("a sweep");
            taken
        });
        for ((what, few), (_, many)) in few.into_iter().zip(many) {
            assert!(few > 0 && many <= few + few / 4, "{what}: {many} steps in the place of {few}");
        }
    }
}
