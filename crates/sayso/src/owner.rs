//! A desk as a worker: one lease for everything it holds, renewed by one write while its process lives.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_core::limits::LEASE_RENEW_MS;
use sayso_core::principal::Principal;
use sayso_core::round::Fence;

use crate::ids;
use crate::open::Inner;

/// Names the workers of this process.
pub(crate) struct Owners {
    process: u128,
    next: AtomicU64,
    /// Collects for whoever asks this process to: what is collected is held for no longer than its transaction, and each
    /// name is stored.
    pub(crate) collector: Owner,
}

impl Owners {
    pub(crate) fn new() -> Result<Self, Error> {
        let process = ids::random()?;
        Ok(Self { process, next: AtomicU64::new(1), collector: Owner::embedded(process, 0) })
    }

    pub(crate) fn another(&self) -> Owner {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        Owner::embedded(self.process, number)
    }
}

/// A worker: one of this process, or one that is reached over HTTP.
pub(crate) struct Owner {
    name: String,
    /// Whether its lease is being renewed; of a remote worker that is never for this process to do.
    beating: AtomicBool,
}

impl Owner {
    fn embedded(process: u128, number: u64) -> Self {
        Self { name: format!("own_{process:032x}_{number}"), beating: AtomicBool::new(false) }
    }

    /// A new remote worker of `caller`'s.
    pub(crate) fn new_remote(caller: &Principal) -> Result<Self, Error> {
        let name = format!("{}{:032x}", remote_prefix(caller), ids::random()?);
        Ok(Self { name, beating: AtomicBool::new(true) })
    }

    /// The remote worker of this name, which must be `caller`'s own: a name is not a capability.
    pub(crate) fn remote(caller: &Principal, name: &str) -> Result<Self, Error> {
        let number = name.strip_prefix(&remote_prefix(caller));
        if !number.is_some_and(|number| number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            return Err(Error::conflict("the worker is not one of this credential's"));
        }
        Ok(Self { name: name.to_owned(), beating: AtomicBool::new(true) })
    }

    /// The worker's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A fence of this worker with a fresh token.
    pub(crate) fn fence(&self) -> Result<Fence, Error> {
        Ok(Fence { owner: self.name.clone(), token: ids::fence_token()? })
    }

    /// The fence of this worker for one claim of a round, the same for the same key.
    pub(crate) fn fence_for(&self, round: RoundId, key: &str) -> Fence {
        Fence { owner: self.name.clone(), token: ids::token_from(&[&self.name, &round.to_string(), key]) }
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

/// What the names of a caller's remote workers begin with. It holds the caller, so that who may use a name can be told
/// from the name alone, and no table of workers has to be kept.
fn remote_prefix(caller: &Principal) -> String {
    let tag = ids::token_from(&[&caller.to_string()]).0 >> 64;
    format!("own_{tag:016x}_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_worker_belongs_to_the_credential_it_was_given_to() {
        let (ada, eve) = (Principal::agent("ada"), Principal::agent("eve"));
        let name = Owner::new_remote(&ada).unwrap().name;
        assert!(Owner::remote(&ada, &name).is_ok());
        assert!(matches!(Owner::remote(&eve, &name), Err(Error::Conflict { .. })));
        let embedded = Owners::new().unwrap().another().name;
        for other in [embedded.as_str(), "", "own_", &name[..name.len() - 1], &format!("{name}0")] {
            assert!(Owner::remote(&ada, other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_claim_has_the_same_fence_for_the_same_key_alone() {
        let owner = Owner::new_remote(&Principal::agent("ada")).unwrap();
        let round = |n| RoundId::from_parts(1, n);
        assert_eq!(owner.fence_for(round(1), "k"), owner.fence_for(round(1), "k"));
        assert_ne!(owner.fence_for(round(1), "k"), owner.fence_for(round(1), "l"));
        assert_ne!(owner.fence_for(round(1), "k"), owner.fence_for(round(2), "k"));
    }
}
