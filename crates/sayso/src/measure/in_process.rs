//! The figures of this crate alone, on SQLite: nobody speaks HTTP, everything is durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_core::error::Error;
use sayso_store::limit::{self, Cycles, Samples};

use super::cycle::{self, Run};
use super::{Effort, Figure, Name, Progress, median, millis};
use crate::{Options, Sayso};

/// Figures and the raw limits that were measured beside them, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The figures.
    pub figures: BTreeMap<Name, Figure>,
    /// The raw limits: name, value, unit.
    pub limits: BTreeMap<&'static str, (f64, &'static str)>,
}

impl Measured {
    /// Takes over what else was measured.
    pub fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.limits.extend(other.limits);
    }
    /// Notes a raw limit.
    pub fn limit(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.limits.insert(name, (value, unit));
    }
}

/// The wanted ones of the figures `in_process_*`, `sequential_in_process`, `wake_in_process`, `wake_64_p99` and
/// `cpu_in_process`, in new folders inside `folder`.
pub async fn in_process(
    folder: &Path,
    wanted: &[Name],
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let wants = |names: &[Name]| names.iter().any(|name| wanted.contains(name));
    let mut measured = Measured::default();
    if wants(&[Name::SequentialInProcess, Name::WakeInProcess]) {
        progress("in process, SQLite, 1 waiter at a time, beside S1 and single commits");
        let pairs = pairs(folder, 1, effort).await?;
        let commit = median_of(&commits(folder, effort).await?, |commits| millis(commits.percentile(50)));
        let s1 = pairs.limit(|raw| millis(raw.took.percentile(50)));
        measured.limit("S1", pairs.limit(|raw| raw.per_second), "cycles/s");
        measured.limit("S1_p50", s1, "ms");
        measured.limit("commit_p50", commit, "ms");
        let cycle = pairs.reached(|run| millis(run.cycle.percentile(50)));
        let wake = pairs.reached(|run| millis(run.wake.percentile(50)));
        measured.figures.insert(Name::SequentialInProcess, Name::SequentialInProcess.against(cycle, s1));
        measured.figures.insert(Name::WakeInProcess, Name::WakeInProcess.against(wake, commit));
    }
    if wants(&[Name::InProcess64, Name::Wake64P99, Name::CpuInProcess]) {
        progress("in process, SQLite, 64 waiters, beside S64");
        let pairs = pairs(folder, 64, effort).await?;
        let s64 = pairs.limit(|raw| raw.per_second);
        measured.limit("S64", s64, "cycles/s");
        let figures = &mut measured.figures;
        figures.insert(Name::InProcess64, Name::InProcess64.against(pairs.reached(Run::per_second), s64));
        let wake = pairs.reached(|run| millis(run.wake.percentile(99)));
        figures.insert(Name::Wake64P99, Name::Wake64P99.figure(wake));
        figures.insert(Name::CpuInProcess, Name::CpuInProcess.figure(pairs.reached(Run::cpu_micros)));
    }
    if wants(&[Name::InProcess512]) {
        progress("in process, SQLite, 512 waiters, beside S512");
        let pairs = pairs(folder, 512, effort).await?;
        let s512 = pairs.limit(|raw| raw.per_second);
        measured.limit("S512", s512, "cycles/s");
        let figure = Name::InProcess512.against(pairs.reached(Run::per_second), s512);
        measured.figures.insert(Name::InProcess512, figure);
    }
    measured.figures.retain(|name, _| wanted.contains(name));
    Ok(measured)
}

/// Runs that took turns with their raw limit.
struct Pairs {
    raw: Vec<Cycles>,
    runs: Vec<Run>,
}

impl Pairs {
    fn limit(&self, of: impl Fn(&Cycles) -> f64) -> f64 {
        median_of(&self.raw, of)
    }
    fn reached(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median_of(&self.runs, of)
    }
}

fn median_of<T>(all: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median(all.iter().map(of).collect())
}

async fn pairs(folder: &Path, waiters: usize, effort: Effort) -> Result<Pairs, Error> {
    let (mut raw, mut runs) = (Vec::new(), Vec::new());
    for number in 0..effort.runs {
        raw.push(raw_cycles(folder, waiters, effort.time).await?);
        let data = folder.join(format!("waiters-{waiters}-{number}"));
        let sayso = Sayso::open(Options::at(&data)).await?;
        runs.push(cycle::run(&sayso, &sayso, waiters, effort.time).await?);
        drop(sayso);
        // What stays behind is removed with the folder that it is in.
        let _ = std::fs::remove_dir_all(&data);
    }
    Ok(Pairs { raw, runs })
}

/// Raw cycles on SQLite, off the async threads.
async fn raw_cycles(folder: &Path, rounds: usize, time: Duration) -> Result<Cycles, Error> {
    let (folder, bytes) = (folder.to_owned(), cycle::row_bytes()?);
    raw(folder, move |folder| limit::sqlite_cycles(folder, bytes, rounds, time)).await
}

async fn commits(folder: &Path, effort: Effort) -> Result<Vec<Samples>, Error> {
    let mut all = Vec::new();
    for _ in 0..effort.runs {
        all.push(raw(folder.to_owned(), move |folder| limit::sqlite_commit(folder, effort.time)).await?);
    }
    Ok(all)
}

async fn raw<T: Send + 'static>(
    folder: PathBuf,
    work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(move || work(&folder))
        .await
        .map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))?
}
