//! Many rounds that are pending at once: making them, parking waiters on them, listing and answering them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso_core::command::{Command, NewRound, RoundExecution};
use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::limits::COMMIT_COMMANDS_MAX;
use sayso_core::round::Status;
use sayso_core::time::UnixMs;
use sayso_store::RoundFilter;
use sayso_store::limit::{Samples, Stopwatch};
use tokio::task::JoinHandle;

use super::cycle::{self, count};
use super::{Progress, process};
use crate::{Desk, People, Sayso, ids};

/// Units under way at once while rounds are made: the writer is never idle, and little waits in its queue.
const UNITS: usize = 4;
/// Rows of a page that is listed.
const PAGE: usize = 50;
/// Longer than it takes to measure, and repeated where it is not.
const WAIT: Duration = Duration::from_secs(50);

/// Which of the rounds made have a deadline.
#[derive(Debug, Clone, Copy)]
pub enum Deadlines {
    /// Every tenth has this one.
    Some(UnixMs),
    /// All have this one.
    All(UnixMs),
}

impl Deadlines {
    fn of(self, number: usize) -> Option<UnixMs> {
        match self {
            Self::Some(at) => number.is_multiple_of(10).then_some(at),
            Self::All(at) => Some(at),
        }
    }
}

/// Makes `count` resumable rounds, each with an execution of its own, as the bench's agent; their ids in order.
pub async fn make(
    sayso: &Sayso,
    count: usize,
    deadlines: Deadlines,
    progress: Progress<'_>,
) -> Result<Vec<RoundId>, Error> {
    let (pattern, _) = sayso.desk(cycle::agent()).prepare(cycle::ask()?, None).await?;
    let mut made = Vec::with_capacity(count);
    let mut under_way: std::collections::VecDeque<JoinHandle<Result<(), Error>>> = std::collections::VecDeque::new();
    let mut told = 0;
    while made.len() < count {
        let now = sayso.store().now().await?;
        let mut unit = Vec::with_capacity(COMMIT_COMMANDS_MAX);
        while unit.len() < COMMIT_COMMANDS_MAX && made.len() < count {
            let round = another(&pattern, now, deadlines.of(made.len()))?;
            made.push(round.id);
            unit.push(Command::CreateRound(Box::new(round)));
        }
        if under_way.len() == UNITS
            && let Some(first) = under_way.pop_front()
        {
            finished(first).await?;
        }
        let sayso = sayso.clone();
        under_way.push_back(tokio::spawn(async move { sayso.store().commit(unit).await.map(drop) }));
        if made.len() * 10 / count > told {
            told = made.len() * 10 / count;
            progress(&format!("{} of {count} pending rounds made", made.len()));
        }
    }
    for unit in under_way {
        finished(unit).await?;
    }
    Ok(made)
}

async fn finished(unit: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    unit.await.map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))?
}

/// A round as `pattern`, with ids of its own.
fn another(pattern: &NewRound, now: UnixMs, deadline: Option<UnixMs>) -> Result<NewRound, Error> {
    let execution = match &pattern.execution {
        RoundExecution::New { kind, ends_with_round, .. } => RoundExecution::New {
            id: ids::new_id(now, ExecutionId::from_parts)?,
            kind: *kind,
            ends_with_round: *ends_with_round,
        },
        existing @ (RoundExecution::Existing(_) | RoundExecution::Suspending(_)) => existing.clone(),
    };
    Ok(NewRound { id: ids::new_id(now, RoundId::from_parts)?, execution, deadline, ..pattern.clone() })
}

/// The same rounds in an order that is always the same and follows nothing.
pub fn shuffled(mut rounds: Vec<RoundId>) -> Vec<RoundId> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..rounds.len()).rev() {
        // SplitMix64: enough disorder, and the same in every run.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let below = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
        let other = usize::try_from((mixed ^ (mixed >> 31)) % below).unwrap_or_default();
        rounds.swap(last, other);
    }
    rounds
}

/// How long a page of the pending rounds takes that begins before each of `before`.
pub async fn list_latency(sayso: &Sayso, before: &[RoundId]) -> Result<Samples, Error> {
    let people = sayso.people();
    let mut took = Samples::default();
    for round in before {
        let watch = Stopwatch::start();
        let filter =
            RoundFilter { status: Some(Status::Pending), before: Some(*round), limit: PAGE, ..RoundFilter::default() };
        people.list(filter).await?;
        took.add(watch.elapsed());
    }
    Ok(took)
}

/// How many bytes of memory a waiter takes, with one parked on each of `rounds`; before, with one on each of the first so
/// many, for each of `sizes`, which grow.
pub async fn waiter_bytes(
    sayso: &Sayso,
    rounds: &[RoundId],
    sizes: &[usize],
    progress: Progress<'_>,
) -> Result<Vec<f64>, Error> {
    let desk = Arc::new(sayso.desk(cycle::agent()));
    // What is kept of the file is kept by now, and is not taken for the waiters'.
    for round in rounds.iter().step_by((rounds.len() / 20_000).max(1)) {
        desk.wait(*round, 0, WAIT).await?;
    }
    let me = std::process::id();
    let before = process::resident_bytes(me)?;
    let parked = Arc::new(AtomicUsize::new(0));
    let mut waiters = Vec::with_capacity(rounds.len());
    let mut measured = Vec::new();
    for size in sizes.iter().copied().chain([rounds.len()]) {
        waiters.extend(rounds.iter().take(size).skip(waiters.len()).map(|round| {
            let (desk, parked, round) = (desk.clone(), parked.clone(), *round);
            tokio::spawn(async move {
                parked.fetch_add(1, Ordering::Relaxed);
                // Nobody answers here. A wait that ends before the measurement does begins again.
                while desk.wait(round, 1, WAIT).await.is_ok() {}
            })
        }));
        let after = plateau(me, || parked.load(Ordering::Relaxed) == waiters.len()).await?;
        progress(&format!("{} waiters parked", waiters.len()));
        let taken = usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX);
        measured.push(count(taken) / count(waiters.len()));
    }
    for waiter in &waiters {
        waiter.abort();
    }
    for waiter in waiters {
        // It was told to end.
        let _ = waiter.await;
    }
    Ok(measured)
}

/// The memory of a process once `ready` holds and it no longer grows by a hundredth within a second.
async fn plateau(process: u32, ready: impl Fn() -> bool) -> Result<u64, Error> {
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = process::resident_bytes(process)?;
        if ready() && now <= last + last / 100 {
            return Ok(now);
        }
        last = now;
    }
}

/// Answers `rounds` in their order, `at_once` at a time, for `time`: how many, and how many a second.
pub async fn answers(sayso: &Sayso, rounds: &[RoundId], at_once: usize, time: Duration) -> Result<(usize, f64), Error> {
    let rounds: Arc<[RoundId]> = rounds.into();
    let next = Arc::new(AtomicUsize::new(0));
    let watch = Stopwatch::start();
    let people: Vec<_> = (0..at_once)
        .map(|_| {
            let (sayso, rounds, next) = (sayso.clone(), rounds.clone(), next.clone());
            tokio::spawn(async move {
                let (people, mut answered) = (sayso.people(), 0);
                while watch.elapsed() < time
                    && let Some(round) = rounds.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    people.answer(*round, cycle::answer()?, "answer-1").await?;
                    answered += 1;
                }
                Ok::<_, Error>(answered)
            })
        })
        .collect();
    let mut answered = 0;
    for one in people {
        answered += one.await.map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))??;
    }
    Ok((answered, count(answered) / watch.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_every_round_once_and_is_always_the_same() {
        let rounds: Vec<_> = (0..1000).map(|number| RoundId::from_parts(1, number)).collect();
        let one = shuffled(rounds.clone());
        assert_eq!(one, shuffled(rounds.clone()));
        assert_ne!(one, rounds);
        let mut sorted = one;
        sorted.sort();
        assert_eq!(sorted, rounds);
    }
}
