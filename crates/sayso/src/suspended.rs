//! Runs that suspend: the round that a run waits in keeps the run itself, and whoever claims it goes on with it.
//!
//! A suspended run lives in no process. From its first suspension to its end there is always one unfinished round of it:
//! the one it waits in, or the one whose answer it works on. The next one is stored in the transaction that ends it.

use sayso_core::command::{Command, Reply, RoundExecution};
use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_core::limits::SUSPENDED_STATE_BYTES_MAX;
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, Failure, FailureRequest, Fence, Status};
use sayso_core::wire;

use crate::Ask;
use crate::local_desk::LocalDesk;

/// A round whose answer a run works on, and what becomes of it when the run suspends again.
#[derive(Debug, Clone)]
pub struct Held {
    /// The round.
    pub round: RoundId,
    /// Its holder.
    pub fence: Fence,
}

impl Held {
    fn gone_on(&self) -> Vec<Command> {
        let (round, fence) = (self.round, self.fence.clone());
        vec![Command::MarkDelivered { round, fence: fence.clone() }, Command::Resolve { round, fence }]
    }

    fn superseded(&self, principal: &Principal) -> Vec<Command> {
        let message = "the rules or a tool changed after it was answered; what it answered is asked again";
        let failure = Failure::new(Failure::SUPERSEDED, message);
        let (fence, principal) = (Some(self.fence.clone()), principal.clone());
        let request = FailureRequest { fence, principal, failure, only_pending: false };
        vec![Command::Fail { round: self.round, request }]
    }
}

impl LocalDesk {
    /// Suspends a run: stores its next round with the run's state, and ends the round it worked on in the same
    /// transaction, as gone on or, where what was answered there is asked again, as superseded. `ask` names the
    /// execution, which leaves its worker by this. `state` is handed the round's id.
    pub async fn suspend(
        &self,
        ask: Ask,
        state: impl FnOnce(RoundId) -> Result<String, Error> + Send,
        held: Option<&Held>,
        is_asked_again: bool,
    ) -> Result<wire::Round, Error> {
        self.check_may_collect()?;
        let (mut new, question) = self.prepare(Ask { delivery: Some(Delivery::Resumable), ..ask }, None).await?;
        let RoundExecution::Existing(execution) = new.execution else {
            return Err(Error::field("/execution_id", "is required: a run that suspends is running"));
        };
        new.execution = RoundExecution::Suspending(execution);
        let state = state(new.id)?;
        if state.len() > SUSPENDED_STATE_BYTES_MAX {
            return Err(Error::Limit(format!("a suspended run may have at most {SUSPENDED_STATE_BYTES_MAX} bytes")));
        }
        new.request_state = Some(state);
        let mut unit = vec![Command::CreateRound(Box::new(new))];
        unit.extend(match held {
            Some(held) if is_asked_again => held.superseded(&self.caller),
            Some(held) => held.gone_on(),
            None => Vec::new(),
        });
        match self.sayso.store().commit(unit).await?.into_iter().next() {
            Some(Reply::Created { round: row, .. }) => {
                Ok(self.sayso.inner.questions.keep(row.id, question).shown(&row))
            }
            _ => Err(Error::Corrupt("round")),
        }
    }

    /// The opaque state of an unfinished round of the caller's own, as it was stored. Reading it takes nothing away, so
    /// it can be looked at before anything is claimed.
    pub async fn request_state(&self, round: RoundId) -> Result<Option<String>, Error> {
        self.own(round).await?;
        self.sayso.store().request_state(round).await
    }

    /// Ends a round of the caller's own that somebody was working on and whose holder's lease has run out: what it was
    /// about may have run. A conflict while the holder lives; a round that nobody holds stays as it is.
    pub async fn give_up(&self, round: RoundId) -> Result<wire::Round, Error> {
        let row = self.own_row(round).await?;
        if matches!(row.status, Status::DeliveryStarted | Status::Delivered)
            && let Some(fence) = row.fence
        {
            self.sayso.store().commit(vec![Command::FailRecovery { round, expected: fence.token }]).await?;
        }
        self.sayso.round(&self.caller, round).await
    }

    /// Who asks here.
    pub fn caller(&self) -> &Principal {
        &self.caller
    }
}
