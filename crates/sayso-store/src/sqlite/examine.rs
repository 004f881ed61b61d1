//! Looking at a file from outside. It is opened for reading only, and where nobody uses it without any lock, so that not
//! even the log's files appear beside it.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::reader::ReadError;
use super::{SqliteStore, open, rows, unavailable};
use crate::clock::Clock;
use crate::examine::{Backing, Cell, EntryFacts, Examined, FileFacts, Table, Walk, questions, read};

/// Findings of SQLite's own check that are passed on.
const DAMAGE_LINES: usize = 5;

const ORPHANS: [(&str, &str); 6] = [
    (
        "rounds without their state",
        "FROM round_facts AS facts
         WHERE NOT EXISTS (SELECT 1 FROM round_states AS states WHERE states.n = facts.n AND states.id = facts.id)",
    ),
    (
        "rounds without what they ask",
        "FROM round_states AS states WHERE NOT EXISTS (SELECT 1 FROM round_facts AS facts WHERE facts.n = states.n)",
    ),
    (
        "rounds without their execution",
        "FROM round_facts WHERE own_execution IS NULL
         AND NOT EXISTS (SELECT 1 FROM execution_states WHERE execution_states.id = round_facts.execution_id)",
    ),
    (
        "rounds and executions whose worker has no name",
        "FROM (SELECT holder FROM round_states UNION ALL SELECT holder FROM execution_states)
         WHERE holder IS NOT NULL AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.n = holder)",
    ),
    (
        "answered rounds without their answer",
        "FROM round_states AS states WHERE answered_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM round_answers AS answers WHERE answers.n = states.n)",
    ),
    (
        "finished rounds whose opaque state is still kept",
        "FROM request_states JOIN rounds ON rounds.id = request_states.round_id
         WHERE rounds.status IN ('resolved', 'failed')",
    ),
];

impl SqliteStore {
    /// What can be said of the file at `path`, which may be missing, damaged or something else. Nothing is changed, and a
    /// store that others use is read as they left it at one moment.
    pub fn examine(path: &Path, clock: &dyn Clock) -> Examined {
        let mut file = file_facts(path);
        let mut examined =
            Examined { schema_known: open::SCHEMA_VERSION, now: Some(clock.now()), ..Examined::default() };
        if file.is_file {
            match open_to_look(&mut file) {
                Ok(db) => look(&db, &mut examined, clock),
                Err(error) => examined.unread.push(format!("the database: {}", said(&error))),
            }
        }
        examined.backing = Some(Backing::File(file));
        examined
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn entry(path: PathBuf) -> Option<EntryFacts> {
    let found = path.symlink_metadata().ok()?;
    Some(EntryFacts { path, mode: found.permissions().mode() & 0o7777, uid: found.uid(), bytes: found.len() })
}

fn file_facts(path: &Path) -> FileFacts {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let all = [folder.to_owned(), path.to_owned(), beside(path, "-wal"), beside(path, "-shm")];
    let wal_bytes = beside(path, "-wal").symlink_metadata().map_or(0, |found| found.len());
    let entries = all.into_iter().filter_map(entry).collect();
    FileFacts { path: path.to_owned(), is_file, entries, wal_bytes, without_log: false }
}

/// A path as the part of a URI.
fn uri_path(path: &Path) -> Option<String> {
    Some(path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23"))
}

fn open_to_look(file: &mut FileFacts) -> rusqlite::Result<Connection> {
    let is_used = beside(&file.path, "-shm").exists() || file.wal_bytes > 0;
    if is_used {
        match connect(&file.path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(answers) {
            // The index of the log may not be written here: what is in the file can still be read.
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
                ) =>
            {
                file.without_log = file.wal_bytes > 0;
            }
            done => return done,
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let path = uri_path(&file.path).ok_or(rusqlite::Error::InvalidPath(file.path.clone()))?;
    let absolute = if path.starts_with('/') { path } else { format!("./{path}") };
    connect(Path::new(&format!("file:{absolute}?immutable=1")), flags).and_then(answers)
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// SQLite opens nothing before it is asked something.
fn answers(db: Connection) -> rusqlite::Result<Connection> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

/// What went wrong, without what a caller who changed something is told.
fn said(error: &rusqlite::Error) -> String {
    let told = unavailable(error).to_string();
    told.strip_suffix("; nothing was changed").unwrap_or(&told).to_owned()
}

fn look(db: &Connection, examined: &mut Examined, clock: &dyn Clock) {
    // One snapshot for all that is asked.
    if let Err(error) = db.execute_batch("BEGIN") {
        examined.unread.push(format!("the database: {}", said(&error)));
        return;
    }
    match open::user_version(db) {
        // A new file, or one of another program.
        Ok(0) => return,
        Ok(version) => examined.schema_version = Some(version),
        Err(error) => examined.unread.push(format!("the schema's version: {}", said(&error))),
    }
    let checked = table(db, &format!("PRAGMA quick_check({DAMAGE_LINES})"));
    examined.damage = Some(match checked {
        Ok(lines) => lines.into_iter().filter_map(damage_of).collect(),
        Err(error) => vec![said(&error)],
    });
    if examined.schema_version.is_some_and(|version| version != open::SCHEMA_VERSION) {
        return;
    }
    // Taken after the snapshot: what others wrote before is in the past.
    let now = clock.now();
    examined.now = Some(now);
    let mut answers = BTreeMap::new();
    for (question, sql) in questions(now, &ORPHANS, "event_lists") {
        match table(db, &sql) {
            Ok(table) => drop(answers.insert(question, table)),
            Err(error) => examined.unread.push(format!("{}: {}", question.words(), said(&error))),
        }
    }
    read(examined, now, answers);
    let mut walk = Walk::default();
    while let Some((after, limit)) = walk.next() {
        match rows::events_after(db, after, limit) {
            Ok(page) => {
                if !walk.take(&page) {
                    break;
                }
            }
            Err(ReadError::Sqlite(error)) => walk.stop(&said(&error)),
            Err(ReadError::Corrupt(_)) => walk.stop("one of them says something that no event says"),
        }
    }
    examined.chain = Some(walk.facts());
}

/// A line of SQLite's check; it says `ok` where there is nothing to say.
fn damage_of(row: Vec<Cell>) -> Option<String> {
    match row.into_iter().next() {
        Some(Cell::Text(line)) => (line != "ok").then_some(line),
        _ => None,
    }
}

fn table(db: &Connection, sql: &str) -> rusqlite::Result<Table> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut table = Table::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|at| {
            Ok(match row.get_ref(at)? {
                ValueRef::Integer(number) => Cell::Number(number),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => bytes.try_into().map_or(Cell::Nothing, Cell::Id),
                ValueRef::Null | ValueRef::Real(_) => Cell::Nothing,
            })
        });
        table.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(table)
}
