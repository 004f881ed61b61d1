//! What the writer knows of rows that it has read or written. It holds for as long as nobody else commits, which SQLite
//! tells exactly inside a transaction; then most commands read nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use sayso_core::command::{DeliveryContent, Write};
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::round::Round;
use sayso_core::time::UnixMs;

/// Rows of a kind that are remembered; past this all are forgotten, which only costs reads.
const ROWS_MAX: usize = 8_192;
/// Answers and opaque states up to this length are remembered.
const TEXT_BYTES_MAX: usize = 4_096;

#[derive(Default)]
pub(super) struct Known {
    rounds: Kept<RoundId, Round>,
    executions: Kept<ExecutionId, Execution>,
    /// `None`: there is no such row.
    owners: Kept<String, Option<UnixMs>>,
    /// Opaque states of rounds that this process stored; `None`: it has none.
    states: Kept<RoundId, Option<String>>,
    answers: Kept<RoundId, Json>,
}

struct Kept<K, V>(RefCell<HashMap<K, V>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(RefCell::new(HashMap::new()))
    }
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.borrow().get(key).cloned()
    }
    fn put(&self, key: K, value: V) {
        let mut rows = self.0.borrow_mut();
        if rows.len() >= ROWS_MAX {
            rows.clear();
        }
        rows.insert(key, value);
    }
    fn drop_one(&self, key: &K) {
        self.0.borrow_mut().remove(key);
    }
}

impl Known {
    pub(super) fn round(&self, id: RoundId) -> Option<Round> {
        self.rounds.get(&id)
    }
    pub(super) fn execution(&self, id: ExecutionId) -> Option<Execution> {
        self.executions.get(&id)
    }
    pub(super) fn owner(&self, owner: &str) -> Option<Option<UnixMs>> {
        self.owners.get(owner)
    }
    pub(super) fn content(&self, id: RoundId) -> Option<DeliveryContent> {
        let request_state = self.states.get(&id)?;
        Some(DeliveryContent { responses: self.answers.get(&id)?, request_state })
    }

    /// Whether the round certainly has no opaque state.
    pub(super) fn has_no_state(&self, id: RoundId) -> bool {
        matches!(self.states.get(&id), Some(None))
    }

    /// What a read has found.
    pub(super) fn found_round(&self, round: &Round) {
        self.rounds.put(round.id, round.clone());
    }
    pub(super) fn found_execution(&self, execution: &Execution) {
        self.executions.put(execution.id, execution.clone());
    }
    pub(super) fn found_owner(&self, owner: &str, until: Option<UnixMs>) {
        self.owners.put(owner.to_owned(), until);
    }

    /// What has been written. Finished rows are forgotten: they are hardly ever needed again.
    pub(super) fn note(&self, write: &Write) {
        match write {
            Write::Round(round) if round.status.is_finished() => {
                self.rounds.drop_one(&round.id);
                self.answers.drop_one(&round.id);
            }
            Write::Round(round) => self.found_round(round),
            Write::Execution(execution) if execution.outcome.is_some() => self.executions.drop_one(&execution.id),
            Write::Execution(execution) => self.found_execution(execution),
            Write::Owner { owner, expires_at } => self.found_owner(owner, *expires_at),
            Write::Requests { round, request_state, .. } => {
                if request_state.as_ref().is_none_or(|state| state.len() <= TEXT_BYTES_MAX) {
                    self.states.put(*round, request_state.clone());
                }
            }
            Write::Answer { round, effective, .. } => {
                if effective.as_str().len() <= TEXT_BYTES_MAX {
                    self.answers.put(*round, effective.clone());
                }
            }
            Write::EraseRequestState(round) => self.states.drop_one(round),
            Write::Details { .. }
            | Write::Creation { .. }
            | Write::Result { .. }
            | Write::Token(_)
            | Write::Event(_) => {}
        }
    }
}
