//! Ends what has expired or been abandoned. Several sweepers do no harm: every step compares before it sets.

use std::collections::BTreeMap;
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::id::ExecutionId;
use sayso_core::limits::{LEASE_MS, PAGE_ROWS_MAX};
use sayso_store::{Abandoned, Store};
use tokio::time::Instant;

use crate::open::Sayso;

/// How often deadlines are compared; an answer past its deadline is refused without the sweeper, too.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What has been seen abandoned, and since when by this process's own monotonic clock.
#[derive(Default)]
pub struct Sweeper {
    seen: BTreeMap<ExecutionId, (Vec<Abandoned>, Duration)>,
}

impl Sweeper {
    /// Sweeps in the background for as long as the store is open.
    pub(crate) fn spawn(sayso: &Sayso) {
        let inner = std::sync::Arc::downgrade(&sayso.inner);
        tokio::spawn(async move {
            let start = Instant::now();
            let mut sweeper = Self::default();
            let mut tick = tokio::time::interval(SWEEP_EVERY);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                let Some(inner) = inner.upgrade() else { return };
                // What could not be swept now is swept at a later tick; nothing is lost by waiting.
                let _ = sweeper.step(inner.store.as_ref(), start.elapsed()).await;
            }
        });
    }

    /// One sweep at `monotonic`, a time since any fixed moment that never steps. What is held by a worker is ended only
    /// after the same expired lease was seen twice, a lease length apart, so that neither a restart, a sleeping laptop
    /// nor a stepped clock ends anybody who is well.
    pub async fn step(&mut self, store: &dyn Store, monotonic: Duration) -> Result<(), Error> {
        let now = store.now().await?;
        for round in store.overdue(now, PAGE_ROWS_MAX).await? {
            end(store, Command::Expire { round }).await?;
        }
        let mut found: BTreeMap<ExecutionId, Vec<Abandoned>> = BTreeMap::new();
        for abandoned in store.abandoned(now, PAGE_ROWS_MAX).await? {
            found.entry(abandoned.execution).or_default().push(abandoned);
        }
        self.seen.retain(|execution, (seen, _)| found.get(execution) == Some(seen));
        let patience = Duration::from_millis(LEASE_MS.unsigned_abs());
        for (execution, abandoned) in found {
            let (_, since) = self.seen.entry(execution).or_insert_with(|| (abandoned.clone(), monotonic));
            if monotonic.saturating_sub(*since) < patience {
                continue;
            }
            for one in abandoned {
                let command = match one.round {
                    Some((round, fence)) => Command::FailRecovery { round, expected: fence.token },
                    None => Command::Orphan { execution, owner: one.owner },
                };
                end(store, command).await?;
            }
            self.seen.remove(&execution);
        }
        Ok(())
    }
}

async fn end(store: &dyn Store, command: Command) -> Result<(), Error> {
    match store.commit(vec![command]).await {
        // Somebody renewed, or another sweeper was first; and one unreadable row does not keep the others waiting.
        Ok(_) | Err(Error::Conflict { .. } | Error::State { .. } | Error::Corrupt(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
