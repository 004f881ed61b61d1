//! Moments at which something is due.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::call::CallKey;

/// How often whoever waits for a paused call hears that it is still paused.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long after a result was written its client may still say that it had given up.
pub(super) const COLLECTED_AFTER: Duration = Duration::from_secs(5);
/// How long an identical call is taken for a retry of one whose result was collected, from when it first was.
pub(super) const RETRY_WITHIN: Duration = Duration::from_secs(10 * 60);

/// How long the store may be away before it is tried again.
pub(super) const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What is due.
#[derive(Debug, Clone)]
pub(super) enum Due {
    /// The client's request of this id has been held long enough.
    HoldOver { client_id: String },
    /// Time to say that a call is still paused.
    Heartbeat { call: u64 },
    /// A result that was written to this request counts as collected.
    Collected { client_id: String, key: CallKey },
    /// Time to look again for an answer that could not be handed over.
    HandOver { ask: u64 },
    /// The gateway has lingered long enough.
    LingerOver,
}

/// The queue of what will be due, soonest first.
#[derive(Default)]
pub(super) struct Timers {
    queue: BTreeMap<(Instant, u64), Due>,
    next: u64,
}

impl Timers {
    pub fn at(&mut self, when: Instant, due: Due) {
        self.queue.insert((when, self.next), due);
        self.next += 1;
    }

    /// Returns with what is due next; never, where nothing will be.
    pub async fn next(&mut self) -> Due {
        loop {
            let Some((when, _)) = self.queue.keys().next().copied() else {
                std::future::pending::<()>().await;
                continue;
            };
            tokio::time::sleep_until(when).await;
            if let Some((_, due)) = self.queue.pop_first() {
                return due;
            }
        }
    }
}
