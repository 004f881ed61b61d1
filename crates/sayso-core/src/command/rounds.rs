//! The commands on rounds: each finds its round and the state of its lease, asks the table, and writes what follows.

use std::sync::Arc;

use super::apply::{Decided, Stop, Work};
use super::executions;
use super::{NewRound, Operation, Reply, RoundExecution, Verdict, View, Write};
use crate::error::Error;
use crate::event::EventBody;
use crate::execution::Execution;
use crate::id::{ExecutionId, RoundId};
use crate::json::Json;
use crate::limits;
use crate::principal::Channel;
use crate::round::{Claim, Delivery, Facts, FailureRequest, Fence, FenceToken, Lease, Round, Status, Submission};

pub(super) fn create<V: View>(work: &mut Work<V>, new: &NewRound) -> Decided<V> {
    if let Some(found) = created_before(work, new, "the idempotency key was used for another round")? {
        return Ok(found);
    }
    check_new(new, work)?;
    let (execution, is_new_execution) = execution_of(work, new)?;
    let last = if is_new_execution { None } else { asked_so_far(work, new, &execution)? };
    let index = last.map_or(0, |last| last.saturating_add(1));
    if index >= new.limit {
        return Err(Error::RoundLimit(new.limit).into());
    }
    let created = store(work, new, execution, is_new_execution, index);
    if let Some(fence) = &new.fence {
        take_to_live(work, &fence.owner)?;
    }
    Ok(created)
}

/// As [`create`], at a place that the caller chose.
pub(super) fn create_record<V: View>(
    work: &mut Work<V>,
    new: &NewRound,
    index: u32,
    details: Option<&Json>,
) -> Decided<V> {
    const OTHER_DATA: &str = "the round is stored already, with other data";
    if let Some(found) = created_before(work, new, OTHER_DATA)? {
        return Ok(found);
    }
    if work.view.round(new.id).map_err(Stop::Read)?.is_some() {
        return Err(Error::conflict(OTHER_DATA).into());
    }
    check_new(new, work)?;
    if index >= new.limit {
        return Err(Error::field("/round_index", format!("must be less than the limit of {} rounds", new.limit)).into());
    }
    let (execution, is_new_execution) = match &new.execution {
        RoundExecution::New { id, .. } if work.view.execution(*id).map_err(Stop::Read)?.is_some() => {
            (running_execution(work, *id, new)?, false)
        }
        _ => execution_of(work, new)?,
    };
    if asked_so_far(work, new, &execution)?.is_some_and(|last| index <= last) {
        return Err(Error::conflict("the operation has a round of this index or a later one already").into());
    }
    let reply = store(work, new, execution, is_new_execution, index);
    if let Some(fence) = &new.fence {
        renew(work, fence);
    }
    if let Some(details) = details {
        work.writes.push(Write::Details { round: new.id, details: details.clone() });
    }
    Ok(reply)
}

/// The round that this creation stored before; a conflict where it was another's.
fn created_before<V: View>(
    work: &Work<V>,
    new: &NewRound,
    other_data: &'static str,
) -> Result<Option<Reply>, Stop<V::Error>> {
    let Some(creation) = &new.creation else { return Ok(None) };
    let found = work.view.creation(&new.asked_by, &creation.key).map_err(Stop::Read)?;
    let Some((id, fingerprint)) = found else { return Ok(None) };
    if fingerprint != creation.fingerprint {
        return Err(Error::conflict(other_data).into());
    }
    Ok(Some(Reply::Created { round: work.round(id)?, is_new: false }))
}

/// Writes a new round and what comes with it.
fn store<V: View>(
    work: &mut Work<V>,
    new: &NewRound,
    mut execution: Execution,
    is_new_execution: bool,
    index: u32,
) -> Reply {
    if new.has_approval {
        execution.pending_approvals = execution.pending_approvals.saturating_add(1);
    } else {
        execution.pending_inputs = execution.pending_inputs.saturating_add(1);
    }
    let round = Arc::new(first_state(work, new, &execution, index));
    let by = Some((&new.asked_by, Channel::Service));
    if is_new_execution {
        executions::created(work, &execution);
    }
    let execution = Arc::new(execution);
    work.writes.push(if is_new_execution { Write::NewExecution(execution) } else { Write::Execution(execution) });
    work.writes.push(Write::NewRound {
        round: round.clone(),
        requests: new.requests.clone(),
        calls: new.calls.clone(),
        suggestion_of: new.suggestion_of,
        request_state: new.request_state.clone(),
    });
    if let Some(creation) = &new.creation {
        let creation = creation.clone();
        work.writes.push(Write::Creation { principal: new.asked_by.clone(), creation, round: round.id });
    }
    work.round_event(&round, by, EventBody::RoundCreated);
    Reply::Created { round, is_new: true }
}

fn check_new<V: View>(new: &NewRound, work: &Work<V>) -> Result<(), Error> {
    if (new.delivery == Delivery::Live) != new.fence.is_some() {
        return Err(Error::field("/delivery", "a live round needs an owner and a resumable one takes none"));
    }
    if new.deadline.is_some_and(|deadline| deadline <= work.now) {
        return Err(Error::field("/deadline", "must be in the future"));
    }
    if new.limit == 0 || new.limit > limits::ROUND_LIMIT_MAX {
        return Err(Error::field("/round_limit", format!("must be 1 to {}", limits::ROUND_LIMIT_MAX)));
    }
    Ok(())
}

fn execution_of<V: View>(work: &Work<V>, new: &NewRound) -> Result<(Execution, bool), Stop<V::Error>> {
    match &new.execution {
        RoundExecution::Existing(id) => Ok((running_execution(work, *id, new)?, false)),
        RoundExecution::Suspending(id) => {
            let execution = running_execution(work, *id, new)?;
            Ok((Execution { owner: None, ends_with_round: true, ..execution }, false))
        }
        RoundExecution::New { id, kind, ends_with_round } => {
            let owner = new.fence.as_ref().map(|fence| fence.owner.clone());
            let execution = executions::record(work.now, *id, *kind, &new.asked_by);
            Ok((Execution { owner, ends_with_round: *ends_with_round, ..execution }, true))
        }
    }
}

/// The lease of a worker that opens a round. One that has been renewed lately, as a living worker's is, stays as it is.
fn take_to_live<V: View>(work: &mut Work<V>, owner: &str) -> Result<(), Stop<V::Error>> {
    let enough = work.now.plus_ms(limits::LEASE_MS - i64::try_from(limits::LEASE_RENEW_MS).unwrap_or(0));
    if work.view.owner(owner).map_err(Stop::Read)?.is_none_or(|until| until < enough) {
        let until = work.now.plus_ms(limits::LEASE_MS);
        work.writes.push(Write::Owner { owner: owner.to_owned(), expires_at: Some(until) });
    }
    Ok(())
}

/// An execution of the same asker's that may still ask.
fn running_execution<V: View>(work: &Work<V>, id: ExecutionId, new: &NewRound) -> Result<Execution, Stop<V::Error>> {
    let execution = work.execution(id)?;
    if execution.started_by != new.asked_by {
        return Err(Error::NotFound("execution").into());
    }
    if execution.outcome.is_some() {
        return Err(Error::conflict("the execution has finished and asks nothing more").into());
    }
    Ok(Arc::unwrap_or_clone(execution))
}

/// The index of the operation's last round; none before its first.
fn asked_so_far<V: View>(work: &Work<V>, new: &NewRound, execution: &Execution) -> Result<Option<u32>, Stop<V::Error>> {
    let asked = work.view.operation(execution.id, &new.logical_operation_id).map_err(Stop::Read)?;
    let Some(Operation { last_index, server, operation_kind, operation_name }) = asked else { return Ok(None) };
    let same = (&server, operation_kind, &operation_name) == (&new.server, new.operation_kind, &new.operation_name);
    if !same {
        let message = "belongs to another server or operation";
        return Err(Error::field("/logical_operation_id", message).into());
    }
    Ok(Some(last_index))
}

fn first_state<V: View>(work: &Work<V>, new: &NewRound, execution: &Execution, index: u32) -> Round {
    let facts = Facts {
        id: new.id,
        execution_id: execution.id,
        logical_operation_id: new.logical_operation_id.clone(),
        server: new.server.clone(),
        operation_kind: new.operation_kind,
        operation_name: new.operation_name.clone(),
        asked_by: new.asked_by.clone(),
        delivery: new.delivery,
        index,
        limit: new.limit,
        created_at: work.now,
        deadline: new.deadline,
        digest: new.digest,
        has_approval: new.has_approval,
    };
    Round {
        facts: Arc::new(facts),
        status: Status::Pending,
        rev: 1,
        fence: new.fence.clone(),
        delivery_attempts: 0,
        answer_key: None,
        answered: None,
        collect_key: None,
        delivery_started_at: None,
        delivered_at: None,
        finished_at: None,
        url_completed_at: None,
        failure: None,
    }
}

pub(super) fn submit<V: View>(
    work: &mut Work<V>,
    id: RoundId,
    submission: &Submission,
    verdicts: &[Verdict],
    (submitted, effective): (&Json, &Json),
) -> Decided<V> {
    let round = work.round(id)?;
    let lease = work.lease(&round)?;
    let by = Some((&submission.principal, submission.channel));
    let next = match round.submit(submission, lease, work.now) {
        Ok(Some(next)) => Arc::new(next),
        Ok(None) => return Ok(Reply::Round(round)),
        Err(error) => return refused(work, &round, submission, error),
    };
    if submission.needs_second_person
        && work.execution(round.execution_id)?.started_by.is_the_hand_of(&submission.principal)
    {
        return refused(work, &round, submission, Error::Forbidden(crate::round::SECOND_PERSON));
    }
    work.put(&round, &next)?;
    work.writes.push(Write::Answer { round: id, submitted: submitted.clone(), effective: effective.clone() });
    for verdict in verdicts.iter().filter(|verdict| verdict.is_approval) {
        let body = EventBody::Approval {
            request_key: verdict.request_key.clone(),
            approved: verdict.accepted,
            decided_by: submission.principal.clone(),
            tool: None,
        };
        work.round_event(&next, by, body);
    }
    if verdicts.iter().any(|verdict| !verdict.is_approval && verdict.accepted) {
        work.round_event(&next, by, EventBody::Input { submitted_by: submission.principal.clone() });
    }
    work.round_event(&next, by, EventBody::Answered);
    Ok(Reply::Round(next))
}

/// Leaves the event of a refusal, and the expiry of a round whose deadline has passed.
fn refused<V: View>(work: &mut Work<V>, round: &Round, submission: &Submission, error: Error) -> Decided<V> {
    if round.status == Status::Pending && round.is_overdue(work.now) {
        work.put(round, &Arc::new(round.expired(work.now)))?;
    }
    let by = Some((&submission.principal, submission.channel));
    work.round_event(round, by, EventBody::ResponseRefused { code: error.code().as_str().to_owned() });
    Err(error.into())
}

pub(super) fn record_refusal<V: View>(
    work: &mut Work<V>,
    id: RoundId,
    submission: &Submission,
    code: &str,
) -> Decided<V> {
    let round = work.round(id)?;
    let lease = work.lease(&round)?;
    if let Err(earlier) = round.submit(submission, lease, work.now) {
        return refused(work, &round, submission, earlier);
    }
    let by = Some((&submission.principal, submission.channel));
    work.round_event(&round, by, EventBody::ResponseRefused { code: code.to_owned() });
    Ok(Reply::Done)
}

/// Finds the round and its lease, asks the table, writes what moved.
fn move_round<V: View>(
    work: &mut Work<V>,
    id: RoundId,
    table: impl FnOnce(&Round, Lease) -> Result<Option<Round>, Error>,
) -> Result<Arc<Round>, Stop<V::Error>> {
    let round = work.round(id)?;
    let lease = work.lease(&round)?;
    let Some(next) = table(&round, lease)?.map(Arc::new) else { return Ok(round) };
    work.put(&round, &next)?;
    if next.status == Status::Resolved {
        work.round_event(&next, None, EventBody::Resolved);
    }
    Ok(next)
}

fn as_reply<V: View>(moved: Result<Arc<Round>, Stop<V::Error>>) -> Decided<V> {
    moved.map(Reply::Round)
}

/// Extends the lease of whoever has just claimed.
fn renew<V: View>(work: &mut Work<V>, fence: &Fence) {
    let expires_at = Some(work.now.plus_ms(limits::LEASE_MS));
    work.writes.push(Write::Owner { owner: fence.owner.clone(), expires_at });
}

pub(super) fn claim<V: View>(work: &mut Work<V>, id: RoundId, claim: &Claim) -> Decided<V> {
    let now = work.now;
    let claimed = move_round(work, id, |round, lease| round.claim(claim, lease, now))?;
    renew(work, &claim.fence);
    Ok(Reply::Round(claimed))
}

fn content<V: View>(work: &Work<V>, id: RoundId) -> Result<super::DeliveryContent, Stop<V::Error>> {
    work.view.content(id).map_err(Stop::Read)?.ok_or(Stop::Refused(Error::Corrupt("answer")))
}

pub(super) fn start_delivery<V: View>(work: &mut Work<V>, id: RoundId, fence: &Fence) -> Decided<V> {
    let content = match work.round(id)?.status {
        Status::ResponseValidated | Status::DeliveryStarted => Some(content(work, id)?),
        _ => None,
    };
    let now = work.now;
    let round = move_round(work, id, |round, lease| round.start_delivery(fence, lease, now))?;
    let content = content.ok_or(Stop::Refused(Error::Corrupt("answer")))?;
    Ok(Reply::Handed { round, content })
}

pub(super) fn mark_delivered<V: View>(work: &mut Work<V>, id: RoundId, fence: &Fence) -> Decided<V> {
    let now = work.now;
    as_reply::<V>(move_round(work, id, |round, lease| round.mark_delivered(fence, lease, now)))
}

pub(super) fn resolve<V: View>(work: &mut Work<V>, id: RoundId, fence: &Fence) -> Decided<V> {
    let now = work.now;
    as_reply::<V>(move_round(work, id, |round, lease| round.resolve(fence, lease, now)))
}

pub(super) fn fail<V: View>(work: &mut Work<V>, id: RoundId, request: &FailureRequest) -> Decided<V> {
    let now = work.now;
    as_reply::<V>(move_round(work, id, |round, lease| round.fail(request, lease, now)))
}

pub(super) fn fail_recovery<V: View>(work: &mut Work<V>, id: RoundId, expected: FenceToken) -> Decided<V> {
    let now = work.now;
    as_reply::<V>(move_round(work, id, |round, lease| round.fail_recovery(expected, lease, now)))
}

pub(super) fn expire<V: View>(work: &mut Work<V>, id: RoundId) -> Decided<V> {
    let now = work.now;
    as_reply::<V>(move_round(work, id, |round, _| {
        let expires = round.status == Status::Pending && round.is_overdue(now);
        Ok(expires.then(|| round.expired(now)))
    }))
}

/// The four steps of a delivery at once: the caller is its own agent, so handing over, receipt and going on are one.
pub(super) fn collect<V: View>(work: &mut Work<V>, id: RoundId, key: &str, fence: &Fence) -> Decided<V> {
    let round = work.round(id)?;
    if round.status == Status::Resolved && round.collect_key.as_deref() == Some(key) {
        let content = content(work, id)?;
        return Ok(Reply::Handed { round, content });
    }
    let lease = work.lease(&round)?;
    let claim = Claim { fence: fence.clone(), expected: None, evidence: None };
    let Some(claimed) = round.claim(&claim, lease, work.now)? else { return Err(Error::Corrupt("round").into()) };
    let content = content(work, id)?;
    let mut next = claimed;
    for step in [Round::start_delivery, Round::mark_delivered, Round::resolve] {
        if let Some(moved) = step(&next, fence, Lease::Live, work.now)? {
            next = moved;
        }
    }
    next.collect_key = Some(key.to_owned());
    let next = Arc::new(next);
    work.put(&round, &next)?;
    work.round_event(&next, None, EventBody::Resolved);
    Ok(Reply::Handed { round: next, content })
}

pub(super) fn complete_url<V: View>(work: &mut Work<V>, id: RoundId) -> Decided<V> {
    let round = work.round(id)?;
    if round.url_completed_at.is_some() {
        return Ok(Reply::Round(round));
    }
    let rev = round.rev.saturating_add(1);
    let next = Arc::new(Round { url_completed_at: Some(work.now), rev, ..Round::clone(&round) });
    work.writes.push(Write::Round(next.clone()));
    work.round_event(&next, None, EventBody::UrlCompleted);
    Ok(Reply::Round(next))
}
