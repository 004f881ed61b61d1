use std::sync::Arc;

use super::{Applied, Command, Reply, View, Write};
use crate::error::Error;
use crate::event::{EventBody, NewEvent};
use crate::execution::{Execution, Outcome};
use crate::limits::LEASE_MS;
use crate::principal::{Channel, Principal};
use crate::round::{Failure, Lease, Round, Status};
use crate::time::UnixMs;

use super::{credentials, executions, grants, reviews, rounds, rulings};

/// Why a command came to nothing: a refusal for the caller, or a read that failed.
pub(super) enum Stop<E> {
    Refused(Error),
    Read(E),
}

impl<E> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Decides one command at `now`. Total: every command on every state gives writes and an answer, or a refusal.
pub fn apply<V: View>(view: &V, command: &Command, now: UnixMs) -> Result<Applied, V::Error> {
    let mut work = Work { view, now, writes: Vec::with_capacity(USUAL_WRITES) };
    let reply = match command {
        Command::CreateRound(new) => rounds::create(&mut work, new),
        Command::CreateRecord { new, index, details } => {
            rounds::create_record(&mut work, new, *index, details.as_ref())
        }
        Command::Submit { round, submission, verdicts, submitted, effective } => {
            rounds::submit(&mut work, *round, submission, verdicts, (submitted, effective))
        }
        Command::RecordRefusal { round, submission, code } => {
            rounds::record_refusal(&mut work, *round, submission, code)
        }
        Command::Claim { round, claim } => rounds::claim(&mut work, *round, claim),
        Command::StartDelivery { round, fence } => rounds::start_delivery(&mut work, *round, fence),
        Command::MarkDelivered { round, fence } => rounds::mark_delivered(&mut work, *round, fence),
        Command::Resolve { round, fence } => rounds::resolve(&mut work, *round, fence),
        Command::Fail { round, request } => rounds::fail(&mut work, *round, request),
        Command::FailRecovery { round, expected } => rounds::fail_recovery(&mut work, *round, *expected),
        Command::Collect { round, key, fence } => rounds::collect(&mut work, *round, key, fence),
        Command::Expire { round } => rounds::expire(&mut work, *round),
        Command::CompleteUrl { round } => rounds::complete_url(&mut work, *round),
        Command::RenewOwner { owner } => {
            work.writes.push(Write::Owner { owner: owner.clone(), expires_at: Some(now.plus_ms(LEASE_MS)) });
            Ok(Reply::Done)
        }
        Command::ReleaseOwner { owner } => {
            work.writes.push(Write::Owner { owner: owner.clone(), expires_at: None });
            Ok(Reply::Done)
        }
        Command::StartExecution { execution, kind, started_by, owner } => {
            Ok(executions::start(&mut work, *execution, *kind, started_by, owner))
        }
        Command::Finish { execution, outcome, result } => {
            executions::finish(&mut work, *execution, outcome, result.as_ref())
        }
        Command::MarkCollected { execution } => executions::mark_collected(&mut work, *execution),
        Command::Orphan { execution, owner } => executions::orphan(&mut work, *execution, owner),
        Command::Cancel { execution, principal } => executions::cancel(&mut work, *execution, principal),
        Command::AddGrant { grant, good_for_ms, channel, not_by_starter_of } => {
            grants::add(&mut work, grant, *good_for_ms, *channel, *not_by_starter_of)
        }
        Command::UseGrant { grant, by, execution } => grants::use_once(&mut work, *grant, by, *execution),
        Command::RevokeGrant { grant, by, channel } => grants::revoke(&mut work, *grant, by, *channel),
        Command::RecordRuling { by, ruling } => rulings::record(&mut work, by, ruling),
        Command::RecordReview { by, tool, definition } => reviews::record(&mut work, by, tool, *definition),
        Command::AddToken { token, good_for_ms, by } => credentials::add(&mut work, token, *good_for_ms, by),
        Command::RevokeToken { token, by } => credentials::revoke(&mut work, *token, by),
        Command::UseLogin { login_hash, session, session_hash } => {
            credentials::use_login(&mut work, login_hash, *session, session_hash)
        }
    };
    match reply {
        Ok(reply) => Ok(Applied { writes: work.writes, reply: Ok(reply) }),
        // What a refusal writes (an expiry, an event) was pushed on purpose, and only that: rules check before they push.
        Err(Stop::Refused(error)) => Ok(Applied { writes: work.writes, reply: Err(error) }),
        Err(Stop::Read(error)) => Err(error),
    }
}

/// Room for what most commands write.
const USUAL_WRITES: usize = 8;

/// One command at work: what it may read, and what it has decided to write.
pub(super) struct Work<'a, V: View> {
    pub view: &'a V,
    pub now: UnixMs,
    pub writes: Vec<Write>,
}

pub(super) type Decided<V> = Result<Reply, Stop<<V as View>::Error>>;

impl<V: View> Work<'_, V> {
    pub fn round(&self, id: crate::id::RoundId) -> Result<Arc<Round>, Stop<V::Error>> {
        self.view.round(id).map_err(Stop::Read)?.ok_or(Stop::Refused(Error::NotFound("round")))
    }

    pub fn execution(&self, id: crate::id::ExecutionId) -> Result<Arc<Execution>, Stop<V::Error>> {
        self.view.execution(id).map_err(Stop::Read)?.ok_or(Stop::Refused(Error::NotFound("execution")))
    }

    pub fn lease(&self, round: &Round) -> Result<Lease, Stop<V::Error>> {
        let Some(fence) = &round.fence else { return Ok(Lease::None) };
        let live = self.view.owner(&fence.owner).map_err(Stop::Read)?.is_some_and(|until| self.now < until);
        Ok(if live { Lease::Live } else { Lease::Expired })
    }

    pub fn event(&mut self, event: NewEvent) {
        self.writes.push(Write::Event(event));
    }

    pub fn round_event(&mut self, round: &Round, by: Option<(&Principal, Channel)>, body: EventBody) {
        self.event(NewEvent {
            at: self.now,
            execution_id: Some(round.execution_id),
            round_id: Some(round.id),
            principal: by.map(|(principal, _)| principal.clone()),
            channel: by.map(|(_, channel)| channel),
            body,
        });
    }

    /// Writes a round that moved from `before`, and what follows for its execution.
    pub fn put(&mut self, before: &Round, after: &Arc<Round>) -> Result<(), Stop<V::Error>> {
        self.writes.push(Write::Round(after.clone()));
        let ended = after.status.is_finished();
        if ended {
            self.writes.push(Write::EraseRequestState(after.id));
        }
        if let (Status::Failed, Some(failure)) = (after.status, &after.failure) {
            self.round_event(after, None, EventBody::Failed { code: failure.code.clone() });
        }
        let stopped_waiting = before.status == Status::Pending && after.status != Status::Pending;
        if !stopped_waiting && !ended {
            return Ok(());
        }
        let mut execution = self.execution(after.execution_id)?;
        let outcome = match outcome_after(after, &execution) {
            Some(outcome) if !execution.ends_with_round || self.is_last(after)? => Some(outcome),
            _ => None,
        };
        if !stopped_waiting && outcome.is_none() {
            return Ok(());
        }
        let changed = Arc::make_mut(&mut execution);
        if stopped_waiting {
            let pending = if after.has_approval { &mut changed.pending_approvals } else { &mut changed.pending_inputs };
            *pending = pending.saturating_sub(1);
        }
        if let Some(outcome) = outcome {
            executions::end(self, changed, outcome);
        }
        self.writes.push(Write::Execution(execution));
        Ok(())
    }

    /// Whether `round`, which has just ended, leaves no unfinished round in its execution.
    fn is_last(&self, round: &Round) -> Result<bool, Stop<V::Error>> {
        let unfinished = self.view.unfinished_rounds(round.execution_id).map_err(Stop::Read)?;
        Ok(unfinished.iter().all(|other| other.id == round.id))
    }
}

/// An execution started only for rounds ends with the last of them; any dies with a round that cannot be recovered.
fn outcome_after(round: &Round, execution: &Execution) -> Option<Outcome> {
    if execution.outcome.is_some() {
        return None;
    }
    match &round.failure {
        _ if execution.ends_with_round => Outcome::with_round(round),
        Some(failure) if failure.code == Failure::RECOVERY_UNAVAILABLE => Some(Outcome::Failed(failure.clone())),
        _ => None,
    }
}
