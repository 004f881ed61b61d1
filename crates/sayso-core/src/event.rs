//! The audit trail: every change that a person or an auditor cares about, chained by hashes. Values never.

use sha2::{Digest as _, Sha256};

use crate::id::{ExecutionId, GrantId, RoundId, TokenId};
use crate::principal::{Channel, Principal};
use crate::time::UnixMs;

/// What happened. The members are the whole payload beside ids, time, principal and channel.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventBody {
    /// A record was started.
    ExecutionCreated,
    /// An execution ended.
    ExecutionState {
        /// The word of its outcome.
        outcome: String,
    },
    /// A question was stored; only now may anybody see it.
    RoundCreated,
    /// An answer was refused and changed nothing.
    ResponseRefused {
        /// The error's code.
        code: String,
    },
    /// A call was approved or denied.
    Approval {
        /// Which call.
        request_key: String,
        /// The verdict.
        approved: bool,
        /// Who decided: a person, or the policy by this rule.
        decided_by: Principal,
        /// Where the policy decided, so that there is no round: the tool, `server:name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// Data was submitted.
    Input {
        /// Who submitted it.
        submitted_by: Principal,
    },
    /// The answer of a round was accepted.
    Answered,
    /// The operation has gone on.
    Resolved,
    /// A round ended with a reason.
    Failed {
        /// The failure's code.
        code: String,
    },
    /// The asker said that a visit to a URL is complete.
    UrlCompleted,
    /// A person allowed calls to come.
    GrantAdded {
        /// Its id.
        grant_id: GrantId,
    },
    /// A grant stands in for a person: a call is about to run.
    GrantUsed {
        /// Its id.
        grant_id: GrantId,
    },
    /// A grant was taken back.
    GrantRevoked {
        /// Its id.
        grant_id: GrantId,
    },
    /// A credential was made.
    TokenAdded {
        /// Its id, never its secret.
        token_id: TokenId,
    },
    /// A credential was revoked.
    TokenRevoked {
        /// Its id.
        token_id: TokenId,
    },
}

impl EventBody {
    /// The word for this kind of event on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ExecutionCreated => "execution_created",
            Self::ExecutionState { .. } => "execution_state",
            Self::RoundCreated => "round_created",
            Self::ResponseRefused { .. } => "response_refused",
            Self::Approval { .. } => "approval",
            Self::Input { .. } => "input",
            Self::Answered => "answered",
            Self::Resolved => "resolved",
            Self::Failed { .. } => "failed",
            Self::UrlCompleted => "url_completed",
            Self::GrantAdded { .. } => "grant_added",
            Self::GrantUsed { .. } => "grant_used",
            Self::GrantRevoked { .. } => "grant_revoked",
            Self::TokenAdded { .. } => "token_added",
            Self::TokenRevoked { .. } => "token_revoked",
        }
    }
}

/// An event before it has its place in the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// When, by the store's clock.
    pub at: UnixMs,
    /// The execution concerned.
    pub execution_id: Option<ExecutionId>,
    /// The round concerned.
    pub round_id: Option<RoundId>,
    /// Who did it.
    pub principal: Option<Principal>,
    /// By which surface.
    pub channel: Option<Channel>,
    /// What happened.
    pub body: EventBody,
}

/// An event in the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// From 1, without gaps.
    pub seq: u64,
    /// The event.
    pub event: NewEvent,
    /// The hash of the event before it; zeros before the first.
    pub previous_hash: [u8; 32],
    /// The hash of this one.
    pub hash: [u8; 32],
}

impl Event {
    /// Gives `event` its place after the event numbered `seq - 1` with `previous_hash`.
    pub fn chained(event: NewEvent, seq: u64, previous_hash: [u8; 32]) -> Self {
        let hash = hash(&event, seq, &previous_hash);
        Self { seq, event, previous_hash, hash }
    }

    /// Whether the hash is that of the contents.
    pub fn is_intact(&self) -> bool {
        self.hash == hash(&self.event, self.seq, &self.previous_hash)
    }
}

/// Length-prefixed, so that no two events share their bytes.
fn hash(event: &NewEvent, seq: u64, previous: &[u8; 32]) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(HASHED_BYTES);
    bytes.extend_from_slice(previous);
    bytes.extend_from_slice(&seq.to_be_bytes());
    bytes.extend_from_slice(&event.at.0.to_be_bytes());
    part(&mut bytes, |to| {
        if let Some(id) = event.execution_id {
            to.extend_from_slice(&id.to_text());
        }
    });
    part(&mut bytes, |to| {
        if let Some(id) = event.round_id {
            to.extend_from_slice(&id.to_text());
        }
    });
    part(&mut bytes, |to| {
        if let Some(Principal { kind, name }) = &event.principal {
            to.extend_from_slice(kind.as_str().as_bytes());
            to.push(b' ');
            to.extend_from_slice(name.as_bytes());
        }
    });
    part(&mut bytes, |to| to.extend_from_slice(event.channel.map(Channel::as_str).unwrap_or_default().as_bytes()));
    // Writing to memory cannot fail, and the payload is a small tagged enum of plain members.
    part(&mut bytes, |to| serde_json::to_writer(to, &event.body).unwrap_or_default());
    Sha256::digest(&bytes).into()
}

/// What most events hash; longer ones take longer.
const HASHED_BYTES: usize = 320;

/// Writes a part behind its length.
fn part(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let length_at = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    let start = bytes.len();
    write(bytes);
    let length = u64::try_from(bytes.len() - start).unwrap_or(u64::MAX);
    if let Some(place) = bytes.get_mut(length_at..start) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}
