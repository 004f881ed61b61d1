//! What this process has lately written or read of rows, and what time it is by the database's clock. All of it is a
//! guess, since other processes write too: whoever decides by it writes under guards that fail where it is out of date.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::round::Round;
use sayso_core::time::UnixMs;
use tokio::time::Instant;

use super::keys::Keys;
use super::memory::{Changes, Rows};
use crate::Recent;

/// Rows of a kind that are remembered; of those that are not, each is read once.
const ROWS_MAX: usize = 8_192;
/// Answers and opaque states up to this length are remembered.
const TEXT_BYTES_MAX: usize = 4_096;
/// Unfinished rounds of an execution that are remembered to be all of them.
const MEMBERS_MAX: usize = 16;
/// For how long the database's clock is believed to have gone on as this machine's does.
const CLOCK_FOR: Duration = Duration::from_secs(2);

/// Shared by those that write, those that read, and whoever hears of other processes.
#[derive(Default)]
pub(super) struct Known(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    rounds: Recent<RoundId, KnownRound, ROWS_MAX>,
    executions: Recent<ExecutionId, KnownExecution, ROWS_MAX>,
    /// Until when workers live.
    owners: Recent<String, UnixMs, ROWS_MAX>,
    /// The database's time at a moment of this machine's.
    clock: Option<(Instant, UnixMs)>,
}

struct KnownRound {
    row: Arc<Round>,
    /// The opaque state, where it is known whether there is one.
    state: Option<Option<String>>,
    answer: Option<Json>,
}

struct KnownExecution {
    rev: i64,
    /// Its counts of pending rounds are those that this process knows of.
    row: Arc<Execution>,
    /// Its unfinished rounds as of this `rev`, where they are known to be all.
    unfinished: Option<Vec<RoundId>>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database's time, where it was told lately. The true one is this or a little later.
    pub(super) fn now(&self) -> Option<UnixMs> {
        let (at, time) = self.lock().clock?;
        let passed = at.elapsed();
        (passed <= CLOCK_FOR).then(|| time.plus_ms(i64::try_from(passed.as_millis()).unwrap_or_default()))
    }

    /// The database has just said what time it is.
    pub(super) fn note_now(&self, now: UnixMs) {
        self.lock().clock = Some((Instant::now(), now));
    }

    /// Every row that `keys` name, where all are known and every lease among them holds beyond `until`.
    pub(super) fn rows(&self, keys: &Keys, until: UnixMs) -> Option<Rows> {
        if !keys.can_be_guessed() {
            return None;
        }
        let kept = self.lock();
        let mut rows = Rows::default();
        rows.begun.extend(&keys.begun);
        for id in &keys.rounds {
            let known = kept.rounds.get(id)?;
            if let Some(fence) = &known.row.fence {
                kept.guess_owner(&fence.owner, until, &mut rows)?;
            }
            rows.rounds.insert(*id, Ok(Some(known.row.clone())));
        }
        for owner in &keys.owners {
            kept.guess_owner(owner, until, &mut rows)?;
        }
        for id in &keys.executions {
            kept.guess_execution(*id, &mut rows)?;
            rows.decisive.insert(*id);
        }
        for id in &keys.with_execution {
            let KnownRound { row: round, state, .. } = kept.rounds.get(id)?;
            let execution = kept.guess_execution(round.execution_id, &mut rows)?;
            if !keys.finishing.contains(id) {
                continue;
            }
            rows.decisive.insert(round.execution_id);
            // What is known not to be there need not be erased.
            if let Some(None) = state {
                rows.request_states.insert(*id, None);
            }
            if execution.row.ends_with_round {
                let unfinished = execution.unfinished.as_ref()?;
                // One that no command names would be read and not written, and so not be guarded.
                if !unfinished.iter().all(|id| keys.rounds.contains(id)) {
                    return None;
                }
                rows.members.insert(round.execution_id, unfinished.iter().copied().collect());
                rows.complete.insert(round.execution_id);
            }
        }
        for id in &keys.contents {
            let known = kept.rounds.get(id)?;
            // One that is given in the same transaction is known once it is looked for.
            if let Some(answer) = &known.answer {
                rows.answers.insert(*id, Ok(Some(answer.clone())));
            }
            rows.request_states.insert(*id, known.state.clone()?);
        }
        // That a key is new is guarded by the index that it goes into.
        for key in &keys.creations {
            rows.creations.insert(key.clone(), Ok(None));
        }
        Some(rows)
    }

    /// Forgets what a guess was made from that turned out to be out of date.
    pub(super) fn forget(&self, keys: &Keys) {
        let mut kept = self.lock();
        for id in &keys.rounds {
            if let Some(known) = kept.rounds.remove(id) {
                kept.executions.remove(&known.row.execution_id);
                known.row.fence.as_ref().map(|fence| kept.owners.remove(&fence.owner));
            }
        }
        for id in &keys.executions {
            kept.executions.remove(id);
        }
        for owner in &keys.owners {
            kept.owners.remove(owner);
        }
        kept.clock = None;
    }

    /// Another process has changed these.
    pub(super) fn changed_elsewhere(&self, rounds: impl Iterator<Item = RoundId>, executions: &[ExecutionId]) {
        let mut kept = self.lock();
        for id in rounds {
            kept.rounds.remove(&id);
        }
        for id in executions {
            kept.executions.remove(id);
        }
    }

    /// What was read: a round's row, its execution's, and until when its holder lives.
    pub(super) fn note_read(&self, round: &Round, execution: Option<(i64, Arc<Execution>)>, lease: Option<UnixMs>) {
        if round.status.is_finished() {
            return;
        }
        let mut kept = self.lock();
        if kept.rounds.get(&round.id).is_none_or(|known| known.row.rev < round.rev) {
            let known = KnownRound { row: Arc::new(round.clone()), state: None, answer: None };
            kept.rounds.put(round.id, known);
        }
        if let Some((rev, row)) = execution {
            kept.note_execution(&row, rev, None);
        }
        if let (Some(fence), Some(until)) = (&round.fence, lease) {
            kept.owners.put(fence.owner.clone(), until);
        }
    }

    /// What a transaction that has been committed has loaded and changed.
    pub(super) fn note(&self, loaded: &Rows, changes: &Changes) {
        let mut kept = self.lock();
        for (owner, until) in loaded.owners.iter().chain(&changes.rows.owners) {
            match until {
                Some(until) => kept.owners.put(owner.clone(), *until),
                None => drop(kept.owners.remove(owner)),
            }
        }
        for (id, found) in &loaded.executions {
            if let (Ok(Some(row)), Some(rev)) = (found, loaded.revs.get(id))
                && !changes.rows.executions.contains_key(id)
            {
                kept.note_execution(row, *rev, None);
            }
        }
        for (id, found) in &changes.rows.executions {
            if let Ok(Some(row)) = found {
                let was = loaded.revs.get(id).copied();
                kept.note_execution(row, was.map_or(0, |rev| rev.saturating_add(1)), was);
                if loaded.begun.contains(id) || loaded.complete.contains(id) {
                    kept.note_members(*id, loaded, changes);
                }
            }
        }
        for (id, row) in &changes.recounted {
            if let Some(known) = kept.executions.get_mut(id).filter(|known| loaded.revs.get(id) == Some(&known.rev)) {
                known.row = row.clone();
            }
        }
        for found in changes.rows.rounds.values() {
            if let Ok(Some(row)) = found {
                kept.note_round(row, loaded, changes);
            }
        }
    }
}

impl Kept {
    /// Of a worker that certainly lives until then.
    fn guess_owner(&self, owner: &str, until: UnixMs, rows: &mut Rows) -> Option<()> {
        let lives = self.owners.get(owner).filter(|lives| **lives > until)?;
        if !rows.owners.contains_key(owner) {
            rows.owners.insert(owner.to_owned(), Some(*lives));
        }
        Some(())
    }

    fn guess_execution(&self, id: ExecutionId, rows: &mut Rows) -> Option<&KnownExecution> {
        let known = self.executions.get(&id)?;
        rows.revs.insert(id, known.rev);
        rows.executions.insert(id, Ok(Some(known.row.clone())));
        Some(known)
    }

    /// A finished one is forgotten: it is hardly ever needed again. `was` is what it has been written over.
    fn note_execution(&mut self, row: &Arc<Execution>, rev: i64, was: Option<i64>) {
        if row.outcome.is_some() {
            self.executions.remove(&row.id);
            return;
        }
        let unfinished = match self.executions.get_mut(&row.id) {
            Some(known) if known.rev >= rev => return,
            // Nobody else has written it since.
            Some(known) if was == Some(known.rev) => known.unfinished.take(),
            _ => None,
        };
        self.executions.put(row.id, KnownExecution { rev, row: row.clone(), unfinished });
    }

    /// Every unfinished round of an execution of which the transaction knew all.
    fn note_members(&mut self, id: ExecutionId, loaded: &Rows, changes: &Changes) {
        let layers = [&changes.rows, loaded];
        let members = layers.iter().filter_map(|rows| rows.members.get(&id)).flatten();
        let is_unfinished = |id: &RoundId| match layers.iter().find_map(|rows| rows.rounds.get(id)) {
            Some(Ok(Some(row))) => !row.status.is_finished(),
            _ => true,
        };
        let unfinished: std::collections::BTreeSet<RoundId> = members.copied().filter(is_unfinished).collect();
        if let Some(known) = self.executions.get_mut(&id) {
            known.unfinished = (unfinished.len() <= MEMBERS_MAX).then(|| unfinished.into_iter().collect());
        }
    }

    fn note_round(&mut self, row: &Arc<Round>, loaded: &Rows, changes: &Changes) {
        let is_finished = row.status.is_finished();
        if let Some(known) = self.executions.get_mut(&row.execution_id)
            && let Some(unfinished) = &mut known.unfinished
        {
            unfinished.retain(|id| *id != row.id);
            if !is_finished && unfinished.len() < MEMBERS_MAX {
                unfinished.push(row.id);
            } else if !is_finished {
                known.unfinished = None;
            }
        }
        if is_finished {
            self.rounds.remove(&row.id);
            return;
        }
        let before = self.rounds.get_mut(&row.id);
        if before.as_ref().is_some_and(|known| known.row.rev >= row.rev) {
            return;
        }
        let (mut state, mut answer) = before.map_or((None, None), |known| (known.state.take(), known.answer.take()));
        for rows in [loaded, &changes.rows] {
            if let Some(found) = rows.request_states.get(&row.id) {
                state = Some(found.clone());
            }
            if let Some(Ok(Some(found))) = rows.answers.get(&row.id) {
                answer = Some(found.clone());
            }
        }
        state = state.filter(|state| state.as_ref().is_none_or(|text| text.len() <= TEXT_BYTES_MAX));
        answer = answer.filter(|answer| answer.as_str().len() <= TEXT_BYTES_MAX);
        self.rounds.put(row.id, KnownRound { row: row.clone(), state, answer });
    }
}
