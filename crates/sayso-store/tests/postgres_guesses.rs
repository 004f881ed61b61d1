//! A process on PostgreSQL decides by rows that it remembers, and another process changes them in between: nothing is
//! ever decided by what is out of date. By the database's own clock, as outside of tests.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use sayso_core::command::{Command, Reply, RoundExecution};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::execution::ExecutionKind;
use sayso_core::id::ExecutionId;
use sayso_core::round::{Delivery, Fence, FenceToken, Status};
use sayso_store::conformance::START;
use sayso_store::{PostgresOptions, PostgresStore, Store};
use support::cluster::{Cluster, sql};
use support::{answering, asking, round_id};

/// Hears nothing of others: what it remembers is as old as it can be.
async fn deaf(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(url, PostgresOptions::default()).await.expect("opens"))
}

async fn two() -> (String, Arc<PostgresStore>, Arc<PostgresStore>) {
    let url = Cluster::shared().fresh().await;
    let (one, other) = (deaf(&url).await, deaf(&url).await);
    (url, one, other)
}

fn execution(n: u128) -> ExecutionId {
    ExecutionId::from_parts(START.0, n)
}

fn fence(owner: &str, token: u128) -> Fence {
    Fence { owner: owner.to_owned(), token: FenceToken(token) }
}

/// Like [`asking`], of a worker that holds it.
fn asking_live(n: u128, owner: &str) -> Command {
    let mut command = asking(n, 1);
    if let Command::CreateRound(new) = &mut command {
        (new.delivery, new.fence) = (Delivery::Live, Some(fence(owner, n)));
        new.execution =
            RoundExecution::New { id: execution(n), kind: ExecutionKind::Operation, ends_with_round: false };
    }
    command
}

fn answering_as(n: u128, key: &str) -> Command {
    let mut command = answering(n);
    if let Command::Submit { submission, .. } = &mut command {
        submission.key = key.to_owned();
    }
    command
}

fn collecting(n: u128, owner: &str) -> Command {
    Command::Collect { round: round_id(n), key: "collected".to_owned(), fence: fence(owner, 100 + n) }
}

async fn status(store: &PostgresStore, n: u128) -> Status {
    store.row(round_id(n)).await.expect("is read").expect("is there").status
}

fn code(result: Result<Vec<Reply>, Error>) -> ErrorCode {
    result.expect_err("is refused").code()
}

#[tokio::test]
async fn a_worker_that_is_alone_goes_through_a_rounds_life_by_what_it_remembers() {
    let (_, store, other) = two().await;
    for n in 1..20 {
        let held = fence("worker", n);
        store.commit(vec![asking_live(n, "worker")]).await.expect("stored");
        let start = Command::StartDelivery { round: round_id(n), fence: held.clone() };
        let started = if n % 2 == 0 {
            store.commit(vec![answering(n)]).await.expect("accepted");
            store.commit(vec![start]).await
        } else {
            store.commit(vec![answering(n), start]).await
        };
        match started.expect("started").last() {
            Some(Reply::Handed { content, .. }) => assert_eq!(content.request_state.as_deref(), Some("sealed")),
            _ => panic!("is handed over"),
        }
        let delivered = Command::MarkDelivered { round: round_id(n), fence: held.clone() };
        let resolved = Command::Resolve { round: round_id(n), fence: held };
        store.commit(vec![delivered, resolved]).await.expect("settled");
        let row = other.row(round_id(n)).await.expect("is read").expect("is there");
        assert_eq!((row.status, row.rev), (Status::Resolved, 5));
        assert_eq!(other.request_state(round_id(n)).await.expect("is read"), None);
    }
    let events = other.events_after(0, 1_000).await.expect("events");
    assert_eq!(events.len(), 19 * 4);
    for (event, before) in events.iter().skip(1).zip(&events) {
        assert!(event.is_intact() && event.previous_hash == before.hash && event.seq == before.seq + 1);
    }
    for (after, limit) in [(0, 7), (3, 1), (40, 100), (75, 5), (76, 5)] {
        let page = other.events_after(after, limit).await.expect("a page");
        let expected: Vec<_> = events.iter().filter(|event| event.seq > after).take(limit).cloned().collect();
        assert_eq!(page, expected, "a page begins within a list as well as with one");
    }
}

#[tokio::test]
async fn an_answer_that_another_process_took_in_between_stands() {
    let (_, one, other) = two().await;
    for n in 1..10 {
        one.commit(vec![asking(n, 1)]).await.expect("stored");
        other.commit(vec![answering_as(n, "theirs")]).await.expect("accepted");
        match one.commit(vec![answering_as(n, "mine")]).await {
            Err(Error::Conflict { winner: Some(_), .. }) => {}
            told => panic!("{told:?}"),
        }
        let row = one.row(round_id(n)).await.expect("is read").expect("is there");
        assert_eq!(row.answer_key.map(|(key, _)| key).as_deref(), Some("theirs"));
        one.commit(vec![answering_as(n, "theirs")]).await.expect("a repeat finds what was stored");
    }
}

#[tokio::test]
async fn a_worker_that_was_released_elsewhere_is_not_believed_to_live() {
    let (_, worker, other) = two().await;
    worker.commit(vec![asking_live(1, "worker")]).await.expect("stored");
    // What is read for an answer is remembered, the lease included.
    other.round(round_id(1)).await.expect("is read").expect("is there");
    worker.commit(vec![Command::ReleaseOwner { owner: "worker".to_owned() }]).await.expect("released");
    assert_eq!(code(other.commit(vec![answering(1)]).await), ErrorCode::ManagedInputConflict);
    assert_eq!(status(&other, 1).await, Status::Pending);
    worker.commit(vec![Command::RenewOwner { owner: "worker".to_owned() }]).await.expect("renewed");
    other.commit(vec![answering(1)]).await.expect("accepted");
}

#[tokio::test]
async fn a_round_that_another_process_failed_in_between_is_not_started() {
    let (url, worker, other) = two().await;
    worker.commit(vec![asking_live(1, "worker")]).await.expect("stored");
    worker.commit(vec![answering(1)]).await.expect("accepted");
    sql(&url, "UPDATE owners SET expires_at = 0").await;
    let lost = Command::FailRecovery { round: round_id(1), expected: FenceToken(1) };
    other.commit(vec![lost]).await.expect("failed");
    let start = Command::StartDelivery { round: round_id(1), fence: fence("worker", 1) };
    worker.commit(vec![start]).await.expect_err("is refused");
    assert_eq!(status(&worker, 1).await, Status::Failed);
}

#[tokio::test]
async fn an_execution_that_got_another_round_in_between_does_not_end() {
    let (_, one, other) = two().await;
    one.commit(vec![asking(1, 1)]).await.expect("stored");
    let mut second = asking(2, 1);
    if let Command::CreateRound(new) = &mut second {
        (new.execution, new.logical_operation_id) = (RoundExecution::Existing(execution(1)), "second".to_owned());
    }
    // The counts of what is pending are as they were, and another round is unfinished.
    other.commit(vec![second]).await.expect("stored");
    other.commit(vec![answering(2)]).await.expect("accepted");
    one.commit(vec![answering(1)]).await.expect("accepted");
    one.commit(vec![collecting(1, "collector")]).await.expect("collected");
    let outcome = async |store: &PostgresStore| {
        store.execution(execution(1)).await.expect("is read").expect("is there").0.outcome
    };
    assert_eq!(outcome(&one).await, None, "its other round is not finished");
    other.commit(vec![collecting(2, "collector")]).await.expect("collected");
    assert!(outcome(&one).await.is_some());
}

#[tokio::test]
async fn of_two_processes_that_finish_the_last_rounds_at_once_one_ends_the_execution() {
    let (_, one, other) = two().await;
    for n in (10..40).step_by(2) {
        let mut second = asking(n + 1, 1);
        if let Command::CreateRound(new) = &mut second {
            (new.execution, new.logical_operation_id) = (RoundExecution::Existing(execution(n)), "second".to_owned());
        }
        one.commit(vec![asking(n, 1), second]).await.expect("stored");
        let answered = tokio::join!(one.commit(vec![answering(n)]), other.commit(vec![answering(n + 1)]));
        assert!(answered.0.is_ok() && answered.1.is_ok(), "{answered:?}");
        let collected = tokio::join!(one.commit(vec![collecting(n, "a")]), other.commit(vec![collecting(n + 1, "b")]));
        assert!(collected.0.is_ok() && collected.1.is_ok(), "{collected:?}");
        let (found, pending) = one.execution(execution(n)).await.expect("is read").expect("is there");
        assert!(found.outcome.is_some() && pending.is_empty(), "{found:?}");
    }
}

#[tokio::test]
async fn a_newer_schema_refuses_what_is_decided_by_memory_too() {
    let (url, store, _) = two().await;
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    sql(&url, "UPDATE sayso_schema SET version = version + 1").await;
    let refused = store.commit(vec![answering(1)]).await.expect_err("is refused");
    assert!(refused.to_string().contains("restart"), "{refused}");
    sql(&url, "UPDATE sayso_schema SET version = version - 1").await;
    store.commit(vec![answering(1)]).await.expect("accepted");
}
