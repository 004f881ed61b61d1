//! Bringing the schema up to date.

use sayso_core::error::Error;
use tokio_postgres::error::SqlState;

use super::connection::Connection;
use super::failure::{Failure, newer_schema};
use super::value::{Columns, Corrupt};

/// The schema this process knows; a database of a later one is refused, and so is every write once one appears.
pub(super) const SCHEMA_VERSION: i64 = 8;
const MIGRATIONS: [&str; 8] = [
    include_str!("../../migrations/postgres/0001_rounds.sql"),
    include_str!("../../migrations/postgres/0002_quiet_hops.sql"),
    include_str!("../../migrations/postgres/0003_round_details.sql"),
    include_str!("../../migrations/postgres/0004_grants.sql"),
    include_str!("../../migrations/postgres/0005_reviewed.sql"),
    include_str!("../../migrations/postgres/0006_narrow_states.sql"),
    include_str!("../../migrations/postgres/0007_lighter_rows.sql"),
    include_str!("../../migrations/postgres/0008_rows_in_notices.sql"),
];

const VERSION: &str = "SELECT version FROM sayso_schema";

/// Brings the schema up to date under the lock of its one row, so that processes starting at once do no harm.
pub(super) async fn migrate(db: &mut Connection) -> Result<(), Error> {
    let version = match version(db, VERSION).await {
        Ok(Some(SCHEMA_VERSION)) => SCHEMA_VERSION,
        Ok(Some(_)) => apply_missing(db).await.map_err(Failure::unchanged)?,
        // Another process has created the table and is about to write its row.
        Ok(None) => {
            create(db).await.map_err(Failure::unchanged)?;
            apply_missing(db).await.map_err(Failure::unchanged)?
        }
        Err(failure) if failure.is(&SqlState::UNDEFINED_TABLE) => {
            create(db).await.map_err(Failure::unchanged)?;
            apply_missing(db).await.map_err(Failure::unchanged)?
        }
        Err(failure) => return Err(failure.unchanged()),
    };
    if version > SCHEMA_VERSION { Err(newer_schema()) } else { Ok(()) }
}

async fn version(db: &mut Connection, sql: &str) -> Result<Option<i64>, Failure> {
    // Not kept: the table may not be there yet, and the statement is run once.
    let statement = db.client.prepare(sql).await?;
    let found = db.client.query_opt(&statement, &[]).await?;
    Ok(found.map(|row| Columns::of(&row, "schema").get(0)).transpose()?)
}

/// The table whose row is the lock.
async fn create(db: &mut Connection) -> Result<(), Failure> {
    let create = "CREATE TABLE IF NOT EXISTS sayso_schema (id smallint NOT NULL PRIMARY KEY, version bigint NOT NULL)";
    match db.client.batch_execute(create).await.map_err(Failure::from) {
        // Two that create it at once: one of them meets the other's entry in the catalogue.
        Err(failure)
            if failure.is_taken()
                || [SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT].iter().any(|state| failure.is(state)) => {}
        done => done?,
    }
    db.client.batch_execute("INSERT INTO sayso_schema VALUES (1, 0) ON CONFLICT (id) DO NOTHING").await?;
    Ok(())
}

/// Applies what is missing, all of it or nothing; the version that is found or reached.
async fn apply_missing(db: &mut Connection) -> Result<i64, Failure> {
    db.client.batch_execute("BEGIN").await?;
    let found = version(db, &format!("{VERSION} FOR UPDATE")).await?.ok_or(Corrupt("schema"))?;
    let applied = usize::try_from(found).map_err(|_| Corrupt("schema"))?;
    for migration in MIGRATIONS.iter().skip(applied) {
        db.client.batch_execute(migration).await?;
    }
    if found < SCHEMA_VERSION {
        db.client.batch_execute(&format!("UPDATE sayso_schema SET version = {SCHEMA_VERSION}")).await?;
    }
    db.client.batch_execute("COMMIT").await?;
    Ok(found.max(SCHEMA_VERSION))
}

/// What the rows that notices carry are sealed with.
pub(super) async fn notice_key(db: &mut Connection) -> Result<[u8; 32], Failure> {
    let found = db.query("SELECT key FROM notice_key WHERE id = 1", &[]).await?;
    let row = found.first().ok_or(Corrupt("notice key"))?;
    let key = Columns::of(row, "notice key").get::<&[u8]>(0)?;
    Ok(key.try_into().map_err(|_| Corrupt("notice key"))?)
}
