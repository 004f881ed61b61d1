//! Raw SQLite: one connection, WAL, `synchronous=FULL`, as every file of ours.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use sayso_core::error::Error;

use super::{Cycles, RowBytes, Samples, Stopwatch, TRANSITIONS, filling, key};

const TABLES: &str = "
    CREATE TABLE state (id BLOB NOT NULL PRIMARY KEY, status INTEGER NOT NULL, token BLOB NOT NULL, at INTEGER NOT NULL)
        STRICT, WITHOUT ROWID;
    CREATE INDEX pending ON state (id) WHERE status = 1;
    CREATE TABLE request (id BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE answer (id BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE single (id INTEGER NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;";

/// Whole cycles of `rounds` rounds at a time, a commit a transition, for `time`, in a new file in `folder`.
pub fn sqlite_cycles(folder: &Path, bytes: RowBytes, rounds: usize, time: Duration) -> Result<Cycles, Error> {
    in_new_file(folder, |db| {
        let (request, answer) = (filling(bytes.request), filling(bytes.answer));
        let watch = Stopwatch::start();
        let (mut next, mut took) = (0, Samples::default());
        while watch.elapsed() < time {
            let group = Stopwatch::start();
            let keys: Vec<_> = (next..).take(rounds).map(key).collect();
            next += u64::try_from(rounds).unwrap_or_default();
            for transition in 1..=TRANSITIONS {
                let commit = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
                for key in &keys {
                    step(&commit, key, transition, &request, &answer)?;
                }
                commit.commit()?;
            }
            took.add(group.elapsed());
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 rounds")]
        let per_second = next as f64 / watch.elapsed().as_secs_f64();
        Ok(Cycles { per_second, took })
    })
}

/// How long one commit of one small row takes: a sample each, for `time`.
pub fn sqlite_commit(folder: &Path, time: Duration) -> Result<Samples, Error> {
    in_new_file(folder, |db| {
        let watch = Stopwatch::start();
        let body = filling(100);
        let mut took = Samples::default();
        while watch.elapsed() < time {
            let commit = Stopwatch::start();
            db.prepare_cached("INSERT INTO single (body) VALUES (?1)")?.execute(params![body])?;
            took.add(commit.elapsed());
        }
        Ok(took)
    })
}

fn step(db: &Connection, key: &[u8; 16], transition: i64, request: &[u8], answer: &[u8]) -> rusqlite::Result<()> {
    if transition == 1 {
        db.prepare_cached("INSERT INTO state (id, status, token, at) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
            key,
            transition,
            key,
            i64::MAX
        ])?;
        db.prepare_cached("INSERT INTO request (id, body) VALUES (?1, ?2)")?.execute(params![key, request])?;
        return Ok(());
    }
    if transition == 2 {
        db.prepare_cached("INSERT INTO answer (id, body) VALUES (?1, ?2)")?.execute(params![key, answer])?;
    }
    db.prepare_cached("UPDATE state SET status = ?2, at = ?3 WHERE id = ?1 AND status = ?2 - 1")?.execute(params![
        key,
        transition,
        i64::MAX - transition
    ])?;
    Ok(())
}

/// Runs `work` on a new file, which is gone afterwards.
fn in_new_file<T>(folder: &Path, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
    let file = |suffix: &str| folder.join(format!("limit.sqlite{suffix}"));
    let remove = || {
        for suffix in ["", "-wal", "-shm"] {
            // What is not there need not go.
            let _ = std::fs::remove_file(file(suffix));
        }
    };
    remove();
    let run = || {
        let db = Connection::open(file(""))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "temp_store", "MEMORY")?;
        db.pragma_update(None, "cache_size", -2_000)?;
        db.execute_batch(TABLES)?;
        work(&db)
    };
    let done = run().map_err(|_| Error::Unavailable(format!("{} cannot be measured", folder.display())));
    remove();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_cycle_leaves_every_round_resolved_and_no_file_behind() {
        let folder = tempfile::tempdir().unwrap();
        in_new_file(folder.path(), |db| {
            for transition in 1..=TRANSITIONS {
                step(db, &key(7), transition, b"asked", b"answered")?;
            }
            let status: i64 = db.query_row("SELECT status FROM state", [], |row| row.get(0))?;
            assert_eq!(status, TRANSITIONS);
            Ok(())
        })
        .unwrap();
        let bytes = RowBytes { request: 100, answer: 100 };
        assert!(sqlite_cycles(folder.path(), bytes, 3, Duration::from_millis(1)).unwrap().per_second > 0.0);
        assert!(!sqlite_commit(folder.path(), Duration::from_millis(1)).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
