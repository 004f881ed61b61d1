//! Waiting for an answer and taking it.

use std::sync::Arc;
use std::time::Duration;

use sayso_core::command::{Command, DeliveryContent, Reply};
use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_core::limits;
use sayso_core::round::{Delivery, Fence, Round, Status};
use sayso_core::wire;
use tokio::time::{Instant, timeout_at};

use crate::bell::Take;
use crate::desk::{Handed, Received};
use crate::local_desk::{LocalDesk, check_key, responses_of};
use crate::question::Question;
use crate::waiters::CATCH_UP_EVERY;

impl LocalDesk {
    /// See [`crate::Desk::collect`].
    pub(crate) async fn collected(&self, round: RoundId, key: &str, wait: Duration) -> Result<wire::Collected, Error> {
        let delivery = self.own(round).await?.delivery;
        check_key(key)?;
        let until = Instant::now() + wait.min(Duration::from_millis(limits::WAIT_MS_MAX));
        let take = Take::Collect { key: key.to_owned(), fence: self.sayso.inner.owners.collector.fence()? };
        // A live round is for its worker alone to take.
        let offer = (delivery == Delivery::Resumable).then_some(&take);
        let (row, content) = match self.taken(round, offer, until).await? {
            Some(taken) => taken,
            None => match self.one(take.command(round)).await? {
                Reply::Handed { round: row, content } => (row, content),
                _ => return Err(Error::Corrupt("round")),
            },
        };
        let shown = self.own(round).await?.shown(&row);
        self.sayso.inner.questions.forget(round);
        Ok(wire::Collected {
            round: shown,
            request_state: content.request_state,
            responses: responses_of(&content.responses)?,
        })
    }

    /// See [`crate::Desk::receive`].
    pub(crate) async fn received(&self, round: RoundId, fence: Fence, wait: Duration) -> Result<Received, Error> {
        // Looked at before and after, and not held meanwhile.
        drop(self.own(round).await?);
        let until = Instant::now() + wait.min(Duration::from_millis(limits::WAIT_MS_MAX));
        let take = Take::Start { fence };
        if let Some((row, content)) = self.taken(round, Some(&take), until).await? {
            let question = self.own(round).await?;
            return Ok(Received::Handed(Box::new(handed(&question, &row, content)?)));
        }
        let (row, question) = self.sayso.seen_round(&self.caller, round).await?;
        if row.status == Status::Failed {
            return Ok(Received::Failed(Box::new(question.shown(&row))));
        }
        Ok(Received::Handed(Box::new(self.started(&question, take.command(round)).await?)))
    }

    /// Has `start`, a [`Command::StartDelivery`], begin to hand an answer over.
    pub(crate) async fn started(&self, question: &Question, start: Command) -> Result<Handed, Error> {
        match self.one(start).await? {
            Reply::Handed { round: row, content } => handed(question, &row, content),
            _ => Err(Error::Corrupt("round")),
        }
    }

    /// Waits until the round is no longer pending. What was answered, where whoever answered took it for this caller in
    /// the same transaction: then nothing is left to be stored.
    async fn taken(
        &self,
        round: RoundId,
        offer: Option<&Take>,
        until: Instant,
    ) -> Result<Option<(Arc<Round>, DeliveryContent)>, Error> {
        let listener = self.sayso.listen(round);
        let bell = listener.bell();
        // As far as it is heard; read a moment later all the same.
        let mut is_heard = self.sayso.inner.hub.heard().is_pending(round);
        let mut over = false;
        loop {
            // Offered first: who answers may come right behind.
            if let Some(take) = offer.filter(|_| !over) {
                bell.offer(take);
            }
            let changed = if is_heard || self.is_pending(round).await? {
                if over {
                    return Err(Error::Timeout);
                }
                let look = if is_heard { until.min(Instant::now() + CATCH_UP_EVERY) } else { until };
                is_heard = false;
                let changed = timeout_at(look, listener.maybe_changed()).await;
                // When the wait is over the row is read once more: the hint of a change may have been lost.
                over = changed.is_err() && look == until;
                changed.is_ok_and(|row| row.is_some_and(|row| row.status != Status::Pending))
            } else {
                true
            };
            while (changed || over) && !bell.withdraw_offer() {
                listener.maybe_changed().await;
            }
            if let Some(taken) = bell.taken() {
                return Ok(Some(taken));
            }
            if changed {
                return Ok(None);
            }
        }
    }

    async fn is_pending(&self, round: RoundId) -> Result<bool, Error> {
        let row = self.sayso.store().row(round).await?.ok_or(Error::NotFound("round"))?;
        Ok(row.status == Status::Pending)
    }
}

fn handed(question: &Question, row: &Round, content: DeliveryContent) -> Result<Handed, Error> {
    Ok(Handed {
        round: question.shown(row),
        request_state: content.request_state,
        responses: responses_of(&content.responses)?,
    })
}
