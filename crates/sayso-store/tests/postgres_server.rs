//! PostgreSQL's own promises: several processes on one database, and what is left when connections and servers die.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sayso_core::command::{Command, Reply};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Fence, FenceToken, Status};
use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::{ChangedRound, Hints, PostgresOptions, PostgresStore, RoundFilter, Store};
use support::cluster::{Cluster, sql};
use support::{answering, asking, round_id};
use tokio::sync::Notify;
use tokio::task::JoinSet;

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
    support::check_tools_limit(store.as_ref()).await;
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
