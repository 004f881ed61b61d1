//! Tokens that were read a moment ago. A busy server sees the same few with every request, and reading them is a good part
//! of what a request takes. Nobody notices: whoever revokes a token waits until it cannot be believed any more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_core::limits::TOKEN_BELIEVED_MS;
use sayso_core::principal::Principal;
use sayso_store::Recent;
use tokio::time::Instant;

/// Tokens that are kept; of those that are not, each is read.
const TOKENS_MAX: usize = 1_024;

/// How long what was read is believed.
pub(crate) const BELIEVED: Duration = Duration::from_millis(TOKEN_BELIEVED_MS);

/// Whom the tokens speak for that were read a moment ago, by the hash of their secret.
#[derive(Default)]
pub(crate) struct Believed(Mutex<Tokens>);

type Tokens = Recent<[u8; 32], (Principal, Instant), TOKENS_MAX>;

impl Believed {
    fn lock(&self) -> MutexGuard<'_, Tokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom the token speaks for, where it was read a moment ago.
    pub(crate) fn principal(&self, hash: &[u8; 32]) -> Option<Principal> {
        let now = Instant::now();
        self.lock().get(hash).filter(|(_, until)| now < *until).map(|(principal, _)| principal.clone())
    }

    /// Keeps what a read found that began at `since`.
    pub(crate) fn keep(&self, hash: [u8; 32], principal: Principal, since: Instant) {
        self.lock().put(hash, (principal, since + BELIEVED));
    }

    /// A token was revoked.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }
}
