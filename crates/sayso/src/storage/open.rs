use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::principal::Principal;
use sayso_store::clock::{Clock, SystemClock};
use sayso_store::{Hints, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};

use super::managed::{HasRounds, Rounds, RoundsOf};
use crate::Sayso;
use crate::open::default_person;
use crate::waiters::Hub;

/// How long a write waits for other processes, unless somebody says otherwise.
const BUSY_TIMEOUT_MS: u32 = 5000;

/// How a store is opened.
pub struct Options {
    /// SQLite: how long a write waits for other processes, in milliseconds.
    pub busy_timeout_ms: u32,
    /// Decides leases and deadlines; by default this machine's clock, for PostgreSQL the database's. UTC by type.
    pub clock: Option<Arc<dyn Clock>>,
    /// Who asks what is created or submitted here.
    pub asker: Principal,
    /// Who answers here, by default `person local:user`.
    pub person: Principal,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            busy_timeout_ms: BUSY_TIMEOUT_MS,
            clock: None,
            asker: Principal::agent("kit"),
            person: default_person(None),
        }
    }
}

/// Refuses what is there and is no file; the store itself refuses it too, and creates the file closed to others.
fn check_path(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(Error::field("/path", "is a link or not a file, which is refused")),
        _ => Ok(()),
    }
}

/// A store of executions also ends what has expired or been abandoned; rounds alone are left as they are.
async fn open_file(path: PathBuf, options: Options, sweeps: bool) -> Result<Rounds, Error> {
    check_path(&path)?;
    let hub = Hub::default();
    let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock));
    let sqlite = SqliteOptions { clock, hints: Some(Arc::new(hub.clone())) };
    let busy =
        (options.busy_timeout_ms != BUSY_TIMEOUT_MS).then(|| Duration::from_millis(u64::from(options.busy_timeout_ms)));
    let store = tokio::task::spawn_blocking(move || SqliteStore::open_waiting(&path, sqlite, busy))
        .await
        .map_err(|_| Error::Unavailable("the store could not be opened".to_owned()))??;
    over(Arc::new(store), hub, options.asker, options.person, sweeps)
}

async fn open_database(url: &str, options: Options, sweeps: bool) -> Result<Rounds, Error> {
    let hub = Hub::default();
    let hints: Option<Arc<dyn Hints>> = Some(Arc::new(hub.clone()));
    let postgres = PostgresOptions { clock: options.clock, hints, ..PostgresOptions::default() };
    let store = PostgresStore::open(url, postgres).await?;
    over(Arc::new(store), hub, options.asker, options.person, sweeps)
}

fn over(store: Arc<dyn Store>, hub: Hub, asker: Principal, person: Principal, sweeps: bool) -> Result<Rounds, Error> {
    Ok(Rounds { sayso: Sayso::over(store, hub, person, sweeps)?, asker })
}

/// Managed input in a SQLite file.
#[derive(Clone)]
pub struct SqliteManagedInputStore(Rounds);

/// Managed input in a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresManagedInputStore(Rounds);

/// Executions in a SQLite file, with the rounds they wait for.
#[derive(Clone)]
pub struct SqliteExecutionStore(Rounds);

/// Executions in a PostgreSQL database, with the rounds they wait for.
#[derive(Clone)]
pub struct PostgresExecutionStore(Rounds);

impl SqliteManagedInputStore {
    /// Opens the file at `path`, which is created (0600) where it is missing. Needs a tokio runtime. Nothing that is
    /// stored changes; a link, or what is no file, is refused.
    pub async fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        open_file(path.into(), options, false).await.map(Self)
    }
}

impl PostgresManagedInputStore {
    /// Opens the database at `url`. Needs a tokio runtime.
    pub async fn open(url: &str, options: Options) -> Result<Self, Error> {
        open_database(url, options, false).await.map(Self)
    }
}

impl SqliteExecutionStore {
    /// Opens the file at `path`, which is created (0600) where it is missing. Needs a tokio runtime.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(path, Options::default()).await
    }

    /// As [`SqliteExecutionStore::open`], with options.
    pub async fn open_with(path: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        open_file(path.into(), options, true).await.map(Self)
    }

    /// The rounds of these executions. Made when it is asked for, and over the same connections.
    pub fn managed_input_store(&self) -> SqliteManagedInputStore {
        SqliteManagedInputStore(self.0.clone())
    }

    /// The rounds of these executions as the rest of the library has them, and who asks in them.
    pub fn opened(&self) -> (&Sayso, &Principal) {
        (&self.0.sayso, &self.0.asker)
    }
}

impl PostgresExecutionStore {
    /// Opens the database at `url`. Needs a tokio runtime.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_with(url, Options::default()).await
    }

    /// As [`PostgresExecutionStore::open`], with options.
    pub async fn open_with(url: &str, options: Options) -> Result<Self, Error> {
        open_database(url, options, true).await.map(Self)
    }

    /// The rounds of these executions. Made when it is asked for, and over the same connections.
    pub fn managed_input_store(&self) -> PostgresManagedInputStore {
        PostgresManagedInputStore(self.0.clone())
    }

    /// The rounds of these executions as the rest of the library has them, and who asks in them.
    pub fn opened(&self) -> (&Sayso, &Principal) {
        (&self.0.sayso, &self.0.asker)
    }
}

impl HasRounds for SqliteManagedInputStore {
    fn rounds(&self) -> RoundsOf<'_> {
        RoundsOf(&self.0)
    }
}

impl HasRounds for PostgresManagedInputStore {
    fn rounds(&self) -> RoundsOf<'_> {
        RoundsOf(&self.0)
    }
}
