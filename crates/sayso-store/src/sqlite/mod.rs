//! SQLite: one file, WAL, one writer thread that commits in groups, each on the disk before it is answered, a few readers.

mod awake;
mod batch;
mod chain;
mod change;
mod copying;
mod durable;
mod earlier;
mod examine;
mod known;
mod open;
mod reader;
mod rows;
mod statements;
mod touched;
mod view;
mod writer;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sayso_core::command::{Command, Reply, Token};
use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Round};
use sayso_core::time::UnixMs;

use crate::clock::{Clock, SystemClock};
use crate::{Abandoned, ExecutionFilter, GrantFilter, Hints, Observing, RoundFilter, Store, StoredAnswer, StoredRound};

use reader::Readers;
use writer::{Files, Writer};

/// How a SQLite store is opened.
pub struct SqliteOptions {
    /// Decides leases and deadlines.
    pub clock: Arc<dyn Clock>,
    /// Hears of commits, if anybody does.
    pub hints: Option<Arc<dyn Hints>>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), hints: None }
    }
}

/// A store in one SQLite file that several processes may share.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    clock: Arc<dyn Clock>,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the file at `path`, creating it (0600) and bringing its schema up to date. Nothing stored is changed by
    /// opening.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, Error> {
        Self::open_waiting(path, options, None)
    }

    /// As [`SqliteStore::open`]; a write waits for other processes for `busy` by SQLite's own pauses, where it is given.
    pub fn open_waiting(path: &Path, options: SqliteOptions, busy: Option<Duration>) -> Result<Self, Error> {
        let path = open::prepare_file(path)?;
        let writing = open::connection(&path)?;
        if let Some(busy) = busy {
            writing.busy_timeout(busy).map_err(|error| unavailable(&error))?;
        }
        open::migrate(&writing)?;
        let readers = Readers::open(&path)?;
        let log = open::log(&writing, &path)?;
        let files = Files { writing, copying: open::connection(&path)?, log: Box::new(log) };
        let writer = Writer::start(files, options.clock.clone(), options.hints)?;
        Ok(Self { writer, readers, clock: options.clock, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error> {
        self.writer.commit(unit).await
    }
    async fn now(&self) -> Result<UnixMs, Error> {
        Ok(self.clock.now())
    }
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error> {
        self.readers.read(move |db| rows::stored_round(db, id)).await
    }
    async fn row(&self, id: RoundId) -> Result<Option<Round>, Error> {
        self.readers.look_up(move |db| Ok(rows::numbered_round(db, id)?.map(|(_, round)| round))).await
    }
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error> {
        self.readers.read(move |db| rows::stored_rounds(db, &filter)).await
    }
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error> {
        self.readers.read(move |db| rows::details(db, id)).await
    }
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error> {
        self.readers.read(move |db| rows::request_state(db, id)).await
    }
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error> {
        let owner = owner.to_owned();
        self.readers.read(move |db| rows::owner(db, &owner)).await
    }
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error> {
        self.readers.read(move |db| rows::answer(db, id)).await
    }
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error> {
        self.readers.read(move |db| rows::execution_with_pending(db, id)).await
    }
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error> {
        self.readers.read(move |db| rows::executions(db, &filter)).await
    }
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error> {
        self.readers.read(move |db| rows::result(db, id)).await
    }
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.read(move |db| rows::events_after(db, seq, limit)).await
    }
    async fn last_event(&self) -> Result<u64, Error> {
        self.readers.read(|db| Ok(rows::last_event(db)?.0)).await
    }
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error> {
        self.readers.look_up(move |db| rows::token_by_hash(db, &hash)).await
    }
    async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.readers.read(rows::tokens).await
    }
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error> {
        self.readers.read(move |db| rows::grant(db, id)).await
    }
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error> {
        self.readers.read(move |db| rows::grants(db, &filter)).await
    }
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error> {
        self.readers.look_up(|db| rows::reviewed(db, by, tool)).await
    }
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error> {
        self.readers.read(move |db| rows::overdue(db, now, limit)).await
    }
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error> {
        self.readers.read(rows::next_deadline).await
    }
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error> {
        self.readers.read(move |db| rows::abandoned(db, now, limit)).await
    }
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error> {
        let server = server.to_owned();
        self.readers.read(move |db| rows::last_wait_ms(db, &server)).await
    }
    fn observe(&self) -> Observing {
        self.writer.observe()
    }
}

/// What went wrong in SQLite, as a caller is told: never a value, never SQL.
fn unavailable(error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    let reason = match error.sqlite_error_code() {
        Some(Code::DiskFull) => "the disk is full",
        Some(Code::ReadOnly | Code::PermissionDenied) => "the data folder cannot be written",
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => "another process has held the store for too long",
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => "the file is not a readable database",
        Some(Code::CannotOpen) => "the file cannot be opened",
        Some(Code::SystemIoFailure) => "the disk answered with an error",
        _ => "the store could not do it",
    };
    Error::Unavailable(format!("{reason}; nothing was changed"))
}
