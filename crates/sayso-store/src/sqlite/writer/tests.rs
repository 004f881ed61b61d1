//! The writer over a disk that stops and fails when it is told to.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, Waker};

use sayso_core::command::PolicyRuling;
use sayso_core::id::ExecutionId;
use sayso_core::principal::Principal;

use super::*;
use crate::ChangedRound;
use crate::clock::SystemClock;
use crate::sqlite::rows;

/// A commit that has been asked for.
type Commit<'w> = Pin<Box<dyn Future<Output = Answer> + 'w>>;

/// A disk whose syncs begin, and end as they are told to.
struct Told {
    begun: SyncSender<()>,
    ends: Mutex<Receiver<Result<(), ()>>>,
}

impl Log for Told {
    fn sync(&self) -> std::io::Result<()> {
        self.begun.send(()).expect("the test listens");
        let end = self.ends.lock().expect("one at a time").recv().expect("the test says how it ends");
        end.map_err(|()| std::io::Error::other("told to fail"))
    }
}

/// How often somebody was told of a change.
#[derive(Default)]
struct Heard(AtomicUsize);

impl Hints for Heard {
    fn changed(&self, _: &[ChangedRound], _: &[ExecutionId], _: u64) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn changed_elsewhere(&self) {}
}

struct Rig {
    writer: Writer,
    heard: Arc<Heard>,
    begun: Receiver<()>,
    ends: SyncSender<Result<(), ()>>,
    /// Another connection, which sees what is written.
    other: Connection,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = open::prepare_file(&folder.path().join("sayso.sqlite")).expect("a file");
        let db = open::connection(&path).expect("opens");
        open::migrate(&db).expect("has its schema");
        drop(open::log(&db, &path).expect("has a log"));
        let (begun, begins) = sync_channel(8);
        let (ends, told) = sync_channel(8);
        let heard = Arc::new(Heard::default());
        let log = Box::new(Told { begun, ends: Mutex::new(told) });
        let files = Files { writing: db, copying: open::connection(&path).expect("opens"), log };
        let writer = Writer::start(files, Arc::new(SystemClock), Some(heard.clone())).expect("starts");
        Self { writer, heard, begun: begins, ends, other: open::connection(&path).expect("opens"), _folder: folder }
    }

    /// A commit that has been asked for.
    fn commit(&self) -> Commit<'_> {
        let (tool, rule) = ("shop:buy".to_owned(), "operator never".to_owned());
        let ruling = PolicyRuling { tool, approved: false, rule };
        let command = Command::RecordRuling { by: Principal::agent("claude"), ruling };
        let mut commit: Commit<'_> = Box::pin(self.writer.commit(vec![command]));
        assert!(now(&mut commit).is_none(), "nothing is durable by then");
        commit
    }

    fn written(&self) -> u64 {
        rows::last_event(&self.other).map(|(last, _)| last).unwrap_or_default()
    }
    fn heard(&self) -> usize {
        self.heard.0.load(Ordering::SeqCst)
    }
}

/// What a commit has come to by now.
fn now(commit: &mut Commit<'_>) -> Option<Answer> {
    match commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// The outcome of a commit that is certain to end without this thread.
fn outcome(mut commit: Commit<'_>) -> Answer {
    loop {
        if let Some(done) = now(&mut commit) {
            return done;
        }
        std::thread::yield_now();
    }
}

/// Invariant 1: what is acknowledged is stored.
#[test]
fn nobody_is_answered_or_told_before_the_disk_has_it() {
    let rig = Rig::new();
    let mut commit = rig.commit();
    rig.begun.recv().expect("the disk is asked");
    assert_eq!(rig.written(), 1, "it is in the log");
    assert!(now(&mut commit).is_none());
    assert_eq!(rig.heard(), 0);
    rig.ends.send(Ok(())).expect("ends");
    assert!(outcome(commit).is_ok());
    assert_eq!(rig.heard(), 1);
}

#[test]
fn the_next_is_written_while_the_disk_is_at_work_and_answered_after_its_own_turn() {
    let rig = Rig::new();
    // As if somebody were about to ask for more: the writer does not wait for the disk itself.
    let coming = rig.writer.permits.clone().try_acquire_owned().expect("a place");
    let mut first = rig.commit();
    rig.begun.recv().expect("the disk is asked");
    let mut second = rig.commit();
    while rig.written() < 2 {
        std::thread::yield_now();
    }
    assert!(now(&mut first).is_none() && now(&mut second).is_none());
    rig.ends.send(Ok(())).expect("ends");
    assert!(outcome(first).is_ok());
    rig.begun.recv().expect("the disk is asked once more");
    assert!(now(&mut second).is_none(), "what was written after a sync began is in the next");
    rig.ends.send(Ok(())).expect("ends");
    assert!(outcome(second).is_ok());
    assert_eq!(rig.heard(), 2);
    drop(coming);
}

#[test]
fn a_disk_that_has_failed_is_not_believed_again() {
    for is_busy in [false, true] {
        let rig = Rig::new();
        let coming = is_busy.then(|| rig.writer.permits.clone().try_acquire_owned().expect("a place"));
        let commit = rig.commit();
        rig.begun.recv().expect("the disk is asked");
        rig.ends.send(Err(())).expect("ends");
        let told = outcome(commit).map(|_| ()).map_err(|error| error.to_string());
        assert!(matches!(&told, Err(told) if told.contains("the disk failed")), "{told:?}");
        let later = outcome(rig.commit()).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(later, told, "the disk is not even asked: what it says now says nothing of what was lost");
        assert_eq!((rig.written(), rig.heard()), (1, 0));
        drop(coming);
    }
}

#[test]
fn what_was_written_is_answered_before_the_store_closes() {
    let Rig { writer, begun, ends, .. } = Rig::new();
    let coming = writer.permits.clone().try_acquire_owned().expect("a place");
    let (answer, mut answered) = oneshot::channel();
    let place = writer.permits.clone().try_acquire_owned().expect("a place");
    let unit = Message::Unit { unit: Unit { commands: Vec::new(), answer }, _place: place };
    writer.queue.lock().expect("unpoisoned").as_ref().expect("open").try_send(unit).expect("has room");
    let closing = std::thread::spawn(move || drop(writer));
    begun.recv().expect("the disk is asked");
    assert!(answered.try_recv().is_err());
    ends.send(Ok(())).expect("ends");
    closing.join().expect("closes");
    assert!(answered.try_recv().expect("answered").0.is_ok());
    drop(coming);
}
