//! The suite of every store, on PostgreSQL.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use sayso_store::clock::ManualClock;
use sayso_store::conformance::{START, Subject};
use sayso_store::{PostgresOptions, PostgresStore, Store};
use support::cluster::Cluster;

struct Postgres {
    url: String,
    clock: Arc<ManualClock>,
    store: Arc<PostgresStore>,
}

async fn open(url: &str, clock: &Arc<ManualClock>) -> Arc<PostgresStore> {
    let options = PostgresOptions { clock: Some(clock.clone()), ..PostgresOptions::default() };
    Arc::new(PostgresStore::open(url, options).await.expect("opens"))
}

impl Subject for Postgres {
    async fn fresh() -> Self {
        let url = Cluster::shared().fresh().await;
        let clock = Arc::new(ManualClock::at(START));
        let store = open(&url, &clock).await;
        Self { url, clock, store }
    }
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
    fn clock(&self) -> &ManualClock {
        &self.clock
    }
    async fn reopen(&self) -> Arc<dyn Store> {
        open(&self.url, &self.clock).await
    }
}

sayso_store::conformance!(Postgres);
