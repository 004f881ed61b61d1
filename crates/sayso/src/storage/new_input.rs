//! A round of the facade's, from its members to the command that stores it.

use sayso_core::command::{Command, Creation, NewRound, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::ExecutionId;
use sayso_core::json::Json;
use sayso_core::limits::REQUEST_STATE_BYTES_MAX;
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, Digest, Fence};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Keyed, LeaseToken};
use serde::Serialize;

use super::details::{Details, check_name, to_json};
use super::record::PendingElicitationRound;
use super::requests;
use crate::ids;

/// The lease that a live round is created with; it is good for [`sayso_core::limits::LEASE_MS`] and ends with its
/// owner, not with the round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLease {
    /// The worker.
    pub owner_id: String,
    /// The token of this holding; drawn where it is left out.
    pub lease_token: Option<LeaseToken>,
}

impl NewLease {
    /// A lease of this worker's, its token to be drawn.
    pub fn of(owner_id: impl Into<String>) -> Self {
        Self { owner_id: owner_id.into(), lease_token: None }
    }
}

/// A round to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewManagedInput {
    /// What is asked.
    pub pending: PendingElicitationRound,
    /// From 0, within its operation, and past every earlier one.
    pub round_index: u32,
    /// How many rounds the operation may have.
    pub round_limit: u32,
    /// Who holds it: such a round is live. Without one it is resumable.
    pub lease: Option<NewLease>,
    /// The harness's own session.
    pub harness_session_id: Option<String>,
    /// By which the harness finds its action again.
    pub native_resume_token: Option<String>,
    /// By which the harness recognises a second delivery.
    pub delivery_idempotency_key: Option<String>,
    /// The session that asks.
    pub session_id: Option<String>,
    /// The turn that asks.
    pub turn_id: Option<String>,
    /// What the operation was called with, an object.
    pub operation_parameters: Option<Json>,
}

/// Neither the opaque state nor a resume token appears in `Debug`.
impl std::fmt::Debug for NewManagedInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewManagedInput").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl NewManagedInput {
    /// The first round of its operation, resumable, with the usual limit.
    pub fn first(pending: PendingElicitationRound) -> Self {
        Self {
            pending,
            round_index: 0,
            round_limit: sayso_core::limits::ROUND_LIMIT_DEFAULT,
            lease: None,
            harness_session_id: None,
            native_resume_token: None,
            delivery_idempotency_key: None,
            session_id: None,
            turn_id: None,
            operation_parameters: None,
        }
    }

    /// The command that stores the round for `asker`. An error names the member that does not fit.
    pub(super) fn command(&self, asker: &Principal) -> Result<Command, Error> {
        let pending = &self.pending;
        for (pointer, name) in [
            ("/logical_operation_id", &pending.logical_operation_id),
            ("/server", &pending.server),
            ("/operation_name", &pending.operation_name),
        ] {
            check_name(pointer, name)?;
        }
        if pending.request_state.as_ref().is_some_and(|state| state.len() > REQUEST_STATE_BYTES_MAX) {
            let message = format!("must have at most {REQUEST_STATE_BYTES_MAX} bytes");
            return Err(Error::field("/request_state", message));
        }
        let (requests, beside) = requests::to_wire(&pending.requests)?;
        let details = Details {
            version: 0,
            delivery_idempotency_key: self.delivery_idempotency_key.clone(),
            harness_session_id: self.harness_session_id.clone(),
            native_resume_token: self.native_resume_token.clone(),
            session_id: self.session_id.clone(),
            turn_id: self.turn_id.clone(),
            operation_parameters: self.operation_parameters.clone(),
            requests: beside,
        };
        details.check()?;
        let has_approval = requests.check()?.has_approval();
        let details = details.to_json()?;
        let identity = Identity {
            execution: pending.execution_id,
            operation: &pending.logical_operation_id,
            server: &pending.server,
            kind: pending.operation_kind.as_str(),
            name: &pending.operation_name,
            requests: &requests,
            details: details.clone(),
            created_at: pending.created_at,
            request_state: pending.request_state.as_deref(),
            deadline: pending.deadline,
            index: self.round_index,
            limit: self.round_limit,
            owner: self.lease.as_ref().map(|lease| lease.owner_id.as_str()),
            token: self.lease.as_ref().and_then(|lease| lease.lease_token),
        };
        let fingerprint = Digest::of_text(&to_json(&identity)?.canonical()).to_bytes();
        let fence = self.lease.as_ref().map(fence_of).transpose()?;
        let requests = to_json(&requests)?;
        let new_round = NewRound {
            id: pending.round_id,
            execution: RoundExecution::New {
                id: pending.execution_id,
                kind: ExecutionKind::Agent,
                ends_with_round: false,
            },
            logical_operation_id: pending.logical_operation_id.clone(),
            server: pending.server.clone(),
            operation_kind: pending.operation_kind,
            operation_name: pending.operation_name.clone(),
            asked_by: asker.clone(),
            delivery: if fence.is_some() { Delivery::Live } else { Delivery::Resumable },
            fence,
            deadline: pending.deadline,
            limit: self.round_limit,
            digest: Digest::of_requests(&requests),
            has_approval,
            requests,
            calls: Json::from_value(&serde_json::Value::Array(Vec::new())),
            suggestion_of: None,
            request_state: pending.request_state.clone(),
            creation: Some(Creation { key: format!("round {}", pending.round_id), fingerprint }),
        };
        Ok(Command::CreateRecord { new: Box::new(new_round), index: self.round_index, details })
    }
}

/// What is compared when a round is created again.
#[derive(Serialize)]
struct Identity<'a> {
    execution: ExecutionId,
    operation: &'a str,
    server: &'a str,
    kind: &'a str,
    name: &'a str,
    requests: &'a Keyed<wire::Request>,
    details: Option<Json>,
    created_at: UnixMs,
    request_state: Option<&'a str>,
    deadline: Option<UnixMs>,
    index: u32,
    limit: u32,
    owner: Option<&'a str>,
    token: Option<LeaseToken>,
}

fn fence_of(lease: &NewLease) -> Result<Fence, Error> {
    check_name("/owner_id", &lease.owner_id)?;
    let token = match lease.lease_token {
        Some(LeaseToken(token)) => token,
        None => ids::fence_token()?,
    };
    Ok(Fence { owner: lease.owner_id.clone(), token })
}
