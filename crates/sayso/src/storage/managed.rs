use async_trait::async_trait;
use sayso_core::command::{Command, Creation, NewRound, Reply, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits::{PAGE_ROWS_MAX, REQUEST_STATE_BYTES_MAX};
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Claim, Delivery, Digest, Failure, FailureRequest, Fence, FenceToken};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Answer, Keyed, LeaseToken};
use sayso_store::{RoundFilter, StoredRound};
use serde::Serialize;

use super::details::{Details, check_name, to_json};
use super::record::{ManagedInputRecord, PendingElicitationRound};
use super::requests::{self, ElicitationResponse};
use crate::desk::ClaimOf;
use crate::people::{People, redact};
use crate::{Sayso, ids};

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
}

/// Rounds, one operation a method. For whoever owns the store: programs answer through a handle, so that workers hear of
/// it. An unknown round is a conflict, and `None` where it is read.
#[async_trait]
pub trait ManagedInputStore: Send + Sync {
    /// Stores a round. The same data again is the record as it is now; other data under its id, or a place in the
    /// operation that is taken, is a conflict.
    async fn create_round(&self, new: NewManagedInput) -> Result<ManagedInputRecord, Error>;
    /// A round.
    async fn get_round(&self, round: RoundId) -> Result<Option<ManagedInputRecord>, Error>;
    /// Every round of an execution, by operation and index.
    async fn list_rounds(&self, execution: ExecutionId) -> Result<Vec<ManagedInputRecord>, Error>;
    /// Takes over a resumable round that was answered, with a fresh token. A delivery that was started and not confirmed
    /// takes evidence of what became of it.
    async fn claim_round(&self, round: RoundId, owner_id: &str, claim: ClaimOf) -> Result<ManagedInputRecord, Error>;
    /// Extends the lease of a round's holder, also late, as long as nobody took over.
    async fn renew(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error>;
    /// Accepts an answer, once. The key is compared first: the same answer under it is the record.
    async fn submit_responses(
        &self,
        round: RoundId,
        responses: Keyed<ElicitationResponse>,
        idempotency_key: &str,
        digest: Option<Digest>,
    ) -> Result<ManagedInputRecord, Error>;
    /// Begins to hand the answer over; the record has the answer and the asker's opaque state.
    async fn start_delivery(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error>;
    /// The receipt is in hand.
    async fn mark_delivered(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error>;
    /// The operation has gone on.
    async fn resolve(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error>;
    /// Ends a round with a reason: its holder, or without one this store's asker while nobody has answered.
    async fn fail(&self, round: RoundId, holder: Option<Fence>, failure: Failure) -> Result<ManagedInputRecord, Error>;
    /// Ends a round whose holder is gone, as `recovery_unavailable`; its execution ends with it.
    async fn fail_recovery(&self, round: RoundId, expected_token: FenceToken) -> Result<ManagedInputRecord, Error>;
    /// What a round was answered with, secrets left out: for diagnostics.
    async fn redacted_responses(&self, round: RoundId) -> Result<Option<Keyed<ElicitationResponse>>, Error>;
}

/// The rounds of an opened store.
#[derive(Clone)]
pub(crate) struct Rounds {
    pub sayso: Sayso,
    /// Who asks what is created here.
    pub asker: Principal,
}

/// What has rounds; nobody else can have this trait.
pub trait HasRounds: Send + Sync {
    #[doc(hidden)]
    fn rounds(&self) -> RoundsOf<'_>;
}

/// The rounds of something that has them.
pub struct RoundsOf<'a>(pub(crate) &'a Rounds);

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

fn unknown_round(error: Error) -> Error {
    match error {
        Error::NotFound("round") => Error::conflict("there is no such round"),
        error => error,
    }
}

fn check_holder(holder: &Fence) -> Result<(), Error> {
    check_name("/owner_id", &holder.owner)
}

impl Rounds {
    async fn one(&self, command: Command) -> Result<Reply, Error> {
        let replies = self.sayso.store().commit(vec![command]).await.map_err(unknown_round)?;
        replies.into_iter().next().ok_or_else(|| Error::Unavailable("the store gave no answer".to_owned()))
    }

    /// Does it, and reads the round as it is then.
    async fn moved(&self, round: RoundId, command: Command) -> Result<ManagedInputRecord, Error> {
        self.one(command).await?;
        self.found(round).await
    }

    async fn found(&self, round: RoundId) -> Result<ManagedInputRecord, Error> {
        self.read(round).await?.ok_or_else(|| unknown_round(Error::NotFound("round")))
    }

    async fn read(&self, round: RoundId) -> Result<Option<ManagedInputRecord>, Error> {
        match self.sayso.store().round(round).await? {
            Some(stored) => self.record(&stored).await.map(Some),
            None => Ok(None),
        }
    }

    async fn record(&self, stored: &StoredRound) -> Result<ManagedInputRecord, Error> {
        let store = self.sayso.store();
        let answer = match &stored.row.answered {
            Some(_) => store.answer(stored.row.id).await?,
            None => None,
        };
        let details = store.details(stored.row.id).await?;
        let lease_until = match &stored.row.fence {
            Some(fence) => store.lease_until(&fence.owner).await?,
            None => None,
        };
        ManagedInputRecord::read(stored, answer.as_ref(), details.as_ref(), lease_until)
    }

    fn prepare(&self, new: &NewManagedInput) -> Result<Command, Error> {
        let pending = &new.pending;
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
            delivery_idempotency_key: new.delivery_idempotency_key.clone(),
            harness_session_id: new.harness_session_id.clone(),
            native_resume_token: new.native_resume_token.clone(),
            session_id: new.session_id.clone(),
            turn_id: new.turn_id.clone(),
            operation_parameters: new.operation_parameters.clone(),
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
            index: new.round_index,
            limit: new.round_limit,
            owner: new.lease.as_ref().map(|lease| lease.owner_id.as_str()),
            token: new.lease.as_ref().and_then(|lease| lease.lease_token),
        };
        let fingerprint = Digest::of_text(&to_json(&identity)?.canonical()).to_bytes();
        let fence = new.lease.as_ref().map(fence_of).transpose()?;
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
            asked_by: self.asker.clone(),
            delivery: if fence.is_some() { Delivery::Live } else { Delivery::Resumable },
            fence,
            deadline: pending.deadline,
            limit: new.round_limit,
            digest: Digest::of_requests(&requests),
            has_approval,
            requests,
            calls: Json::from_value(&serde_json::Value::Array(Vec::new())),
            suggestion_of: None,
            request_state: pending.request_state.clone(),
            creation: Some(Creation { key: format!("round {}", pending.round_id), fingerprint }),
        };
        Ok(Command::CreateRecord { new: Box::new(new_round), index: new.round_index, details })
    }
}

fn fence_of(lease: &NewLease) -> Result<Fence, Error> {
    check_name("/owner_id", &lease.owner_id)?;
    let token = match lease.lease_token {
        Some(LeaseToken(token)) => token,
        None => ids::fence_token()?,
    };
    Ok(Fence { owner: lease.owner_id.clone(), token })
}

#[async_trait]
impl<T: HasRounds> ManagedInputStore for T {
    async fn create_round(&self, new: NewManagedInput) -> Result<ManagedInputRecord, Error> {
        let RoundsOf(rounds) = self.rounds();
        let command = rounds.prepare(&new)?;
        let mut record = rounds.moved(new.pending.round_id, command).await?;
        record.pending.request_state = new.pending.request_state;
        Ok(record)
    }

    async fn get_round(&self, round: RoundId) -> Result<Option<ManagedInputRecord>, Error> {
        self.rounds().0.read(round).await
    }

    async fn list_rounds(&self, execution: ExecutionId) -> Result<Vec<ManagedInputRecord>, Error> {
        let RoundsOf(rounds) = self.rounds();
        let (mut records, mut before) = (Vec::new(), None);
        loop {
            let filter = RoundFilter { execution: Some(execution), before, limit: PAGE_ROWS_MAX, ..Default::default() };
            let page = rounds.sayso.store().rounds(filter).await?;
            for stored in &page {
                records.push(rounds.record(stored).await?);
            }
            before = page.last().map(|stored| stored.row.id);
            if page.len() < PAGE_ROWS_MAX {
                break;
            }
        }
        let place = |record: &ManagedInputRecord| (record.pending.logical_operation_id.clone(), record.round_index);
        records.sort_by_key(place);
        Ok(records)
    }

    async fn claim_round(&self, round: RoundId, owner_id: &str, claim: ClaimOf) -> Result<ManagedInputRecord, Error> {
        check_name("/owner_id", owner_id)?;
        let fence = Fence { owner: owner_id.to_owned(), token: ids::fence_token()? };
        let claim = Claim { fence, expected: claim.expected, evidence: claim.evidence };
        self.rounds().0.moved(round, Command::Claim { round, claim }).await
    }

    async fn renew(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error> {
        check_holder(&holder)?;
        let RoundsOf(rounds) = self.rounds();
        let found = rounds.sayso.store().round(round).await?;
        // Whoever takes over between this and the write has another lease: this one says only that its owner lives.
        found.ok_or_else(|| unknown_round(Error::NotFound("round")))?.row.renew(&holder)?;
        rounds.moved(round, Command::RenewOwner { owner: holder.owner }).await
    }

    async fn submit_responses(
        &self,
        round: RoundId,
        responses: Keyed<ElicitationResponse>,
        idempotency_key: &str,
        digest: Option<Digest>,
    ) -> Result<ManagedInputRecord, Error> {
        let RoundsOf(rounds) = self.rounds();
        let people = rounds.sayso.people_as(rounds.sayso.person().clone(), Channel::Library);
        people.answer(round, Answer { digest, responses }, idempotency_key).await.map_err(unknown_round)?;
        rounds.found(round).await
    }

    async fn start_delivery(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error> {
        check_holder(&holder)?;
        let RoundsOf(rounds) = self.rounds();
        let Reply::Handed { content, .. } = rounds.one(Command::StartDelivery { round, fence: holder }).await? else {
            return Err(Error::Corrupt("round"));
        };
        let mut record = rounds.found(round).await?;
        record.pending.request_state = content.request_state;
        Ok(record)
    }

    async fn mark_delivered(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error> {
        check_holder(&holder)?;
        self.rounds().0.moved(round, Command::MarkDelivered { round, fence: holder }).await
    }

    async fn resolve(&self, round: RoundId, holder: Fence) -> Result<ManagedInputRecord, Error> {
        check_holder(&holder)?;
        self.rounds().0.moved(round, Command::Resolve { round, fence: holder }).await
    }

    async fn fail(&self, round: RoundId, holder: Option<Fence>, failure: Failure) -> Result<ManagedInputRecord, Error> {
        holder.as_ref().map_or(Ok(()), check_holder)?;
        check_name("/failure/code", &failure.code)?;
        if failure.message.is_empty() || failure.message.len() > sayso_core::limits::MESSAGE_BYTES_MAX {
            let message = format!("must have 1 to {} bytes", sayso_core::limits::MESSAGE_BYTES_MAX);
            return Err(Error::field("/failure/message", message));
        }
        let RoundsOf(rounds) = self.rounds();
        let request = FailureRequest { fence: holder, principal: rounds.asker.clone(), failure };
        rounds.moved(round, Command::Fail { round, request }).await
    }

    async fn fail_recovery(&self, round: RoundId, expected_token: FenceToken) -> Result<ManagedInputRecord, Error> {
        self.rounds().0.moved(round, Command::FailRecovery { round, expected: expected_token }).await
    }

    async fn redacted_responses(&self, round: RoundId) -> Result<Option<Keyed<ElicitationResponse>>, Error> {
        let store = self.rounds().0.sayso.store();
        let (Some(stored), Some(answer)) = (store.round(round).await?, store.answer(round).await?) else {
            return Ok(None);
        };
        let requests: Keyed<wire::Request> =
            serde_json::from_str(stored.requests.as_str()).map_err(|_| Error::Corrupt("request"))?;
        Ok(Some(redact(&crate::local_desk::responses_of(&answer.effective)?, &requests)))
    }
}
