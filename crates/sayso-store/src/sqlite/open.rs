//! Opening the file: who may read it, how it is set up, and bringing its schema up to date.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use sayso_core::error::Error;

use super::{durable, earlier, unavailable};

/// The schema this process knows; a file of a later one is refused, and so is every write once one appears.
pub(super) const SCHEMA_VERSION: i64 = 9;
const MIGRATIONS: [&str; 9] = [
    include_str!("../../migrations/sqlite/0001_rounds.sql"),
    include_str!("../../migrations/sqlite/0002_quiet_hops.sql"),
    include_str!("../../migrations/sqlite/0003_round_details.sql"),
    include_str!("../../migrations/sqlite/0004_grants.sql"),
    include_str!("../../migrations/sqlite/0005_narrow_states.sql"),
    include_str!("../../migrations/sqlite/0006_reviewed.sql"),
    include_str!("../../migrations/sqlite/0007_short_events.sql"),
    include_str!("../../migrations/sqlite/0008_numbered_owners.sql"),
    include_str!("../../migrations/sqlite/0009_own_executions.sql"),
];

/// The busy handler gives up after about five seconds of waits of 175 µs on average.
const BUSY_WAITS_MAX: i32 = 28_000;

/// Creates the file 0600 if it is not there. Its folder is resolved first; the file itself may not be a link. Nothing
/// but SQLite opens it after this: closing any descriptor of it would drop SQLite's locks. (Its log has none.)
pub(super) fn prepare_file(path: &Path) -> Result<PathBuf, Error> {
    let refuse = |what: &str| Error::Unavailable(format!("{}: {what}", path.display()));
    let name = path.file_name().ok_or_else(|| refuse("is not a file name"))?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|_| refuse("its folder does not exist"))?;
    let path = folder.join(name);
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => {
            keep_private(&path, &found).map_err(|error| refuse(&format!("others can read it: {}", error.kind())))?;
            return Ok(path);
        }
        Ok(_) => return Err(refuse("is a link or not a file, which is refused")),
        Err(_) => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&path) {
        Ok(_) => Ok(path),
        // Another process was first; SQLite's own locks settle the rest.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(path),
        Err(error) => Err(refuse(&format!("cannot be created: {}", error.kind()))),
    }
}

/// A file that others can read is closed to them, by its path.
fn keep_private(path: &Path, found: &std::fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

/// A connection set up as every one of ours: WAL, power-safe commits, our own busy handler.
pub(super) fn connection(path: &Path) -> Result<Connection, Error> {
    let set_up = || {
        let mut db = Connection::open(path)?;
        // SQLite is content with a file that it may only read, and then complains of the log.
        if db.is_readonly("main")? {
            return Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY),
                None,
            ));
        }
        // SQLite's own back-off starves the light writer of two processes; a short jittered wait does not.
        db.busy_handler(Some(wait_briefly))?;
        set_wal(&db)?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", false)?;
        db.pragma_update(None, "temp_store", "MEMORY")?;
        // After a transaction that moved pages SQLite walks its whole cache: a large one costs the writer more than it saves.
        db.pragma_update(None, "cache_size", -2_000)?;
        // Plans do not depend on bound values; otherwise SQLite compiles the joins anew on each use.
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(db)
    };
    set_up().map_err(|error| unavailable(&error))
}

/// The log of this connection, which from now on commits without waiting for the disk: the log is made durable by whoever
/// has it. SQLite still waits before it copies pages out of the log, and before it begins the log anew.
pub(super) fn log(db: &Connection, path: &Path) -> Result<File, Error> {
    db.pragma_update(None, "synchronous", "NORMAL").map_err(|error| unavailable(&error))?;
    durable::log_of(path).map_err(|_| Error::Unavailable("the log of the store cannot be opened".to_owned()))
}

/// SQLite does not ask the busy handler about the lock that this takes on a new file, so that one of two processes which
/// start at once would be turned away.
fn set_wal(db: &Connection) -> rusqlite::Result<()> {
    let mut waits = 0;
    loop {
        match db.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) && wait_briefly(waits) =>
            {
                waits += 1;
            }
            done => return done,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the busy handler is SQLite's own place to wait")]
fn wait_briefly(waits: i32) -> bool {
    let jitter = getrandom::u32().unwrap_or_default() % 250;
    std::thread::sleep(Duration::from_micros(u64::from(50 + jitter)));
    waits < BUSY_WAITS_MAX
}

pub(super) fn user_version(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Brings the schema up to date under SQLite's write lock, so that two processes starting at once do no harm.
pub(super) fn migrate(db: &Connection) -> Result<(), Error> {
    let run = || -> rusqlite::Result<i64> {
        if user_version(db)? == SCHEMA_VERSION {
            return Ok(SCHEMA_VERSION);
        }
        let transaction = rusqlite::Transaction::new_unchecked(db, rusqlite::TransactionBehavior::Immediate)?;
        let found = user_version(&transaction)?;
        let applied = usize::try_from(found).unwrap_or(MIGRATIONS.len());
        earlier::add_functions(&transaction)?;
        for migration in MIGRATIONS.iter().skip(applied) {
            transaction.execute_batch(migration)?;
        }
        if found < SCHEMA_VERSION {
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        }
        transaction.commit()?;
        Ok(found.max(SCHEMA_VERSION))
    };
    let version = run().map_err(|error| unavailable(&error))?;
    if version > SCHEMA_VERSION { Err(newer_schema()) } else { Ok(()) }
}

/// What a process says when a newer one has changed the file under it.
pub(super) fn newer_schema() -> Error {
    Error::Unavailable("a newer sayso has upgraded this store; restart this process with that version".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_the_lock_gives_up_after_five_seconds_or_so_and_not_before() {
        assert!(wait_briefly(0) && wait_briefly(BUSY_WAITS_MAX - 1));
        assert!(!wait_briefly(BUSY_WAITS_MAX), "the last wait");
        // Each is 50 to 300 µs.
        let [shortest, average] = [50, 175].map(|us| Duration::from_micros(us) * BUSY_WAITS_MAX.unsigned_abs());
        assert!(shortest >= Duration::from_secs(1) && average <= Duration::from_secs(5));
        assert!(average > Duration::from_secs(4));
    }
}
