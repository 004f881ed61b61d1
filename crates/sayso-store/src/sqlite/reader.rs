//! A few connections that only read, used from blocking tasks.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use sayso_core::error::Error;
use tokio::sync::Semaphore;

use super::{open, unavailable};

/// As many as can be busy at once on the machines this runs on; each keeps a page cache.
const READERS: usize = 4;

/// The pool. A read takes a free connection, opening one where there is none yet.
pub(super) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    path: std::path::PathBuf,
    free: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

/// Why a read failed: SQLite, or a row that does not say what a row of ours says.
#[derive(Debug)]
pub(super) enum ReadError {
    Sqlite(rusqlite::Error),
    Corrupt(&'static str),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Sqlite(error) => unavailable(&error),
            ReadError::Corrupt(what) => Error::Corrupt(what),
        }
    }
}

impl Readers {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let first = open::connection(path)?;
        let permits = Arc::new(Semaphore::new(READERS));
        let shared = Shared { path: path.to_owned(), free: Mutex::new(vec![first]), permits };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs `query` on a free connection, off the async threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = || Error::Unavailable("the store is closing".to_owned());
        let permit = self.shared.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let shared = self.shared.clone();
        let work = move || {
            // Held to the end of the query: a caller that goes away meanwhile does not free its connection.
            let _permit = permit;
            shared.run(query)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| closed())?
    }

    /// Runs `query`, which finds one row by its key, right here: handing it to another thread and back would take
    /// several times as long as the query.
    pub(super) async fn look_up<T>(&self, query: impl FnOnce(&Connection) -> Result<T, ReadError>) -> Result<T, Error> {
        let closed = || Error::Unavailable("the store is closing".to_owned());
        let _permit = self.shared.permits.acquire().await.map_err(|_| closed())?;
        self.shared.run(query)
    }
}

impl Shared {
    fn run<T>(&self, query: impl FnOnce(&Connection) -> Result<T, ReadError>) -> Result<T, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match free {
            Some(db) => db,
            None => open::connection(&self.path)?,
        };
        let answer = query(&db).map_err(Error::from);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        answer
    }
}
