//! Results of calls that had paused, kept for whoever asks: the agent may have given the call up meanwhile.

use std::collections::HashMap;

use sayso::{ExecutionId, RoundId};
use sayso_core::limits::RESULTS_KEPT_MAX;
use tokio::time::Instant;

use super::call::CallKey;
use super::timers::RETRY_WITHIN;

/// The results of this process's paused calls, by what was called.
#[derive(Default)]
pub(super) struct StoredResults {
    by_key: HashMap<CallKey, StoredResult>,
    /// URL rounds by the asker's id for the visit; the asker may call it complete long after.
    url_rounds: HashMap<String, RoundId>,
}

struct StoredResult {
    execution: ExecutionId,
    stored_at: Instant,
    was_parked: bool,
    /// The request it was last written to, while that may still have given up.
    written_to: Option<String>,
    collected_at: Option<Instant>,
}

impl StoredResults {
    pub fn keep(&mut self, key: CallKey, execution: ExecutionId, was_parked: bool) {
        if self.by_key.len() >= RESULTS_KEPT_MAX {
            let oldest = self.by_key.iter().min_by_key(|(_, stored)| stored.stored_at).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.by_key.remove(&key));
        }
        let stored =
            StoredResult { execution, stored_at: Instant::now(), was_parked, written_to: None, collected_at: None };
        self.by_key.insert(key, stored);
    }

    /// The execution whose result an identical call gets: one that nobody has collected, or that was collected so
    /// recently by a call whose client leg had ended that this is a retry of it. Any other is a new call.
    pub fn for_retry(&mut self, key: &CallKey) -> Option<ExecutionId> {
        let stored = self.by_key.get(key)?;
        let is_retry = match stored.collected_at {
            None => true,
            Some(at) => stored.was_parked && at.elapsed() < RETRY_WITHIN,
        };
        if is_retry {
            return Some(stored.execution);
        }
        self.by_key.remove(key);
        None
    }

    /// The result was written to this request of the client's.
    pub fn written(&mut self, key: &CallKey, client_id: &str) {
        if let Some(stored) = self.by_key.get_mut(key) {
            stored.written_to = Some(client_id.to_owned());
        }
    }

    /// What was called for this execution.
    pub fn key_of(&self, execution: ExecutionId) -> Option<CallKey> {
        self.by_key.iter().find(|(_, stored)| stored.execution == execution).map(|(key, _)| key.clone())
    }

    /// The client says that it had given a request up whose answer was already written: it was not collected.
    pub fn gave_up(&mut self, client_id: &str) {
        for stored in self.by_key.values_mut().filter(|stored| stored.written_to.as_deref() == Some(client_id)) {
            stored.written_to = None;
            stored.was_parked = true;
        }
    }

    /// The request that the result was written to has not given up in time. The execution, if this is news.
    pub fn collected(&mut self, key: &CallKey, client_id: &str) -> Option<ExecutionId> {
        let stored = self.by_key.get_mut(key)?;
        if stored.written_to.as_deref() != Some(client_id) {
            return None;
        }
        stored.written_to = None;
        // A retry that reads it again does not begin the time anew.
        let is_first = stored.collected_at.is_none();
        stored.collected_at.get_or_insert_with(Instant::now);
        is_first.then_some(stored.execution)
    }

    /// The URL round under the asker's id for the visit.
    pub fn url_round(&self, elicitation_id: &str) -> Option<RoundId> {
        self.url_rounds.get(elicitation_id).copied()
    }

    pub fn keep_url(&mut self, elicitation_id: String, round: RoundId) {
        if self.url_rounds.len() < RESULTS_KEPT_MAX {
            self.url_rounds.insert(elicitation_id, round);
        }
    }
}
