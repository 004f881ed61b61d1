use sayso_core::id::{GrantId, RoundId};
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use tokio_postgres::Row;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::{Columns, Corrupt, Key};
use super::row_count;
use crate::pending::grant_scope;
use crate::{GrantFilter, GrantsOf};

pub(crate) const COLUMNS: &str =
    "id, scope, session, agent, round_id, granted_by, granted_at, expires_at, uses_max, uses, revoked_at";

pub(crate) fn read(row: &Row) -> Result<Grant, Corrupt> {
    let columns = Columns::of(row, "grant");
    let uses_max = columns.get::<Option<i64>>(8)?.map(u32::try_from).transpose();
    Ok(Grant {
        id: columns.id(0, GrantId::from_bytes)?,
        scope: columns.word(1, grant_scope)?,
        agent: columns.maybe_word(3, Principal::parse)?,
        round: columns.maybe_id(4, RoundId::from_bytes)?,
        granted_by: columns.word(5, Principal::parse)?,
        granted_at: columns.time(6)?,
        expires_at: columns.maybe_time(7)?,
        uses_max: uses_max.map_err(|_| columns.corrupt())?,
        uses: columns.count(9)?,
        revoked_at: columns.maybe_time(10)?,
    })
}

pub(crate) async fn grant(db: &mut Taken<'_>, id: GrantId) -> Result<Option<Grant>, Failure> {
    let found = db.first(&format!("SELECT {COLUMNS} FROM grants WHERE id = $1"), &[&Key(id.to_bytes())]).await?;
    Ok(found.as_ref().map(read).transpose()?)
}

pub(crate) async fn grants(db: &mut Taken<'_>, filter: &GrantFilter) -> Result<Vec<Grant>, Failure> {
    let (of, session) = match &filter.of {
        GrantsOf::All => ("$1::text IS NULL", None),
        GrantsOf::Session(session) => ("session = $1", Some(session)),
        GrantsOf::CallsIn(session) => ("(session = $1 OR session IS NULL)", Some(session)),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM grants WHERE {of}
         AND ($2::bigint IS NULL OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)
              AND (uses_max IS NULL OR uses < uses_max)))
         AND ($3::uuid IS NULL OR id < $3) ORDER BY id DESC LIMIT $4"
    );
    let before = filter.before.map(|id| Key(id.to_bytes()));
    let usable_at = filter.usable_at.map(|at| at.0);
    let found = db.query(&sql, &[&session, &usable_at, &before, &row_count(filter.limit)]).await?;
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}
