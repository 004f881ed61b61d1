//! The one thread that writes: it drains its queue into one transaction, commits, then answers. No lingering: whoever
//! comes while a commit runs shares the next one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use rusqlite::Connection;
use sayso_core::command::{Command, Reply, Write, apply};
use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::limits::{COMMIT_COMMANDS_MAX, COMMIT_QUEUE_MAX};
use sayso_core::round::Round;
use sayso_core::time::UnixMs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::chain::{Chain, Mark};
use super::change::Waiting;
use super::known::Known;
use super::reader::ReadError;
use super::statements::{Sql, Statements};
use super::writes::Writing;
use super::{open, view::SqliteView};
use crate::clock::Clock;
use crate::{ChangedRound, Hints, Observing};

/// How often a process that has somebody waiting looks for changes by other processes.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How often the thread looks for more work before it sleeps: some tens of microseconds.
const YIELDS: u32 = 100;

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
        let thread = std::thread::Builder::new()
            .name("sayso-writer".to_owned())
            .spawn(move || {
                let (statements, observers, nudged) = (Statements::of(&db), seen_observers, seen_nudged);
                let thread = Thread { statements, clock, hints, observers, nudged, seen_version, remembered: None };
                thread.run(&receiver);
            })
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

struct Thread<'db> {
    statements: Statements<'db>,
    clock: Arc<dyn Clock>,
    hints: Option<Arc<dyn Hints>>,
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
                    Message::Unit { commands: unit, answer, .. } => {
                        commands += unit.len();
                        units.push((unit, answer));
                    }
                    Message::Nudge => self.nudged.store(false, Ordering::SeqCst),
                }
                next = if commands < COMMIT_COMMANDS_MAX { queue.try_recv().ok() } else { None };
            }
            if units.is_empty() {
                self.look_elsewhere();
            } else {
                self.commit(units);
            }
        }
    }

    /// The next message; an error once nobody can send any more.
    fn next(&mut self, queue: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        // Who has just been answered often asks the next thing at once: sleeping and being woken would take longer. Others
        // who could run are let through.
        for _ in 0..YIELDS {
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

    fn commit(&mut self, units: Vec<(Vec<Command>, oneshot::Sender<Answer>)>) {
        let mut touched = Touched::default();
        let (units, answers): (Vec<_>, Vec<_>) = units.into_iter().unzip();
        let done = self.transaction(&units, &mut touched);
        if let Some(version) = touched.seen_version {
            self.saw(version);
        }
        match done {
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
        units: &[Vec<Command>],
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
        let outcomes = units.iter().map(|unit| batch.unit(unit)).collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(outcomes) = outcomes else { return Ok(None) };
        let Batch { known, mut chain, touched, .. } = batch;
        chain.store(&self.statements)?;
        touched.last_event = chain.last_seq();
        transaction.commit()?;
        self.remembered = Some((version, known, chain));
        Ok(Some(outcomes))
    }
}

/// A transaction; it is undone unless it is committed.
struct Transaction<'a, 'db> {
    statements: &'a Statements<'db>,
}

impl<'a, 'db> Transaction<'a, 'db> {
    fn begin(statements: &'a Statements<'db>) -> rusqlite::Result<Self> {
        statements.run(Sql::Begin, |_| Ok(()))?;
        Ok(Self { statements })
    }
    fn commit(self) -> rusqlite::Result<()> {
        self.statements.run(Sql::Commit, |_| Ok(()))
    }
}

impl Drop for Transaction<'_, '_> {
    fn drop(&mut self) {
        if !self.statements.db.is_autocommit() {
            // Where even this fails, the next transaction cannot begin and says so.
            let _ = self.statements.db.execute_batch("ROLLBACK");
        }
    }
}

fn data_version(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// A transaction at work.
struct Batch<'a, 'db> {
    statements: &'a Statements<'db>,
    now: UnixMs,
    known: Known,
    waiting: Waiting,
    chain: Chain,
    touched: &'a mut Touched,
    /// Whether a unit of several commands is run so that it can be undone by itself.
    undoes: bool,
}

impl<'db> Batch<'_, 'db> {
    /// Applies one unit: all of it or none of it. Nothing where it would have to be undone and cannot be.
    fn unit(&mut self, unit: &[Command]) -> Result<Option<Answer>, ReadError> {
        let several = unit.len() > 1;
        if several && self.undoes {
            self.statements.db.prepare_cached("SAVEPOINT unit")?.execute([])?;
        }
        let before = self.chain.mark();
        let mut replies = Vec::with_capacity(unit.len());
        for command in unit {
            let refused = match apply(&self.view(), command, self.now) {
                Ok(applied) => {
                    if applied.reply.is_ok() || !several {
                        self.write(&applied.writes)?;
                    }
                    match applied.reply {
                        Ok(reply) => {
                            replies.push(reply);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                // A row that cannot be read refuses its own unit; the neighbours in the batch go on.
                Err(ReadError::Corrupt(what)) => Error::Corrupt(what),
                Err(error) => return Err(error),
            };
            if !several || (replies.is_empty() && !self.undoes) {
                self.waiting.write(self.statements)?;
                return Ok(Some(Err(refused)));
            }
            if !self.undoes {
                return Ok(None);
            }
            self.undo(before)?;
            return Ok(Some(Err(refused)));
        }
        self.waiting.write(self.statements)?;
        if several && self.undoes {
            self.statements.db.prepare_cached("RELEASE unit")?.execute([])?;
        }
        Ok(Some(Ok(replies)))
    }

    fn view(&self) -> SqliteView<'_, 'db> {
        SqliteView { statements: self.statements, known: &self.known, waiting: &self.waiting }
    }

    fn write(&mut self, writes: &[Write]) -> Result<(), ReadError> {
        for write in writes {
            self.touched.note(write);
            let Self { statements, known, waiting, chain, .. } = self;
            Writing { statements, known, waiting, chain }.write(write)?;
        }
        Ok(())
    }

    fn undo(&mut self, before: Mark) -> Result<(), ReadError> {
        self.waiting = Waiting::default();
        self.statements.db.prepare_cached("ROLLBACK TO unit")?.execute([])?;
        self.statements.db.prepare_cached("RELEASE unit")?.execute([])?;
        self.chain.back_to(before);
        self.known = Known::default();
        Ok(())
    }
}

/// What a batch changed, for the hints after its commit.
#[derive(Default)]
struct Touched {
    rounds: HashMap<RoundId, Arc<Round>>,
    executions: HashSet<ExecutionId>,
    last_event: u64,
    events: bool,
    /// The version of the store that the transaction began with.
    seen_version: Option<i64>,
}

impl Touched {
    fn note(&mut self, write: &Write) {
        match write {
            Write::NewRound { round, .. } | Write::Round(round) => {
                self.rounds.insert(round.id, round.clone());
            }
            Write::NewExecution(execution) | Write::Execution(execution) => {
                self.executions.insert(execution.id);
            }
            Write::Event(_) => self.events = true,
            _ => {}
        }
    }

    fn tell(&self, hints: &dyn Hints) {
        if self.events || !self.rounds.is_empty() || !self.executions.is_empty() {
            let changed = |(id, row): (&RoundId, &Arc<Round>)| ChangedRound { id: *id, row: Some(row.clone()) };
            let rounds: Vec<_> = self.rounds.iter().map(changed).collect();
            let executions: Vec<_> = self.executions.iter().copied().collect();
            hints.changed(&rounds, &executions, self.last_event);
        }
    }
}
