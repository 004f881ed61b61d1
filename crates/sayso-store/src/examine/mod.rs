//! What can be said of a store from outside: plain facts for whoever explains them. Looking changes nothing, works where
//! nothing may be written, and has something to say of a store that is damaged.

mod chain;
mod queries;

use std::path::PathBuf;

use sayso_core::id::RoundId;
use sayso_core::time::UnixMs;

pub(crate) use chain::Walk;
pub(crate) use queries::{Cell, Table, questions, read};

/// The facts. What could not be found out is `None` or missing, and `unread` says why.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// The file or the database it is in.
    pub backing: Option<Backing>,
    /// The version of its schema; `None` where it holds no schema of ours.
    pub schema_version: Option<i64>,
    /// The version that this process knows.
    pub schema_known: i64,
    /// The time by the clock that decides its leases and deadlines.
    pub now: Option<UnixMs>,
    /// What the database engine says is damaged; empty where it says that all is whole, `None` where it was not asked.
    pub damage: Option<Vec<String>>,
    /// The chain of events.
    pub chain: Option<ChainFacts>,
    /// How many rounds there are, by the word of their state and of their delivery.
    pub rounds: Vec<(String, String, u64)>,
    /// Pending rounds past their deadline.
    pub overdue: Option<u64>,
    /// Live rounds and executions whose worker has not renewed its lease.
    pub abandoned: Option<u64>,
    /// Resumable rounds whose delivery was started by a worker that is gone; a few of them by name.
    pub interrupted: Option<(u64, Vec<RoundId>)>,
    /// The workers that hold something or have a lease.
    pub owners: Vec<OwnerFacts>,
    /// Rows that lack what belongs to them: what, and how many.
    pub orphans: Vec<(&'static str, u64)>,
    /// The latest moment that any row was stamped with.
    pub newest_stamp: Option<UnixMs>,
    /// Credentials of the API: those that are good, those that are revoked or past their end, and the next end.
    pub tokens: Option<TokenFacts>,
    /// What could not be read, and why: never a value.
    pub unread: Vec<String>,
}

/// The credentials of the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenFacts {
    /// Good ones.
    pub good: u64,
    /// Revoked ones and those past their end.
    pub over: u64,
    /// When the next good one ends, if one does.
    pub next_end: Option<UnixMs>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerFacts {
    /// Its name.
    pub owner: String,
    /// When its lease runs out; `None` where it has none, and yet something names it.
    pub expires_at: Option<UnixMs>,
    /// Unfinished rounds that it holds.
    pub rounds: u64,
    /// Executions without an end that live in it.
    pub executions: u64,
}

/// The chain of events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainFacts {
    /// How many events are linked from the first on.
    pub linked: u64,
    /// What is wrong behind them, if anything.
    pub broken: Option<String>,
}

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Backing {
    /// A SQLite file.
    File(FileFacts),
    /// A PostgreSQL database.
    Database(Box<DatabaseFacts>),
}

/// A file, its log, and its folder, without reading a byte of them.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is a file, and not a link or nothing at all.
    pub is_file: bool,
    /// The database, its `-wal` and its `-shm`, as far as they are there, and the folder first.
    pub entries: Vec<EntryFacts>,
    /// Bytes of the log that is not yet in the file.
    pub wal_bytes: u64,
    /// Whether the log had to be left out of what was read.
    pub without_log: bool,
}

/// One file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFacts {
    /// Its path.
    pub path: PathBuf,
    /// The permission bits.
    pub mode: u32,
    /// The number of the account it belongs to.
    pub uid: u32,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A database server as it says of itself.
#[derive(Debug, Clone, Default)]
pub struct DatabaseFacts {
    /// Its settings by name, those that matter here.
    pub settings: Vec<(String, String)>,
    /// Whether `LISTEN` works; `None` where it was not tried.
    pub listens: Option<bool>,
    /// Who gives events their place in the chain, and until when; none where nobody does.
    pub sequencer: Option<(String, UnixMs)>,
    /// How many events wait for their place, and the oldest of them.
    pub behind: Option<(u64, Option<UnixMs>)>,
}
