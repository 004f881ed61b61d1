//! The figures of this crate alone, on SQLite: nobody speaks HTTP, everything is durable.

use std::path::Path;

use sayso_core::error::Error;

use super::cycle::{self, Run};
use super::paired::{Pairs, commit_millis};
use super::{Effort, Measured, Name, Progress, millis};
use crate::{Options, Sayso};

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
        let commit = commit_millis(folder, effort).await?;
        let s1 = pairs.limit(|raw| millis(raw.took.percentile(50)));
        measured.limit("S1", pairs.limit(|raw| raw.per_second), "cycles/s");
        measured.limit("S1_p50", s1, "ms");
        measured.limit("commit_p50", commit, "ms");
        measured.against(Name::SequentialInProcess, pairs.reached(|run| millis(run.cycle.percentile(50))), s1);
        measured.against(Name::WakeInProcess, pairs.reached(|run| millis(run.wake.percentile(50))), commit);
        measured.also("in_process_1", pairs.reached(Run::per_second), "cycles/s");
        measured.also("wake_in_process_p99", pairs.reached(|run| millis(run.wake.percentile(99))), "ms");
    }
    if wants(&[Name::InProcess64, Name::Wake64P99, Name::CpuInProcess]) {
        progress("in process, SQLite, 64 waiters, beside S64");
        let pairs = pairs(folder, 64, effort).await?;
        let s64 = pairs.limit(|raw| raw.per_second);
        measured.limit("S64", s64, "cycles/s");
        measured.against(Name::InProcess64, pairs.reached(Run::per_second), s64);
        measured.figure(Name::Wake64P99, pairs.reached(|run| millis(run.wake.percentile(99))));
        measured.figure(Name::CpuInProcess, pairs.reached(Run::cpu_micros));
        measured.also("wake_64_p50", pairs.reached(|run| millis(run.wake.percentile(50))), "ms");
    }
    if wants(&[Name::InProcess512]) {
        progress("in process, SQLite, 512 waiters, beside S512");
        let pairs = pairs(folder, 512, effort).await?;
        let s512 = pairs.limit(|raw| raw.per_second);
        measured.limit("S512", s512, "cycles/s");
        measured.against(Name::InProcess512, pairs.reached(Run::per_second), s512);
    }
    measured.figures.retain(|name, _| wanted.contains(name));
    Ok(measured)
}

async fn pairs(folder: &Path, waiters: usize, effort: Effort) -> Result<Pairs, Error> {
    Pairs::measure(folder, waiters, effort, async |data| {
        let sayso = Sayso::open(Options::at(data)).await?;
        cycle::run(&sayso, &sayso, waiters, effort.time).await
    })
    .await
}
