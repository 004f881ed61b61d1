//! A desk as a worker: one lease for everything it holds, renewed by one write while its process lives.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::limits::LEASE_RENEW_MS;
use sayso_core::round::Fence;

use crate::ids;
use crate::open::Inner;

/// Names the workers of this process.
pub(crate) struct Owners {
    process: u128,
    next: AtomicU64,
}

impl Owners {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { process: ids::random()?, next: AtomicU64::new(1) })
    }

    pub(crate) fn another(&self) -> Owner {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        Owner { name: format!("own_{:032x}_{number}", self.process), beating: AtomicBool::new(false) }
    }
}

/// One worker of this process.
pub(crate) struct Owner {
    name: String,
    beating: AtomicBool,
}

impl Owner {
    /// The worker's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A fence of this worker with a fresh token.
    pub(crate) fn fence(&self) -> Result<Fence, Error> {
        Ok(Fence { owner: self.name.clone(), token: ids::fence_token()? })
    }

    /// Renews the lease from now on, for as long as the store is open and somebody has this worker's desk.
    pub(crate) fn keep_alive(self: &Arc<Self>, inner: Weak<Inner>) {
        if self.beating.swap(true, Ordering::SeqCst) {
            return;
        }
        let owner = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut beat = tokio::time::interval(Duration::from_millis(LEASE_RENEW_MS));
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            beat.tick().await;
            loop {
                beat.tick().await;
                let (Some(inner), Some(owner)) = (inner.upgrade(), owner.upgrade()) else { return };
                if !owner.beating.load(Ordering::SeqCst) {
                    return;
                }
                // A renewal that fails is tried again at the next beat: an owner may renew late.
                let _ = inner.store.commit(vec![Command::RenewOwner { owner: owner.name.clone() }]).await;
            }
        });
    }

    /// Gives the lease back; for a worker that has settled what it held. It is not renewed again.
    pub(crate) fn release(&self) -> Command {
        self.beating.store(false, Ordering::SeqCst);
        Command::ReleaseOwner { owner: self.name.clone() }
    }
}
