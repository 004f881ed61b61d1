//! The figures on PostgreSQL, in a schema of their own.

use sayso_core::error::Error;
use sayso_store::limit::{self, ScratchSchema};

use super::cycle::{self, Run};
use super::paired::{Pairs, median_of};
use super::{Effort, Measured, Name, Progress, millis};
use crate::{Options, Sayso};

/// The wanted ones of `postgres_64` and `postgres_wake`. The schema is empty again afterwards.
pub async fn postgres(
    schema: &ScratchSchema,
    wanted: &[Name],
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let (url, bytes) = (schema.url(), cycle::row_bytes()?);
    let mut measured = Measured::default();
    if wanted.contains(&Name::Postgres64) {
        progress("in process, PostgreSQL, 64 waiters, beside P64 and PB");
        let (mut pairs, mut grouped) = (Pairs::none(), Vec::new());
        for _ in 0..effort.runs {
            let raw = limit::postgres_cycles(&url, bytes, 64, effort.time).await?;
            grouped.push(limit::postgres_cycles_grouped(&url, bytes, 8, 64, effort.time).await?);
            schema.clear().await?;
            let sayso = Sayso::open(Options::database(&url)).await?;
            pairs.add(raw, cycle::run(&sayso, &sayso, 64, effort.time).await?);
            drop(sayso);
            schema.clear().await?;
        }
        let p64 = pairs.limit(|raw| raw.per_second);
        measured.limit("P64", p64, "cycles/s");
        measured.limit("PB", median_of(&grouped, |raw| raw.per_second), "cycles/s");
        measured.against(Name::Postgres64, pairs.reached(Run::per_second), p64);
    }
    if wanted.contains(&Name::PostgresWake) {
        progress("PostgreSQL, an answer in one store wakes a waiter in another, beside insert and NOTIFY");
        let (mut raw, mut runs, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.runs {
            raw.push(limit::postgres_notify(&url, effort.time).await?);
            schema.clear().await?;
            let waiting = Sayso::open(Options::database(&url)).await?;
            let answering = Sayso::open(Options::database(&url)).await?;
            runs.push(cycle::run(&waiting, &answering, 1, effort.time).await?);
            drop((waiting, answering));
            schema.clear().await?;
            alone.push(limit::postgres_cycles(&url, bytes, 1, effort.time).await?);
            schema.clear().await?;
        }
        measured.limit("P1", median_of(&alone, |raw| raw.per_second), "cycles/s");
        measured.also("postgres_1", median_of(&runs, Run::per_second), "cycles/s");
        measured.also("postgres_wake_p99", median_of(&runs, |run| millis(run.wake.percentile(99))), "ms");
        let notify = median_of(&raw, |samples| millis(samples.percentile(50)));
        measured.limit("notify_p50", notify, "ms");
        let wake = median_of(&runs, |run| millis(run.wake.percentile(50)));
        measured.against(Name::PostgresWake, wake, notify);
    }
    Ok(measured)
}
