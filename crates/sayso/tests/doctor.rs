//! What is said of a store that is well, damaged, open to others, left alone, or none at all; and that saying it changes
//! nothing.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use sayso::doctor::{self, Finding, Severity};
use sayso::{ClaimOf, Desk, Options, People, limits};
use support::{Place, address, agent, live, street};

/// A file's name, bytes, last change and mode.
type Entry = (String, Vec<u8>, i64, u32);

/// Everything in the folder.
fn all_of(folder: &Path) -> Vec<Entry> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let found = entry.metadata().expect("metadata");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("read"), found.mtime_nsec(), found.mode())
        })
        .collect();
    all.sort();
    all
}

async fn examined(place: &Place) -> Vec<Finding> {
    let folder = place.file().parent().expect("a folder").to_owned();
    let uid = fs::metadata(&folder).expect("metadata").uid();
    let options = Options::at(&folder).clock(place.clock.clone());
    doctor::examine(&options, uid).await.expect("a file is always looked at")
}

fn severity(found: &[Finding]) -> Severity {
    found.iter().map(|finding| finding.severity).max().expect("something is said")
}

fn finding<'a>(found: &'a [Finding], check: &str) -> &'a Finding {
    found.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("{check}: {found:#?}"))
}

/// A store with a collected round, closed as a process closes it.
async fn used(place: &Place) {
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(round, street("x"), "k").await.expect("accepted");
    desk.collect(round, "once", std::time::Duration::ZERO).await.expect("collected");
}

fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("read");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

fn replace(bytes: &mut [u8], old: &str, new: &str) {
    assert_eq!(old.len(), new.len());
    let at = bytes.windows(old.len()).position(|window| window == old.as_bytes()).expect("it is in the file");
    bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
}

#[tokio::test]
async fn a_store_that_is_well_is_said_to_be_and_looking_changes_nothing() {
    let place = Place::new();
    used(&place).await;
    let folder = place.file().parent().expect("a folder").to_owned();
    let before = all_of(&folder);
    assert_eq!(before.len(), 1, "the last process has taken the log away");
    let found = examined(&place).await;
    assert_eq!(severity(&found), Severity::Ok, "{found:#?}");
    assert!(all_of(&folder) == before, "looking changed something");
    let chain = &finding(&found, "chain").detail;
    assert!(chain.starts_with("6 events"), "{chain}");
    assert_eq!(finding(&found, "rounds").detail, "1: 1 resolved");

    // Beside a process that uses it, what that process committed last is seen.
    let sayso = place.open().await;
    sayso.desk(agent()).ask(address(), None).await.expect("stored");
    // The log's index holds who reads where, and no data.
    let data = |mut all: Vec<Entry>| {
        all.retain(|(name, ..)| !name.ends_with("-shm"));
        all
    };
    let before = data(all_of(&folder));
    let found = examined(&place).await;
    assert_eq!(severity(&found), Severity::Ok, "{found:#?}");
    assert_eq!(finding(&found, "rounds").detail, "2: 1 pending, 1 resolved");
    assert!(data(all_of(&folder)) == before, "looking changed something");
}

#[tokio::test]
async fn a_chain_that_somebody_changed_is_found_at_the_event() {
    for (old, new, says) in [
        // The asker in the events is not who asked. Those of a transaction stand together, with the hash of the last.
        (
            "booking\0\u{1d}{\"event\":\"execution_created\"}",
            "bookinG\0\u{1d}{\"event\":\"execution_created\"}",
            "event 2 is not what its hash says",
        ),
        // Those of the answer, the third and the fourth, are not read.
        (r#"{"event":"answered"}"#, r#"{"event":"answerex"}"#, "events after 2 "),
    ] {
        let place = Place::new();
        used(&place).await;
        overwrite(&place.file(), |bytes| replace(bytes, old, new));
        let found = examined(&place).await;
        let chain = finding(&found, "chain");
        assert_eq!(chain.severity, Severity::Problem);
        assert!(chain.detail.contains(says), "{}", chain.detail);
        assert_eq!(finding(&found, "rounds").detail, "1: 1 resolved", "the rest is still told");
    }
}

#[tokio::test]
async fn files_of_others_and_files_open_to_others_are_problems() {
    let place = Place::new();
    used(&place).await;
    let file = place.file();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    let found = examined(&place).await;
    let open = finding(&found, "permissions");
    assert_eq!(open.severity, Severity::Problem);
    assert!(open.detail.contains("644") && open.help.as_ref().is_some_and(|help| help.contains("chmod 600")));
    assert_eq!(fs::metadata(&file).expect("metadata").mode() & 0o777, 0o644, "nothing is repaired");

    let folder = file.parent().expect("a folder");
    let options = Options::at(folder).clock(place.clock.clone());
    let stranger = fs::metadata(folder).expect("metadata").uid() + 1;
    let found = doctor::examine(&options, stranger).await.expect("looked at");
    assert_eq!(finding(&found, "owner").severity, Severity::Problem);
}

#[tokio::test]
async fn another_schema_is_named_and_not_read() {
    let place = Place::new();
    used(&place).await;
    for (version, severity, says) in [(99_u32, Severity::Problem, "newer"), (6, Severity::Warning, "makes it")] {
        // The header keeps SQLite's user_version at byte 60.
        overwrite(&place.file(), |bytes| bytes[60..64].copy_from_slice(&version.to_be_bytes()));
        let found = examined(&place).await;
        let schema = finding(&found, "schema");
        assert_eq!(schema.severity, severity);
        assert!(schema.detail.contains(&version.to_string()) && schema.detail.contains(says), "{}", schema.detail);
        let not_read = ["chain", "rounds", "reading"];
        assert!(!found.iter().any(|finding| not_read.contains(&finding.check)), "{found:#?}");
    }
}

#[tokio::test]
async fn what_is_no_database_or_half_of_one_is_said_to_be_so() {
    let place = Place::new();
    let file = place.file();
    let found = examined(&place).await;
    assert_eq!((severity(&found), found.len()), (Severity::Warning, 1), "{found:#?}");
    assert!(found[0].detail.contains("no store yet"));

    for (bytes, check) in [(b"not a database, whatever its name says".repeat(40), "reading"), (Vec::new(), "schema")] {
        fs::write(&file, &bytes).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
        let found = examined(&place).await;
        assert_ne!(finding(&found, check).severity, Severity::Ok, "{found:#?}");
        assert_eq!(fs::read(&file).expect("read"), bytes);
    }

    used(&Place::new()).await;
    fs::remove_file(&file).expect("removed");
    used(&place).await;
    let size = fs::metadata(&file).expect("metadata").len();
    // Damaged page by page, no panic and always something said, but of the pages that are free (their number is at byte 36).
    let free = fs::read(&file).expect("read")[36..40].try_into().map(u32::from_be_bytes).expect("four bytes");
    let mut unnoticed = 0;
    for page in 0..size / 4096 {
        let whole = fs::read(&file).expect("read");
        let at = usize::try_from(page * 4096).expect("small") + if page == 0 { 100 } else { 0 };
        overwrite(&file, |bytes| bytes[at..at + 200].fill(0xff));
        let found = examined(&place).await;
        if severity(&found) != Severity::Problem {
            unnoticed += 1;
            assert!(unnoticed <= free, "page {page}: {found:#?}");
        }
        fs::write(&file, whole).expect("written");
    }
    let half = fs::read(&file).expect("read");
    fs::write(&file, &half[..half.len() / 2]).expect("written");
    assert_eq!(severity(&examined(&place).await), Severity::Problem);
}

#[tokio::test]
async fn a_link_in_place_of_the_file_is_refused() {
    let place = Place::new();
    let elsewhere = Place::new();
    used(&elsewhere).await;
    std::os::unix::fs::symlink(elsewhere.file(), place.file()).expect("linked");
    let found = examined(&place).await;
    assert_eq!(finding(&found, "file").severity, Severity::Problem);
    assert!(!found.iter().any(|finding| finding.check == "rounds"));
}

#[tokio::test]
async fn what_was_left_alone_is_explained_with_what_becomes_of_it() {
    let place = Place::new();
    let sayso = place.open().await;
    let desk = sayso.desk(agent());
    desk.open(live(address()), None).await.expect("stored");
    let deadline = Some(support::START.plus_ms(10));
    desk.ask(sayso::Ask { deadline, ..address() }, None).await.expect("stored");
    let sent = desk.ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(sent, street("x"), "k").await.expect("accepted");
    let claimed = desk.claim(sent, ClaimOf::default(), None).await.expect("claimed");
    desk.start(sent, claimed.fence).await.expect("started");
    let waiting = desk.ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(waiting, street("hunter2"), "k").await.expect("accepted");
    drop((desk, sayso));
    assert_eq!(severity(&examined(&place).await), Severity::Ok, "all of it is well, for now");
    place.clock.advance_ms(limits::LEASE_MS);
    let found = examined(&place).await;
    for (check, says) in [
        ("overdue", "1 pending rounds"),
        ("abandoned", "1 live rounds"),
        ("interrupted", "nobody can tell"),
        ("uncollected", "1 answers"),
    ] {
        assert!(finding(&found, check).detail.contains(says), "{found:#?}");
    }
    assert!(finding(&found, "interrupted").detail.contains(&sent.to_string()));
    assert!(!format!("{found:?}").contains("hunter2"));
    place.clock.advance_ms(-2 * 60 * 60 * 1000);
    let found = examined(&place).await;
    assert_eq!(finding(&found, "clock").severity, Severity::Warning, "{found:#?}");
}

#[tokio::test]
async fn a_store_that_may_not_be_written_is_read() {
    let place = Place::new();
    let sayso = place.open().await;
    sayso.desk(agent()).ask(address(), None).await.expect("stored");
    let read_only = tempfile::tempdir().expect("a folder");
    // As a backup that was taken in the middle: the log is there, its index is not.
    for ending in ["", "-wal"] {
        let name = format!("sayso.sqlite{ending}");
        let from = place.file().parent().expect("a folder").join(&name);
        fs::copy(from, read_only.path().join(&name)).expect("copied");
        fs::set_permissions(read_only.path().join(&name), fs::Permissions::from_mode(0o400)).expect("chmod");
    }
    fs::set_permissions(read_only.path(), fs::Permissions::from_mode(0o500)).expect("chmod");
    let options = Options::at(read_only.path()).clock(place.clock.clone());
    let uid = fs::metadata(read_only.path()).expect("metadata").uid();
    let found = doctor::examine(&options, uid).await.expect("looked at");
    fs::set_permissions(read_only.path(), fs::Permissions::from_mode(0o700)).expect("chmod");
    // As root nothing is read-only, and the log is read too; else it is said that it was not.
    let whole = finding(&found, "log").severity == Severity::Ok;
    assert_eq!(whole, found.iter().any(|one| one.detail == "1: 1 pending"), "{found:#?}");
}
