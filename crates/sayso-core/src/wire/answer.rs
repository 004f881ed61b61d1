use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Keyed, Round};
use crate::json::Json;
use crate::response::{self, Action, Responses};
use crate::round::Digest;

/// One answer. `content: null` reads as absent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// What was done.
    pub action: Action,
    /// The data, on accept only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Json>,
    /// Why, on decline only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("action", &self.action).finish_non_exhaustive()
    }
}

/// `POST /v1/rounds/{id}/responses`: a map with exactly the round's request keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The digest of what was shown; required to approve.
    #[serde(default)]
    pub digest: Option<Digest>,
    /// The answers under their keys.
    pub responses: Keyed<Response>,
}

impl Response {
    /// Accepts, with content.
    pub fn accept(content: Json) -> Self {
        Self { action: Action::Accept, content: Some(content), reason: None }
    }
    /// Accepts what takes no content: a URL, an approval.
    pub fn consent() -> Self {
        Self { action: Action::Accept, content: None, reason: None }
    }
    /// Declines, with an optional reason for the asker.
    pub fn decline(reason: Option<String>) -> Self {
        Self { action: Action::Decline, content: None, reason }
    }
    /// Dismisses without a decision.
    pub fn cancel() -> Self {
        Self { action: Action::Cancel, content: None, reason: None }
    }
}

impl Answer {
    /// Answers a round of one request, binding to whatever it asks.
    pub fn one(key: impl Into<String>, response: Response) -> Self {
        Self { digest: None, responses: Keyed(vec![(key.into(), response)]) }
    }
}

/// The map as the domain reads it.
pub fn responses_from_wire(wire: &Keyed<Response>) -> Responses {
    let read = |(key, response): &(String, Response)| {
        let Response { action, content, reason } = response.clone();
        let content = content.filter(|content| !content.is_null());
        (key.clone(), response::Response { action, content, reason })
    };
    Responses(wire.0.iter().map(read).collect())
}

/// The map as it is written.
pub fn responses_to_wire(responses: &Responses) -> Keyed<Response> {
    let write = |(key, response): &(String, response::Response)| {
        let response::Response { action, content, reason } = response.clone();
        (key.clone(), Response { action, content, reason })
    };
    Keyed(responses.0.iter().map(write).collect())
}

/// `GET /v1/rounds/{id}/responses`: what was submitted and what takes effect; for others than persons redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseRecord {
    /// Whether values are replaced by a diagnostic projection.
    pub redacted: bool,
    /// As submitted.
    pub submitted: Keyed<Response>,
    /// With defaults filled in.
    pub effective: Keyed<Response>,
}

/// `POST /v1/rounds/{id}/collect`: the answer, handed over.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    /// The round, now resolved.
    pub round: Round,
    /// The asker's opaque state.
    pub request_state: Option<String>,
    /// The answer, with defaults filled in.
    pub responses: Keyed<Response>,
}

/// Neither the opaque state nor a value appears in `Debug` (invariant 8).
impl std::fmt::Debug for Collected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collected").field("round", &self.round.round_id).finish_non_exhaustive()
    }
}
