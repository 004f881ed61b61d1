//! The worker's word that it lives.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sayso::wire::Renewed;
use sayso_core::error::Error;
use tokio::time::{MissedTickBehavior, interval};

use super::call::Call;
use super::{Client, Inner};

impl Client {
    /// Renews the lease from now on, for as long as somebody has this client.
    pub(super) fn keep_alive(&self) {
        if self.inner.beating.swap(true, Ordering::SeqCst) {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let mut beat = interval(self.inner.renew_every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::spawn(async move {
            beat.tick().await;
            loop {
                beat.tick().await;
                let Some(inner) = inner.upgrade() else { return };
                if !inner.beating.load(Ordering::SeqCst) {
                    return;
                }
                // A renewal that fails is tried again at the next beat: an owner may renew late.
                let _ = inner.renew().await;
            }
        });
    }

    /// Gives the lease back; it is not renewed again.
    pub(super) async fn release(&self) -> Result<(), Error> {
        self.inner.beating.store(false, Ordering::SeqCst);
        self.inner.link.call(Call::post(format!("/v1/workers/{}/release", self.owner_id()))).await
    }
}

impl Inner {
    async fn renew(&self) -> Result<Renewed, Error> {
        self.link.call(Call::post(format!("/v1/workers/{}/renew", self.worker.owner_id))).await
    }
}
