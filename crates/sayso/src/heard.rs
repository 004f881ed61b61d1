//! What this process has heard of the rounds that it stored: the `rev` of those that are pending and that nobody has
//! been heard to change since. Whoever begins to wait for one need not read its row first.
//!
//! This is a hint, as every wake-up is: whoever waits on the strength of it reads the row a moment later all the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sayso_core::id::RoundId;
use sayso_core::round::Status;
use sayso_store::{ChangedRound, Recent};

/// Rounds that are remembered; of those that are not, each is read.
const ROUNDS_MAX: usize = 8_192;

/// The pending rounds that are as this process stored them, as far as it has heard.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Recent<RoundId, u32, ROUNDS_MAX>>);

impl Heard {
    fn lock(&self) -> MutexGuard<'_, Recent<RoundId, u32, ROUNDS_MAX>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These changed in this process. Called before whoever waits for them is told: who begins to wait between the two
    /// is told, and who begins later reads.
    pub(crate) fn changed(&self, rounds: &[ChangedRound]) {
        let mut pending = self.lock();
        for changed in rounds {
            match changed.row.as_ref().filter(|row| row.status == Status::Pending) {
                Some(row) => pending.put(changed.id, row.rev),
                None => drop(pending.remove(&changed.id)),
            }
        }
    }

    /// Anything may have changed.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    /// Whether the round is pending.
    pub(crate) fn is_pending(&self, round: RoundId) -> bool {
        self.lock().get(&round).is_some()
    }

    /// Whether the round's `rev` is not past `after`.
    pub(crate) fn is_unchanged(&self, round: RoundId, after: u32) -> bool {
        self.lock().get(&round).is_some_and(|rev| *rev <= after)
    }
}
