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

use crate::local_desk::{LocalDesk, check_key, responses_of};
use crate::read::first_look;

impl LocalDesk {
    /// See [`crate::Desk::collect`].
    pub(crate) async fn collected(&self, round: RoundId, key: &str, wait: Duration) -> Result<wire::Collected, Error> {
        let delivery = self.own(round).await?.delivery;
        check_key(key)?;
        let until = Instant::now() + wait.min(Duration::from_millis(limits::WAIT_MS_MAX));
        let fence = self.owner.fence()?;
        let (row, content) = match self.taken((round, delivery), (key, &fence), until).await? {
            Some(taken) => taken,
            None => match self.one(Command::Collect { round, key: key.to_owned(), fence }).await? {
                Reply::Handed { round: row, content } => (row, content),
                _ => return Err(Error::Corrupt("round")),
            },
        };
        Ok(wire::Collected {
            round: self.own(round).await?.shown(&row),
            request_state: content.request_state,
            responses: responses_of(&content.responses)?,
        })
    }

    /// Waits until the round is no longer pending. What was answered, where whoever answered took it for this caller in
    /// the same transaction: then nothing is left to be stored.
    async fn taken(
        &self,
        (round, delivery): (RoundId, Delivery),
        (key, fence): (&str, &Fence),
        until: Instant,
    ) -> Result<Option<(Arc<Round>, DeliveryContent)>, Error> {
        let listener = self.sayso.listen(round);
        let bell = listener.bell();
        let mut over = false;
        let mut looks = self.sayso.store().known_row(round).is_none_or(|row| row.status != Status::Pending);
        loop {
            // Offered first: who answers may come right behind. A live round is for its worker alone to take.
            if delivery == Delivery::Resumable && !over {
                bell.offer(key, fence);
            }
            let changed = if !looks || self.is_pending(round).await? {
                if over {
                    return Err(Error::Timeout);
                }
                let changed = timeout_at(first_look(looks, until), listener.maybe_changed()).await;
                // When the wait is over the row is read once more: the hint of a change may have been lost.
                over = changed.is_err() && Instant::now() >= until;
                looks = true;
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
