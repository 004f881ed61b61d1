//! From written to durable. The writer commits without waiting for the disk; what it wrote is answered, and told to those
//! who wait, once the log is on the disk. Meanwhile the next transaction is written
//! (`docs/decisions/0011-answers-after-the-disk.md`).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sayso_core::error::Error;

use super::touched::Touched;
use super::writer::{Answer, Unit};
use crate::Hints;

/// Transactions that wait for the disk beside those that it is writing; with one more the writer waits, and its queue
/// grows into a larger one.
const WAITING_MAX: usize = 1;

/// What makes a log durable.
pub(super) trait Log: Send + Sync {
    /// Returns once everything written to it before is on the disk.
    fn sync(&self) -> std::io::Result<()>;
}

impl Log for File {
    fn sync(&self) -> std::io::Result<()> {
        self.sync_data()
    }
}

/// The log of a database that is open in WAL mode. SQLite takes its locks on the database and its `-shm` file, never on
/// this one, and deletes it only when the last connection closes: a descriptor of ours does no harm.
pub(super) fn log_of(database: &Path) -> std::io::Result<File> {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    File::open(path)
}

/// What one transaction did, for those who wait for it.
pub(super) struct Written {
    pub(super) units: Vec<Unit>,
    pub(super) outcomes: Vec<Answer>,
    pub(super) touched: Touched,
}

/// The way to the disk, with a thread of its own for when there is more to write meanwhile.
pub(super) struct Disk {
    shared: Arc<Shared>,
    waiting: Option<SyncSender<Written>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    log: Box<dyn Log>,
    hints: Option<Arc<dyn Hints>>,
    /// Transactions that the thread has been given and has not answered.
    under_way: AtomicUsize,
    /// The disk has failed once. What is on it is unknown until the store is opened anew: an error is reported once, and
    /// the next sync may succeed without what was lost.
    is_broken: AtomicBool,
}

impl Disk {
    pub(super) fn start(log: Box<dyn Log>, hints: Option<Arc<dyn Hints>>) -> std::io::Result<Self> {
        let (waiting, written) = sync_channel(WAITING_MAX);
        let (under_way, is_broken) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { log, hints, under_way, is_broken });
        let sharing = shared.clone();
        let thread =
            std::thread::Builder::new().name("sayso-disk".to_owned()).spawn(move || sharing.settle_all(&written))?;
        Ok(Self { shared, waiting: Some(waiting), thread: Some(thread) })
    }

    /// Why nothing more may be written, if that is so.
    pub(super) fn failure(&self) -> Option<Error> {
        self.shared.is_broken.load(Ordering::SeqCst).then(broken)
    }

    /// A transaction has been written. With `has_time` there is nothing to write meanwhile, and handing it over would take
    /// longer than waiting here.
    pub(super) fn settle(&self, written: Written, has_time: bool) {
        if has_time && self.shared.under_way.load(Ordering::SeqCst) == 0 {
            return self.shared.settle(vec![written]);
        }
        self.shared.under_way.fetch_add(1, Ordering::SeqCst);
        if let Some(waiting) = &self.waiting
            && let Err(unsent) = waiting.send(written)
        {
            // The thread has panicked, which is reported already.
            unsent.0.refuse(&broken());
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.waiting.take();
        if let Some(thread) = self.thread.take() {
            // The thread panicking has been reported already, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn settle_all(&self, written: &Receiver<Written>) {
        while let Ok(first) = written.recv() {
            let mut all = vec![first];
            all.extend(written.try_iter().take(WAITING_MAX));
            let count = all.len();
            self.settle(all);
            self.under_way.fetch_sub(count, Ordering::SeqCst);
        }
    }

    /// Also of what changed nothing: it may rest on what is not durable yet.
    fn settle(&self, written: Vec<Written>) {
        if self.is_broken.load(Ordering::SeqCst) || self.log.sync().is_err() {
            self.is_broken.store(true, Ordering::SeqCst);
            for written in written {
                written.refuse(&broken());
            }
            return;
        }
        for written in written {
            written.tell(self.hints.as_deref());
        }
    }
}

impl Written {
    fn tell(self, hints: Option<&dyn Hints>) {
        // Hints first: whoever is woken finds the row there, and whoever is answered may look for the hint.
        if let Some(hints) = hints {
            self.touched.tell(hints);
        }
        for (unit, outcome) in self.units.into_iter().zip(self.outcomes) {
            unit.answer(outcome);
        }
    }

    /// Nobody is told that it is stored.
    pub(super) fn refuse(self, error: &Error) {
        for unit in self.units {
            unit.answer(Err(error.clone()));
        }
    }
}

fn broken() -> Error {
    Error::Unavailable("the disk failed while it was written to; restart this process to see what is stored".to_owned())
}
