//! The table of transitions. Each function takes a round as it is and gives it as it becomes (`None`: as it was), or
//! says why not. The token fences, the clock gates.

use super::{Answered, Delivery, Digest, Failure, Fence, FenceToken, Lease, Round, Status};
use crate::error::Error;
use crate::principal::{Channel, Principal};
use crate::response::Action;
use crate::time::UnixMs;

/// An answer that has passed the check of its contents, on its way in.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Scoped to the round, and compared before anything else.
    pub key: String,
    /// SHA-256 of the canonical answer map.
    pub answer_hash: [u8; 32],
    /// Who answers.
    pub principal: Principal,
    /// By which surface.
    pub channel: Channel,
    /// The digest of what the person saw.
    pub digest: Option<Digest>,
    /// What all requests are answered with, if it is the same.
    pub action: Option<Action>,
    /// Whether a pending call is approved by it.
    pub approves: bool,
    /// Whether one of those calls needs a second person: not by whoever started the execution.
    pub needs_second_person: bool,
}

/// What a claimer knows of a delivery that was started and not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// It did not arrive, and sending it again is harmless.
    NotDelivered {
        /// Whether a second delivery is proven to be harmless.
        idempotent: bool,
    },
    /// It arrived.
    Delivered,
}

/// A worker's wish to hand an answer over.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The new holder, with a fresh token.
    pub fence: Fence,
    /// The token the claimer believes is current.
    pub expected: Option<FenceToken>,
    /// What is known of a delivery that was started.
    pub evidence: Option<Evidence>,
}

/// Who wants a round failed, and why.
#[derive(Debug, Clone)]
pub struct FailureRequest {
    /// The holder, where there is one.
    pub fence: Option<Fence>,
    /// The caller: whoever asked may take back a resumable question.
    pub principal: Principal,
    /// The reason.
    pub failure: Failure,
    /// Only while nobody has answered: an answer that came first stands.
    pub only_pending: bool,
}

/// The round as it becomes; `None` where it stays as it was (a repeat at its target).
pub type Step = Result<Option<Round>, Error>;

/// What whoever started an execution is told where a second person is required.
pub const SECOND_PERSON: &str = "a second person approves this: whoever started it may deny it and not approve it";

const ANOTHER_HOLDS: &str = "another worker holds the round";
const NOT_CONNECTED: &str = "the agent is not connected; nothing was accepted and the round is as it was";

impl Round {
    fn moved(&self, status: Status) -> Round {
        Round { status, rev: self.rev.saturating_add(1), ..self.clone() }
    }

    fn won_by_another(&self, detail: &str) -> Error {
        Error::Conflict { detail: detail.to_owned(), winner: self.answered.clone() }
    }

    /// Accepts an answer: idempotency key, then state, then digest. Past the deadline this is a state error, and the
    /// caller fails the round as `expired` in the same transaction.
    pub fn submit(&self, submission: &Submission, lease: Lease, now: UnixMs) -> Step {
        if let Some((key, hash)) = &self.answer_key
            && *key == submission.key
        {
            let by_the_same = self.answered.as_ref().is_some_and(|winner| winner.principal == submission.principal);
            if *hash != submission.answer_hash || !by_the_same {
                return Err(self.won_by_another("the idempotency key was used for another answer"));
            }
            return if self.status == Status::Failed { Err(self.state_error("not answered")) } else { Ok(None) };
        }
        match self.status {
            Status::Failed => return Err(self.state_error("not answered")),
            Status::Pending => {}
            _ => return Err(self.won_by_another("somebody else has answered already")),
        }
        if self.is_overdue(now) {
            return Err(self.expired(now).state_error("not answered"));
        }
        if self.delivery == Delivery::Live && lease != Lease::Live {
            return Err(Error::conflict(NOT_CONNECTED));
        }
        match submission.digest {
            Some(digest) if digest != self.digest => return Err(Error::Stale),
            None if submission.approves && needs_digest(submission.channel) => {
                return Err(Error::field("/digest", "is required to approve: send the digest of what was shown"));
            }
            _ => {}
        }
        let mut next = self.moved(Status::ResponseValidated);
        next.answer_key = Some((submission.key.clone(), submission.answer_hash));
        next.answered = Some(Answered {
            principal: submission.principal.clone(),
            channel: submission.channel,
            at: now,
            action: submission.action,
        });
        Ok(Some(next))
    }

    /// Takes a resumable round over for delivery. A claim under the very fence that holds the round is a repeat: whoever
    /// lost the acknowledgement of theirs must not wait for themselves.
    pub fn claim(&self, claim: &Claim, lease: Lease, now: UnixMs) -> Step {
        let is_repeat = self.delivery == Delivery::Resumable && self.fence.as_ref() == Some(&claim.fence);
        match self.status {
            status if is_repeat && !status.is_finished() => return Ok(None),
            Status::Failed if self.failed_as(Failure::RECOVERY_UNAVAILABLE) => {
                return Err(Error::Recovery("the round ended as recovery_unavailable and is never handed out".into()));
            }
            Status::Pending | Status::Resolved | Status::Failed => return Err(self.state_error("not claimed")),
            _ => {}
        }
        if lease == Lease::Live {
            return Err(Error::conflict(ANOTHER_HOLDS));
        }
        if self.delivery == Delivery::Live {
            return Err(Error::Recovery("only the process that opened a live round can deliver it".into()));
        }
        if claim.expected.is_some() && claim.expected != self.fence.as_ref().map(|fence| fence.token) {
            return Err(Error::conflict("the expected token is not the current one"));
        }
        let status = match (self.status, claim.evidence) {
            (Status::DeliveryStarted, Some(Evidence::Delivered)) => Status::Delivered,
            (Status::DeliveryStarted, Some(Evidence::NotDelivered { idempotent: true })) => Status::ResponseValidated,
            (Status::DeliveryStarted, _) => {
                return Err(Error::Recovery("a delivery was started; without evidence it is not repeated".into()));
            }
            (status, _) => status,
        };
        // Evidence of an arrival is the receipt.
        let delivered_at = if status == Status::Delivered { self.delivered_at.or(Some(now)) } else { None };
        Ok(Some(Round { fence: Some(claim.fence.clone()), delivered_at, ..self.moved(status) }))
    }

    /// Whether its holder may extend the lease: by owner and token, also late, as long as nobody took over.
    pub fn renew(&self, fence: &Fence) -> Result<(), Error> {
        if self.status.is_finished() {
            return Err(self.state_error("not renewed"));
        }
        if self.fence.as_ref() == Some(fence) { Ok(()) } else { Err(Error::conflict(ANOTHER_HOLDS)) }
    }

    fn check_fence(&self, fence: &Fence, lease: Lease) -> Result<(), Error> {
        if self.fence.as_ref() != Some(fence) {
            return Err(Error::conflict(ANOTHER_HOLDS));
        }
        if lease != Lease::Live {
            return Err(Error::conflict("the lease has run out; renew it first"));
        }
        Ok(())
    }

    /// One step of the delivery under its fence: from `from` to `to`, or as it was when it is there already.
    fn step(&self, fence: &Fence, lease: Lease, from: Status, to: Status) -> Step {
        if self.status == to && self.fence.as_ref() == Some(fence) {
            return Ok(None);
        }
        if self.status.is_finished() {
            return Err(self.state_error("not moved"));
        }
        self.check_fence(fence, lease)?;
        if self.status != from {
            return Err(self.state_error("not moved"));
        }
        Ok(Some(self.moved(to)))
    }

    /// A worker begins to hand the answer over.
    pub fn start_delivery(&self, fence: &Fence, lease: Lease, now: UnixMs) -> Step {
        let next = self.step(fence, lease, Status::ResponseValidated, Status::DeliveryStarted)?;
        Ok(next.map(|round| Round {
            delivery_attempts: round.delivery_attempts.saturating_add(1),
            delivery_started_at: Some(now),
            ..round
        }))
    }

    /// The receipt is in hand.
    pub fn mark_delivered(&self, fence: &Fence, lease: Lease, now: UnixMs) -> Step {
        let next = self.step(fence, lease, Status::DeliveryStarted, Status::Delivered)?;
        Ok(next.map(|round| Round { delivered_at: Some(now), ..round }))
    }

    /// The operation has gone on.
    pub fn resolve(&self, fence: &Fence, lease: Lease, now: UnixMs) -> Step {
        let next = self.step(fence, lease, Status::Delivered, Status::Resolved)?;
        Ok(next.map(|round| Round { finished_at: Some(now), ..round }))
    }

    /// Ends a round with a reason: its holder, or whoever asked a resumable question that nobody answered yet.
    pub fn fail(&self, request: &FailureRequest, lease: Lease, now: UnixMs) -> Step {
        if request.only_pending && self.status != Status::Pending {
            return Err(Error::conflict("the round is not pending any more; it is as it was"));
        }
        match self.status {
            Status::Failed if self.failure.as_ref() == Some(&request.failure) => return Ok(None),
            Status::Failed => return Err(Error::conflict("the round has failed with another reason")),
            Status::Resolved => return Err(self.state_error("not failed")),
            _ => {}
        }
        match &request.fence {
            Some(fence) => self.check_fence(fence, lease)?,
            None => {
                let takes_back = self.delivery == Delivery::Resumable
                    && self.status == Status::Pending
                    && self.asked_by == request.principal
                    && [Failure::WITHDRAWN, Failure::CANCELLED, Failure::SUPERSEDED]
                        .contains(&request.failure.code.as_str());
                if !takes_back {
                    return Err(Error::conflict("only its holder may end this round"));
                }
            }
        }
        Ok(Some(self.failed(request.failure.clone(), now)))
    }

    /// Ends a round whose holder is gone. The caller has seen the same expired lease twice.
    pub fn fail_recovery(&self, expected: FenceToken, lease: Lease, now: UnixMs) -> Step {
        if self.status == Status::Failed && self.failed_as(Failure::RECOVERY_UNAVAILABLE) {
            return Ok(None);
        }
        if self.status.is_finished() {
            return Err(self.state_error("not failed"));
        }
        match &self.fence {
            None => return Err(self.state_error("not failed: nobody holds the round")),
            Some(fence) if fence.token != expected => return Err(Error::conflict("the token is not the current one")),
            Some(_) if lease != Lease::Expired => return Err(Error::conflict("the lease is held")),
            Some(_) => {}
        }
        let message = match self.status {
            Status::Pending => "the agent's process ended before anybody answered; the question died with it",
            Status::ResponseValidated => {
                "the agent's process ended before the answer could be handed over; it was not used"
            }
            _ => {
                "the agent's process ended while the answer was being handed over; nobody can tell whether it was used"
            }
        };
        Ok(Some(self.failed(Failure::new(Failure::RECOVERY_UNAVAILABLE, message), now)))
    }

    /// This round, failed as `expired`. For a pending round past its deadline.
    pub fn expired(&self, now: UnixMs) -> Round {
        self.failed(Failure::new(Failure::EXPIRED, "nobody answered in time; nobody refused"), now)
    }

    /// This round, failed. Unfinished rounds only; the caller has checked.
    pub(crate) fn failed(&self, failure: Failure, now: UnixMs) -> Round {
        Round { failure: Some(failure), finished_at: Some(now), ..self.moved(Status::Failed) }
    }

    fn failed_as(&self, code: &str) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.code == code)
    }
}

/// Thread text and in-process calls bind to the round they address; every other surface says what it showed.
fn needs_digest(channel: Channel) -> bool {
    matches!(channel, Channel::Http | Channel::Inbox | Channel::Cli | Channel::Relay)
}
