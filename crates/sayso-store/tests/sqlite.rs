//! The suite of every store, on SQLite.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::Arc;

use sayso_store::clock::ManualClock;
use sayso_store::conformance::{START, Subject};
use sayso_store::{SqliteOptions, SqliteStore, Store};

struct Sqlite {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Arc<SqliteStore>,
}

impl Subject for Sqlite {
    async fn fresh() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::at(START));
        let options = SqliteOptions { clock: clock.clone(), hints: None };
        let store = SqliteStore::open(&folder.path().join("sayso.sqlite"), options).expect("opens");
        Self { folder, clock, store: Arc::new(store) }
    }
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
    fn clock(&self) -> &ManualClock {
        &self.clock
    }
    async fn reopen(&self) -> Arc<dyn Store> {
        let options = SqliteOptions { clock: self.clock.clone(), hints: None };
        Arc::new(SqliteStore::open(&self.folder.path().join("sayso.sqlite"), options).expect("opens"))
    }
}

sayso_store::conformance!(Sqlite);
