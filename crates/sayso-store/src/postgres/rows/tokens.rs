use sayso_core::command::{Token, TokenUse};
use sayso_core::id::TokenId;
use sayso_core::principal::Principal;
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt};

pub(crate) const COLUMNS: &str = "id, use, principal, hash, created_at, expires_at, revoked_at";

pub(crate) fn read(row: &Row) -> Result<Token, Corrupt> {
    let columns = Columns::of(row, "token");
    Ok(Token {
        id: columns.id(0, TokenId::from_bytes)?,
        use_: columns.word(1, TokenUse::parse)?,
        principal: columns.word(2, Principal::parse)?,
        hash: columns.hash(3)?,
        created_at: columns.time(4)?,
        expires_at: columns.maybe_time(5)?,
        revoked_at: columns.maybe_time(6)?,
    })
}

pub(crate) async fn token_by_hash(db: &mut Taken<'_>, hash: [u8; 32]) -> Result<Option<Token>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tokens WHERE hash = $1");
    let found = db.first(&sql, &[&hash.as_slice()]).await?;
    Ok(found.as_ref().map(read).transpose()?)
}

pub(crate) async fn tokens(db: &mut Taken<'_>) -> Result<Vec<Token>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tokens WHERE use = 'api' ORDER BY id DESC");
    let found = db.query(&sql, &[]).await?;
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}
