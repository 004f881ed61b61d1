//! One batch of units as one transaction: load, apply in memory, load what was missing and apply again, write, commit.

use std::sync::Arc;

use sayso_core::command::{Command, Reply, apply};
use sayso_core::error::Error;
use sayso_core::event::NewEvent;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::Round;
use sayso_core::time::UnixMs;

use super::connection::Connection;
use super::failure::{Failure, Remedy};
use super::keys::{Key, Keys};
use super::load::load;
use super::memory::{Changes, Layers, Miss, Rows};
use super::notice::Notices;
use super::value::Found;
use super::write;
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

/// Runs `units` as one transaction. Where it fails, it has been rolled back, unless the connection was lost while it was
/// being committed: then nobody knows.
pub(super) async fn run(
    db: &mut Connection,
    units: &[Vec<Command>],
    clock: Option<&dyn Clock>,
    notices: Option<&Notices>,
) -> Result<Done, Stopped> {
    let before = |failure| Stopped { failure, was_committing: false };
    let mut loaded = Rows::default();
    let decided = decide(db, units, clock, &mut loaded).await;
    let (answers, changes) = match decided {
        Ok(decided) => decided,
        Err(failure) => return Err(before(undone(db, failure).await)),
    };
    let done = Done {
        answers,
        rounds: changed_rounds(&changes),
        executions: changes.rows.executions.keys().copied().collect(),
        has_events: !changes.once.events.is_empty(),
    };
    if changes.is_empty() {
        return match db.client.batch_execute("ROLLBACK").await {
            Ok(()) => Ok(done),
            Err(error) => Err(before(error.into())),
        };
    }
    let notice = notices.filter(|_| done.has_events).map(|notices| notices.of(&concerned(&changes.once.events)));
    let steps = match write::steps(&changes, &loaded) {
        Ok(steps) => steps,
        Err(failure) => return Err(before(undone(db, failure).await)),
    };
    match write::commit(db, steps, notice).await {
        Ok(()) => Ok(done),
        // The commit behind the failed statement has become a rollback already.
        Err(failure) => Err(Stopped { was_committing: failure.remedy() == Remedy::Reconnect, failure }),
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
    clock: Option<&dyn Clock>,
    loaded: &mut Rows,
) -> Result<(Vec<Answer>, Changes), Failure> {
    let mut keys = Keys::of(units.iter().flatten());
    for look in 0..LOOKS_MAX {
        let database_now = load(db, &keys, loaded, look == 0).await?;
        let now = clock.map_or(database_now, Clock::now);
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
    if missing.is_empty() { Ok((answers, batch)) } else { Err(missing) }
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
fn concerned(events: &[NewEvent]) -> Concerned {
    let mut concerned = Concerned::default();
    for event in events {
        concerned.rounds.extend(event.round_id);
        concerned.executions.extend(event.execution_id);
    }
    concerned
}

/// Ids, each once and in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Concerned {
    pub(super) rounds: std::collections::BTreeSet<RoundId>,
    pub(super) executions: std::collections::BTreeSet<ExecutionId>,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self { failure, was_committing: false }
    }
}
