//! Waiting awake. Whoever sleeps has to be woken by another thread, which takes some tens of microseconds: as long as a
//! third of what a quick disk takes.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// So long at most. What takes longer does so whether or not somebody has to be woken.
const AWAKE_FOR: Duration = Duration::from_micros(500);

/// Those who wait for the same thing.
#[derive(Clone, Default)]
pub(super) struct Waiters(Arc<AtomicUsize>);

impl Waiters {
    /// How many wait now.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits for `answer`. Who waits alone stays awake for a moment; whatever else can run is let through. Where several
    /// wait there is enough to do, and they sleep.
    pub(super) async fn wait<F: Future>(&self, answer: F) -> F::Output {
        let _counted = Counted::among(&self.0);
        let mut answer = pin!(answer);
        let until = Instant::now() + AWAKE_FOR;
        while self.count() == 1 && Instant::now() < until {
            let looked = std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
            if let Poll::Ready(answered) = looked {
                return answered;
            }
            tokio::task::yield_now().await;
        }
        answer.await
    }
}

/// One of those who wait.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn among(all: &'a AtomicUsize) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;
    use tokio::sync::oneshot;

    /// How often a future that never ends is looked at: at first, and when nobody stays awake for it any more.
    async fn looks(waiters: &Waiters) -> (usize, usize) {
        let looks = AtomicUsize::new(0);
        let never = std::future::poll_fn(|_| {
            looks.fetch_add(1, Ordering::SeqCst);
            Poll::<()>::Pending
        });
        let mut wait = pin!(waiters.wait(never));
        assert!(tokio::time::timeout(AWAKE_FOR * 4, wait.as_mut()).await.is_err());
        let first = looks.swap(0, Ordering::SeqCst);
        assert!(tokio::time::timeout(AWAKE_FOR * 20, wait).await.is_err());
        (first, looks.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn who_waits_alone_stays_awake_and_lets_others_through() {
        let waiters = Waiters::default();
        let (answer, answered) = oneshot::channel();
        // On one thread nobody could answer if the waiting did not let them.
        tokio::spawn(async { answer.send(7) });
        assert_eq!(waiters.wait(answered).await, Ok(7));
        // Who sleeps is looked at where the waiting begins and where its time is over.
        let (first, later) = looks(&waiters).await;
        assert!(first > 2 && later <= 2, "{first}, {later}");
        assert_eq!(waiters.count(), 0);
    }

    #[tokio::test]
    async fn several_sleep() {
        let waiters = Waiters::default();
        let other = waiters.clone();
        let (answer, answered) = oneshot::channel::<()>();
        let sleeping = tokio::spawn(async move { other.wait(answered).await });
        while waiters.count() == 0 {
            tokio::task::yield_now().await;
        }
        let (first, later) = looks(&waiters).await;
        assert!(first <= 2 && later <= 2, "{first}, {later}");
        drop(answer);
        assert!(sleeping.await.expect("ends").is_err());
    }
}
