//! The only place that reads the time.

use std::sync::atomic::{AtomicI64, Ordering};

use sayso_core::time::UnixMs;

/// Says what time it is, in UTC by type.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> UnixMs;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now(&self) -> UnixMs {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        UnixMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that a test moves by hand, in either direction.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: UnixMs) -> Self {
        Self(AtomicI64::new(now.0))
    }
    /// Moves it by `ms`, backwards if negative.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.0.load(Ordering::SeqCst))
    }
}
