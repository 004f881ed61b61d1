use async_trait::async_trait;
use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::limits::PAGE_ROWS_MAX;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Claim, Digest, Failure, FailureRequest, Fence, FenceToken};
use sayso_core::wire::{self, Answer, Keyed};
use sayso_store::{RoundFilter, StoredRound};

use super::details::check_name;
use super::new_input::NewManagedInput;
use super::record::ManagedInputRecord;
use super::requests::ElicitationResponse;
use crate::desk::ClaimOf;
use crate::people::{People, redact};
use crate::{Sayso, ids};

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
}

#[async_trait]
impl<T: HasRounds> ManagedInputStore for T {
    async fn create_round(&self, new: NewManagedInput) -> Result<ManagedInputRecord, Error> {
        let RoundsOf(rounds) = self.rounds();
        let command = new.command(&rounds.asker)?;
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
        let principal = rounds.asker.clone();
        let request = FailureRequest { fence: holder, principal, failure, only_pending: false };
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
