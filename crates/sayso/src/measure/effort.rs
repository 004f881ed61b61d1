use std::time::Duration;

/// How long and how often is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How long one run takes.
    pub time: Duration,
    /// How many runs; the median counts. Runs of a figure and of its limit take turns.
    pub runs: usize,
    /// How many rounds are pending where many are.
    pub pending: usize,
    /// How many of them are overdue when deadlines are measured.
    pub overdue: usize,
}

impl Effort {
    /// What the documentation's figures are measured with.
    pub const FULL: Self = Self { time: Duration::from_secs(3), runs: 3, pending: 1_000_000, overdue: 10_000 };
    /// To see that everything works. The figures are rough.
    pub const QUICK: Self = Self { time: Duration::from_millis(300), runs: 1, pending: 100_000, overdue: 1_000 };
}
