//! PostgreSQL's own promises: several processes on one database, what is left when connections and servers die or the disk is
//! full, whose clock counts, and what connections are spent on.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod clock;
mod connections;
mod disk;
mod losses;
mod notices;
mod together;
mod units;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::{Round, Status};
use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::{ChangedRound, Hints, PostgresOptions, PostgresStore, Store};
use support::round_id;
use tokio::sync::Notify;

async fn open(url: &str) -> Arc<PostgresStore> {
    open_with(url, PostgresOptions::default()).await
}

async fn open_with(url: &str, options: PostgresOptions) -> Arc<PostgresStore> {
    let options = PostgresOptions { clock: Some(Arc::new(ManualClock::at(START))), ..options };
    Arc::new(PostgresStore::open(url, options).await.expect("opens"))
}

#[derive(Default)]
struct Heard {
    rounds: Mutex<HashSet<RoundId>>,
    /// Rows that came along.
    rows: Mutex<Vec<Arc<Round>>>,
    any: Notify,
    elsewhere: Notify,
}

impl Heard {
    async fn of(&self, n: u128) {
        while !self.rounds.lock().expect("the lock").contains(&round_id(n)) {
            self.any.notified().await;
        }
    }
}

impl Hints for Heard {
    fn changed(&self, rounds: &[ChangedRound], _: &[ExecutionId], _: u64) {
        self.rows.lock().expect("the lock").extend(rounds.iter().filter_map(|changed| changed.row.clone()));
        self.rounds.lock().expect("the lock").extend(rounds.iter().map(|changed| changed.id));
        self.any.notify_one();
    }
    fn changed_elsewhere(&self) {
        self.elsewhere.notify_one();
    }
}

fn unavailable<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Unavailable(message)) => message,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("is refused"),
    }
}

async fn status(store: &dyn Store, n: u128) -> Option<Status> {
    store.round(round_id(n)).await.expect("is read").map(|found| found.row.status)
}

async fn check_chain(store: &dyn Store, events: usize) {
    let all = store.events_after(0, usize::MAX).await.expect("events");
    assert_eq!(all.len(), events);
    let mut previous = [0; 32];
    for (event, seq) in all.iter().zip(1..) {
        assert!(event.seq == seq && event.previous_hash == previous && event.is_intact(), "{event:?}");
        previous = event.hash;
    }
}
