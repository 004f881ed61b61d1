use rusqlite::{Connection, params};
use sayso_core::principal::Principal;
use sayso_core::round::Digest;

use super::super::reader::ReadError;
use super::first;

pub(crate) fn reviewed(db: &Connection, by: &Principal, tool: &str) -> Result<Option<Digest>, ReadError> {
    let mut statement = db.prepare_cached("SELECT definition FROM reviewed WHERE agent = ?1 AND tool = ?2")?;
    first(&mut statement.query(params![by.to_string(), tool])?, |row| Ok(Digest::from_bytes(row.get(0)?)))
}

pub(crate) fn tools_reviewed(db: &Connection, by: &Principal) -> Result<usize, ReadError> {
    let mut statement = db.prepare_cached("SELECT count(*) FROM reviewed WHERE agent = ?1")?;
    let count: i64 = statement.query_row(params![by.to_string()], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
