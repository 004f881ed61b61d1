//! This process as a worker: one lease for everything it holds, renewed by one write while it lives.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::limits::LEASE_RENEW_MS;
use sayso_core::round::Fence;

use crate::ids;
use crate::open::Inner;

pub(crate) struct Owner {
    name: String,
    beating: AtomicBool,
}

impl Owner {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { name: format!("own_{:032x}", ids::random()?), beating: AtomicBool::new(false) })
    }

    /// A fence of this process with a fresh token.
    pub(crate) fn fence(&self) -> Result<Fence, Error> {
        Ok(Fence { owner: self.name.clone(), token: ids::fence_token()? })
    }

    /// Renews the lease from now on, until the store is closed.
    pub(crate) fn keep_alive(&self, inner: Weak<Inner>) {
        if self.beating.swap(true, Ordering::SeqCst) {
            return;
        }
        let owner = self.name.clone();
        tokio::spawn(async move {
            let mut beat = tokio::time::interval(Duration::from_millis(LEASE_RENEW_MS));
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            beat.tick().await;
            loop {
                beat.tick().await;
                let Some(inner) = inner.upgrade() else { return };
                // A renewal that fails is tried again at the next beat: an owner may renew late.
                let _ = inner.store.commit(vec![Command::RenewOwner { owner: owner.clone() }]).await;
            }
        });
    }

    /// Gives the lease back; for a process that has settled what it held.
    pub(crate) fn release(&self) -> Command {
        Command::ReleaseOwner { owner: self.name.clone() }
    }
}
