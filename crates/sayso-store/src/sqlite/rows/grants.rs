use rusqlite::{Connection, Row, params};
use sayso_core::id::{GrantId, RoundId};
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, maybe_word, moment, row_count, word};
use crate::pending::grant_scope;
use crate::{GrantFilter, GrantsOf};

pub(crate) const COLUMNS: &str =
    "id, scope, session, agent, round_id, granted_by, granted_at, expires_at, uses_max, uses, revoked_at";

fn read(row: &Row<'_>) -> Result<Grant, ReadError> {
    Ok(Grant {
        id: GrantId::from_bytes(row.get(0)?),
        scope: word(row, 1, grant_scope, "grant")?,
        agent: maybe_word(row, 3, Principal::parse, "grant")?,
        round: row.get::<_, Option<_>>(4)?.map(RoundId::from_bytes),
        granted_by: word(row, 5, Principal::parse, "grant")?,
        granted_at: UnixMs(row.get(6)?),
        expires_at: moment(row, 7)?,
        uses_max: row.get(8)?,
        uses: row.get(9)?,
        revoked_at: moment(row, 10)?,
    })
}

pub(crate) fn grant(db: &Connection, id: GrantId) -> Result<Option<Grant>, ReadError> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM grants WHERE id = ?1"))?;
    first(&mut statement.query(params![id.to_bytes()])?, read)
}

pub(crate) fn grants(db: &Connection, filter: &GrantFilter) -> Result<Vec<Grant>, ReadError> {
    let (of, session) = match &filter.of {
        GrantsOf::All => ("?1 IS NULL", None),
        GrantsOf::Session(session) => ("session = ?1", Some(session)),
        GrantsOf::CallsIn(session) => ("(session = ?1 OR session IS NULL)", Some(session)),
    };
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM grants WHERE {of}
         AND (?2 IS NULL OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)
              AND (uses_max IS NULL OR uses < uses_max)))
         AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4"
    ))?;
    let before = filter.before.map(GrantId::to_bytes);
    let usable_at = filter.usable_at.map(|at| at.0);
    every(statement.query(params![session, usable_at, before, row_count(filter.limit)])?, read)
}
