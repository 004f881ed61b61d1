//! The raw limits on PostgreSQL are measured at all, and leave nothing behind. What they are depends on the machine.

#![allow(clippy::expect_used, reason = "a test may panic")]

#[path = "support/cluster.rs"]
mod cluster;

use std::time::Duration;

use cluster::Cluster;
use sayso_store::limit::{RowBytes, ScratchSchema, postgres_cycles, postgres_cycles_grouped, postgres_notify};

const TIME: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread")]
async fn raw_limits_are_measured_in_a_schema_that_is_gone_afterwards() {
    let database = Cluster::shared().url();
    let schema = ScratchSchema::create(&database).await.expect("a schema");
    let (url, bytes) = (schema.url(), RowBytes { request: 100, answer: 100 });
    assert!(postgres_cycles(&url, bytes, 2, TIME).await.expect("cycles").per_second > 0.0);
    assert!(postgres_cycles_grouped(&url, bytes, 2, 8, TIME).await.expect("grouped cycles").per_second > 0.0);
    schema.clear().await.expect("empty again");
    assert!(!postgres_notify(&url, TIME).await.expect("notices").is_empty());
    let name = url.rsplit("%3D").next().expect("a name").to_owned();
    schema.remove().await.expect("gone");
    cluster::sql(&database, &format!("CREATE SCHEMA {name}; DROP SCHEMA {name}")).await;
}

#[tokio::test]
async fn a_database_whose_options_are_taken_is_refused() {
    let taken = ScratchSchema::create("postgres://sayso@db/sayso?options=-c%20x%3D1").await;
    assert!(taken.err().expect("refused").to_string().contains("/store"));
}
