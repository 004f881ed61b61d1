//! The suite of every store, on PostgreSQL, with notices and without.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use sayso_store::clock::ManualClock;
use sayso_store::conformance::{START, Subject};
use sayso_store::{PostgresOptions, PostgresStore, Store};
use support::cluster::Cluster;

/// A process that tells others what it does and listens to them, or one that does neither.
struct Postgres<const POLLS: bool> {
    url: String,
    clock: Arc<ManualClock>,
    store: Arc<PostgresStore>,
}

async fn open(url: &str, clock: &Arc<ManualClock>, poll_only: bool) -> Arc<PostgresStore> {
    let options = PostgresOptions { clock: Some(clock.clone()), poll_only, ..PostgresOptions::default() };
    Arc::new(PostgresStore::open(url, options).await.expect("opens"))
}

impl<const POLLS: bool> Subject for Postgres<POLLS> {
    async fn fresh() -> Self {
        let url = Cluster::shared().fresh().await;
        let clock = Arc::new(ManualClock::at(START));
        let store = open(&url, &clock, POLLS).await;
        Self { url, clock, store }
    }
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
    fn clock(&self) -> &ManualClock {
        &self.clock
    }
    async fn reopen(&self) -> Arc<dyn Store> {
        open(&self.url, &self.clock, POLLS).await
    }
}

mod telling {
    sayso_store::conformance!(super::super::Postgres<false>);
}

mod polling {
    sayso_store::conformance!(super::super::Postgres<true>);
}
