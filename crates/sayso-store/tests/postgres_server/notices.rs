//! What a notice brings along to other processes, and what it cannot do to whoever sends or hears it.

use std::collections::HashSet;
use std::sync::Arc;

use sayso_core::command::Command;
use sayso_core::principal::Principal;
use sayso_core::round::{Failure, FailureRequest, Round, Status};
use sayso_store::{Hints, PostgresOptions, PostgresStore, Store};
use tokio::task::JoinSet;

use crate::support::cluster::{Cluster, sql};
use crate::support::{answering, asking, round_id};
use crate::{Heard, open, open_with, status};

async fn listening(url: &str) -> (Arc<Heard>, Arc<PostgresStore>) {
    let heard = Arc::new(Heard::default());
    let hints: Arc<dyn Hints> = heard.clone();
    let store = open_with(url, PostgresOptions { hints: Some(hints), ..PostgresOptions::default() }).await;
    heard.elsewhere.notified().await;
    (heard, store)
}

fn told(heard: &Heard) -> Vec<Arc<Round>> {
    std::mem::take(&mut heard.rows.lock().expect("the lock"))
}

async fn stored(store: &PostgresStore, n: u128) -> Round {
    store.row(round_id(n)).await.expect("is read").expect("is there")
}

fn failing(n: u128) -> Command {
    let failure = Failure::new(Failure::WITHDRAWN, "never mind");
    let request = FailureRequest { fence: None, principal: Principal::agent("booking"), failure, only_pending: true };
    Command::Fail { round: round_id(n), request }
}

#[tokio::test]
async fn the_end_of_a_wait_brings_its_row_to_other_processes() {
    let url = Cluster::shared().fresh().await;
    let (heard, _listening) = listening(&url).await;
    let working = open(&url).await;
    for (n, end) in [(1, answering(1)), (2, failing(2))] {
        working.commit(vec![asking(n, 1)]).await.expect("stored");
        heard.of(n).await;
        assert!(told(&heard).is_empty(), "nobody waits for a question");
        heard.rounds.lock().expect("the lock").clear();
        working.commit(vec![end]).await.expect("ended");
        heard.of(n).await;
        let rows: Vec<Round> = told(&heard).into_iter().map(Arc::unwrap_or_clone).collect();
        assert_eq!(rows, [stored(&working, n).await]);
        assert_ne!(rows[0].status, Status::Pending);
    }
}

#[tokio::test]
async fn of_several_answers_in_one_transaction_only_the_ids_are_told() {
    let url = Cluster::shared().fresh().await;
    let (heard, _listening) = listening(&url).await;
    let working = open(&url).await;
    working.commit((0..5).map(|n| asking(n, 1)).collect()).await.expect("stored");
    heard.of(4).await;
    heard.rounds.lock().expect("the lock").clear();
    working.commit((0..5).map(answering).collect()).await.expect("accepted");
    heard.of(4).await;
    assert_eq!(*heard.rounds.lock().expect("the lock"), HashSet::from([0, 1, 2, 3, 4].map(round_id)));
    assert!(told(&heard).is_empty());
}

/// Two that answer at once decide by the same row; what the loser decided was never so, and nobody is told of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_committed_is_told_to_nobody() {
    let url = Cluster::shared().fresh().await;
    let (heard, _listening) = listening(&url).await;
    let stores = [open(&url).await, open(&url).await, open(&url).await];
    for n in 0..30 {
        stores[0].commit(vec![asking(n, 1)]).await.expect("stored");
        for store in &stores {
            store.round(round_id(n)).await.expect("is read").expect("is remembered");
        }
        let mut racing = JoinSet::new();
        for (store, key) in stores.iter().cloned().zip(["a", "b", "c"]) {
            let mut command = answering(n);
            if let Command::Submit { submission, .. } = &mut command {
                submission.key = key.to_owned();
            }
            racing.spawn(async move { store.commit(vec![command]).await });
        }
        assert_eq!(racing.join_all().await.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        let row = stored(&stores[0], n).await;
        // What comes later is told later.
        stores[0].commit(vec![asking(100 + n, 1)]).await.expect("stored");
        heard.of(100 + n).await;
        let rows: Vec<Round> = told(&heard).into_iter().map(Arc::unwrap_or_clone).collect();
        assert_eq!(rows, [row], "round {n}");
    }
}

/// In PostgreSQL a transaction that notifies fails while the queue of notices is full, which one idle session of anybody's
/// can bring about.
#[tokio::test]
async fn an_answer_is_accepted_though_the_database_takes_no_notice() {
    let url = Cluster::shared().fresh().await;
    let (_, schema) = url.rsplit_once("%3D").expect("a schema");
    let full = "RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = 'program_limit_exceeded'";
    let function = "pg_notify(text, text) RETURNS void LANGUAGE plpgsql";
    sql(&url, &format!("CREATE FUNCTION {schema}.{function} AS $$ BEGIN {full}; END $$")).await;
    let store = open(&format!("{url},pg_catalog")).await;
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    store.commit(vec![answering(1)]).await.expect("accepted");
    assert_eq!(status(&*store, 1).await, Some(Status::ResponseValidated));
}

#[tokio::test]
async fn whoever_may_only_connect_neither_reads_a_row_nor_makes_one_up() {
    let url = Cluster::shared().fresh().await;
    let (heard, _listening) = listening(&url).await;
    let other_url = Cluster::shared().fresh().await;
    let (other_heard, _other) = listening(&other_url).await;
    let (_, schema) = url.rsplit_once("%3D").expect("a schema");
    let (_, other_schema) = other_url.rsplit_once("%3D").expect("a schema");
    let (stranger, mut session) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connects");
    let (send, mut notices) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| session.poll_message(context)).await {
            if let tokio_postgres::AsyncMessage::Notification(notice) = message {
                send.send(notice.payload().to_owned()).await.expect("is heard");
            }
        }
    });
    stranger.batch_execute(&format!("LISTEN \"sayso:{schema}\"")).await.expect("listens");
    let working = open(&url).await;
    working.commit(vec![asking(1, 1)]).await.expect("stored");
    working.commit(vec![answering(1)]).await.expect("accepted");
    let payload = loop {
        let payload = notices.recv().await.expect("a notice");
        if payload.contains(",row_") {
            break payload;
        }
    };
    heard.of(1).await;
    while told(&heard).is_empty() {
        heard.any.notified().await;
    }
    let row = stored(&working, 1).await;
    for word in [row.server.as_str(), &row.answer_key.as_ref().expect("answered").0, "response_validated"] {
        assert!(!payload.contains(word), "{word}");
    }
    // In a store with another key it is a hint, as anything else is that somebody makes up.
    let made_up = payload.replace(",row_", ",row_A");
    for (channel, sent) in [(other_schema, &payload), (schema, &made_up)] {
        stranger.execute("SELECT pg_notify($1, $2)", &[&format!("sayso:{channel}"), sent]).await.expect("is sent");
    }
    other_heard.of(1).await;
    assert!(told(&other_heard).is_empty());
    working.commit(vec![asking(2, 1)]).await.expect("stored");
    heard.of(2).await;
    assert!(told(&heard).is_empty());
}
