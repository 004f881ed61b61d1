//! What one unit cannot do its neighbours still can; and URLs that are none.

use sayso_core::command::{Command, Reply};
use sayso_core::error::{Error, ErrorCode};
use sayso_store::{PostgresOptions, PostgresStore, Store};
use tokio::task::JoinSet;

use crate::support::cluster::{Cluster, sql};
use crate::support::{answering, asking, round_id};
use crate::{check_chain, open, unavailable};

#[tokio::test]
async fn what_cannot_be_stored_or_read_refuses_its_own_unit_only() {
    let url = Cluster::shared().fresh().await;
    let store = open(&url).await;
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    sql(&url, "UPDATE round_states SET status = 'nonsense', rev = rev + 1").await;
    let nul = |n| {
        let mut command = asking(n, 1);
        if let Command::CreateRound(new) = &mut command {
            new.server = "ship\0ping".to_owned();
        }
        command
    };
    let mut tasks = JoinSet::new();
    for n in 10..40_u128 {
        let store = store.clone();
        let unit = match n % 3 {
            0 => vec![asking(n, 1)],
            1 => vec![nul(n)],
            _ => vec![answering(1), asking(n, 1)],
        };
        tasks.spawn(async move { (n % 3, store.commit(unit).await.map_err(|error| error.code())) });
    }
    for (kind, outcome) in tasks.join_all().await {
        match kind {
            0 => assert!(outcome.is_ok()),
            1 => assert_eq!(outcome, Err(ErrorCode::ManagedInputInvalid)),
            _ => assert_eq!(outcome, Err(ErrorCode::CorruptSuspendedState)),
        }
    }
    let twice = store.commit(vec![asking(12, 1)]).await;
    assert_eq!(twice.map_err(|error| error.code()), Err(ErrorCode::ManagedInputConflict), "an id is used once");
}

#[tokio::test]
async fn opaque_state_is_kept_whatever_its_bytes() {
    let url = Cluster::shared().fresh().await;
    let store = open(&url).await;
    let mut ask = asking(1, 1);
    if let Command::CreateRound(new) = &mut ask {
        new.request_state = Some("a\0b\u{1f511}".to_owned());
    }
    store.commit(vec![ask]).await.expect("stored");
    store.commit(vec![answering(1)]).await.expect("accepted");
    let fence = sayso_core::round::Fence { owner: "own".to_owned(), token: sayso_core::round::FenceToken(7) };
    let collect = Command::Collect { round: round_id(1), key: "once".to_owned(), fence };
    let replies = store.commit(vec![collect]).await.expect("collected");
    let [Reply::Handed { content, .. }] = replies.as_slice() else { panic!("nothing handed over") };
    assert_eq!(content.request_state.as_deref(), Some("a\0b\u{1f511}"));
}

#[tokio::test]
async fn a_store_that_is_dropped_has_written_what_was_queued() {
    let url = Cluster::shared().fresh().await;
    let store = open(&url).await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        tasks.spawn(async move { store.commit(vec![asking(n, 1)]).await });
    }
    drop(store);
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    check_chain(open(&url).await.as_ref(), 40).await;
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_refused_without_its_password() {
    let wrong = ["postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?sslmode=require", "mysql://u:hunter2@h/d"];
    for url in wrong {
        match PostgresStore::open(url, PostgresOptions::default()).await.map(drop) {
            Err(error @ Error::Validation { .. }) => assert!(!format!("{error:?}").contains("hunter2"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    let url = Cluster::shared().fresh().await;
    let nowhere = "postgres://u:hunter2@%2Fnowhere/d".to_owned();
    for url in [nowhere, url.replace("/postgres?", "/missing?"), url.replace("sayso@", "nobody:hunter2@")] {
        assert!(!unavailable(PostgresStore::open(&url, PostgresOptions::default()).await).contains("hunter2"));
    }
}
