//! Ends what has expired or been abandoned. Several sweepers do no harm: every step compares before it sets.

use std::collections::BTreeMap;
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::limits::{COMMIT_COMMANDS_MAX, LEASE_MS, SWEEP_ROWS_MAX};
use sayso_core::time::UnixMs;
use sayso_store::{Abandoned, Store};
use tokio::time::Instant;

use crate::open::Sayso;

/// How often deadlines are compared; an answer past its deadline is refused without the sweeper, too.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Which workers have been seen dead, when their lease had run out, and since when by this process's own monotonic clock.
#[derive(Default)]
pub struct Sweeper {
    seen: BTreeMap<String, (Option<UnixMs>, Duration)>,
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
    /// after its same expired lease was seen twice, a lease length apart, so that neither a restart, a sleeping laptop
    /// nor a stepped clock ends anybody who is well.
    pub async fn step(&mut self, store: &dyn Store, monotonic: Duration) -> Result<(), Error> {
        let now = store.now().await?;
        loop {
            let overdue = store.overdue(now, COMMIT_COMMANDS_MAX).await?;
            let is_last = overdue.len() < COMMIT_COMMANDS_MAX;
            let ended = end(store, overdue.into_iter().map(|round| Command::Expire { round }).collect()).await?;
            // What cannot be ended would be found again and again.
            if is_last || ended == 0 {
                break;
            }
        }
        let mut found: BTreeMap<String, Vec<Abandoned>> = BTreeMap::new();
        for abandoned in store.abandoned(now, SWEEP_ROWS_MAX).await? {
            found.entry(abandoned.owner.clone()).or_default().push(abandoned);
        }
        let lapsed = |abandoned: &[Abandoned]| abandoned.first().and_then(|one| one.expired_at);
        self.seen.retain(|owner, (at, _)| found.get(owner).is_some_and(|abandoned| lapsed(abandoned) == *at));
        let patience = Duration::from_millis(LEASE_MS.unsigned_abs());
        for (owner, abandoned) in found {
            let (_, since) = *self.seen.entry(owner).or_insert_with(|| (lapsed(&abandoned), monotonic));
            if monotonic.saturating_sub(since) < patience {
                continue;
            }
            let mut commands: Vec<_> = abandoned.into_iter().map(ending).collect();
            while !commands.is_empty() {
                let rest = commands.split_off(commands.len().min(COMMIT_COMMANDS_MAX));
                end(store, std::mem::replace(&mut commands, rest)).await?;
            }
        }
        Ok(())
    }
}

/// What ends something whose worker is gone.
fn ending(abandoned: Abandoned) -> Command {
    match abandoned.round {
        Some((round, fence)) => Command::FailRecovery { round, expected: fence.token },
        None => Command::Orphan { execution: abandoned.execution, owner: abandoned.owner },
    }
}

/// Applies the commands in one transaction, or, where one of them is refused, each in its own. How many were.
async fn end(store: &dyn Store, commands: Vec<Command>) -> Result<usize, Error> {
    if commands.is_empty() {
        return Ok(0);
    }
    match store.commit(commands.clone()).await {
        Ok(_) => return Ok(commands.len()),
        Err(Error::Unavailable(reason)) => return Err(Error::Unavailable(reason)),
        Err(_) => {}
    }
    let mut ended = 0;
    for command in commands {
        match store.commit(vec![command]).await {
            Ok(_) => ended += 1,
            // Somebody renewed, or another sweeper was first; and one unreadable row does not keep the others waiting.
            Err(Error::Conflict { .. } | Error::State { .. } | Error::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ended)
}
