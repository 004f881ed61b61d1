use rusqlite::{Connection, Row, params};
use sayso_core::command::{Token, TokenUse};
use sayso_core::id::TokenId;
use sayso_core::principal::Principal;
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, moment, word};

pub(crate) const COLUMNS: &str = "id, use, principal, hash, created_at, expires_at, revoked_at";

fn read(row: &Row<'_>) -> Result<Token, ReadError> {
    Ok(Token {
        id: TokenId::from_bytes(row.get(0)?),
        use_: word(row, 1, TokenUse::parse, "token")?,
        principal: word(row, 2, Principal::parse, "token")?,
        hash: row.get(3)?,
        created_at: UnixMs(row.get(4)?),
        expires_at: moment(row, 5)?,
        revoked_at: moment(row, 6)?,
    })
}

pub(crate) fn token_by_hash(db: &Connection, hash: &[u8; 32]) -> Result<Option<Token>, ReadError> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE hash = ?1"))?;
    first(&mut statement.query(params![hash])?, read)
}

pub(crate) fn token(db: &Connection, id: TokenId) -> Result<Option<Token>, ReadError> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE id = ?1"))?;
    first(&mut statement.query(params![id.to_bytes()])?, read)
}

pub(crate) fn tokens(db: &Connection) -> Result<Vec<Token>, ReadError> {
    let mut statement =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE use = 'api' ORDER BY id DESC"))?;
    every(statement.query([])?, read)
}

/// The unrevoked sessions and one-time links of a principal.
pub(crate) fn sessions(db: &Connection, principal: &Principal) -> Result<Vec<Token>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM tokens WHERE principal = ?1 AND use <> 'api' AND revoked_at IS NULL ORDER BY id"
    ))?;
    every(statement.query(params![principal.to_string()])?, read)
}
