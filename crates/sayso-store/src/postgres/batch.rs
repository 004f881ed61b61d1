//! One batch of units as one transaction: load, apply in memory, load what was missing and apply again, write, commit.

use std::sync::Arc;

use sayso_core::command::{Command, Reply, apply};
use sayso_core::error::Error;
use sayso_core::event::{EventBody, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::{Round, Status};
use sayso_core::time::UnixMs;

use super::connection::Connection;
use super::failure::{Failure, Remedy};
use super::keys::{Key, Keys};
use super::known::Known;
use super::load::load;
use super::memory::{Changes, Layers, Miss, Rows};
use super::notice::Notices;
use super::value::Found;
use super::write::{self, Ending, Notice};
use crate::ChangedRound;
use crate::clock::Clock;

pub(super) type Answer = Result<Vec<Reply>, Error>;

/// A command names what it looks at, then what that leads to; nothing leads further than this.
const LOOKS_MAX: usize = 8;

/// What a batch came to.
pub(super) struct Done {
    /// One answer a unit.
    pub(super) answers: Vec<Answer>,
    pub(super) rounds: Vec<ChangedRound>,
    pub(super) executions: Vec<ExecutionId>,
    pub(super) has_events: bool,
}

/// A failure, and whether the transaction may have been committed all the same.
pub(super) struct Stopped {
    pub(super) failure: Failure,
    pub(super) was_committing: bool,
}

/// What a batch is run with.
pub(super) struct Means<'a> {
    pub(super) clock: Option<&'a dyn Clock>,
    pub(super) notices: Option<&'a Notices>,
    pub(super) known: &'a Known,
    /// Whether a notice may carry a row, and so be a part of the transaction.
    pub(super) may_carry: bool,
}

/// How far the database's time may turn out to be before or after the guess. No deadline and no lease that a guess is
/// made by ends within that, so it decides nothing.
const EARLIER_MS: i64 = -20;
const LATER_MS: i64 = 100;

/// Runs `units` as one transaction. Where it fails, it has been rolled back, unless the connection was lost while it was
/// being committed: then nobody knows. Rows that this process knows are guessed to be as it knows them: then what is
/// decided goes out in one flight, guarded. Where anything is not known, or not as it was guessed, rows are loaded first.
pub(super) async fn run(db: &mut Connection, units: &[Vec<Command>], means: &Means<'_>) -> Result<Done, Stopped> {
    let keys = Keys::of(units.iter().flatten());
    if let Some(guess) = guess(units, &keys, means) {
        match guess.write(db, means).await {
            Err(stopped) if stopped.failure.remedy() == Remedy::Repeat => means.known.forget(&keys),
            done => return done,
        }
    }
    let mut loaded = Rows::default();
    let decided = decide(db, units, keys, means, &mut loaded).await;
    let (answers, changes) = match decided {
        Ok(decided) => decided,
        Err(failure) => return Err(undone(db, failure).await.into()),
    };
    if changes.is_empty() {
        return match db.client.batch_execute("ROLLBACK").await {
            Ok(()) => Ok(Done::of(answers, &changes)),
            Err(error) => Err(Failure::from(error).into()),
        };
    }
    let steps = match write::steps(&changes, &loaded) {
        Ok(steps) => steps,
        Err(failure) => return Err(undone(db, failure).await.into()),
    };
    // The commit behind a failed statement has become a rollback already.
    let now = write::commit(db, &steps, Ending::Loaded, means.notice(&changes)).await.map_err(committing)?;
    means.keep(&loaded, &changes, now);
    Ok(Done::of(answers, &changes))
}

/// What was decided by guessed rows.
struct Guess {
    loaded: Rows,
    answers: Vec<Answer>,
    changes: Changes,
    now: UnixMs,
}

/// Decides by what is known. None where that does not do: only what every row that was looked at is written or guarded for
/// may be decided so.
fn guess(units: &[Vec<Command>], keys: &Keys, means: &Means<'_>) -> Option<Guess> {
    let now = match means.clock {
        Some(clock) => clock.now(),
        None => means.known.now()?,
    };
    let until = now.plus_ms(LATER_MS);
    let loaded = means.known.rows(keys, until)?;
    let (answers, changes) = apply_all(units, &loaded, now).ok()?;
    let is_far = |found: &Found<Arc<Round>>| match found {
        Ok(Some(round)) if round.status == Status::Pending => round.deadline.is_none_or(|at| at > until),
        _ => true,
    };
    let is_sound = answers.iter().all(Result::is_ok)
        && !changes.is_empty()
        && loaded.rounds.keys().all(|id| changes.rows.rounds.contains_key(id))
        && loaded.rounds.values().chain(changes.rows.rounds.values()).all(is_far);
    is_sound.then_some(Guess { loaded, answers, changes, now })
}

impl Guess {
    async fn write(self, db: &mut Connection, means: &Means<'_>) -> Result<Done, Stopped> {
        let Self { loaded, answers, changes, now } = self;
        let mut steps = write::checks(&changes, &loaded);
        steps.extend(write::steps(&changes, &loaded)?);
        let (earliest, latest) = (now.plus_ms(EARLIER_MS), now.plus_ms(LATER_MS));
        let notice = means.notice(&changes);
        let written = match means.clock {
            None => write::commit(db, &steps, Ending::Guessed(earliest, latest), notice).await.map_err(committing),
            // The database cannot be asked whether it is still the time by another clock: it is asked before the commit.
            Some(clock) => {
                db.client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await.map_err(Failure::from)?;
                let mut written = write::write_only(db, &steps).await;
                if !(earliest..=latest).contains(&clock.now()) {
                    written = written.and(Err(Failure::Stale));
                }
                match written {
                    Ok(()) => write::commit(db, &[], Ending::Loaded, notice).await.map_err(committing),
                    Err(failure) => Err(undone(db, failure).await.into()),
                }
            }
        };
        means.keep(&loaded, &changes, written?);
        Ok(Done::of(answers, &changes))
    }
}

/// Where the connection was lost it may have been committed.
fn committing(failure: Failure) -> Stopped {
    Stopped { was_committing: failure.remedy() == Remedy::Reconnect, failure }
}

impl Means<'_> {
    fn notice(&self, changes: &Changes) -> Option<Notice<'_>> {
        let notices = self.notices?;
        let mut told = changes.once.events.iter().filter(|event| is_told(event)).peekable();
        told.peek()?;
        let concerned = concerned(told);
        let row = awaited(&concerned, changes).filter(|_| self.may_carry);
        row.and_then(|row| notices.carrying(&concerned, row)).or_else(|| Some(notices.of(&concerned)))
    }

    /// What has been committed is what is known from now on.
    fn keep(&self, loaded: &Rows, changes: &Changes, now: UnixMs) {
        self.known.note(loaded, changes);
        self.known.note_now(now);
    }
}

impl Done {
    fn of(answers: Vec<Answer>, changes: &Changes) -> Self {
        Self {
            answers,
            rounds: changed_rounds(changes),
            executions: changes.rows.executions.keys().chain(changes.recounted.keys()).copied().collect(),
            has_events: !changes.once.events.is_empty(),
        }
    }
}

/// Rolls back what is open, if there is anybody left to do it.
async fn undone(db: &mut Connection, failure: Failure) -> Failure {
    match db.client.batch_execute("ROLLBACK").await {
        Ok(()) => failure,
        Err(_) if failure.remedy() == Remedy::Reconnect => failure,
        Err(error) => error.into(),
    }
}

async fn decide(
    db: &mut Connection,
    units: &[Vec<Command>],
    mut keys: Keys,
    means: &Means<'_>,
    loaded: &mut Rows,
) -> Result<(Vec<Answer>, Changes), Failure> {
    for look in 0..LOOKS_MAX {
        let database_now = load(db, &keys, loaded, look == 0).await?;
        let now = means.clock.map_or(database_now, Clock::now);
        match apply_all(units, loaded, now) {
            Ok(decided) => return Ok(decided),
            Err(missing) => keys = Keys::missing(missing),
        }
    }
    // A row that is asked for again and again is not where it should be.
    Err(Failure::Corrupt("row"))
}

/// Applies the units in order; or says what else has to be loaded for it.
fn apply_all(units: &[Vec<Command>], loaded: &Rows, now: UnixMs) -> Result<(Vec<Answer>, Changes), Vec<Key>> {
    let mut batch = Changes::default();
    let mut answers = Vec::with_capacity(units.len());
    let mut missing = Vec::new();
    for unit in units {
        match apply_unit(unit, &batch.rows, loaded, now) {
            Ok((answer, changes)) => {
                answers.push(answer);
                batch.absorb(changes);
            }
            Err(Miss::Needs(key)) => missing.push(key),
            // A row that cannot be read refuses its own unit; the neighbours in the batch go on.
            Err(Miss::Corrupt(what)) => answers.push(Err(Error::Corrupt(what))),
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    batch.leave_out_recounted(loaded);
    Ok((answers, batch))
}

/// Applies one unit: all of it or none of it. A lone command's refusal keeps what core decided to leave of it.
fn apply_unit(unit: &[Command], batch: &Rows, loaded: &Rows, now: UnixMs) -> Result<(Answer, Changes), Miss> {
    let mut changes = Changes::default();
    let mut replies = Vec::with_capacity(unit.len());
    for command in unit {
        let applied = apply(&Layers { unit: &changes.rows, batch, loaded }, command, now)?;
        if applied.reply.is_err() && unit.len() > 1 {
            return Ok((applied.reply.map(|reply| vec![reply]), Changes::default()));
        }
        for write in applied.writes {
            changes.record(write);
        }
        match applied.reply {
            Ok(reply) => replies.push(reply),
            Err(error) => return Ok((Err(error), changes)),
        }
    }
    Ok((Ok(replies), changes))
}

fn changed_rounds(changes: &Changes) -> Vec<ChangedRound> {
    let changed = |(id, found): (&RoundId, &Found<Arc<Round>>)| ChangedRound {
        id: *id,
        row: found.as_ref().ok().and_then(|row| row.clone()),
    };
    changes.rows.rounds.iter().map(changed).collect()
}

/// The rounds and executions that events are about: those somebody in another process may wait for.
/// Whether other processes are told of an event at once. That an operation has gone on nobody waits for; there are as many
/// such transitions as answers, and each notice takes a lock of the whole database while it commits.
fn is_told(event: &NewEvent) -> bool {
    event.body != EventBody::Resolved
}

fn concerned<'a>(events: impl Iterator<Item = &'a NewEvent>) -> Concerned {
    let mut concerned = Concerned::default();
    for event in events {
        concerned.rounds.extend(event.round_id);
        concerned.executions.extend(event.execution_id);
    }
    concerned
}

/// The row that somebody may wait for in another process: of the one round to tell of, which is no longer pending. A
/// transaction that notifies takes a lock of the whole database while it commits; where many answers come at once, several
/// share a transaction, and none does.
fn awaited<'a>(concerned: &Concerned, changes: &'a Changes) -> Option<&'a Round> {
    let id = concerned.rounds.first().filter(|_| concerned.rounds.len() == 1)?;
    let row = changes.rows.rounds.get(id)?.as_ref().ok()?.as_deref()?;
    (row.status != Status::Pending).then_some(row)
}

/// Ids, each once and in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Concerned {
    pub(super) rounds: std::collections::BTreeSet<RoundId>,
    pub(super) executions: std::collections::BTreeSet<ExecutionId>,
}

impl Concerned {
    /// Every id as it is written.
    pub(super) fn ids(&self) -> Vec<String> {
        self.rounds.iter().map(ToString::to_string).chain(self.executions.iter().map(ToString::to_string)).collect()
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self { failure, was_committing: false }
    }
}
