//! Sessions that end, servers that restart or are down, sequencers that die: nothing that was acknowledged is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sayso_core::error::Error;
use sayso_core::round::Status;
use sayso_store::{PostgresOptions, PostgresStore, RoundFilter, Store};
use tokio::task::JoinSet;

use crate::support::cluster::{Cluster, sql};
use crate::support::{answering, asking, round_id};
use crate::{Heard, check_chain, open, open_with, status, unavailable};

/// Asks and answers until it is told to stop, whatever becomes of the server; what was acknowledged.
async fn write_on(store: Arc<PostgresStore>, next: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Vec<u128> {
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let n = u128::from(next.fetch_add(1, Ordering::SeqCst));
        match store.commit(vec![asking(n, 100), answering(n)]).await {
            Ok(_) => acknowledged.push(n),
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    }
    acknowledged
}

#[tokio::test]
async fn a_session_that_is_ended_is_replaced_and_a_waiter_still_hears() {
    let cluster = Cluster::shared();
    let url = cluster.fresh().await;
    let name = format!("victim_{}", std::process::id());
    let heard = Arc::new(Heard::default());
    let options = PostgresOptions { hints: Some(heard.clone()), ..PostgresOptions::default() };
    let victim = open_with(&format!("{url}&application_name={name}"), options).await;
    heard.elsewhere.notified().await;
    victim.commit(vec![asking(1, 1)]).await.expect("stored");
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'");
    for round in 1..4 {
        cluster.sql(&end).await;
        // Reconnected, and told that something may have been missed.
        heard.elsewhere.notified().await;
        assert!(status(victim.as_ref(), round).await.is_some());
        heard.rounds.lock().expect("the lock").clear();
        open(&url).await.commit(vec![answering(round)]).await.expect("accepted");
        heard.of(round).await;
        victim.commit(vec![asking(round + 1, 1)]).await.expect("stored");
    }
    check_chain(victim.as_ref(), 4 * 2 + 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_restarted_has_lost_nothing_that_was_acknowledged() {
    let cluster = Arc::new(Cluster::private());
    let url = cluster.fresh().await;
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let stores = [open(&url).await, open(&url).await];
    let mut writing = JoinSet::new();
    for n in 0..8 {
        writing.spawn(write_on(stores[n % 2].clone(), next.clone(), stop.clone()));
    }
    for mode in ["immediate", "fast"] {
        let restarted = cluster.clone();
        tokio::task::spawn_blocking(move || restarted.restart(mode)).await.expect("restarted");
        let n = u128::from(next.fetch_add(1, Ordering::SeqCst));
        while let Err(error) = stores[0].commit(vec![asking(n, 1), answering(n)]).await {
            unavailable::<()>(Err(error));
        }
    }
    stop.store(true, Ordering::SeqCst);
    let acknowledged: Vec<u128> = writing.join_all().await.into_iter().flatten().collect();
    assert!(!acknowledged.is_empty());
    let store = open(&url).await;
    for n in &acknowledged {
        assert_eq!(status(store.as_ref(), *n).await, Some(Status::ResponseValidated), "{n}");
        assert!(store.answer(round_id(*n)).await.expect("is read").is_some());
    }
    let rounds = store.rounds(RoundFilter { limit: usize::MAX, ..RoundFilter::default() }).await.expect("rounds");
    assert!(rounds.iter().all(|round| round.row.status == Status::ResponseValidated), "whole or not at all");
    check_chain(store.as_ref(), rounds.len() * 3).await;
}

#[tokio::test]
async fn while_the_server_is_down_nothing_is_stored_and_then_it_goes_on() {
    let cluster = Cluster::private();
    let url = cluster.fresh().await;
    let store = open(&url).await;
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    cluster.stop();
    assert!(unavailable(store.commit(vec![asking(2, 1)]).await).contains("nothing was changed"));
    unavailable(store.round(round_id(1)).await);
    unavailable(PostgresStore::open(&url, PostgresOptions::default()).await);
    cluster.start();
    assert_eq!(status(store.as_ref(), 2).await, None);
    store.commit(vec![answering(1)]).await.expect("accepted");
    check_chain(store.as_ref(), 3).await;
}

#[tokio::test]
async fn a_sequencer_that_died_is_replaced_when_its_lease_has_run_out() {
    let url = Cluster::shared().fresh().await;
    drop(open(&url).await);
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    sql(&url, &format!("UPDATE sequencer SET owner = 'dead', expires_at = {now} + 1500")).await;
    sql(&url, "CREATE TABLE dead AS SELECT expires_at FROM sequencer").await;
    let store = open(&url).await;
    store.commit(vec![asking(1, 1), answering(1)]).await.expect("stored");
    check_chain(store.as_ref(), 3).await;
    // What it writes as the end of its own lease is three seconds past the moment in which it took over.
    let check = "SELECT 1 / (s.expires_at - 3000 >= d.expires_at AND s.owner <> 'dead')::int FROM sequencer s, dead d";
    sql(&url, check).await;
}
