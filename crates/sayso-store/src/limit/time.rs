//! Taking time. Elapsed time is measured here only, and nothing that is stored depends on it.

use std::time::{Duration, Instant};

/// Measures elapsed time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
    /// How long ago it was started.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// How long things of one kind took.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Takes one more.
    pub fn add(&mut self, took: Duration) {
        self.0.push(took);
    }
    /// Takes those of another run.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// What `percent` of them did not exceed; zero where there are none.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = sorted.len().saturating_sub(1) * percent.min(100) / 100;
        sorted.get(at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_in_order_of_size() {
        let mut samples = Samples::default();
        assert_eq!(samples.percentile(50), Duration::ZERO);
        for ms in (1..=101).rev() {
            samples.add(Duration::from_millis(ms));
        }
        assert_eq!(samples.percentile(0), Duration::from_millis(1));
        assert_eq!(samples.percentile(50), Duration::from_millis(51));
        assert_eq!(samples.percentile(99), Duration::from_millis(100));
        assert_eq!(samples.percentile(100), Duration::from_millis(101));
    }
}
