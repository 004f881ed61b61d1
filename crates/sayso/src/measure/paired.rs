//! Runs that take turns with their raw limit: what disturbs the machine disturbs both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_core::error::Error;
use sayso_store::limit::{self, Cycles, Samples};

use super::cycle::{self, Run};
use super::{Effort, median, millis};

/// The runs, and those of the raw limit beside them.
pub struct Pairs {
    raw: Vec<Cycles>,
    runs: Vec<Run>,
}

impl Pairs {
    /// Measures on SQLite: `run` is given a new folder inside `folder` each time, and its limit has `rounds` rounds a
    /// commit.
    pub async fn measure(
        folder: &Path,
        rounds: usize,
        effort: Effort,
        run: impl AsyncFn(&Path) -> Result<Run, Error>,
    ) -> Result<Self, Error> {
        let mut pairs = Self { raw: Vec::new(), runs: Vec::new() };
        for number in 0..effort.runs {
            pairs.raw.push(raw_cycles(folder, rounds, effort.time).await?);
            let data = folder.join(format!("cycles-{rounds}-{number}"));
            pairs.runs.push(run(&data).await?);
            // What stays behind is removed with the folder that it is in.
            let _ = std::fs::remove_dir_all(&data);
        }
        Ok(pairs)
    }

    /// What the raw limit reached: the median of its runs.
    pub fn limit(&self, of: impl Fn(&Cycles) -> f64) -> f64 {
        median_of(&self.raw, of)
    }

    /// What the product reached: the median of its runs.
    pub fn reached(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median_of(&self.runs, of)
    }

    pub(super) fn add(&mut self, raw: Cycles, run: Run) {
        self.raw.push(raw);
        self.runs.push(run);
    }

    pub(super) fn none() -> Self {
        Self { raw: Vec::new(), runs: Vec::new() }
    }
}

pub(super) fn median_of<T>(all: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median(all.iter().map(of).collect())
}

/// How long a raw commit of one row takes on SQLite in `folder`, in milliseconds: the median of its runs' medians.
pub async fn commit_millis(folder: &Path, effort: Effort) -> Result<f64, Error> {
    let mut all: Vec<Samples> = Vec::new();
    for _ in 0..effort.runs {
        all.push(
            off_the_async_threads(folder.to_owned(), move |folder| limit::sqlite_commit(folder, effort.time)).await?,
        );
    }
    Ok(median_of(&all, |commits| millis(commits.percentile(50))))
}

async fn raw_cycles(folder: &Path, rounds: usize, time: Duration) -> Result<Cycles, Error> {
    let bytes = cycle::row_bytes()?;
    off_the_async_threads(folder.to_owned(), move |folder| limit::sqlite_cycles(folder, bytes, rounds, time)).await
}

async fn off_the_async_threads<T: Send + 'static>(
    folder: PathBuf,
    work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(move || work(&folder))
        .await
        .map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))?
}
