//! The side that writes: whenever a connection is free it takes what is queued into one transaction, commits, then
//! answers. No lingering: whoever comes while every connection is busy shares the next transaction.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::limits::{COMMIT_COMMANDS_MAX, COMMIT_QUEUE_MAX};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;

use super::batch::{self, Answer, Done, Means, Stopped};
use super::connection::{Connection, PATIENCE};
use super::failure::{Failure, Remedy};
use super::known::Known;
use super::notice::Notices;
use crate::Hints;
use crate::clock::Clock;

/// How often a transaction is tried while others are in its way.
const TRIES_MAX: u32 = 8;

/// A unit with whoever waits for its answer.
struct Unit {
    commands: Vec<Command>,
    answer: oneshot::Sender<Answer>,
}

/// The queue's end that callers hold; when it is gone, what is queued is still done.
pub(super) struct Writer {
    queue: mpsc::Sender<Unit>,
}

/// What every turn shares.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) hints: Option<Arc<dyn Hints>>,
    /// What other processes are told, unless they only poll.
    pub(super) notices: Option<Notices>,
    /// Hears of every commit that left events.
    pub(super) sequencer: Arc<tokio::sync::Notify>,
    /// What is known of rows without reading them.
    pub(super) known: Arc<Known>,
    /// Connections that nobody uses now.
    pub(super) free: Mutex<Vec<Connection>>,
}

impl Writer {
    pub(super) fn start(shared: Shared, connections: usize) -> Self {
        let (queue, receiver) = mpsc::channel(COMMIT_QUEUE_MAX);
        tokio::spawn(take_turns(Arc::new(shared), receiver, connections));
        Self { queue }
    }

    pub(super) async fn commit(&self, commands: Vec<Command>) -> Answer {
        let closed = || Error::Unavailable("the store is closing; nothing was changed".to_owned());
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        self.queue.send(Unit { commands, answer }).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

/// Hands what is queued to a free connection, as long as anybody can queue.
async fn take_turns(shared: Arc<Shared>, mut queue: mpsc::Receiver<Unit>, connections: usize) {
    let places = Arc::new(Semaphore::new(connections));
    while let Some(first) = queue.recv().await {
        // Whoever comes while this waits shares the transaction. The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let units = fill(first, &mut queue);
        let shared = shared.clone();
        tokio::spawn(async move {
            // The one used last: its statements are prepared, and the others may rest.
            let db = shared.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut turn = Turn { shared, db };
            turn.take(units).await;
            if let Some(db) = turn.db {
                turn.shared.free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            }
            drop(place);
        });
    }
}

/// What is queued behind `first`, up to what one transaction takes.
fn fill(first: Unit, queue: &mut mpsc::Receiver<Unit>) -> Vec<Unit> {
    let mut commands = first.commands.len();
    let mut units = vec![first];
    while commands < COMMIT_COMMANDS_MAX
        && let Ok(unit) = queue.try_recv()
    {
        commands += unit.commands.len();
        units.push(unit);
    }
    units
}

/// One batch on one connection.
struct Turn {
    shared: Arc<Shared>,
    db: Option<Connection>,
}

impl Turn {
    async fn take(&mut self, units: Vec<Unit>) {
        let (commands, answers): (Vec<_>, Vec<_>) = units.into_iter().map(|unit| (unit.commands, unit.answer)).unzip();
        for (answer, outcome) in answers.into_iter().zip(self.outcomes(&commands).await) {
            // The caller may be gone; what was committed stays.
            let _ = answer.send(outcome);
        }
    }

    /// One answer a unit. Where a transaction cannot be done with all of them, each is tried alone, so that one does not
    /// fail its neighbours.
    async fn outcomes(&mut self, units: &[Vec<Command>]) -> Vec<Answer> {
        match self.transaction(units).await {
            Ok(answers) => answers,
            Err(stopped) if units.len() == 1 || stopped.failure.remedy() == Remedy::Reconnect => {
                let error = stopped.into_error();
                units.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => {
                let mut answers = Vec::with_capacity(units.len());
                for unit in units {
                    answers.push(match self.transaction(std::slice::from_ref(unit)).await {
                        Ok(alone) => alone.into_iter().next().unwrap_or(Ok(Vec::new())),
                        Err(stopped) => Err(stopped.into_error()),
                    });
                }
                answers
            }
        }
    }

    async fn transaction(&mut self, units: &[Vec<Command>]) -> Result<Vec<Answer>, Stopped> {
        let mut tries = 1;
        loop {
            let may_carry = tries == 1;
            let stopped = match self.once(units, may_carry).await {
                Ok(done) => return Ok(self.tell(done)),
                Err(stopped) => stopped,
            };
            let again = match stopped.failure.remedy() {
                Remedy::Repeat => true,
                // Found dead before anything was sent that could have changed something.
                Remedy::Reconnect => !stopped.was_committing && !matches!(stopped.failure, Failure::Late) && tries < 3,
                // No room in the queue of notices, as where a session listens and never reads, keeps no answer back.
                Remedy::Separate => may_carry && stopped.failure.is(&SqlState::PROGRAM_LIMIT_EXCEEDED),
            };
            if !again || tries == TRIES_MAX {
                return Err(stopped);
            }
            wait_briefly(tries).await;
            tries += 1;
        }
    }

    async fn once(&mut self, units: &[Vec<Command>], may_carry: bool) -> Result<Done, Stopped> {
        let mut db = match self.db.take().filter(|db| !db.is_lost()) {
            Some(db) => db,
            None => Connection::open_for_keys(&self.shared.config).await?,
        };
        let Shared { clock, notices, known, .. } = &*self.shared;
        let means = Means { clock: clock.as_deref(), notices: notices.as_ref(), known, may_carry };
        let running = batch::run(&mut db, units, &means);
        // A connection on which somebody gave up may be in the middle of anything: it is not used again.
        let done = tokio::time::timeout(PATIENCE, running)
            .await
            .map_err(|_| Stopped { failure: Failure::Late, was_committing: true })?;
        let of_use = !matches!(&done, Err(stopped) if stopped.failure.remedy() == Remedy::Reconnect);
        self.db = Some(db).filter(|_| of_use);
        done
    }

    /// Hints first: whoever is woken finds the row there, and whoever is answered may look for the hint.
    fn tell(&self, done: Done) -> Vec<Answer> {
        if done.has_events {
            self.shared.sequencer.notify_one();
        }
        if let Some(hints) = &self.shared.hints
            && (done.has_events || !done.rounds.is_empty() || !done.executions.is_empty())
        {
            hints.changed(&done.rounds, &done.executions, 0);
        }
        done.answers
    }
}

/// Lets the others finish. Jittered, so that two that met do not meet again.
async fn wait_briefly(tries: u32) {
    let jitter = getrandom::u32().unwrap_or_default() % 2_000;
    tokio::time::sleep(Duration::from_micros(u64::from(jitter.saturating_mul(tries)))).await;
}

impl Stopped {
    fn into_error(self) -> Error {
        if self.failure.is_taken() {
            return Error::conflict("an id or a key of it was used for something else before");
        }
        if self.failure.is(&SqlState::CHARACTER_NOT_IN_REPERTOIRE) {
            let detail = "a text of it holds a NUL character, which PostgreSQL does not store".to_owned();
            return Error::Validation { detail, fields: Vec::new() };
        }
        if self.was_committing { self.failure.unknown() } else { self.failure.unchanged() }
    }
}
