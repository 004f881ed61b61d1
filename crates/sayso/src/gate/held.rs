use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use sayso_core::id::RoundId;

/// The rounds that somebody in this process waits for right now. Two equal calls at once are two calls: the second takes
/// no answer that the first still waits for.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<HashSet<RoundId>>>);

/// Holds a round until it is dropped.
pub(crate) struct Hold {
    held: Held,
    round: RoundId,
}

impl Held {
    /// Takes hold of a round, unless somebody has.
    pub(crate) fn take(&self, round: RoundId) -> Option<Hold> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(round);
        is_free.then(|| Hold { held: self.clone(), round })
    }

    pub(crate) fn has(&self, round: RoundId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&round)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.round);
    }
}
