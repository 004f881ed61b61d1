//! Processes that share a database: what each hears of the others, and who wins.

use std::collections::HashSet;
use std::sync::Arc;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Fence, FenceToken, Status};
use sayso_store::{Hints, PostgresOptions, PostgresStore, Store};
use tokio::task::JoinSet;

use crate::support::cluster::{Cluster, sql};
use crate::support::{self, answering, asking, check_tools_limit, round_id};
use crate::{Heard, check_chain, open, open_with, status, unavailable};

/// An answer under a key of its own.
fn answering_as(n: u128, key: &str) -> Command {
    let mut command = answering(n);
    if let Command::Submit { submission, .. } = &mut command {
        submission.key = key.to_owned();
    }
    command
}

#[tokio::test]
async fn other_processes_are_told_of_what_people_do_and_not_of_what_follows_by_itself() {
    let url = Cluster::shared().fresh().await;
    let heard = Arc::new(Heard::default());
    let hints: Arc<dyn Hints> = heard.clone();
    let _listening = open_with(&url, PostgresOptions { hints: Some(hints), ..PostgresOptions::default() }).await;
    heard.elsewhere.notified().await;
    let working = open(&url).await;
    let fence = Fence { owner: "own_a".to_owned(), token: FenceToken(1) };
    working.commit(vec![asking(1, 1)]).await.expect("stored");
    heard.of(1).await;
    heard.rounds.lock().expect("the lock").clear();
    working.commit(vec![answering(1)]).await.expect("answered");
    heard.of(1).await;
    // What is told of round 2 comes behind all that was told before.
    working.commit(vec![asking(2, 1)]).await.expect("stored");
    heard.of(2).await;
    heard.rounds.lock().expect("the lock").clear();
    let lease = Command::RenewOwner { owner: fence.owner.clone() };
    working.commit(vec![lease]).await.expect("renewed");
    let collect = Command::Collect { round: round_id(1), key: "collected".to_owned(), fence };
    working.commit(vec![collect]).await.expect("collected");
    assert_eq!(status(&*working, 1).await, Some(Status::Resolved));
    working.commit(vec![asking(3, 1)]).await.expect("stored");
    heard.of(3).await;
    assert_eq!(*heard.rounds.lock().expect("the lock"), HashSet::from([round_id(3)]));
}

#[tokio::test]
async fn of_two_processes_that_answer_at_once_one_wins() {
    let url = Cluster::shared().fresh().await;
    let stores = [open(&url).await, open(&url).await];
    for n in 0..20 {
        stores[0].commit(vec![asking(n, 1)]).await.expect("stored");
        let mut racing = JoinSet::new();
        for (store, key) in [(0, "a"), (1, "b"), (0, "c"), (1, "d")] {
            let store = stores[store].clone();
            racing.spawn(async move { store.commit(vec![answering_as(n, key)]).await });
        }
        let outcomes = racing.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        for outcome in outcomes {
            assert!(matches!(outcome, Ok(_) | Err(Error::Conflict { winner: Some(_), .. })), "{outcome:?}");
        }
    }
    // Created, asked, answered; and three refusals each.
    check_chain(stores[1].as_ref(), 20 * 6).await;
}

#[tokio::test]
async fn processes_that_open_a_new_database_at_once_all_get_going() {
    let url = Cluster::shared().fresh().await;
    let mut opening = JoinSet::new();
    for n in 0..6 {
        let url = url.clone();
        opening.spawn(async move { open(&url).await.commit(vec![asking(n, 1)]).await.map(|replies| replies.len()) });
    }
    assert!(opening.join_all().await.into_iter().all(|outcome| outcome == Ok(1)));
    check_chain(open(&url).await.as_ref(), 12).await;
}

#[tokio::test]
async fn a_database_that_a_newer_version_upgraded_is_written_no_more() {
    let url = Cluster::shared().fresh().await;
    let store = open(&url).await;
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    sql(&url, "UPDATE sayso_schema SET version = version + 1").await;
    assert!(unavailable(store.commit(vec![answering(1)]).await).contains("restart"));
    assert!(unavailable(PostgresStore::open(&url, PostgresOptions::default()).await).contains("restart"));
    assert_eq!(status(store.as_ref(), 1).await, Some(Status::Pending));
    sql(&url, "UPDATE sayso_schema SET version = version - 1").await;
    store.commit(vec![answering(1)]).await.expect("accepted");
}

#[tokio::test]
async fn of_one_agent_a_bounded_number_of_tools_is_known() {
    let url = Cluster::shared().fresh().await;
    let store = open(&url).await;
    let tools = "convert_to('files:' || n, 'UTF8')";
    let numbers = format!("generate_series(1, {}) AS n", sayso_core::limits::TOOLS_REVIEWED_MAX);
    sql(&url, &format!("INSERT INTO reviewed SELECT 'agent a', {tools}, sha256('x'), 1 FROM {numbers}")).await;
    check_tools_limit(store.as_ref()).await;
}

#[tokio::test]
async fn processes_that_review_at_once_all_get_on() {
    let url = Cluster::shared().fresh().await;
    let mut reviewing = JoinSet::new();
    for n in 0..4 {
        let store = open(&url).await;
        reviewing.spawn(async move {
            for turn in 0..20 {
                // Each in another order, two to a unit.
                let tools = if n % 2 == 0 { ["files:a", "files:b"] } else { ["files:b", "files:a"] };
                let unit = tools.map(|tool| support::reviewing("agent a", tool, &format!("{n} {turn}"))).to_vec();
                store.commit(unit).await.expect("stored");
            }
        });
    }
    reviewing.join_all().await;
    let known = open(&url).await.reviewed(&Principal::agent("a"), "files:a").await.expect("is read");
    let last: Vec<_> = (0..4).map(|n| Some(Digest::of_text(&format!("{n} 19")))).collect();
    assert!(last.contains(&known));
}

#[tokio::test]
async fn another_process_is_heard_of_by_what_it_changed() {
    let url = Cluster::shared().fresh().await;
    let heard = Arc::new(Heard::default());
    let waiting = open_with(&url, PostgresOptions { hints: Some(heard.clone()), ..PostgresOptions::default() }).await;
    heard.elsewhere.notified().await;
    let other = open(&url).await;
    other.commit(vec![asking(1, 1)]).await.expect("stored");
    heard.of(1).await;
    heard.rounds.lock().expect("the lock").clear();
    other.commit(vec![answering(1)]).await.expect("accepted");
    heard.of(1).await;
    assert_eq!(status(waiting.as_ref(), 1).await, Some(Status::ResponseValidated));
}

#[tokio::test]
async fn whoever_only_polls_finds_what_others_changed() {
    let url = Cluster::shared().fresh().await;
    let heard = Arc::new(Heard::default());
    let polls = || PostgresOptions { poll_only: true, ..PostgresOptions::default() };
    let waiting = open_with(&url, PostgresOptions { hints: Some(heard.clone()), ..polls() }).await;
    let other = open_with(&url, polls()).await;
    let _observing = waiting.observe();
    heard.elsewhere.notified().await;
    other.commit(vec![asking(1, 1)]).await.expect("stored");
    heard.of(1).await;
    heard.rounds.lock().expect("the lock").clear();
    other.commit(vec![answering(1)]).await.expect("accepted");
    heard.of(1).await;
    assert_eq!(status(waiting.as_ref(), 1).await, Some(Status::ResponseValidated));
    check_chain(waiting.as_ref(), 3).await;
}
