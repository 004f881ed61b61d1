//! What is promised of a database that processes share, as the library has it: what a doctor says of it, sweepers at once,
//! and records that another process reads whole.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "../../../sayso-store/tests/support/cluster.rs"]
mod cluster;
#[path = "../support/mod.rs"]
mod support;

mod doctor;
mod records;
mod sweepers;

use std::sync::Arc;

use sayso::{Hub, Sayso, UnixMs};
use sayso_store::clock::ManualClock;
use sayso_store::{PostgresOptions, PostgresStore};

/// Long before any clock that a test runs under: 2020-09-13.
const LONG_AGO: UnixMs = UnixMs(1_600_000_000_000);

/// A process on the database at `url`, under a clock of the test's.
async fn open(url: &str, clock: &Arc<ManualClock>) -> (Arc<PostgresStore>, Sayso) {
    let options = PostgresOptions { clock: Some(clock.clone()), ..PostgresOptions::default() };
    let store = Arc::new(PostgresStore::open(url, options).await.unwrap());
    let sayso = Sayso::over(store.clone(), Hub::default(), support::ada(), false).unwrap();
    (store, sayso)
}
