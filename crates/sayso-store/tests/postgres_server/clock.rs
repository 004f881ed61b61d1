//! Whose clock counts: the database's, which all processes share, and not that of the machine that a process runs on. Here
//! the database's stands hours ahead, by a function of its schema in the place of the usual one.

use sayso_core::command::{Command, NewRound};
use sayso_core::error::ErrorCode;
use sayso_core::limits::LEASE_MS;
use sayso_core::round::{Delivery, Failure, Fence, FenceToken, Status};
use sayso_core::time::UnixMs;
use sayso_store::clock::{Clock as _, SystemClock};
use sayso_store::{PostgresOptions, PostgresStore, Store};

use crate::support::cluster::{Cluster, sql};
use crate::support::{answering, asking, round_id};

const HOUR_MS: i64 = 60 * 60 * 1000;
/// More than two machines' clocks and a slow test differ by, and less than what the clocks here are apart.
const ABOUT_MS: i64 = 10 * 60 * 1000;

/// A database whose clock is so many hours ahead.
async fn ahead(hours: i64) -> String {
    let url = format!("{}%2Cpg_catalog", Cluster::shared().fresh().await);
    let clock = "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.clock_timestamp() + (SELECT hours FROM ahead) * interval ''1 hour'''";
    sql(&url, &format!("CREATE TABLE ahead AS SELECT {hours}::bigint AS hours; {clock}")).await;
    url
}

/// A process that has no clock of a test's.
async fn open(url: &str, poll_only: bool) -> PostgresStore {
    PostgresStore::open(url, PostgresOptions { poll_only, ..PostgresOptions::default() }).await.expect("opens")
}

fn changed(mut command: Command, change: impl FnOnce(&mut NewRound)) -> Command {
    if let Command::CreateRound(new) = &mut command {
        change(new);
    }
    command
}

fn is_about(at: UnixMs, expected: UnixMs) -> bool {
    (at.0 - expected.0).abs() < ABOUT_MS
}

#[tokio::test]
async fn the_databases_clock_decides_and_not_the_machines() {
    for poll_only in [false, true] {
        let url = ahead(5).await;
        let (store, here) = (open(&url, poll_only).await, SystemClock.now());
        let there = here.plus_ms(5 * HOUR_MS);
        assert!(is_about(store.now().await.expect("the time"), there));
        // In an hour by the machine's clock, and four hours ago by the database's.
        let past = changed(asking(1, 1), |new| new.deadline = Some(here.plus_ms(HOUR_MS)));
        assert_eq!(store.commit(vec![past]).await.map_err(|error| error.code()), Err(ErrorCode::ManagedInputInvalid));
        let fence = Fence { owner: "own_a".to_owned(), token: FenceToken(1) };
        let live = changed(asking(2, 1), |new| {
            (new.delivery, new.fence) = (Delivery::Live, Some(fence));
            new.deadline = Some(there.plus_ms(HOUR_MS));
        });
        store.commit(vec![live]).await.expect("stored");
        let row = store.row(round_id(2)).await.expect("is read").expect("is stored");
        assert!(is_about(row.created_at, there), "{}", row.created_at);
        let until = store.lease_until("own_a").await.expect("is read").expect("it lives");
        assert!((row.created_at.0..row.created_at.0 + ABOUT_MS).contains(&(until.0 - LEASE_MS)), "{until}");
        let event = store.events_after(0, 1).await.expect("events").remove(0);
        assert!(is_about(event.event.at, there), "{}", event.event.at);
    }
}

#[tokio::test]
async fn leases_and_deadlines_run_out_when_the_databases_clock_says_so() {
    let url = ahead(0).await;
    let (store, here) = (open(&url, false).await, SystemClock.now());
    let due = changed(asking(1, 1), |new| new.deadline = Some(here.plus_ms(3 * HOUR_MS)));
    let fence = Fence { owner: "own_a".to_owned(), token: FenceToken(1) };
    let live = changed(asking(2, 1), |new| (new.delivery, new.fence) = (Delivery::Live, Some(fence)));
    store.commit(vec![due, live]).await.expect("stored");
    // The machine's clock goes on as it was; another process meets the database as it is now.
    sql(&url, "UPDATE ahead SET hours = 4").await;
    let other = open(&url, false).await;
    let now = other.now().await.expect("the time");
    assert_eq!(other.overdue(now, 10).await, Ok(vec![round_id(1)]));
    assert_eq!(other.abandoned(now, 10).await.expect("abandoned").len(), 1);
    let late = other.commit(vec![answering(1)]).await.map_err(|error| error.code());
    assert_eq!(late, Err(ErrorCode::ManagedInputState));
    let row = other.row(round_id(1)).await.expect("is read").expect("is stored");
    assert_eq!(row.failure.map(|failure| failure.code).as_deref(), Some(Failure::EXPIRED));
    let unheld = other.commit(vec![answering(2)]).await.map_err(|error| error.code());
    assert_eq!(unheld, Err(ErrorCode::ManagedInputConflict));
    let row = other.row(round_id(2)).await.expect("is read").expect("is stored");
    assert_eq!(row.status, Status::Pending);
}
