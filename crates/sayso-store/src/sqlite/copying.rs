//! Copying the log into the database, most of it by a thread of its own: the writer goes on meanwhile.
//!
//! SQLite begins its log anew only once all of it has been copied, and a writer that goes on always leaves a little. So the
//! thread copies what is there, and the writer what has come since, between two of its transactions. A copy is SQLite's
//! own `PASSIVE` checkpoint, which waits for nobody and is safe from any connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

/// The log is copied once it has so many pages, as SQLite by itself would. Whoever commits meanwhile waits for the disk the
/// longer, the longer the log is.
const PAGES: usize = 1_000;
/// The same while many commit at once, each of whom waits longer than that anyway: a page is copied once, however often it was
/// written, so that a longer log is less work. Up to this length SQLite finds pages in it by a single table.
const PAGES_OF_MANY: usize = 4_000;
/// So many units in one transaction are many.
const MANY: usize = 100;
/// A log that could not be begun anew, because somebody still reads from it, is copied again after so many more.
const PAGES_MORE: usize = 250;

/// How far a copy is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// There is none.
    Rests,
    /// The thread copies.
    UnderWay,
    /// It has; what has come since is the writer's to copy.
    Nearly,
}

/// The copies of the writer's log.
pub(super) struct Copies {
    /// Pages of the log, as of the last commit.
    pages: Arc<AtomicUsize>,
    /// How many there were when it was last copied, for as long as it has not begun anew.
    copied: usize,
    progress: Progress,
    thread: Option<Thread>,
}

struct Thread {
    asked: SyncSender<()>,
    done: Receiver<()>,
    handle: std::thread::JoinHandle<()>,
}

impl Copies {
    /// Takes over from SQLite, which would copy inside a commit of `writing`; `copying` is the thread's connection.
    pub(super) fn start(writing: &mut Connection, copying: Connection) -> std::io::Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let counted = pages.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.store(usize::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        };
        writing.wal_hook(Some(count)).map_err(std::io::Error::other)?;
        let ((asked, asks), (tells, done)) = (sync_channel(1), sync_channel(1));
        let copy_all = move || {
            while let Ok(()) = asks.recv() {
                copy(&copying);
                if tells.send(()).is_err() {
                    break;
                }
            }
        };
        let handle = std::thread::Builder::new().name("sayso-copies".to_owned()).spawn(copy_all)?;
        let thread = Some(Thread { asked, done, handle });
        Ok(Self { pages, copied: 0, progress: Progress::Rests, thread })
    }

    /// The writer is between two transactions, of which the last was of so many units.
    pub(super) fn go_on(&mut self, writing: &Connection, units: usize) {
        let enough = if units < MANY { PAGES } else { PAGES_OF_MANY };
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copied {
            self.copied = 0;
        }
        let Some(thread) = &self.thread else { return };
        if self.progress == Progress::UnderWay && thread.done.try_recv().is_ok() {
            self.progress = Progress::Nearly;
        }
        match self.progress {
            Progress::Rests if pages >= enough.max(self.copied + PAGES_MORE) => {
                if thread.asked.try_send(()).is_ok() {
                    self.progress = Progress::UnderWay;
                }
            }
            Progress::Nearly => {
                copy(writing);
                (self.copied, self.progress) = (pages, Progress::Rests);
            }
            Progress::Rests | Progress::UnderWay => {}
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Some(Thread { asked, done, handle }) = self.thread.take() {
            drop((asked, done));
            // The thread panicking has been reported already, and there is nobody left to tell.
            let _ = handle.join();
        }
    }
}

/// What cannot be copied now, because the disk is full or another process copies, is copied another time: nothing is lost
/// with it, and the log only grows.
fn copy(db: &Connection) {
    let copied =
        db.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)").and_then(|mut copy| copy.query_row([], |_| Ok(())));
    drop(copied);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;
    use crate::sqlite::open;

    struct Rig {
        _folder: tempfile::TempDir,
        path: std::path::PathBuf,
        db: Connection,
        copies: Copies,
    }

    impl Rig {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let path = open::prepare_file(&folder.path().join("sayso.sqlite")).expect("a file");
            let mut db = open::connection(&path).expect("opens");
            db.execute_batch("PRAGMA synchronous = OFF; CREATE TABLE t (x)").expect("a table");
            let copies = Copies::start(&mut db, open::connection(&path).expect("opens")).expect("starts");
            Self { _folder: folder, path, db, copies }
        }

        /// Writes until a copy has been asked for, been made, and what came meanwhile been copied. How long the log was when
        /// it was asked for, and at its longest.
        fn write_until_copied(&mut self, units: usize) -> (usize, usize) {
            let (mut asked_at, mut longest) = (0, 0);
            for _ in 0..100_000 {
                self.db.execute("INSERT INTO t VALUES (randomblob(3000))", []).expect("written");
                let was = self.copies.progress;
                self.copies.go_on(&self.db, units);
                let pages = self.copies.pages.load(Ordering::Relaxed);
                longest = longest.max(pages);
                if was == Progress::Rests && self.copies.progress != Progress::Rests {
                    asked_at = pages;
                }
                if was != Progress::Rests && self.copies.progress == Progress::Rests {
                    return (asked_at, longest);
                }
            }
            (asked_at, longest)
        }
    }

    #[test]
    fn a_log_that_was_copied_while_it_grew_begins_anew() {
        let mut rig = Rig::new();
        for (units, enough) in [(1, PAGES), (MANY - 1, PAGES), (MANY, PAGES_OF_MANY), (1, PAGES)] {
            let (asked_at, longest) = rig.write_until_copied(units);
            assert!((enough..enough + 10).contains(&asked_at) && longest >= enough, "{asked_at}, {longest} pages");
            rig.db.execute("INSERT INTO t VALUES (1)", []).expect("written");
            let pages = rig.copies.pages.load(Ordering::Relaxed);
            assert!(pages < 10, "{pages} pages: the log was not begun anew");
            rig.copies.go_on(&rig.db, units);
        }
    }

    #[test]
    fn a_log_that_somebody_reads_from_is_not_copied_at_each_commit() {
        let mut rig = Rig::new();
        let reader = open::connection(&rig.path).expect("opens");
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").expect("reads");
        let (_, first) = rig.write_until_copied(1);
        let (_, second) = rig.write_until_copied(1);
        assert!(second >= first + PAGES_MORE, "{first}, {second}");
        reader.execute_batch("COMMIT").expect("has read");
        rig.write_until_copied(1);
        rig.db.execute("INSERT INTO t VALUES (1)", []).expect("written");
        assert!(rig.copies.pages.load(Ordering::Relaxed) < 10, "the log was not begun anew");
    }
}
