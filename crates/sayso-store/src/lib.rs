//! Where rounds are kept. A store applies what `sayso_core::command` decided, inside one transaction; it must never
//! know what a transition means.
//!
//! The write side is one method, [`Store::commit`]. Everything else reads. A wake-up ([`Hints`]) is a hint; the row is
//! the truth.

pub mod clock;
pub mod conformance;
pub mod examine;
pub mod limit;
pub mod memory;
mod pending;
mod postgres;
mod recent;
#[cfg(test)]
mod sample;
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use sayso_core::command::{Command, Reply, Token};
use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Fence, Round, Status};
use sayso_core::time::UnixMs;

pub use postgres::{PostgresOptions, PostgresStore};
pub use recent::Recent;
pub use sqlite::{SqliteOptions, SqliteStore};

/// A round's row with what it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRound {
    /// The row.
    pub row: Round,
    /// The wire form of its requests, byte for byte as stored.
    pub requests: Json,
    /// The calls it may be about.
    pub calls: Json,
    /// An earlier round whose answer is suggested.
    pub suggestion_of: Option<RoundId>,
}

/// What was answered: as submitted, and as it takes effect.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// As submitted, in wire form.
    pub submitted: Json,
    /// With defaults filled in.
    pub effective: Json,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for StoredAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredAnswer(..)")
    }
}

/// Which rounds a list shows, newest first.
#[derive(Debug, Clone, Default)]
pub struct RoundFilter {
    /// Only those in this state.
    pub status: Option<Status>,
    /// Only those that are over, one way or the other.
    pub finished_or_answered: bool,
    /// Only those of this execution.
    pub execution: Option<ExecutionId>,
    /// Only those this principal asked.
    pub asked_by: Option<Principal>,
    /// Only unfinished ones of operations whose id begins so; the prefix begins with [`LATE_PREFIX`].
    pub unfinished_late: Option<String>,
    /// As `unfinished_late`, for [`GATE_PREFIX`].
    pub unfinished_gated: Option<String>,
    /// Only those before this one.
    pub before: Option<RoundId>,
    /// At most this many rows.
    pub limit: usize,
}

/// What the ids of operations begin with that wait for a call to be made again: they are found by their id.
pub const LATE_PREFIX: &str = "late:";

/// What the ids of operations begin with that are gated calls: they are found by what is called.
pub const GATE_PREFIX: &str = "gate:";

/// Whose grants a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GrantsOf {
    /// Everybody's.
    #[default]
    All,
    /// Those that are bound to this session.
    Session(String),
    /// Those that calls in this session may ask for: bound to it, or to none.
    CallsIn(String),
}

/// Which grants a list shows, newest first.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    /// Whose.
    pub of: GrantsOf,
    /// Leaves out what is revoked, used up, or expired at this moment.
    pub usable_at: Option<UnixMs>,
    /// Only those before this one.
    pub before: Option<GrantId>,
    /// At most this many rows.
    pub limit: usize,
}

/// Which executions a list shows, newest first.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Only those this principal started.
    pub started_by: Option<Principal>,
    /// Only those before this one.
    pub before: Option<ExecutionId>,
    /// At most this many rows.
    pub limit: usize,
}

/// Something whose worker has not renewed its lease and that dies with it: a live round it holds, or an execution that
/// lives in it. A resumable round is not among them: another worker claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandoned {
    /// The round, or none where only the execution is left.
    pub round: Option<(RoundId, Fence)>,
    /// The execution.
    pub execution: ExecutionId,
    /// The worker.
    pub owner: String,
    /// When its lease ran out; none where it was released.
    pub expired_at: Option<UnixMs>,
}

/// A round that changed.
#[derive(Debug, Clone)]
pub struct ChangedRound {
    /// Which.
    pub id: RoundId,
    /// Its row as it was committed, where whoever tells it has just written it, in this process or in another.
    pub row: Option<Arc<Round>>,
}

impl From<RoundId> for ChangedRound {
    fn from(id: RoundId) -> Self {
        Self { id, row: None }
    }
}

/// Hears of commits. Called after the commit, outside any lock; calls may be lost, merged or late.
pub trait Hints: Send + Sync + 'static {
    /// These changed, up to this event where they changed in this process.
    fn changed(&self, rounds: &[ChangedRound], executions: &[ExecutionId], last_event: u64);
    /// Another process changed something.
    fn changed_elsewhere(&self);
}

/// Where rounds are kept. Object-safe; every method may be called from any task.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Applies the commands in order, all or none, in one transaction that is durable when this returns. A lone
    /// command's refusal may leave an event or an expiry, as core decided.
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error>;

    /// The time by the clock that decides leases and deadlines.
    async fn now(&self) -> Result<UnixMs, Error>;
    /// A round with what it asks.
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error>;
    /// A round's row alone: what moves. What it asks never changes.
    async fn row(&self, id: RoundId) -> Result<Option<Round>, Error> {
        Ok(self.round(id).await?.map(|stored| stored.row))
    }
    /// A page of rounds, newest first.
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error>;
    /// What a round's creator wanted kept beside it.
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error>;
    /// The opaque state of a round that its asker wants back, as it was stored; none once the round is finished. Reading
    /// it takes nothing away.
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error>;
    /// Until when a worker is taken to live; none where it is unknown or has left.
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error>;
    /// What a round was answered with.
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error>;
    /// An execution, with its pending rounds in order of their creation.
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error>;
    /// A page of executions, newest first.
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error>;
    /// What an execution answered.
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error>;
    /// Events after `seq`, at most `limit`, in order and without gaps.
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error>;
    /// The number of the last event; 0 before the first.
    async fn last_event(&self) -> Result<u64, Error>;
    /// A credential by the hash of its secret.
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error>;
    /// The credentials of the API, newest first.
    async fn tokens(&self) -> Result<Vec<Token>, Error>;
    /// A grant by its id.
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error>;
    /// A page of grants, newest first.
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error>;
    /// The digest of the definition under which an agent's tool, `server:name`, was last reviewed; none of a tool that is
    /// new to it.
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error>;
    /// Pending rounds whose deadline lies before `now`.
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error>;
    /// The earliest deadline of any pending round.
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error>;
    /// What is held by workers whose lease has run out at `now`.
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error>;
    /// How long `server` waited before it last took a question back, in milliseconds.
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error>;

    /// While the guard lives, changes by other processes are looked for, so that hints of them arrive.
    fn observe(&self) -> Observing;
}

/// Keeps a store looking for changes by other processes; see [`Store::observe`].
pub struct Observing(Option<Arc<dyn Fn() + Send + Sync>>);

impl Observing {
    /// A guard that calls `on_drop` when it ends.
    pub fn new(on_drop: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self(Some(on_drop))
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        if let Some(on_drop) = self.0.take() {
            on_drop();
        }
    }
}
