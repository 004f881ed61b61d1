use std::future::Future;
use std::sync::Arc;

use sayso::Sayso;
use sayso::gate::Gates;
use tokio::sync::watch;

use crate::options::ServeOptions;

/// What every handler has: the rounds, how they are reached, and whether the server is stopping.
pub(crate) struct App {
    pub(crate) sayso: Sayso,
    pub(crate) gates: Gates,
    pub(crate) options: ServeOptions,
    pub(crate) stopping: Stopping,
}

pub(crate) type Shared = Arc<App>;

/// Whether the server has been asked to stop. Whoever holds a request open listens to it.
#[derive(Clone)]
pub(crate) struct Stopping(pub(crate) watch::Receiver<bool>);

impl Stopping {
    /// For a router whose owner stops it by other means.
    pub(crate) fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Returns once the server is stopping.
    pub(crate) async fn requested(&mut self) {
        if self.0.wait_for(|stopping| *stopping).await.is_err() {
            // Whoever could have said so is gone: nobody will.
            std::future::pending::<()>().await;
        }
    }

    /// The outcome of `wait`, or none where the server stops first.
    pub(crate) async fn or<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        let mut stopping = self.clone();
        tokio::select! {
            biased;
            outcome = wait => Some(outcome),
            () = stopping.requested() => None,
        }
    }
}
