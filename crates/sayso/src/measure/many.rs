//! The figures of the library alone that need many pending rounds.

use std::path::Path;

use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_store::clock::{Clock as _, SystemClock};
use sayso_store::limit::Stopwatch;

use super::pending::{self, Deadlines};
use super::{Effort, Measured, Name, Progress, median, millis};
use crate::{Options, Sayso};

const DAY_MS: i64 = 24 * 3600 * 1000;
/// A list among so many is what a list among all is held against.
const FEW: usize = 1_000;
/// Pages that are listed.
const PAGES: usize = 400;
/// Waiters that are measured beside those on all rounds, and the names of what they take.
const SIZES: [(usize, &str); 2] = [(10_000, "waiter_bytes_10000"), (100_000, "waiter_bytes_100000")];

/// The wanted ones of `waiter_bytes`, `list_latency` and `random_answers`, in a new folder inside `folder`.
pub async fn many(folder: &Path, wanted: &[Name], effort: Effort, progress: Progress<'_>) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    let wants = |name| wanted.contains(&name);
    if ![Name::WaiterBytes, Name::ListLatency, Name::RandomAnswers].into_iter().any(wants) {
        return Ok(measured);
    }
    let data = folder.join("many");
    let sayso = Sayso::open(Options::at(&data)).await?;
    let mut many = Many::make(&sayso, effort, progress).await?;
    if wants(Name::ListLatency) {
        progress("listing pages");
        many.list(&sayso, &mut measured).await?;
    }
    if wants(Name::WaiterBytes) {
        progress("parking a waiter on each pending round");
        many.park(&sayso, &mut measured, progress).await?;
    }
    if wants(Name::RandomAnswers) {
        progress("answers in random order, 64 at a time");
        many.answer(&sayso, effort, &mut measured).await?;
    }
    drop(sayso);
    // What stays behind is removed with the folder that it is in.
    let _ = std::fs::remove_dir_all(&data);
    Ok(measured)
}

/// Pending rounds of a store.
pub struct Many {
    /// In no order; those that are answered are taken from the end.
    pub rounds: Vec<RoundId>,
    /// How long a page took while there were few, in milliseconds.
    few: f64,
}

impl Many {
    /// Makes as many rounds as `effort` says; a tenth of them have a deadline a day ahead.
    pub async fn make(sayso: &Sayso, effort: Effort, progress: Progress<'_>) -> Result<Self, Error> {
        let tomorrow = Deadlines::Some(SystemClock.now().plus_ms(DAY_MS));
        let mut rounds = pending::make(sayso, FEW, tomorrow, &|_| {}).await?;
        let pages: Vec<_> = pending::shuffled(rounds.clone()).into_iter().take(PAGES).collect();
        let few = millis(pending::list_latency(sayso, &pages).await?.percentile(50));
        let watch = Stopwatch::start();
        rounds.extend(pending::make(sayso, effort.pending.saturating_sub(FEW), tomorrow, progress).await?);
        progress(&format!("{} rounds are pending, made in {} s", rounds.len(), watch.elapsed().as_secs()));
        Ok(Self { rounds: pending::shuffled(rounds), few })
    }

    /// Takes `count` rounds that nobody has answered, in random order.
    pub fn take(&mut self, count: usize) -> Vec<RoundId> {
        self.rounds.split_off(self.rounds.len().saturating_sub(count))
    }

    /// `list_latency`.
    pub async fn list(&self, sayso: &Sayso, measured: &mut Measured) -> Result<(), Error> {
        let pages: Vec<_> = self.rounds.iter().copied().take(PAGES).collect();
        let took = pending::list_latency(sayso, &pages).await?;
        measured.against(Name::ListLatency, millis(took.percentile(50)), self.few);
        Ok(())
    }

    /// `waiter_bytes`, and those of fewer waiters.
    pub async fn park(&self, sayso: &Sayso, measured: &mut Measured, progress: Progress<'_>) -> Result<(), Error> {
        let sizes = SIZES.map(|(size, _)| size);
        let bytes = pending::waiter_bytes(sayso, &self.rounds, &sizes, progress).await?;
        for ((_, name), bytes) in SIZES.into_iter().zip(&bytes) {
            measured.also(name, *bytes, "bytes");
        }
        measured.figure(Name::WaiterBytes, bytes.last().copied().unwrap_or_default());
        Ok(())
    }

    /// `random_answers`.
    pub async fn answer(&mut self, sayso: &Sayso, effort: Effort, measured: &mut Measured) -> Result<(), Error> {
        let mut all = Vec::new();
        for _ in 0..effort.runs {
            // The order is that of the end of the list.
            let enough = self.rounds.len() / 4;
            let rounds = self.take(enough);
            let (_, per_second) = pending::answers(sayso, &rounds, 64, effort.time).await?;
            all.push(per_second);
        }
        measured.figure(Name::RandomAnswers, median(all));
        Ok(())
    }
}
