//! What a worker over HTTP sends and receives: names, leases, claims and what it knows of a delivery.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{NewRound, Round};
use crate::execution::ExecutionKind;
use crate::round::{self, Fence, FenceToken};
use crate::time::UnixMs;

/// The token of one holding, as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseToken(pub FenceToken);

impl Serialize for LeaseToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0.0))
    }
}

impl<'de> Deserialize<'de> for LeaseToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let token = if is_hex { u128::from_str_radix(&text, 16).ok() } else { None };
        let token = token.ok_or_else(|| serde::de::Error::custom("expected 32 hexadecimal digits"))?;
        Ok(Self(FenceToken(token)))
    }
}

/// `POST /v1/workers`: the name under which one process holds rounds, and how its lease is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// The name. It belongs to the credential it was given to.
    pub owner_id: String,
    /// How long a renewal is good for, in milliseconds.
    pub lease_ms: i64,
    /// How often to renew, in milliseconds.
    pub renew_every_ms: u64,
}

/// Who holds a round, under which token, and until when unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// The worker.
    pub owner_id: String,
    /// The token of this holding; nobody else is told it.
    pub lease_token: LeaseToken,
    /// Until when the worker is taken to live. One renewal extends everything it holds.
    pub expires_at: UnixMs,
}

impl Lease {
    /// The lease of `fence` until `expires_at`.
    pub fn new(fence: Fence, expires_at: UnixMs) -> Self {
        Self { owner_id: fence.owner, lease_token: LeaseToken(fence.token), expires_at }
    }

    /// The fence to deliver under.
    pub fn fence(&self) -> Fence {
        Fence { owner: self.owner_id.clone(), token: self.lease_token.0 }
    }
}

/// A round that the caller holds: the answer to a claim, and to the creation of a live round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leased {
    /// The round.
    pub round: Round,
    /// Its lease; null where a repeated creation finds the round held by another worker.
    pub lease: Option<Lease>,
}

/// The holder of a round, for every step of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// The worker.
    pub owner_id: String,
    /// The token of this holding.
    pub lease_token: LeaseToken,
}

impl Holding {
    /// The fence it stands for.
    pub fn fence(&self) -> Fence {
        Fence { owner: self.owner_id.clone(), token: self.lease_token.0 }
    }
}

impl From<Fence> for Holding {
    fn from(fence: Fence) -> Self {
        Self { owner_id: fence.owner, lease_token: LeaseToken(fence.token) }
    }
}

/// What became of a delivery that was started and not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// It arrived.
    Delivered,
    /// It did not arrive.
    NotDelivered,
}

/// What a claimer knows of a delivery that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Whether it arrived.
    pub delivery: Arrival,
    /// Not delivered: whether a second delivery is proven to be harmless.
    #[serde(default)]
    pub idempotent: bool,
}

impl From<Evidence> for round::Evidence {
    fn from(evidence: Evidence) -> Self {
        match evidence.delivery {
            Arrival::Delivered => Self::Delivered,
            Arrival::NotDelivered => Self::NotDelivered { idempotent: evidence.idempotent },
        }
    }
}

impl From<round::Evidence> for Evidence {
    fn from(evidence: round::Evidence) -> Self {
        match evidence {
            round::Evidence::Delivered => Self { delivery: Arrival::Delivered, idempotent: false },
            round::Evidence::NotDelivered { idempotent } => Self { delivery: Arrival::NotDelivered, idempotent },
        }
    }
}

/// `POST /v1/rounds/{id}/claim`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    /// The worker that claims; without it one is made.
    #[serde(default)]
    pub owner_id: Option<String>,
    /// The token the claimer believes is current.
    #[serde(default)]
    pub expected_token: Option<LeaseToken>,
    /// What is known of a delivery that was started.
    #[serde(default)]
    pub evidence: Option<Evidence>,
}

/// A lease was extended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renewed {
    /// The worker, with everything it holds.
    pub owner_id: String,
    /// Until when it is taken to live now.
    pub expires_at: UnixMs,
}

/// `POST /v1/executions`: a record that lives in a worker and ends as lost if that goes away without settling it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExecution {
    /// The worker.
    pub owner_id: String,
    /// What kind of run it is; `operation` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExecutionKind>,
}

/// `POST /v1/rounds/{id}/fail`: by its holder, or without one by whoever asked a resumable question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFailure {
    /// The holder's name.
    #[serde(default)]
    pub owner_id: Option<String>,
    /// The holder's token.
    #[serde(default)]
    pub lease_token: Option<LeaseToken>,
    /// A stable word; without a holder one of `withdrawn`, `cancelled` and `superseded`.
    pub code: String,
    /// A sentence a person can read.
    pub message: String,
}

/// `POST /v1/rounds/{id}/withdraw`: the asker took a live round back, and the question goes on as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    /// The holder's name.
    pub owner_id: String,
    /// The holder's token.
    pub lease_token: LeaseToken,
    /// The round that takes its place.
    pub successor: NewRound,
}

/// `POST /v1/rounds/{id}/fail_recovery`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedToken {
    /// The token of the holder that is gone.
    pub expected_token: LeaseToken,
}

/// How many steps were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    /// All of those that were sent.
    pub steps: usize,
}

/// A fence of two members that come together or not at all. The error is the pointer to the one that is missing.
pub fn fence_of(owner_id: Option<&String>, lease_token: Option<LeaseToken>) -> Result<Option<Fence>, &'static str> {
    match (owner_id, lease_token) {
        (None, None) => Ok(None),
        (Some(owner), Some(token)) => Ok(Some(Fence { owner: owner.clone(), token: token.0 })),
        (None, Some(_)) => Err("/owner_id"),
        (Some(_), None) => Err("/lease_token"),
    }
}
