use std::fmt;

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits::LEASE_MS;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Delivery, OperationKind, Round, Status};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Keyed, LeaseToken};
use sayso_store::{StoredAnswer, StoredRound};

use super::details::Details;
use super::requests::{ElicitationRequest, ElicitationResponse, from_wire};
use crate::local_desk::responses_of;

/// Where a round stands.
pub use sayso_core::round::Status as ManagedInputStatus;
/// Who holds a round, under which token, and until when unless it is renewed.
pub use sayso_core::wire::Lease as ManagedInputLease;

/// What one operation waits for. It never holds a lease's token.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingElicitationRound {
    /// Its id.
    pub round_id: RoundId,
    /// The execution that owns it.
    pub execution_id: ExecutionId,
    /// The operation that asks; its rounds are numbered.
    pub logical_operation_id: String,
    /// The server that asks.
    pub server: String,
    /// Tool, prompt or resource.
    pub operation_kind: OperationKind,
    /// The tool's or prompt's name, or the resource's URI.
    pub operation_name: String,
    /// What is asked, never empty, each under its own key.
    pub requests: Keyed<ElicitationRequest>,
    /// When it was stored, by the store's clock. In what is to be created it is compared on repeats, and nothing else.
    pub created_at: UnixMs,
    /// The asker's opaque text. It is set where a round is created and where its delivery starts; reading leaves it out.
    pub request_state: Option<String>,
    /// Until when an answer is accepted.
    pub deadline: Option<UnixMs>,
}

/// The opaque text never appears in `Debug`.
impl fmt::Debug for PendingElicitationRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingElicitationRound")
            .field("round_id", &self.round_id)
            .field("execution_id", &self.execution_id)
            .field("logical_operation_id", &self.logical_operation_id)
            .field("server", &self.server)
            .field("operation_name", &self.operation_name)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// A round as it is sent; what its creator keeps beside it stays in the store.
impl From<wire::Round> for PendingElicitationRound {
    fn from(round: wire::Round) -> Self {
        Self {
            round_id: round.round_id,
            execution_id: round.execution_id,
            logical_operation_id: round.logical_operation_id,
            server: round.server,
            operation_kind: round.operation_kind,
            operation_name: round.operation_name,
            requests: from_wire(round.requests, &Keyed::default()),
            created_at: round.created_at,
            request_state: None,
            deadline: round.deadline,
        }
    }
}

/// A round whole, with its answer: for whoever owns the store.
#[derive(Clone, PartialEq, Eq)]
pub struct ManagedInputRecord {
    /// What is asked.
    pub pending: PendingElicitationRound,
    /// From 0, within its operation.
    pub round_index: u32,
    /// How many rounds the operation may have.
    pub round_limit: u32,
    /// Where it stands.
    pub status: ManagedInputStatus,
    /// Live or resumable.
    pub delivery: Delivery,
    /// Who holds it; a holder that left has a lease that ran out at 0.
    pub lease: Option<ManagedInputLease>,
    /// The answer, with defaults filled in.
    pub responses: Option<Keyed<ElicitationResponse>>,
    /// The key it was answered under.
    pub response_idempotency_key: Option<String>,
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
    /// What the operation was called with; an empty object where nothing was said.
    pub operation_parameters: Json,
    /// How often a delivery was started.
    pub delivery_attempts: u32,
    /// Who answered.
    pub answered_by: Option<Principal>,
    /// By which surface.
    pub channel: Option<Channel>,
    /// When it was stored.
    pub created_at: UnixMs,
    /// When it last changed or its holder last said that it lives.
    pub updated_at: UnixMs,
    /// When the answer was accepted.
    pub response_validated_at: Option<UnixMs>,
    /// When a delivery was last started.
    pub delivery_started_at: Option<UnixMs>,
    /// When the receipt came.
    pub delivered_at: Option<UnixMs>,
    /// When the operation went on.
    pub resolved_at: Option<UnixMs>,
    /// When it failed.
    pub failed_at: Option<UnixMs>,
    /// Why, as a stable word.
    pub failure_code: Option<String>,
    /// Why, as a sentence.
    pub failure_message: Option<String>,
}

/// Neither answers nor resume tokens appear in `Debug` (invariant 8).
impl fmt::Debug for ManagedInputRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedInputRecord")
            .field("pending", &self.pending)
            .field("round_index", &self.round_index)
            .field("status", &self.status)
            .field("lease", &self.lease)
            .field("delivery_attempts", &self.delivery_attempts)
            .field("failure_code", &self.failure_code)
            .finish_non_exhaustive()
    }
}

impl ManagedInputRecord {
    /// A stored round with its answer, what is kept beside it, and until when its holder is taken to live.
    pub(super) fn read(
        stored: &StoredRound,
        answer: Option<&StoredAnswer>,
        details: Option<&Json>,
        lease_until: Option<UnixMs>,
    ) -> Result<Self, Error> {
        let row = &stored.row;
        let details = Details::read(details)?;
        let lease = row.fence.as_ref().map(|fence| ManagedInputLease {
            owner_id: fence.owner.clone(),
            lease_token: LeaseToken(fence.token),
            expires_at: lease_until.unwrap_or_default(),
        });
        let finished = |status: Status| row.finished_at.filter(|_| row.status == status);
        let failure = row.failure.clone();
        Ok(Self {
            pending: pending(stored, &details)?,
            round_index: row.index,
            round_limit: row.limit,
            status: row.status,
            delivery: row.delivery,
            responses: answer.map(|answer| responses_of(&answer.effective)).transpose()?,
            response_idempotency_key: row.answer_key.as_ref().map(|(key, _)| key.clone()),
            harness_session_id: details.harness_session_id,
            native_resume_token: details.native_resume_token,
            delivery_idempotency_key: details.delivery_idempotency_key,
            session_id: details.session_id,
            turn_id: details.turn_id,
            operation_parameters: details.operation_parameters.unwrap_or_else(empty_object),
            delivery_attempts: row.delivery_attempts,
            answered_by: row.answered.as_ref().map(|answered| answered.principal.clone()),
            channel: row.answered.as_ref().map(|answered| answered.channel),
            created_at: row.created_at,
            updated_at: updated_at(row, lease.as_ref()),
            response_validated_at: row.answered.as_ref().map(|answered| answered.at),
            delivery_started_at: row.delivery_started_at,
            delivered_at: row.delivered_at,
            resolved_at: finished(Status::Resolved),
            failed_at: finished(Status::Failed),
            failure_code: failure.as_ref().map(|failure| failure.code.clone()),
            failure_message: failure.map(|failure| failure.message),
            lease,
        })
    }
}

fn pending(stored: &StoredRound, details: &Details) -> Result<PendingElicitationRound, Error> {
    let requests = serde_json::from_str(stored.requests.as_str()).map_err(|_| Error::Corrupt("request"))?;
    let row = &stored.row;
    Ok(PendingElicitationRound {
        round_id: row.id,
        execution_id: row.execution_id,
        logical_operation_id: row.logical_operation_id.clone(),
        server: row.server.clone(),
        operation_kind: row.operation_kind,
        operation_name: row.operation_name.clone(),
        requests: from_wire(requests, &details.requests),
        created_at: row.created_at,
        request_state: None,
        deadline: row.deadline,
    })
}

/// The latest of the moments that are stored. Of a round that goes on, the last renewal is one: its lease began then.
fn updated_at(row: &Round, lease: Option<&ManagedInputLease>) -> UnixMs {
    let renewed = lease.filter(|_| !row.status.is_finished()).map(|lease| lease.expires_at.plus_ms(-LEASE_MS));
    let answered = row.answered.as_ref().map(|answered| answered.at);
    let moments = [answered, row.delivery_started_at, row.delivered_at, row.finished_at, row.url_completed_at, renewed];
    moments.into_iter().flatten().fold(row.created_at, UnixMs::max)
}

fn empty_object() -> Json {
    Json::from_value(&serde_json::Value::Object(serde_json::Map::new()))
}
