//! One connection with its prepared statements, and the pool of those that only read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use sayso_core::error::Error;

use super::failure::Failure;
use super::statements::{Shape, composed};

/// After this the database is taken to be gone: a caller that has waited so long has given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// A peer that vanished without a word is noticed after this, and not after two hours.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Composed statements that a connection keeps; past this all are forgotten, which costs preparing them again. A few dozen are in
/// use: what batches write is much the same.
const COMPOSED_MAX: usize = 64;

/// A parameter of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Reads a store's URL. What is wrong with it is said without repeating it: it may hold a password.
pub(super) fn configure(url: &str) -> Result<Config, Error> {
    let invalid = |why: &str| Error::field("/store", format!("is no usable PostgreSQL URL: {why}"));
    let mut config: Config = url
        .parse()
        .map_err(|_| invalid("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, or the folder of a Unix socket as HOST, with %2F for each /"))?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(invalid("sslmode=require, but TLS is left to a local proxy or a Unix socket; see docs/scale.md"));
    }
    if config.get_application_name().is_none() {
        config.application_name("sayso");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_PATIENCE);
    }
    config.keepalives_idle(KEEPALIVE);
    Ok(config)
}

/// A session with the database.
pub(super) struct Connection {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
    /// The statements that write, by what they are composed of.
    composed: HashMap<Shape, Statement>,
}

impl Connection {
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        let (client, session) = config.connect(NoTls).await?;
        // What ends the session is told to whoever waits for an answer on it.
        tokio::spawn(async move { drop(session.await) });
        // A process that is frozen in the middle of a transaction must not hold its rows for ever.
        client.batch_execute("SET idle_in_transaction_session_timeout = '15s'; SET lock_timeout = '10s'").await?;
        Ok(Self { client, statements: HashMap::new(), composed: HashMap::new() })
    }

    /// A session for transactions that touch rows by key. Each statement is planned once, for tables of any size: a plan
    /// that was made while a table was small must not scan it when it has grown.
    pub(super) async fn open_for_keys(config: &Config) -> Result<Self, Failure> {
        let db = Self::open(config).await?;
        let plans = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
            SET plan_cache_mode = force_generic_plan; SET jit = off";
        match db.client.batch_execute(plans).await {
            // Databases that speak the protocol only have planners of their own.
            Err(error) if error.code().is_some() => {}
            done => done?,
        }
        Ok(db)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    /// The prepared statement of `sql`.
    pub(super) async fn statement(&mut self, sql: &str) -> Result<Statement, Failure> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let new = self.client.prepare(sql).await?;
        self.statements.insert(sql.to_owned(), new.clone());
        Ok(new)
    }

    /// The prepared statement of this shape.
    pub(super) async fn composed(&mut self, shape: Shape) -> Result<Statement, Failure> {
        if let Some(known) = self.composed.get(&shape) {
            return Ok(known.clone());
        }
        if self.composed.len() >= COMPOSED_MAX {
            self.composed.clear();
        }
        let new = self.client.prepare(&composed(&shape)).await?;
        self.composed.insert(shape, new.clone());
        Ok(new)
    }

    /// The prepared statement of `sql` where it is needed.
    pub(super) async fn statement_if(&mut self, needed: bool, sql: &str) -> Result<Option<Statement>, Failure> {
        if needed { self.statement(sql).await.map(Some) } else { Ok(None) }
    }

    pub(super) async fn query(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query(&statement, parameters).await?)
    }
}

/// Runs a statement, if there is one. It is sent when this is first polled, so that several polled in turn share a flight.
pub(super) async fn ask<const N: usize>(
    client: &Client,
    statement: Option<Statement>,
    parameters: [Parameter<'_>; N],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    match statement {
        Some(statement) => client.query(&statement, &parameters).await,
        None => Ok(Vec::new()),
    }
}

/// Connections that only read, opened as they are needed.
pub(super) struct Pool {
    config: Config,
    free: Mutex<Vec<Connection>>,
    places: Semaphore,
    /// Its statements look up rows by their keys, and are planned once.
    by_key: bool,
}

/// A connection taken out of the pool; it goes back when this is dropped, unless it is lost. Nobody opens a transaction
/// on it, so one whose reader went away in the middle is as good as any.
pub(super) struct Taken<'a> {
    pool: &'a Pool,
    db: Option<Connection>,
    _place: tokio::sync::SemaphorePermit<'a>,
}

impl Pool {
    pub(super) fn new(config: Config, connections_max: usize, first: Connection) -> Self {
        Self { config, free: Mutex::new(vec![first]), places: Semaphore::new(connections_max), by_key: false }
    }

    /// One connection, for statements that look up rows by their keys. Planning takes several times as long as such a
    /// look, and a plan for one key is taken for a better one than that for any number of them, again and again.
    pub(super) fn by_key(config: Config) -> Self {
        Self { config, free: Mutex::default(), places: Semaphore::new(1), by_key: true }
    }

    /// A free connection, opened where there is none. What it fails with is what its reader is told.
    pub(super) async fn take(&self) -> Result<Taken<'_>, Failure> {
        // The semaphore is never closed while the pool lives.
        let place = self.places.acquire().await.map_err(|_| Failure::Late)?;
        let known = loop {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match free {
                Some(db) if db.is_lost() => {}
                other => break other,
            }
        };
        let db = match known {
            Some(db) => db,
            None if self.by_key => Connection::open_for_keys(&self.config).await?,
            None => Connection::open(&self.config).await?,
        };
        Ok(Taken { pool: self, db: Some(db), _place: place })
    }
}

impl Taken<'_> {
    /// Runs one statement. A database that does not answer loses its connection.
    pub(super) async fn query(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        let db = self.db.as_mut().ok_or(Failure::Late)?;
        match tokio::time::timeout(PATIENCE, db.query(sql, parameters)).await {
            Ok(done) => done,
            Err(_) => {
                self.db = None;
                Err(Failure::Late)
            }
        }
    }

    pub(super) async fn first(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<Row>, Failure> {
        Ok(self.query(sql, parameters).await?.into_iter().next())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(db) = self.db.take().filter(|db| !db.is_lost()) {
            self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        }
    }
}
