//! SQLite's own promises: who may read the file, which versions may write it, and what a failing disk leaves behind.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sayso_core::command::Command;
use sayso_core::error::{Error, ErrorCode};
use sayso_core::id::ExecutionId;
use sayso_core::limits::TOOLS_REVIEWED_MAX;
use sayso_core::round::{Fence, FenceToken, Status};
use sayso_store::clock::ManualClock;
use sayso_store::{ChangedRound, Hints, RoundFilter, SqliteStore, Store};
use support::{answering, asking, count, file_in, open, open_hinting, round_id, sql, try_open};
use tokio::sync::Notify;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn unavailable<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Unavailable(message)) => message,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("is refused"),
    }
}

#[tokio::test]
async fn only_its_owner_reads_the_files() {
    let folder = folder();
    let store = open(folder.path());
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).expect("listed").map(|file| file.expect("one")).collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = files.iter().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["sayso.sqlite", "sayso.sqlite-shm", "sayso.sqlite-wal"]);
    for file in files {
        let mode = file.metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn a_file_that_others_could_read_is_closed_to_them() {
    let folder = folder();
    drop(open(folder.path()));
    let path = folder.path().join("sayso.sqlite");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("opened up");
    drop(open(folder.path()));
    assert_eq!(path.metadata().expect("its mode").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_link_in_the_files_place_is_refused_and_a_linked_folder_is_resolved() {
    let folder = folder();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    drop(open(&elsewhere));
    for target in [file_in(&elsewhere), elsewhere.join("missing"), elsewhere.clone()] {
        symlink(&target, file_in(folder.path())).expect("a link");
        assert!(unavailable(try_open(folder.path())).contains("link"));
        std::fs::remove_file(file_in(folder.path())).expect("removed");
    }
    assert!(!elsewhere.join("missing").exists(), "nothing was created through the link");
    let linked = folder.path().join("linked");
    symlink(&elsewhere, &linked).expect("a link");
    let store = open(&linked);
    assert_eq!(store.path(), file_in(&elsewhere.canonicalize().expect("a path")));
    assert!(unavailable(try_open(&folder.path().join("nowhere"))).contains("does not exist"));
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_as_it_was() {
    let folder = folder();
    let text = "dear diary, this is no database at all. ".repeat(100);
    std::fs::write(file_in(folder.path()), &text).expect("written");
    unavailable(try_open(folder.path()));
    assert_eq!(std::fs::read_to_string(file_in(folder.path())).expect("read"), text);
}

#[tokio::test]
async fn a_file_that_a_newer_version_upgraded_is_written_no_more() {
    let folder = folder();
    let store = open(folder.path());
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    sql(folder.path(), "PRAGMA user_version = 99");
    assert!(unavailable(store.commit(vec![answering(1)]).await).contains("restart"));
    assert!(unavailable(try_open(folder.path())).contains("restart"));
    let row = store.round(round_id(1)).await.expect("is read").expect("is stored").row;
    assert_eq!(row.status, Status::Pending);
    sql(folder.path(), "PRAGMA user_version = 9");
    store.commit(vec![answering(1)]).await.expect("accepted");
}

#[tokio::test]
async fn of_one_agent_a_bounded_number_of_tools_is_known() {
    let folder = folder();
    let store = open(folder.path());
    sql(
        folder.path(),
        &format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {TOOLS_REVIEWED_MAX})
             INSERT INTO reviewed SELECT 'agent a', 'files:' || n, x'{}', 1 FROM n",
            "11".repeat(32)
        ),
    );
    support::check_tools_limit(&store).await;
}

#[tokio::test]
async fn opening_changes_nothing_that_is_stored() {
    let folder = folder();
    open(folder.path()).commit(vec![asking(1, 1)]).await.expect("stored");
    let before = std::fs::read(file_in(folder.path())).expect("read");
    let store = open(folder.path());
    assert!(store.round(round_id(1)).await.expect("is read").is_some());
    drop(store);
    assert_eq!(std::fs::read(file_in(folder.path())).expect("read"), before);
}

#[tokio::test]
async fn a_write_that_fails_in_the_middle_leaves_nothing_half_written() {
    let folder = folder();
    let store = open(folder.path());
    store.commit(vec![asking(1, 1)]).await.expect("stored");
    // The last write of an answer is its event: by then the round, its execution and the answer are written.
    sql(
        folder.path(),
        "CREATE TRIGGER full BEFORE INSERT ON event_lists WHEN instr(NEW.events, CAST('\"answered\"' AS BLOB))
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    );
    let before = store.events_after(0, 100).await;
    for unit in [vec![answering(1)], vec![asking(2, 1), answering(2)]] {
        assert!(unavailable(store.commit(unit).await).contains("nothing was changed"));
    }
    let row = store.round(round_id(1)).await.expect("is read").expect("is stored").row;
    assert_eq!((row.status, row.rev), (Status::Pending, 1));
    assert_eq!(store.answer(round_id(1)).await, Ok(None));
    assert_eq!(store.round(round_id(2)).await, Ok(None));
    assert_eq!(store.events_after(0, 100).await, before);
    sql(folder.path(), "DROP TRIGGER full");
    store.commit(vec![answering(1)]).await.expect("works again");
    let events = store.events_after(0, 100).await.expect("events");
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq && event.is_intact()));
}

#[tokio::test]
async fn a_row_that_says_nothing_we_know_is_corrupt_and_stops_nobody_else() {
    let folder = folder();
    let store = open(folder.path());
    for n in 1..=3 {
        store.commit(vec![asking(n, 1)]).await.expect("stored");
    }
    sql(folder.path(), "UPDATE round_states SET status = 'sideways' WHERE n = 1");
    assert_eq!(store.round(round_id(1)).await, Err(Error::Corrupt("round")));
    let both = tokio::join!(store.commit(vec![answering(1)]), store.commit(vec![answering(2)]));
    assert_eq!(both.0, Err(Error::Corrupt("round")));
    both.1.expect("its neighbour goes on");
    let unit = store.commit(vec![answering(3), answering(1)]).await;
    assert_eq!(unit, Err(Error::Corrupt("round")));
    let row = store.round(round_id(3)).await.expect("is read").expect("is stored").row;
    assert_eq!(row.status, Status::Pending, "all of it or nothing");
    sql(folder.path(), "UPDATE round_answers SET instead = '{'");
    let fence = Fence { owner: "own_a".to_owned(), token: FenceToken(1) };
    let collect = Command::Collect { round: round_id(2), key: "once".to_owned(), fence };
    assert_eq!(store.commit(vec![collect]).await.map_err(|error| error.code()), Err(ErrorCode::CorruptSuspendedState));
    let row = store.round(round_id(2)).await.expect("is read").expect("is stored").row;
    assert_eq!(row.status, Status::ResponseValidated, "nothing was consumed");
}

#[tokio::test]
async fn rows_that_lack_what_belongs_to_them_are_found_from_outside() {
    for (damage, lacking) in [
        (
            "UPDATE round_states SET n = 99 WHERE n = 1",
            ["rounds without their state", "rounds without what they ask"].as_slice(),
        ),
        ("UPDATE round_facts SET own_execution = NULL", &["rounds without their execution"]),
        ("UPDATE round_states SET holder = 99", &["rounds and executions whose worker has no name"]),
        ("UPDATE round_states SET answered_at = 1", &["answered rounds without their answer"]),
        ("UPDATE round_states SET status = 'failed'", &["finished rounds whose opaque state is still kept"]),
        ("SELECT 1", &[]),
    ] {
        let folder = folder();
        open(folder.path()).commit(vec![asking(1, 1)]).await.expect("stored");
        sql(folder.path(), damage);
        let clock = ManualClock::at(sayso_store::conformance::START);
        let examined = SqliteStore::examine(&file_in(folder.path()), &clock);
        let found = examined.orphans.iter().filter(|(_, count)| *count == 1);
        assert_eq!(found.map(|(what, _)| *what).collect::<Vec<_>>(), lacking, "{damage}: {:?}", examined.unread);
        assert_eq!(examined.orphans.len(), 6);
    }
}

#[tokio::test]
async fn the_opaque_state_of_a_finished_round_is_in_no_table() {
    let folder = folder();
    let store = open(folder.path());
    for n in 1..=3 {
        store.commit(vec![asking(n, 1)]).await.expect("stored");
    }
    assert_eq!(count(folder.path(), "request_states"), 3);
    store.commit(vec![answering(1)]).await.expect("accepted");
    let fence = Fence { owner: "own_a".to_owned(), token: FenceToken(1) };
    store
        .commit(vec![Command::Collect { round: round_id(1), key: "once".to_owned(), fence }])
        .await
        .expect("collected");
    assert_eq!(count(folder.path(), "request_states"), 2, "erased when resolved");
    let execution = ExecutionId::from_parts(sayso_store::conformance::START.0, 2);
    let principal = sayso_core::principal::Principal::person("local:ada");
    store.commit(vec![Command::Cancel { execution, principal }]).await.expect("cancelled");
    assert_eq!(count(folder.path(), "request_states"), 1, "erased when failed");
    assert_eq!(count(folder.path(), "event_lists WHERE instr(events, CAST('sealed' AS BLOB))"), 0);
}

/// Counts what it hears, and tells a waiting test.
#[derive(Default)]
struct Heard {
    commits: AtomicUsize,
    elsewhere: Notify,
}

impl Hints for Heard {
    fn changed(&self, _: &[ChangedRound], _: &[ExecutionId], _: u64) {
        self.commits.fetch_add(1, Ordering::SeqCst);
    }
    fn changed_elsewhere(&self) {
        self.elsewhere.notify_one();
    }
}

#[tokio::test]
async fn whoever_comes_while_a_commit_waits_shares_the_next() {
    let folder = folder();
    let heard = Arc::new(Heard::default());
    let store = Arc::new(open_hinting(folder.path(), heard.clone()));
    let blocking = rusqlite::Connection::open(file_in(folder.path())).expect("opens");
    blocking.execute_batch("BEGIN IMMEDIATE").expect("holds the write lock");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..48 {
        let store = store.clone();
        tasks.spawn(async move { store.commit(vec![asking(n, 1)]).await });
    }
    // On this runtime every task is polled once before this one goes on, and by then its command is queued: it polls 61 before it
    // looks who has let others through.
    tokio::task::yield_now().await;
    blocking.execute_batch("ROLLBACK").expect("releases it");
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    assert!(heard.commits.load(Ordering::SeqCst) <= 2, "48 commands, two transactions at most");
    assert_eq!(store.rounds(RoundFilter { limit: 100, ..RoundFilter::default() }).await.expect("rounds").len(), 48);
    assert_eq!(store.last_event().await, Ok(96));
}

#[tokio::test]
async fn whoever_waits_hears_of_another_process() {
    let folder = folder();
    let heard = Arc::new(Heard::default());
    let waiting = open_hinting(folder.path(), heard.clone());
    let other = open(folder.path());
    other.commit(vec![asking(1, 1)]).await.expect("stored");
    let observing = waiting.observe();
    heard.elsewhere.notified().await;
    other.commit(vec![answering(1)]).await.expect("accepted");
    heard.elsewhere.notified().await;
    drop(observing);
    waiting.commit(vec![asking(2, 1)]).await.expect("stored");
    assert_eq!(heard.commits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_store_that_is_dropped_has_written_what_was_queued() {
    let folder = folder();
    let store = Arc::new(open(folder.path()));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        tasks.spawn(async move { store.commit(vec![asking(n, 1)]).await });
    }
    drop(store);
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    assert_eq!(open(folder.path()).last_event().await, Ok(40));
}
