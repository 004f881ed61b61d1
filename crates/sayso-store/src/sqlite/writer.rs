//! The one thread that writes: it drains its queue into one transaction, commits, and leaves the answers to the
//! [disk](super::durable). No lingering: whoever comes while a commit runs shares the next one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::limits::{COMMIT_COMMANDS_MAX, COMMIT_QUEUE_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::awake::Waiters;
use super::batch::{Batch, Transaction, data_version};
use super::chain::Chain;
use super::change::Waiting;
use super::copying::Copies;
use super::durable::{Disk, Log, Written};
use super::known::Known;
use super::open;
use super::reader::ReadError;
use super::statements::Statements;
use super::touched::Touched;
use crate::clock::Clock;
use crate::{Hints, Observing};

/// How often a process that has somebody waiting looks for changes by other processes.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How often the thread looks for more work before it sleeps: some tens of microseconds.
const YIELDS: u32 = 100;
/// The same while there is little to do: whoever commits alone may be back after a round trip.
const YIELDS_ALONE: u32 = 400;

pub(super) type Answer = Result<Vec<Reply>, Error>;

/// Commands to be done together, with whoever waits for the answer.
pub(super) struct Unit {
    commands: Vec<Command>,
    /// The commands go back with the answer: whoever made them is rid of them fastest, and has more time than this thread.
    answer: oneshot::Sender<(Answer, Vec<Command>)>,
}

impl Unit {
    pub(super) fn answer(self, answer: Answer) {
        // The caller may be gone; what was committed stays.
        let _ = self.answer.send((answer, self.commands));
    }
}

enum Message {
    Unit {
        unit: Unit,
        /// Its place in the queue, kept even where the caller is gone.
        _place: OwnedSemaphorePermit,
    },
    /// Somebody began to wait, or the store is being dropped: look up.
    Nudge,
}

/// What the writer writes to.
pub(super) struct Files {
    /// Its connection, whose commits need not be durable.
    pub(super) writing: Connection,
    /// Another, by which the log is copied.
    pub(super) copying: Connection,
    /// The log: its [`Log::sync`] makes the commits durable.
    pub(super) log: Box<dyn Log>,
}

/// The handle of the writer thread; dropping it ends the thread after what is queued.
pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Message>>>,
    permits: Arc<Semaphore>,
    /// How many wait for an answer.
    waiters: Waiters,
    observers: Arc<AtomicUsize>,
    nudged: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(files: Files, clock: Arc<dyn Clock>, hints: Option<Arc<dyn Hints>>) -> Result<Self, Error> {
        let failed = |_| Error::Unavailable("the writer thread could not be started".to_owned());
        let Files { writing: mut db, copying, log } = files;
        let copies = Copies::start(&mut db, copying).map_err(failed)?;
        let permits = Arc::new(Semaphore::new(COMMIT_QUEUE_MAX));
        let disk = Disk::start(log, hints.clone()).map_err(failed)?;
        // One place more than there are permits: at most one nudge is under way, and it never waits.
        let (queue, receiver) = sync_channel(COMMIT_QUEUE_MAX + 1);
        let observers = Arc::new(AtomicUsize::new(0));
        let waiters = Waiters::default();
        let nudged = Arc::new(AtomicBool::new(false));
        // Read now: what others commit from here on is a change, also before anybody first looks.
        let seen_version = data_version(&db).ok();
        let (seen_observers, seen_nudged, places) = (observers.clone(), nudged.clone(), permits.clone());
        let seen_waiters = waiters.clone();
        let thread = std::thread::Builder::new()
            .name("sayso-writer".to_owned())
            .spawn(move || {
                let (statements, observers, nudged) = (Statements::of(&db), seen_observers, seen_nudged);
                let (waiters, remembered) = (seen_waiters, None);
                let thread = Thread {
                    statements,
                    clock,
                    hints,
                    disk,
                    copies,
                    places,
                    waiters,
                    observers,
                    nudged,
                    seen_version,
                    remembered,
                };
                thread.run(&receiver);
            })
            .map_err(failed)?;
        let queue = Mutex::new(Some(queue));
        Ok(Self { queue, permits, waiters, observers, nudged, thread: Some(thread) })
    }

    pub(super) async fn commit(&self, commands: Vec<Command>) -> Answer {
        let closed = || Error::Unavailable("the store is closing; nothing was changed".to_owned());
        let place = self.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)?;
        queue.try_send(Message::Unit { unit: Unit { commands, answer }, _place: place }).map_err(|_| closed())?;
        let (answer, _) = self.waiters.wait(answered).await.map_err(|_| closed())?;
        answer
    }

    pub(super) fn observe(&self) -> Observing {
        if self.observers.fetch_add(1, Ordering::SeqCst) == 0
            && !self.nudged.swap(true, Ordering::SeqCst)
            && let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner)
            && let Err(TrySendError::Full(_)) = queue.try_send(Message::Nudge)
        {
            // A full queue wakes the thread as well.
            self.nudged.store(false, Ordering::SeqCst);
        }
        let observers = self.observers.clone();
        Observing::new(Arc::new(move || {
            observers.fetch_sub(1, Ordering::SeqCst);
        }))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            // The thread panicking has been reported already, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

struct Thread<'db> {
    statements: Statements<'db>,
    clock: Arc<dyn Clock>,
    hints: Option<Arc<dyn Hints>>,
    disk: Disk,
    copies: Copies,
    /// The places in the queue that are free.
    places: Arc<Semaphore>,
    /// How many wait for an answer.
    waiters: Waiters,
    observers: Arc<AtomicUsize>,
    nudged: Arc<AtomicBool>,
    seen_version: Option<i64>,
    /// What the last transaction left, by the version of the store that it saw.
    remembered: Option<(i64, Known, Chain)>,
}

impl Thread<'_> {
    fn run(mut self, queue: &Receiver<Message>) {
        while let Ok(message) = self.next(queue) {
            let mut units = Vec::new();
            let mut commands = 0;
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Unit { unit, .. } => {
                        commands += unit.commands.len();
                        units.push(unit);
                    }
                    Message::Nudge => self.nudged.store(false, Ordering::SeqCst),
                }
                next = if commands < COMMIT_COMMANDS_MAX { queue.try_recv().ok() } else { None };
            }
            if units.is_empty() {
                self.look_elsewhere();
            } else {
                let count = units.len();
                self.commit(units);
                self.copies.go_on(self.statements.db, count);
            }
        }
    }

    /// The next message; an error once nobody can send any more.
    fn next(&mut self, queue: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        // Who has just been answered often asks the next thing at once: sleeping and being woken would take longer. Others
        // who could run are let through.
        let yields = if self.waiters.count() > 1 { YIELDS } else { YIELDS_ALONE };
        for _ in 0..yields {
            if let Ok(message) = queue.try_recv() {
                return Ok(message);
            }
            std::thread::yield_now();
        }
        loop {
            if self.observers.load(Ordering::SeqCst) == 0 {
                return queue.recv().map_err(|_| RecvTimeoutError::Disconnected);
            }
            match queue.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => self.look_elsewhere(),
                done => return done,
            }
        }
    }

    /// Looks whether others have committed.
    fn look_elsewhere(&mut self) {
        if let Ok(version) = data_version(self.statements.db) {
            self.saw(version);
        }
    }

    /// `data_version` of this connection moves exactly when another connection has committed.
    fn saw(&mut self, version: i64) {
        if self.seen_version.replace(version).is_some_and(|seen| seen != version)
            && let Some(hints) = &self.hints
        {
            hints.changed_elsewhere();
        }
    }

    fn commit(&mut self, units: Vec<Unit>) {
        let mut touched = Touched::default();
        let done = match self.disk.failure() {
            Some(failure) => Err(failure),
            None => self.transaction(&units, &mut touched).map_err(Error::from),
        };
        if let Some(version) = touched.seen_version {
            self.saw(version);
        }
        match done {
            Ok(outcomes) => {
                let has_time = self.places.available_permits() == COMMIT_QUEUE_MAX;
                self.disk.settle(Written { units, outcomes, touched }, has_time);
            }
            Err(error) => Written { units, outcomes: Vec::new(), touched }.refuse(&error),
        }
    }

    fn transaction(&mut self, units: &[Unit], touched: &mut Touched) -> Result<Vec<Answer>, ReadError> {
        if let Some(outcomes) = self.attempt(units, touched, false)? {
            return Ok(outcomes);
        }
        // Rare: a unit of several commands was refused half-way. Once more, so that such a unit can be undone by itself.
        *touched = Touched::default();
        self.attempt(units, touched, true)?.ok_or(ReadError::Corrupt("transaction"))
    }

    /// Nothing, and nothing changed, where a unit would have to be undone and `undoes` was not asked for: what that takes
    /// costs every unit.
    fn attempt(
        &mut self,
        units: &[Unit],
        touched: &mut Touched,
        undoes: bool,
    ) -> Result<Option<Vec<Answer>>, ReadError> {
        // Taken out: whatever fails from here on leaves nothing remembered.
        let remembered = self.remembered.take();
        let transaction = Transaction::begin(&self.statements)?;
        let db = self.statements.db;
        let version = data_version(db)?;
        touched.seen_version = Some(version);
        let (known, chain) = match remembered {
            Some((seen, known, chain)) if seen == version => (known, chain),
            // Somebody else has committed, a newer process perhaps.
            _ if open::user_version(db)? != open::SCHEMA_VERSION => {
                return Ok(Some(units.iter().map(|_| Err(open::newer_schema())).collect()));
            }
            _ => (Known::default(), Chain::load(db)?),
        };
        // Only now: another process may have held the store for seconds, and deadlines pass meanwhile.
        let now = self.clock.now();
        let waiting = Waiting::default();
        let mut batch = Batch { statements: &self.statements, now, known, waiting, chain, touched, undoes };
        let outcomes = units.iter().map(|unit| batch.unit(&unit.commands)).collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(outcomes) = outcomes else { return Ok(None) };
        let Batch { known, mut chain, touched, .. } = batch;
        chain.store(&self.statements)?;
        touched.last_event = chain.last_seq();
        transaction.commit()?;
        self.remembered = Some((version, known, chain));
        Ok(Some(outcomes))
    }
}

#[cfg(test)]
mod tests;
