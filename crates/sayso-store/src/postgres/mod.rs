//! PostgreSQL, for several machines that share the work: the same trait, the same suite, the same commits in groups, on
//! several connections at once.

mod batch;
mod carried;
mod columns;
mod connection;
mod examine;
mod failure;
mod keys;
mod known;
mod load;
mod looks;
mod memory;
mod notice;
mod open;
mod rows;
mod sequencer;
mod statements;
mod value;
mod watch;
mod write;
mod writer;

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
use sayso_core::round::{Digest, Round};
use sayso_core::time::UnixMs;
use tokio::sync::watch::Sender;

use crate::clock::Clock;
use crate::{Abandoned, ExecutionFilter, GrantFilter, Hints, Observing, RoundFilter, Store, StoredAnswer, StoredRound};

use connection::{Connection, Pool, Taken};
use failure::Failure;
use known::Known;
use looks::Looks;
use notice::Notices;
use sequencer::Sequencer;
use value::{Columns, Corrupt};
use watch::Observers;
use writer::{Shared, Writer};

/// How a PostgreSQL store is opened.
pub struct PostgresOptions {
    /// Decides leases and deadlines; by default the database's own clock does, which all processes share.
    pub clock: Option<Arc<dyn Clock>>,
    /// Hears of commits, if anybody does.
    pub hints: Option<Arc<dyn Hints>>,
    /// Needs neither `LISTEN` nor `NOTIFY`: changes by other processes are found by looking, 25 ms apart while somebody
    /// waits.
    pub poll_only: bool,
    /// Connections of this process at most, at least six: one listens, one numbers events, one looks rows up, a quarter of the
    /// others write: fewer transactions, each with more in it, were measured to be faster.
    pub connections_max: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { clock: None, hints: None, poll_only: false, connections_max: 12 }
    }
}

/// Connections that are for one purpose: the listener's, the sequencer's, and that of looks at rows.
const APART: usize = 3;
/// Transactions that run at once at most: beyond this they are only smaller.
const WRITERS_MAX: usize = 8;
/// At least one more that writes and two that read.
const CONNECTIONS_MIN: usize = APART + 3;

/// A store in a PostgreSQL database that several processes share.
pub struct PostgresStore {
    writer: Writer,
    readers: Arc<Pool>,
    looks: Arc<Looks>,
    sequencer: Sequencer,
    clock: Option<Arc<dyn Clock>>,
    known: Arc<Known>,
    observers: Option<Arc<Observers>>,
    /// Dropped, it ends the tasks that hear of others.
    _open: Sender<()>,
}

impl PostgresStore {
    /// Opens the store at `url` (`postgres://USER:PASSWORD@HOST:PORT/DATABASE`; for a Unix socket HOST is its folder,
    /// with `%2F` for each `/`), creating its tables in the first schema of the search path, or bringing them up to date. Nothing stored is
    /// changed by opening.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, Error> {
        let config = connection::configure(url)?;
        let mut first = Connection::open(&config).await.map_err(Failure::unchanged)?;
        open::migrate(&mut first).await?;
        let schema = schema(&mut first).await.map_err(Failure::unchanged)?;
        let notices = match options.poll_only {
            true => None,
            false => Some(Notices::new(&schema, open::notice_key(&mut first).await.map_err(Failure::unchanged)?)?),
        };
        let connections = options.connections_max.max(CONNECTIONS_MIN) - APART;
        let writers = (connections / 4).clamp(1, WRITERS_MAX);
        let readers = Arc::new(Pool::new(config.clone(), connections - writers, first));
        let sequencer = Sequencer::start(config.clone())?;
        let (opened, closed) = tokio::sync::watch::channel(());
        let (mut observers, known) = (None, Arc::<Known>::default());
        if let Some(hints) = options.hints.clone() {
            if let Some(notices) = &notices {
                tokio::spawn(watch::listen(config.clone(), notices.clone(), hints, known.clone(), closed));
            } else {
                let waiting = observers.insert(Arc::<Observers>::default());
                tokio::spawn(watch::follow(readers.clone(), waiting.clone(), hints, closed));
            }
        }
        let looks = Looks::new(config.clone());
        let shared = Shared {
            config,
            clock: options.clock.clone(),
            hints: options.hints,
            notices,
            sequencer: sequencer.wake.clone(),
            known: known.clone(),
            free: Default::default(),
        };
        let writer = Writer::start(shared, writers);
        Ok(Self { writer, looks, readers, sequencer, clock: options.clock, known, observers, _open: opened })
    }

    async fn reading(&self) -> Result<Taken<'_>, Error> {
        self.readers.take().await.map_err(Failure::unchanged)
    }

    async fn ask_now(&self) -> Result<UnixMs, Failure> {
        let now = database_now(&mut self.readers.take().await?).await?;
        self.known.note_now(now);
        Ok(now)
    }

    /// Events are read where they stand: those of a full page, and otherwise once the latest have their place.
    async fn read_events(&self, db: &mut Taken<'_>, seq: u64, limit: usize) -> Result<Vec<Event>, Failure> {
        let found = rows::events_after(db, seq, limit).await?;
        if found.len() >= limit {
            return Ok(found);
        }
        self.sequencer.catch_up(db).await?;
        rows::events_after(db, seq, limit).await
    }

    async fn read_last_event(&self, db: &mut Taken<'_>) -> Result<u64, Failure> {
        self.sequencer.catch_up(db).await?;
        rows::last_event(db).await
    }
}

/// Where the tables are.
async fn schema(db: &mut Connection) -> Result<String, Failure> {
    let found = db.query("SELECT current_schema()::text", &[]).await?;
    let row = found.first().ok_or(Corrupt("schema"))?;
    Ok(Columns::of(row, "schema").get::<Option<String>>(0)?.unwrap_or_default())
}

async fn database_now(db: &mut Taken<'_>) -> Result<UnixMs, Failure> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let row = db.first(sql, &[]).await?.ok_or(Corrupt("clock"))?;
    Ok(Columns::of(&row, "clock").time(0)?)
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error> {
        self.writer.commit(unit).await
    }
    async fn now(&self) -> Result<UnixMs, Error> {
        match &self.clock {
            Some(clock) => Ok(clock.now()),
            None => match self.known.now() {
                Some(now) => Ok(now),
                None => self.ask_now().await.map_err(Failure::unchanged),
            },
        }
    }
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error> {
        rows::stored_round(&mut self.reading().await?, id, &self.known).await.map_err(Failure::unchanged)
    }
    async fn row(&self, id: RoundId) -> Result<Option<Round>, Error> {
        self.looks.row(id).await
    }
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error> {
        rows::stored_rounds(&mut self.reading().await?, &filter).await.map_err(Failure::unchanged)
    }
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error> {
        rows::details(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error> {
        rows::request_state(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error> {
        rows::owner(&mut self.reading().await?, owner).await.map_err(Failure::unchanged)
    }
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error> {
        rows::answer(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error> {
        rows::execution_with_pending(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error> {
        rows::executions(&mut self.reading().await?, &filter).await.map_err(Failure::unchanged)
    }
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error> {
        rows::result(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.read_events(&mut self.reading().await?, seq, limit).await.map_err(Failure::unchanged)
    }
    async fn last_event(&self) -> Result<u64, Error> {
        self.read_last_event(&mut self.reading().await?).await.map_err(Failure::unchanged)
    }
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error> {
        rows::token_by_hash(&mut self.reading().await?, hash).await.map_err(Failure::unchanged)
    }
    async fn tokens(&self) -> Result<Vec<Token>, Error> {
        rows::tokens(&mut self.reading().await?).await.map_err(Failure::unchanged)
    }
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error> {
        rows::grant(&mut self.reading().await?, id).await.map_err(Failure::unchanged)
    }
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error> {
        rows::grants(&mut self.reading().await?, &filter).await.map_err(Failure::unchanged)
    }
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error> {
        rows::reviewed(&mut self.reading().await?, by, tool).await.map_err(Failure::unchanged)
    }
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error> {
        rows::overdue(&mut self.reading().await?, now, limit).await.map_err(Failure::unchanged)
    }
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error> {
        rows::next_deadline(&mut self.reading().await?).await.map_err(Failure::unchanged)
    }
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error> {
        rows::abandoned(&mut self.reading().await?, now, limit).await.map_err(Failure::unchanged)
    }
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error> {
        rows::last_wait_ms(&mut self.reading().await?, server).await.map_err(Failure::unchanged)
    }
    fn observe(&self) -> Observing {
        match &self.observers {
            Some(observers) => observers.observe(),
            // Whoever listens always does, and whoever has nobody to tell never looks.
            None => Observing::new(Arc::new(|| {})),
        }
    }
}
