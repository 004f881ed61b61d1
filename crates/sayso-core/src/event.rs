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
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(seq.to_be_bytes());
    hasher.update(event.at.0.to_be_bytes());
    let text = |part: Option<String>| part.unwrap_or_default();
    for part in [
        text(event.execution_id.map(|id| id.to_string())),
        text(event.round_id.map(|id| id.to_string())),
        text(event.principal.as_ref().map(Principal::to_string)),
        text(event.channel.map(|channel| channel.as_str().to_owned())),
        // The payload is a small tagged enum of plain members: writing it cannot fail.
        serde_json::to_string(&event.body).unwrap_or_default(),
    ] {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}
