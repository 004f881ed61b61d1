//! Following the chain of events from its first link.

use sayso_core::event::Event;

use super::ChainFacts;

/// Events looked at in one read.
const PAGE: usize = 1000;

/// How far the chain was followed, and what was wrong with it.
pub(crate) struct Walk {
    hash: [u8; 32],
    page: usize,
    facts: ChainFacts,
}

impl Default for Walk {
    fn default() -> Self {
        Self { hash: [0; 32], page: PAGE, facts: ChainFacts::default() }
    }
}

impl Walk {
    /// What to read next: events after this one, so many; `None` at the end or at what is broken.
    pub(crate) fn next(&self) -> Option<(u64, usize)> {
        self.facts.broken.is_none().then_some((self.facts.linked, self.page))
    }

    /// Takes one page; false where it was the last.
    pub(crate) fn take(&mut self, page: &[Event]) -> bool {
        for event in page {
            let expected = self.facts.linked.saturating_add(1);
            let broken = if event.seq != expected {
                Some(format!("event {expected} is missing"))
            } else if event.previous_hash != self.hash {
                Some(format!("event {expected} is not linked to the one before it"))
            } else if !event.is_intact() {
                Some(format!("event {expected} is not what its hash says"))
            } else {
                None
            };
            if broken.is_some() {
                self.facts.broken = broken;
                return false;
            }
            (self.facts.linked, self.hash) = (event.seq, event.hash);
        }
        page.len() == self.page
    }

    /// The next page could not be read: it is looked for the event at fault, one at a time.
    pub(crate) fn stop(&mut self, why: &str) {
        if self.page > 1 {
            self.page = 1;
            return;
        }
        self.facts.broken = Some(format!("the events after {} cannot be read: {why}", self.facts.linked));
    }

    /// Compares the end with where the store says that it is.
    pub(crate) fn ends_at(&mut self, seq: u64, hash: [u8; 32]) {
        if self.facts.broken.is_none() && (seq, hash) != (self.facts.linked, self.hash) {
            self.facts.broken = Some(format!("the chain ends at {}, and its end is noted as {seq}", self.facts.linked));
        }
    }

    pub(crate) fn facts(self) -> ChainFacts {
        self.facts
    }
}
