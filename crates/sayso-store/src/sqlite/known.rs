//! What the writer knows of rows that it has read or written. It holds for as long as nobody else commits, which SQLite
//! tells exactly inside a transaction; then most commands read nothing.

use std::cell::RefCell;
use std::hash::Hash;
use std::sync::Arc;

use sayso_core::command::{DeliveryContent, Write};
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::round::Round;
use sayso_core::time::UnixMs;

use crate::Recent;

/// Rows of a kind that are remembered; of those that are not, each is read once.
const ROWS_MAX: usize = 8_192;
/// Answers and opaque states up to this length are remembered.
const TEXT_BYTES_MAX: usize = 4_096;
/// Unfinished rounds of an execution that are remembered to be all of them.
const MEMBERS_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Known {
    rounds: Kept<RoundId, KnownRound>,
    executions: Kept<ExecutionId, KnownExecution>,
    /// Those whose own round has ended in this unit.
    ended: RefCell<Vec<ExecutionId>>,
    /// `None`: there is no such row.
    owners: Kept<String, Option<UnixMs>>,
    /// The numbers of workers.
    numbers: Kept<String, i64>,
}

struct KnownRound {
    n: i64,
    row: Arc<Round>,
    /// The opaque state, where this process stored it or knows that there is none.
    state: Option<Option<String>>,
    answer: Option<Json>,
}

/// What is stored of an execution.
#[derive(Clone)]
pub(super) struct StoredExecution {
    pub(super) execution: Arc<Execution>,
    /// The round that says it, where it has no row.
    pub(super) own: Option<RoundId>,
}

struct KnownExecution {
    stored: StoredExecution,
    /// Its unfinished rounds, where they are known to be all.
    unfinished: Option<Vec<RoundId>>,
}

struct Kept<K, V>(RefCell<Recent<K, V, ROWS_MAX>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Eq + Hash, V> Kept<K, V> {
    fn get<Q: Eq + Hash + ?Sized, T>(&self, key: &Q, read: impl FnOnce(&V) -> T) -> Option<T>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.borrow().get(key).map(read)
    }
    fn change(&self, key: &K, change: impl FnOnce(&mut V)) {
        if let Some(value) = self.0.borrow_mut().get_mut(key) {
            change(value);
        }
    }
    fn put(&self, key: K, value: V) {
        self.0.borrow_mut().put(key, value);
    }
    fn forget(&self, key: &K) {
        self.0.borrow_mut().remove(key);
    }
}

impl Known {
    pub(super) fn round(&self, id: RoundId) -> Option<Arc<Round>> {
        self.rounds.get(&id, |known| known.row.clone())
    }
    /// The row, and the number under which it is stored.
    pub(super) fn numbered_round(&self, id: RoundId) -> Option<(i64, Arc<Round>)> {
        self.rounds.get(&id, |known| (known.n, known.row.clone()))
    }
    /// Every unfinished round of the execution.
    pub(super) fn unfinished_rounds(&self, execution: ExecutionId) -> Option<Vec<Round>> {
        let unfinished = self.executions.get(&execution, |known| known.unfinished.clone())??;
        unfinished.into_iter().map(|id| self.round(id).map(Arc::unwrap_or_clone)).collect()
    }
    /// Whether the row is known to be stored with what stands in it beside the counts of pending rounds, which are
    /// not stored.
    pub(super) fn is_stored(&self, next: &Execution) -> bool {
        let stored = |known: &KnownExecution| {
            let before = &known.stored.execution;
            (&before.owner, before.ends_with_round, before.finished_at, &before.outcome, before.collected_at)
                == (&next.owner, next.ends_with_round, next.finished_at, &next.outcome, next.collected_at)
        };
        self.executions.get(&next.id, stored).unwrap_or_default()
    }
    pub(super) fn stored_execution(&self, id: ExecutionId) -> Option<StoredExecution> {
        self.executions.get(&id, |known| known.stored.clone())
    }
    pub(super) fn owner(&self, owner: &str) -> Option<Option<UnixMs>> {
        self.owners.get(owner, |until| *until)
    }
    pub(super) fn number(&self, owner: &str) -> Option<i64> {
        self.numbers.get(owner, |n| *n)
    }
    pub(super) fn content(&self, id: RoundId) -> Option<DeliveryContent> {
        let content = |known: &KnownRound| {
            Some(DeliveryContent { responses: known.answer.clone()?, request_state: known.state.clone()? })
        };
        self.rounds.get(&id, content).flatten()
    }
    /// Whether the round certainly has no opaque state.
    pub(super) fn has_no_state(&self, id: RoundId) -> bool {
        self.rounds.get(&id, |known| matches!(known.state, Some(None))).unwrap_or_default()
    }

    /// What a read has found.
    pub(super) fn found_round(&self, n: i64, row: &Arc<Round>) {
        self.rounds.put(row.id, KnownRound { n, row: row.clone(), state: None, answer: None });
    }
    pub(super) fn found_execution(&self, stored: &StoredExecution) {
        self.executions.put(stored.execution.id, KnownExecution { stored: stored.clone(), unfinished: None });
    }
    /// An execution that has been stored in a row.
    pub(super) fn has_row(&self, execution: ExecutionId) {
        self.executions.change(&execution, |known| known.stored.own = None);
    }
    /// A new execution, and the round that says it where it gets no row.
    pub(super) fn new_execution(&self, execution: &Arc<Execution>, own: Option<RoundId>) {
        let stored = StoredExecution { execution: execution.clone(), own };
        self.executions.put(execution.id, KnownExecution { stored, unfinished: Some(Vec::new()) });
    }
    pub(super) fn found_owner(&self, owner: &str, until: Option<UnixMs>) {
        self.owners.put(owner.to_owned(), until);
    }
    pub(super) fn found_number(&self, owner: &str, n: i64) {
        self.numbers.put(owner.to_owned(), n);
    }

    /// A round that has been stored as number `n`.
    pub(super) fn new_round(&self, n: i64, row: &Arc<Round>, state: Option<&String>) {
        let state = state.is_none_or(|state| state.len() <= TEXT_BYTES_MAX).then(|| state.cloned());
        self.rounds.put(row.id, KnownRound { n, row: row.clone(), state, answer: None });
        self.executions.change(&row.execution_id, |known| match &mut known.unfinished {
            Some(unfinished) if unfinished.len() < MEMBERS_MAX => unfinished.push(row.id),
            unfinished => *unfinished = None,
        });
    }

    /// A round has ended. What else its unit does may be about its own execution, which is forgotten after that.
    fn note_end(&self, round: &Round) {
        self.executions.change(&round.execution_id, |known| {
            if let Some(unfinished) = &mut known.unfinished {
                unfinished.retain(|id| *id != round.id);
            }
            let StoredExecution { execution, own } = &mut known.stored;
            if *own == Some(round.id) {
                *execution = Arc::new(Execution::only_for(round, execution.kind));
                self.ended.borrow_mut().push(execution.id);
            }
        });
    }

    /// A unit has been written. The own execution of a round that has ended may go on, and is read when something is done with
    /// it: most have no more rounds.
    pub(super) fn unit_is_over(&self) {
        for execution in self.ended.borrow_mut().drain(..) {
            self.executions.forget(&execution);
        }
    }

    /// What has been written. Finished rows are forgotten: they are hardly ever needed again, and what is kept of them would
    /// only be in the way of what is at work.
    pub(super) fn note(&self, write: &Write) {
        match write {
            Write::Round(round) => {
                self.rounds.change(&round.id, |known| known.row = round.clone());
                if round.status.is_finished() {
                    self.note_end(round);
                }
            }
            // The last that is written of a round.
            Write::EraseRequestState(round) => self.rounds.forget(round),
            Write::Answer { round, effective, .. } => {
                if effective.as_str().len() <= TEXT_BYTES_MAX {
                    self.rounds.change(round, |known| known.answer = Some(effective.clone()));
                }
            }
            Write::Execution(execution) if execution.outcome.is_some() => self.executions.forget(&execution.id),
            Write::Execution(execution) => {
                self.executions.change(&execution.id, |known| known.stored.execution = execution.clone());
            }
            Write::Owner { owner, expires_at } => self.found_owner(owner, *expires_at),
            Write::NewRound { .. }
            | Write::NewExecution(_)
            | Write::Details { .. }
            | Write::Creation { .. }
            | Write::Result { .. }
            | Write::Token(_)
            | Write::Grant(_)
            | Write::Reviewed { .. }
            | Write::Event(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use sayso_core::execution::ExecutionKind;
    use sayso_core::round::Status;

    use super::*;
    use crate::sample::answered;

    /// A known round and its execution, which `own` says.
    fn known(own: Option<RoundId>) -> (Known, Round) {
        let (known, row) = (Known::default(), Arc::new(Round { status: Status::Delivered, ..answered("main") }));
        known.new_execution(&Arc::new(Execution::only_for(&row, ExecutionKind::Operation)), own);
        known.new_round(1, &row, None);
        assert!(known.stored_execution(row.execution_id).is_some());
        (known, Round::clone(&row))
    }

    fn end(known: &Known, row: &Round) {
        known.note(&Write::Round(Arc::new(Round { status: Status::Resolved, rev: row.rev + 1, ..row.clone() })));
        known.note(&Write::EraseRequestState(row.id));
    }

    #[test]
    fn of_a_round_that_has_ended_nothing_is_kept_beyond_its_unit() {
        let (known, row) = known(Some(row_id()));
        end(&known, &row);
        let execution = known.stored_execution(row.execution_id).map(|stored| stored.execution).unwrap();
        assert!(execution.outcome.is_none() && known.round(row.id).is_none());
        known.unit_is_over();
        assert!(known.stored_execution(row.execution_id).is_none());
    }

    #[test]
    fn an_execution_with_a_row_is_kept_without_its_ended_round() {
        let (known, row) = known(None);
        assert_eq!(known.unfinished_rounds(row.execution_id).map(|rounds| rounds.len()), Some(1));
        end(&known, &row);
        known.unit_is_over();
        assert_eq!(known.unfinished_rounds(row.execution_id), Some(Vec::new()));
    }

    fn row_id() -> RoundId {
        answered("main").id
    }
}
