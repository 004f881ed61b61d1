//! The one thread that writes: it drains its queue into one transaction, commits, then answers. No lingering: whoever
//! comes while a commit runs shares the next one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use sayso_core::command::{Command, Reply, Write, apply};
use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::limits::{COMMIT_COMMANDS_MAX, COMMIT_QUEUE_MAX};
use sayso_core::time::UnixMs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::known::Known;
use super::reader::ReadError;
use super::writes::Chain;
use super::{open, view::SqliteView};
use crate::clock::Clock;
use crate::{Hints, Observing};

/// How often a process that has somebody waiting looks for changes by other processes.
const LOOK_EVERY: Duration = Duration::from_millis(25);

type Answer = Result<Vec<Reply>, Error>;

enum Message {
    Unit {
        commands: Vec<Command>,
        answer: oneshot::Sender<Answer>,
        /// Its place in the queue, kept even where the caller is gone.
        _place: OwnedSemaphorePermit,
    },
    /// Somebody began to wait, or the store is being dropped: look up.
    Nudge,
}

/// The handle of the writer thread; dropping it ends the thread after what is queued.
pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Message>>>,
    permits: Arc<Semaphore>,
    observers: Arc<AtomicUsize>,
    nudged: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(db: Connection, clock: Arc<dyn Clock>, hints: Option<Arc<dyn Hints>>) -> Result<Self, Error> {
        // One place more than there are permits: at most one nudge is under way, and it never waits.
        let (queue, receiver) = sync_channel(COMMIT_QUEUE_MAX + 1);
        let observers = Arc::new(AtomicUsize::new(0));
        let nudged = Arc::new(AtomicBool::new(false));
        // Read now: what others commit from here on is a change, also before anybody first looks.
        let seen_version = data_version(&db).ok();
        let (seen_observers, seen_nudged) = (observers.clone(), nudged.clone());
        let state =
            Thread { db, clock, hints, observers: seen_observers, nudged: seen_nudged, seen_version, remembered: None };
        let thread = std::thread::Builder::new()
            .name("sayso-writer".to_owned())
            .spawn(move || state.run(&receiver))
            .map_err(|_| Error::Unavailable("the writer thread could not be started".to_owned()))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            permits: Arc::new(Semaphore::new(COMMIT_QUEUE_MAX)),
            observers,
            nudged,
            thread: Some(thread),
        })
    }

    pub(super) async fn commit(&self, commands: Vec<Command>) -> Answer {
        let closed = || Error::Unavailable("the store is closing; nothing was changed".to_owned());
        let place = self.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)?;
        queue.try_send(Message::Unit { commands, answer, _place: place }).map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
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

struct Thread {
    db: Connection,
    clock: Arc<dyn Clock>,
    hints: Option<Arc<dyn Hints>>,
    observers: Arc<AtomicUsize>,
    nudged: Arc<AtomicBool>,
    seen_version: Option<i64>,
    /// What the last transaction left, by the version of the store that it saw.
    remembered: Option<(i64, Known, Chain)>,
}

impl Thread {
    fn run(mut self, queue: &Receiver<Message>) {
        loop {
            let message = if self.observers.load(Ordering::SeqCst) > 0 {
                match queue.recv_timeout(LOOK_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {
                        self.look_elsewhere();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                    Ok(message) => message,
                }
            } else {
                match queue.recv() {
                    Ok(message) => message,
                    Err(_) => return,
                }
            };
            let mut units = Vec::new();
            let mut commands = 0;
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Unit { commands: unit, answer, .. } => {
                        commands += unit.len();
                        units.push((unit, answer));
                    }
                    Message::Nudge => self.nudged.store(false, Ordering::SeqCst),
                }
                next = if commands < COMMIT_COMMANDS_MAX { queue.try_recv().ok() } else { None };
            }
            self.look_elsewhere();
            if !units.is_empty() {
                self.commit(units);
            }
        }
    }

    /// `data_version` of this connection moves exactly when another connection has committed.
    fn look_elsewhere(&mut self) {
        let Ok(version) = data_version(&self.db) else { return };
        if self.seen_version.replace(version).is_some_and(|seen| seen != version)
            && let Some(hints) = &self.hints
        {
            hints.changed_elsewhere();
        }
    }

    fn commit(&mut self, units: Vec<(Vec<Command>, oneshot::Sender<Answer>)>) {
        let mut touched = Touched::default();
        let (units, answers): (Vec<_>, Vec<_>) = units.into_iter().unzip();
        match self.transaction(&units, &mut touched) {
            Ok(outcomes) => {
                // Hints first: whoever is woken finds the row there, and whoever is answered may look for the hint.
                if let Some(hints) = &self.hints {
                    touched.tell(hints.as_ref());
                }
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    // The caller may be gone; what was committed stays.
                    let _ = answer.send(outcome);
                }
            }
            Err(error) => {
                let error = Error::from(error);
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }

    fn transaction(&mut self, units: &[Vec<Command>], touched: &mut Touched) -> Result<Vec<Answer>, ReadError> {
        // Taken out: whatever fails from here on leaves nothing remembered.
        let remembered = self.remembered.take();
        let transaction = Transaction::begin(&self.db)?;
        let db = transaction.db;
        let version = data_version(db)?;
        let (known, chain) = match remembered {
            Some((seen, known, chain)) if seen == version => (known, chain),
            // Somebody else has committed, a newer process perhaps.
            _ if open::user_version(db)? != open::SCHEMA_VERSION => {
                return Ok(units.iter().map(|_| Err(open::newer_schema())).collect());
            }
            _ => (Known::default(), Chain::load(db)?),
        };
        // Only now: another process may have held the store for seconds, and deadlines pass meanwhile.
        let now = self.clock.now();
        let mut batch = Batch { db, now, known, chain, touched };
        let outcomes = units.iter().map(|unit| batch.unit(unit)).collect::<Result<Vec<_>, _>>()?;
        let Batch { known, mut chain, touched, .. } = batch;
        chain.store(db)?;
        touched.last_event = chain.last_seq();
        transaction.commit()?;
        self.remembered = Some((version, known, chain));
        Ok(outcomes)
    }
}

/// A transaction whose statements are compiled once; it is undone unless it is committed.
struct Transaction<'a> {
    db: &'a Connection,
}

impl<'a> Transaction<'a> {
    fn begin(db: &'a Connection) -> rusqlite::Result<Self> {
        db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { db })
    }
    fn commit(self) -> rusqlite::Result<()> {
        self.db.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.db.is_autocommit() {
            // Where even this fails, the next transaction cannot begin and says so.
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }
}

fn data_version(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// A transaction at work.
struct Batch<'a> {
    db: &'a Connection,
    now: UnixMs,
    known: Known,
    chain: Chain,
    touched: &'a mut Touched,
}

impl Batch<'_> {
    /// Applies one unit: all of it or none of it.
    fn unit(&mut self, unit: &[Command]) -> Result<Answer, ReadError> {
        let several = unit.len() > 1;
        if several {
            self.db.prepare_cached("SAVEPOINT unit")?.execute([])?;
        }
        let chain_before = self.chain.clone();
        let mut replies = Vec::with_capacity(unit.len());
        for command in unit {
            let applied = match apply(&SqliteView { db: self.db, known: &self.known }, command, self.now) {
                Ok(applied) => applied,
                // A row that cannot be read refuses its own unit; the neighbours in the batch go on.
                Err(ReadError::Corrupt(what)) => {
                    self.undo(several, chain_before)?;
                    return Ok(Err(Error::Corrupt(what)));
                }
                Err(error) => return Err(error),
            };
            if applied.reply.is_err() && several {
                self.undo(several, chain_before)?;
                return Ok(applied.reply.map(|reply| vec![reply]));
            }
            for write in &applied.writes {
                self.touched.note(write);
                self.chain.write(self.db, &self.known, write)?;
                self.known.note(write);
            }
            match applied.reply {
                Ok(reply) => replies.push(reply),
                Err(error) => return Ok(Err(error)),
            }
        }
        if several {
            self.db.prepare_cached("RELEASE unit")?.execute([])?;
        }
        Ok(Ok(replies))
    }

    fn undo(&mut self, several: bool, chain_before: Chain) -> Result<(), ReadError> {
        if several {
            self.db.prepare_cached("ROLLBACK TO unit")?.execute([])?;
            self.db.prepare_cached("RELEASE unit")?.execute([])?;
            self.chain = chain_before;
            self.known = Known::default();
        }
        Ok(())
    }
}

/// What a batch changed, for the hints after its commit.
#[derive(Default)]
struct Touched {
    rounds: HashSet<RoundId>,
    executions: HashSet<ExecutionId>,
    last_event: u64,
    events: bool,
}

impl Touched {
    fn note(&mut self, write: &Write) {
        match write {
            Write::Round(round) => {
                self.rounds.insert(round.id);
            }
            Write::Execution(execution) => {
                self.executions.insert(execution.id);
            }
            Write::Event(_) => self.events = true,
            _ => {}
        }
    }

    fn tell(&self, hints: &dyn Hints) {
        if self.events || !self.rounds.is_empty() || !self.executions.is_empty() {
            let rounds: Vec<_> = self.rounds.iter().copied().collect();
            let executions: Vec<_> = self.executions.iter().copied().collect();
            hints.changed(&rounds, &executions, self.last_event);
        }
    }
}
