//! Going on with a suspended run, in whichever process: looked at first, then claimed, then looked at again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use sayso::kit::Stop;
use sayso::{
    Channel, ClaimOf, Desk, Digest, Error, ExecutionId, Failure, Fence, Handed, Held, Json, RoundFilter, RoundId,
    Status, wire,
};
use sayso_core::limits::{JSON_DEPTH_CEILING, PAGE_ROWS_MAX};
use sayso_core::round::SECOND_PERSON;

use super::answers;
use super::asking::is_about;
use super::offer::Offer;
use super::outcome::RunOutcome;
use super::runtime::AgentRuntime;
use super::sealed::unseal;
use super::state::{PendingCall, SuspendedRunState, WaitsFor};
use super::turns::RunAtWork;
use crate::tools::TURN_PREFIX;

const WHAT: &str = "state of the suspended run";
/// The key of this process's claim of a round.
const CLAIM: &str = "native";

impl AgentRuntime {
    /// Goes on with a run whose round has been answered. One that still waits says so; one that has ended says how. A
    /// run that another worker is at is a conflict. Where this process cannot run it now, it is requeued and nothing is
    /// consumed; where its stored state cannot be read, nothing is consumed either (`corrupt_suspended_state`).
    pub async fn resume(&self, execution: ExecutionId) -> Result<RunOutcome, Error> {
        self.resume_until(execution, None).await
    }

    pub(super) async fn resume_until(&self, execution: ExecutionId, stop: Option<Stop>) -> Result<RunOutcome, Error> {
        // What cannot be judged here waits for whoever can.
        self.gate.check()?;
        let state = self.desk.execution(execution).await?;
        let round = match self.round_of(execution).await? {
            _ if state.outcome.is_some() => return self.ended(execution).await,
            Some(round) => round,
            None => return Err(Error::conflict("the run has not suspended yet: the worker that began it is at it")),
        };
        match round.status {
            Status::Pending => self.still_waiting(round).await,
            Status::ResponseValidated => self.take_up(round, stop).await,
            Status::DeliveryStarted | Status::Delivered => {
                // Whoever worked on it is at it still, which is a conflict, or is gone: then nobody can tell what ran.
                match self.desk.give_up(round.round_id).await {
                    // It has gone on between the two looks.
                    Ok(_) | Err(Error::State { .. }) => self.ended(execution).await,
                    Err(error) => Err(error),
                }
            }
            Status::Resolved | Status::Failed => self.ended(execution).await,
        }
    }

    /// The runs of this agent that have been answered and that nobody has taken up, or that somebody began to go on
    /// with, oldest first.
    pub async fn answered(&self) -> Result<Vec<ExecutionId>, Error> {
        let mut found = Vec::new();
        for status in [Status::ResponseValidated, Status::DeliveryStarted] {
            let mut before = None;
            loop {
                let filter =
                    RoundFilter { status: Some(status), before, limit: PAGE_ROWS_MAX, ..RoundFilter::default() };
                let page = self.sayso.rounds(self.desk.caller(), filter).await?;
                let own = page.rounds.into_iter().filter(|round| round.logical_operation_id.starts_with(TURN_PREFIX));
                found.extend(own.map(|round| (round.round_id, round.execution_id)));
                match page.next_cursor {
                    Some(cursor) => before = Some(cursor),
                    None => break,
                }
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, execution)| execution).collect())
    }

    /// The round that a run is in: the unfinished one, of which there is one at most, else the last.
    pub(super) async fn round_of(&self, execution: ExecutionId) -> Result<Option<wire::Round>, Error> {
        let (mut before, mut last) = (None, None);
        loop {
            let filter = RoundFilter { execution: Some(execution), before, ..RoundFilter::default() };
            let page = self.sayso.rounds(self.desk.caller(), filter).await?;
            let own = |round: &wire::Round| round.logical_operation_id.starts_with(TURN_PREFIX);
            for round in page.rounds.into_iter().filter(own) {
                if !round.status.is_finished() {
                    return Ok(Some(round));
                }
                last = last.or(Some(round));
            }
            match page.next_cursor {
                Some(cursor) => before = Some(cursor),
                None => return Ok(last),
            }
        }
    }

    async fn still_waiting(&self, round: wire::Round) -> Result<RunOutcome, Error> {
        let state = self.stored_state(&round).await?;
        Ok(match state.waits_for {
            WaitsFor::Approval => RunOutcome::AwaitingApproval(Box::new(round)),
            WaitsFor::Input => RunOutcome::AwaitingInput(Box::new(round)),
        })
    }

    async fn ended(&self, execution: ExecutionId) -> Result<RunOutcome, Error> {
        let ended = self.desk.result(execution, std::time::Duration::ZERO).await;
        match ended {
            Ok(ended) => Ok(RunOutcome::of_finished(&ended)),
            Err(Error::Timeout) => Ok(RunOutcome::LeaseLost),
            Err(error) => Err(error),
        }
    }

    /// The state that is stored with a round, opened and read, and whether it is of what the round asks.
    pub(super) async fn stored_state(&self, round: &wire::Round) -> Result<SuspendedRunState, Error> {
        if let Some(stored) = self.desk.request_state(round.round_id).await? {
            return self.read_state(round, stored);
        }
        // A round's state is erased when it ends, which may be between two looks.
        let now = self.sayso.round(self.desk.caller(), round.round_id).await?;
        if now.status.is_finished() {
            return Err(Error::conflict("the round has ended meanwhile; look at the run again"));
        }
        Err(Error::Corrupt(WHAT))
    }

    fn read_state(&self, round: &wire::Round, stored: String) -> Result<SuspendedRunState, Error> {
        let text = unseal(self.keys.as_ref(), stored, round.execution_id, round.round_id)?;
        let state = SuspendedRunState::read(&text)?;
        let is_asked = |call: &&PendingCall| match state.waits_for {
            WaitsFor::Approval => call.needs_approval(),
            WaitsFor::Input => call.needs_input(),
        };
        let asked: Vec<_> = state.pending_calls.iter().filter(is_asked).collect();
        let is_same = asked.len() == round.requests.0.len()
            && asked.iter().all(|call| {
                let request = round.requests.get(&call.id);
                request.is_some_and(|request| is_about(request, call, state.waits_for))
            });
        if is_same { Ok(state) } else { Err(Error::Corrupt(WHAT)) }
    }

    /// Claims an answered round and goes on with its run.
    async fn take_up(&self, round: wire::Round, stop: Option<Stop>) -> Result<RunOutcome, Error> {
        let _busy = self.at_work.begin(round.round_id)?;
        // Whatever can be known before the claim is known before it, so that nothing is consumed in vain.
        drop(self.stored_state(&round).await?);
        let mut offer = match Offer::gather(&self.toolbox, &self.servers, &self.allowed, self.time_limit).await {
            Ok(offer) => offer,
            Err(error) => return Ok(RunOutcome::Requeued(Failure::new(error.code(), error.to_string()))),
        };
        let taken = self.claim(round.round_id).await;
        let (state, handed, held) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                offer.servers.close().await;
                return Err(match error {
                    Error::State { detail, .. } => Error::conflict(detail),
                    error => error,
                });
            }
        };
        let mut state = state;
        let took = answers::take(&mut state.pending_calls, state.waits_for, round.round_id, &handed.responses);
        if let Err(error) = took {
            offer.servers.close().await;
            return Err(error);
        }
        // What came to be offered meanwhile is for the next turn.
        let all = offer.names();
        let mut run = RunAtWork::rehydrate(self, round.execution_id, offer, state, held);
        let known = run.offered_tools.clone();
        for call in &mut run.calls {
            let is_known = call.tool.as_ref().is_none_or(|tool| known.contains(tool) && all.contains(tool));
            if call.refusal.is_none() && !is_known {
                call.refusal = Some(sayso::words::not_offered(&call.tool_name()));
            }
        }
        run.stop = stop;
        run.go_on(true).await
    }

    /// Claims, reads the record again as it is now, checks the digest and whose answer it is once more, and stores that
    /// what was allowed begins to run.
    async fn claim(&self, round: RoundId) -> Result<(SuspendedRunState, Handed, Held), Error> {
        // By a key of its own: whoever lost the acknowledgement finds the same lease again.
        let fence = self.desk.claim(round, ClaimOf::default(), Some(CLAIM.to_owned())).await?.fence;
        let (state, handed) = self.start(round, fence.clone()).await?;
        Ok((state, handed, Held { round, fence }))
    }

    async fn start(&self, id: RoundId, fence: Fence) -> Result<(SuspendedRunState, Handed), Error> {
        let round = self.sayso.round(self.desk.caller(), id).await?;
        if round.status != Status::ResponseValidated {
            // A repeated claim is good for a round that this process had started, too; that is never started again.
            return Err(Error::conflict("what was answered runs already, or has run"));
        }
        let state = self.stored_state(&round).await?;
        if digest_of(&round)? != round.digest {
            return Err(Error::Corrupt("request"));
        }
        check_answerer(&round)?;
        Ok((state, self.desk.start(id, fence).await?))
    }
}

/// The rounds that this process goes on with right now. A claim is the process's, so two at once in it are told apart here.
#[derive(Clone, Default)]
pub(super) struct AtWork(Arc<Mutex<HashSet<RoundId>>>);

/// Keeps others of this process from a round until it is dropped.
struct Busy {
    at_work: AtWork,
    round: RoundId,
}

impl AtWork {
    fn begin(&self, round: RoundId) -> Result<Busy, Error> {
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(round);
        if is_first {
            Ok(Busy { at_work: self.clone(), round })
        } else {
            Err(Error::conflict("this process is at the run already"))
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.at_work.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.round);
    }
}

/// Whether whoever answered may. A relayed word was taken by a store that was opened to trust it, which is the one door
/// that records it as relayed; it is nobody's second person.
fn check_answerer(round: &wire::Round) -> Result<(), Error> {
    let Some(answered) = &round.answered else { return Err(Error::Corrupt("answer")) };
    let is_relayed = answered.channel == Channel::Relay;
    if is_relayed && round.requests.0.iter().any(|(_, request)| request.require_second_person == Some(true)) {
        return Err(Error::Forbidden(SECOND_PERSON));
    }
    // What an agent passes on is about its own round: no agent answers for another.
    if answered.principal.may_answer() || (is_relayed && answered.principal == round.asked_by) {
        return Ok(());
    }
    Err(Error::Forbidden("an agent's credential cannot answer; a person does"))
}

fn digest_of(round: &wire::Round) -> Result<Digest, Error> {
    let text = serde_json::to_string(&round.requests).map_err(|_| Error::Corrupt("request"))?;
    let requests = Json::parse_within(&text, usize::MAX, JSON_DEPTH_CEILING).map_err(|_| Error::Corrupt("request"))?;
    Ok(Digest::of_requests(&requests))
}
