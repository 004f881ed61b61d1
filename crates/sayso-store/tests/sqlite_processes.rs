//! Several processes on one file, and processes that die: this test binary starts itself again as the other one.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::round::Status;
use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::{RoundFilter, SqliteOptions, SqliteStore, Store};
use support::{answering, asking, open, round_id, try_open};

/// Says something to the parent. Lines that do not start so are the test harness's.
fn say(text: &str) {
    println!("\nsay {text}");
}

/// The other process. Its standard input says what to do, and where.
#[test]
#[ignore = "started by the other tests of this file"]
fn other_process() {
    let mut lines = std::io::stdin().lines();
    let (Some(Ok(task)), Some(Ok(folder))) = (lines.next(), lines.next()) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = Path::new(&folder);
    match task.as_str() {
        "open" => {
            say("ready");
            // The parent lets all of them go at once by closing their input.
            let n = lines.next().expect("a number").expect("is read").parse().expect("a number");
            assert!(lines.next().is_none());
            let outcome = try_open(folder).map(|store| runtime.block_on(store.commit(vec![asking(n, 1)])));
            say(&format!("{:?}", outcome.map(|replies| replies.map(|replies| replies.len()))));
        }
        "write" => runtime.block_on(write_for_ever(open(folder), 1)),
        "heavy" => runtime.block_on(write_for_ever(open(folder), 64)),
        "fill" => runtime.block_on(fill(&open(folder))),
        "hold" => hold(folder, lines),
        other => panic!("{other}"),
    }
}

/// Eight tasks that ask and answer, `each` rounds a commit, and say each round that is acknowledged.
async fn write_for_ever(store: SqliteStore, each: u128) {
    let (store, next) = (Arc::new(store), Arc::new(AtomicU64::new(1_000_000)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let ids: Vec<_> = (0..each).map(|_| u128::from(next.fetch_add(1, Ordering::SeqCst))).collect();
                let unit = ids.iter().flat_map(|n| [asking(*n, 100), answering(*n)]).collect();
                store.commit(unit).await.expect("stored");
                say(&ids.iter().map(u128::to_string).collect::<Vec<_>>().join(" "));
            }
        });
    }
    tasks.join_all().await;
}

/// Takes the file's lock, as a process does that writes and is stopped in the middle, until it is told to let go.
fn hold(folder: &Path, mut told: impl Iterator<Item = std::io::Result<String>>) {
    let db = rusqlite::Connection::open(support::file_in(folder)).expect("opens");
    db.execute_batch("BEGIN IMMEDIATE; UPDATE owners SET expires_at = 0").expect("locked");
    say("held");
    told.next().expect("a line").expect("is read");
    db.execute_batch("ROLLBACK").expect("let go");
    say("released");
}

/// Writes until the disk is full, and tries once more.
async fn fill(store: &SqliteStore) {
    let mut n = 0;
    loop {
        match store.commit(vec![asking(n, 10_000), answering(n)]).await {
            Ok(_) => say(&n.to_string()),
            Err(Error::Unavailable(_)) => break,
            Err(other) => panic!("{other:?}"),
        }
        n += 1;
    }
    assert!(matches!(store.commit(vec![asking(n, 10_000), answering(n)]).await, Err(Error::Unavailable(_))));
    assert_eq!(store.round(round_id(n)).await, Ok(None), "nothing half-written, and what is there can be read");
    assert!(store.round(round_id(0)).await.expect("is read").is_some());
    say("full");
}

struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(mut command: Command, task: &str, folder: &Path) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let said = BufReader::new(child.stdout.take().expect("its output"));
        let mut other = Self { child, said };
        other.tell(&format!("{task}\n{}\n", folder.display()));
        other
    }

    fn tell(&mut self, text: &str) {
        self.child.stdin.as_mut().expect("its input").write_all(text.as_bytes()).expect("told");
    }

    /// What it says next; none when it has ended. A line that was cut off by its death does not count.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.said.read_line(&mut line).expect("is read") > 0 {
            if let Some(said) = line.strip_prefix("say ").and_then(|said| said.strip_suffix('\n')) {
                return Some(said.to_owned());
            }
            line.clear();
        }
        None
    }

    /// Ends it as `kill -9` does; what it had said by then.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("killed");
        let rest = std::iter::from_fn(|| self.next()).collect();
        self.child.wait().expect("has ended");
        rest
    }
}

const SELF: [&str; 4] = ["--exact", "other_process", "--ignored", "--nocapture"];

fn myself() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(SELF);
    command
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

async fn check_chain(store: &SqliteStore) {
    let events = store.events_after(0, usize::MAX).await.expect("events");
    let mut previous = [0; 32];
    for (event, seq) in events.iter().zip(1..) {
        assert!(event.seq == seq && event.previous_hash == previous && event.is_intact(), "{event:?}");
        previous = event.hash;
    }
}

async fn is_answered(store: &SqliteStore, n: u128) -> bool {
    let row = store.round(round_id(n)).await.expect("is read").map(|found| found.row.status);
    row == Some(Status::ResponseValidated) && store.answer(round_id(n)).await.expect("is read").is_some()
}

#[tokio::test]
async fn processes_that_start_at_once_on_a_new_folder_all_get_going() {
    for _ in 0..5 {
        let folder = folder();
        let mut others: Vec<_> = (0..6).map(|_| Other::start(myself(), "open", folder.path())).collect();
        for (n, other) in others.iter_mut().enumerate() {
            assert_eq!(other.next().as_deref(), Some("ready"));
            other.tell(&format!("{n}\n"));
        }
        for other in &mut others {
            other.child.stdin.take();
        }
        for other in &mut others {
            assert_eq!(other.next().as_deref(), Some("Ok(Ok(1))"));
            assert!(other.child.wait().expect("has ended").success());
        }
        let store = open(folder.path());
        assert_eq!(store.last_event().await, Ok(12));
        check_chain(&store).await;
    }
}

#[tokio::test]
async fn a_light_writer_is_not_starved_by_a_heavy_one() {
    let folder = folder();
    let store = open(folder.path());
    let mut heavy = Other::start(myself(), "heavy", folder.path());
    heavy.next().expect("it writes");
    // Its lines are read elsewhere, so that a full pipe never slows it down.
    let (stop, stopped) = std::sync::mpsc::sync_channel::<()>(1);
    let reading = std::thread::spawn(move || {
        let mut commits = 1;
        while stopped.try_recv().is_err() && heavy.next().is_some() {
            commits += 1;
        }
        heavy.kill();
        commits
    });
    for n in 0..50 {
        store.commit(vec![asking(n, 1), answering(n)]).await.expect("its turn comes within the five seconds it waits");
    }
    stop.send(()).expect("told");
    assert!(reading.join().expect("has ended") > 1, "the heavy one went on, too");
    for n in 0..50 {
        assert!(is_answered(&store, n).await);
    }
    check_chain(&store).await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    for _ in 0..3 {
        let folder = folder();
        let mut writing = Other::start(myself(), "write", folder.path());
        let mut acknowledged: Vec<_> = (0..40).map(|_| writing.next().expect("it writes")).collect();
        acknowledged.extend(writing.kill());
        let store = open(folder.path());
        for said in &acknowledged {
            assert!(is_answered(&store, said.parse().expect("a number")).await, "{said}");
        }
        let rounds = store.rounds(RoundFilter { limit: usize::MAX, ..RoundFilter::default() }).await.expect("rounds");
        let halves = rounds.iter().filter(|round| round.row.status != Status::ResponseValidated).count();
        assert_eq!(halves, 0, "a unit is there whole or not at all");
        check_chain(&store).await;
    }
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_works_again_with_room() {
    let folder = folder();
    // A limit on the size of files stands in for the disk: writing past it fails in the same place.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\""]);
    limited.arg(std::env::current_exe().expect("a path")).args(SELF);
    let mut filling = Other::start(limited, "fill", folder.path());
    let said: Vec<_> = std::iter::from_fn(|| filling.next()).collect();
    assert!(filling.child.wait().expect("has ended").success());
    let (last, acknowledged) = said.split_last().expect("it said something");
    assert_eq!(last, "full");
    assert!(!acknowledged.is_empty());
    let store = open(folder.path());
    for said in acknowledged {
        assert!(is_answered(&store, said.parse().expect("a number")).await, "{said}");
    }
    let next = u128::try_from(acknowledged.len()).expect("a number");
    assert_eq!(store.round(round_id(next)).await, Ok(None));
    store.commit(vec![asking(next, 10_000), answering(next)]).await.expect("works again");
    check_chain(&store).await;
}

#[tokio::test]
async fn a_lock_that_another_process_holds_for_too_long_refuses_and_changes_nothing() {
    let folder = folder();
    let options = SqliteOptions { clock: Arc::new(ManualClock::at(START)), hints: None };
    let patience = Duration::from_millis(50);
    let store = SqliteStore::open_waiting(&support::file_in(folder.path()), options, Some(patience)).expect("opens");
    store.commit(vec![asking(0, 1)]).await.expect("stored");
    let mut holding = Other::start(myself(), "hold", folder.path());
    assert_eq!(holding.next().as_deref(), Some("held"));
    for unit in [vec![asking(1, 1)], vec![answering(0)], vec![asking(2, 1), answering(2)]] {
        let Err(Error::Unavailable(why)) = store.commit(unit).await else { panic!("is refused") };
        assert_eq!(why, "another process has held the store for too long; nothing was changed");
    }
    let rounds = store.rounds(RoundFilter { limit: usize::MAX, ..RoundFilter::default() }).await.expect("rounds");
    let found: Vec<_> = rounds.iter().map(|round| (round.row.id, round.row.status)).collect();
    assert_eq!(found, [(round_id(0), Status::Pending)], "it is read meanwhile, and as it was");
    holding.tell("let go\n");
    assert_eq!(holding.next().as_deref(), Some("released"));
    store.commit(vec![answering(0)]).await.expect("the same again");
    assert!(is_answered(&store, 0).await);
    assert_eq!(store.last_event().await, Ok(3));
    check_chain(&store).await;
}

#[tokio::test]
async fn a_lock_that_another_process_lets_go_in_time_is_waited_for() {
    let folder = folder();
    let store = open(folder.path());
    let mut holding = Other::start(myself(), "hold", folder.path());
    assert_eq!(holding.next().as_deref(), Some("held"));
    let mut waiting: Vec<_> = (0..3).map(|n| Box::pin(store.commit(vec![asking(n, 1), answering(n)]))).collect();
    for _ in 0..100 {
        tokio::task::yield_now().await;
        for commit in &mut waiting {
            let waits = std::future::poll_fn(|context| Poll::Ready(commit.as_mut().poll(context).is_pending()));
            assert!(waits.await, "another process has the lock");
        }
    }
    assert_eq!(store.last_event().await, Ok(0));
    holding.tell("let go\n");
    for commit in waiting {
        commit.await.expect("its turn comes within the five seconds it waits");
    }
    for n in 0..3 {
        assert!(is_answered(&store, n).await);
    }
    check_chain(&store).await;
}
