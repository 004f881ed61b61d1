//! Measuring what this crate reaches beside what the disk can do: one implementation for `cargo bench -p sayso` and for
//! `sayso bench`. docs/performance.md says what each figure means.

mod cycle;
mod effort;
mod figure;
mod in_process;
mod many;
mod measured;
mod paired;
pub mod pending;
mod postgres;
pub mod process;

pub use cycle::{Run, answer, ask};
pub use effort::Effort;
pub use figure::{Figure, Name, Target};
pub use in_process::in_process;
pub use many::{Many, many};
pub use measured::Measured;
pub use paired::{Pairs, commit_millis};
pub use postgres::postgres;
pub use sayso_store::limit::{Samples, Stopwatch};

/// Hears what is being measured, a line each.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The middle one of several; zero of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// In milliseconds.
pub fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
