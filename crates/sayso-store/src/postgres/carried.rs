//! A round's row as a notice carries it, so that whoever waits for it in another process need not read it. Whoever may
//! connect to a database can hear its notices and send some: a row travels sealed, under a key that is kept beside the
//! rows. What cannot be opened is no row of ours, and the row that it is about is read.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{Answered, Delivery, Digest, Facts, Failure, Fence, OperationKind, Round, Status};
use sayso_core::time::UnixMs;
use sayso_core::wire::LeaseToken;
use serde::{Deserialize, Serialize};

const NONCE_BYTES: usize = 24;
/// What is sealed as something else does not open as a row.
const SEALED_AS: &[u8] = b"sayso round in a notice 1";

/// What rows are sealed with. The key is never printed.
#[derive(Clone)]
pub(super) struct Seal(Arc<XChaCha20Poly1305>);

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(Arc::new(XChaCha20Poly1305::new(&Key::from(key))))
    }

    /// The row as a text without commas. None where the machine gives no random numbers: then it is not carried.
    pub(super) fn seal(&self, row: &Round) -> Option<String> {
        let plain = serde_json::to_vec(&Carried::from(row.clone())).ok()?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let sealed = self.0.encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: SEALED_AS }).ok()?;
        Some(BASE64.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// The row that somebody sealed who has the same key.
    pub(super) fn open(&self, text: &str) -> Option<Round> {
        let sealed = BASE64.decode(text).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let plain = self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: SEALED_AS }).ok()?;
        serde_json::from_slice::<Carried>(&plain).map(Round::from).ok()
    }
}

/// A row as it is sealed. Another version of it gets another [`SEALED_AS`].
#[derive(Serialize, Deserialize)]
struct Carried {
    id: RoundId,
    execution_id: ExecutionId,
    logical_operation_id: String,
    server: String,
    operation_kind: OperationKind,
    operation_name: String,
    asked_by: Principal,
    delivery: Delivery,
    index: u32,
    limit: u32,
    created_at: UnixMs,
    deadline: Option<UnixMs>,
    digest: Digest,
    has_approval: bool,
    status: Status,
    rev: u32,
    fence: Option<(String, LeaseToken)>,
    delivery_attempts: u32,
    answer_key: Option<(String, [u8; 32])>,
    answered: Option<(Principal, Channel, UnixMs, Option<Action>)>,
    collect_key: Option<String>,
    delivery_started_at: Option<UnixMs>,
    delivered_at: Option<UnixMs>,
    finished_at: Option<UnixMs>,
    url_completed_at: Option<UnixMs>,
    failure: Option<Failure>,
}

impl From<Round> for Carried {
    fn from(row: Round) -> Self {
        let Facts {
            id,
            execution_id,
            logical_operation_id,
            server,
            operation_kind,
            operation_name,
            asked_by,
            delivery,
            index,
            limit,
            created_at,
            deadline,
            digest,
            has_approval,
        } = Arc::unwrap_or_clone(row.facts);
        Self {
            id,
            execution_id,
            logical_operation_id,
            server,
            operation_kind,
            operation_name,
            asked_by,
            delivery,
            index,
            limit,
            created_at,
            deadline,
            digest,
            has_approval,
            status: row.status,
            rev: row.rev,
            fence: row.fence.map(|Fence { owner, token }| (owner, LeaseToken(token))),
            delivery_attempts: row.delivery_attempts,
            answer_key: row.answer_key,
            answered: row.answered.map(|Answered { principal, channel, at, action }| (principal, channel, at, action)),
            collect_key: row.collect_key,
            delivery_started_at: row.delivery_started_at,
            delivered_at: row.delivered_at,
            finished_at: row.finished_at,
            url_completed_at: row.url_completed_at,
            failure: row.failure,
        }
    }
}

impl From<Carried> for Round {
    fn from(row: Carried) -> Self {
        let facts = Facts {
            id: row.id,
            execution_id: row.execution_id,
            logical_operation_id: row.logical_operation_id,
            server: row.server,
            operation_kind: row.operation_kind,
            operation_name: row.operation_name,
            asked_by: row.asked_by,
            delivery: row.delivery,
            index: row.index,
            limit: row.limit,
            created_at: row.created_at,
            deadline: row.deadline,
            digest: row.digest,
            has_approval: row.has_approval,
        };
        Self {
            facts: Arc::new(facts),
            status: row.status,
            rev: row.rev,
            fence: row.fence.map(|(owner, LeaseToken(token))| Fence { owner, token }),
            delivery_attempts: row.delivery_attempts,
            answer_key: row.answer_key,
            answered: row.answered.map(|(principal, channel, at, action)| Answered { principal, channel, at, action }),
            collect_key: row.collect_key,
            delivery_started_at: row.delivery_started_at,
            delivered_at: row.delivered_at,
            finished_at: row.finished_at,
            url_completed_at: row.url_completed_at,
            failure: row.failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::answered;

    #[test]
    fn a_row_is_carried_whole_whatever_of_it_is_there() {
        let seal = Seal::new([1; 32]);
        let whole = answered("main");
        let mut bare = Round {
            fence: None,
            answer_key: None,
            answered: None,
            collect_key: None,
            delivery_started_at: None,
            delivered_at: None,
            finished_at: None,
            url_completed_at: None,
            failure: None,
            ..whole.clone()
        };
        Arc::make_mut(&mut bare.facts).deadline = None;
        for row in [whole, bare] {
            assert_eq!(seal.open(&seal.seal(&row).unwrap()), Some(row));
        }
    }

    #[test]
    fn nothing_else_opens_as_a_row() {
        let seal = Seal::new([1; 32]);
        for text in ["", "row", "AAAA", "not base64!", &BASE64.encode([0; 80])] {
            assert_eq!(seal.open(text), None);
        }
        let nonce = [0; NONCE_BYTES];
        let sealed = |plain: &[u8], aad: &[u8]| {
            let sealed = seal.0.encrypt(&XNonce::from(nonce), Payload { msg: plain, aad }).unwrap();
            BASE64.encode([nonce.as_slice(), &sealed].concat())
        };
        let plain = serde_json::to_vec(&Carried::from(answered("main"))).unwrap();
        assert!(seal.open(&sealed(&plain, SEALED_AS)).is_some());
        assert_eq!(seal.open(&sealed(&plain, b"something else")), None);
        assert_eq!(seal.open(&sealed(b"{}", SEALED_AS)), None);
    }
}
