//! The commands on executions.

use std::sync::Arc;

use super::apply::{Decided, Stop, Work};
use super::{Reply, View, Write};
use crate::error::Error;
use crate::event::{EventBody, NewEvent};
use crate::execution::{Execution, ExecutionKind, Outcome};
use crate::id::ExecutionId;
use crate::json::Json;
use crate::limits::LEASE_MS;
use crate::principal::{Channel, Principal};
use crate::round::{Failure, Status};
use crate::time::UnixMs;

/// Starts a record in a worker, which is thereby taken to live.
pub(super) fn start<V: View>(
    work: &mut Work<V>,
    id: ExecutionId,
    kind: ExecutionKind,
    started_by: &Principal,
    owner: &str,
) -> Reply {
    let execution = Arc::new(Execution { owner: Some(owner.to_owned()), ..record(work.now, id, kind, started_by) });
    created(work, &execution);
    work.writes.push(Write::NewExecution(execution.clone()));
    let expires_at = Some(work.now.plus_ms(LEASE_MS));
    work.writes.push(Write::Owner { owner: owner.to_owned(), expires_at });
    Reply::Execution(execution)
}

/// An execution that begins at `now`, in no worker and waiting for nothing.
pub(super) fn record(now: UnixMs, id: ExecutionId, kind: ExecutionKind, started_by: &Principal) -> Execution {
    Execution {
        id,
        kind,
        started_by: started_by.clone(),
        owner: None,
        ends_with_round: false,
        pending_inputs: 0,
        pending_approvals: 0,
        created_at: now,
        finished_at: None,
        outcome: None,
        collected_at: None,
    }
}

/// Leaves the event of a new execution.
pub(super) fn created<V: View>(work: &mut Work<V>, execution: &Execution) {
    work.event(NewEvent {
        at: work.now,
        execution_id: Some(execution.id),
        round_id: None,
        principal: Some(execution.started_by.clone()),
        channel: None,
        body: EventBody::ExecutionCreated,
    });
}

/// Ends `execution` in place and leaves the event; the caller writes the row.
pub(super) fn end<V: View>(work: &mut Work<V>, execution: &mut Execution, outcome: Outcome) {
    work.event(NewEvent {
        at: work.now,
        execution_id: Some(execution.id),
        round_id: None,
        principal: None,
        channel: None,
        body: EventBody::ExecutionState { outcome: outcome.as_str().to_owned() },
    });
    execution.finished_at = Some(work.now);
    execution.outcome = Some(outcome);
}

fn ended<V: View>(work: &mut Work<V>, mut execution: Arc<Execution>, outcome: Outcome) -> Decided<V> {
    end(work, Arc::make_mut(&mut execution), outcome);
    work.writes.push(Write::Execution(execution.clone()));
    Ok(Reply::Execution(execution))
}

pub(super) fn finish<V: View>(
    work: &mut Work<V>,
    id: ExecutionId,
    outcome: &Outcome,
    result: Option<&Json>,
) -> Decided<V> {
    let execution = work.execution(id)?;
    if execution.outcome.is_some() {
        return Err(Error::conflict("the execution has finished already").into());
    }
    if let Some(result) = result {
        work.writes.push(Write::Result { execution: id, result: result.clone() });
    }
    ended(work, execution, outcome.clone())
}

pub(super) fn mark_collected<V: View>(work: &mut Work<V>, id: ExecutionId) -> Decided<V> {
    let mut execution = work.execution(id)?;
    if execution.collected_at.is_none() {
        Arc::make_mut(&mut execution).collected_at = Some(work.now);
        work.writes.push(Write::Execution(execution.clone()));
    }
    Ok(Reply::Execution(execution))
}

/// An execution whose worker is gone: what it waited on cannot be recovered; one that waited on nothing is lost.
pub(super) fn orphan<V: View>(work: &mut Work<V>, id: ExecutionId, owner: &str) -> Decided<V> {
    let execution = work.execution(id)?;
    if execution.outcome.is_some() {
        return Ok(Reply::Execution(execution));
    }
    if execution.owner.as_deref() != Some(owner) {
        return Err(Error::conflict("another worker holds the execution").into());
    }
    let alive = work.view.owner(owner).map_err(Stop::Read)?.is_some_and(|until| work.now < until);
    if alive {
        return Err(Error::conflict("the worker lives").into());
    }
    if work.view.unfinished_rounds(id).map_err(Stop::Read)?.is_empty() {
        return ended(work, execution, Outcome::Lost);
    }
    Err(Error::conflict("the execution has unfinished rounds; they decide how it ends").into())
}

pub(super) fn cancel<V: View>(work: &mut Work<V>, id: ExecutionId, by: &Principal) -> Decided<V> {
    let mut execution = work.execution(id)?;
    match execution.outcome {
        Some(Outcome::Cancelled) => return Ok(Reply::Execution(execution)),
        Some(_) => return Err(Error::conflict("the execution has finished already").into()),
        None => {}
    }
    for round in work.view.unfinished_rounds(id).map_err(Stop::Read)? {
        if round.status != Status::Pending {
            continue;
        }
        let next = Arc::new(round.failed(Failure::new(Failure::CANCELLED, "the execution was cancelled"), work.now));
        work.writes.push(Write::Round(next.clone()));
        work.writes.push(Write::EraseRequestState(next.id));
        let body = EventBody::Failed { code: Failure::CANCELLED.to_owned() };
        work.round_event(&next, Some((by, Channel::Service)), body);
    }
    let changed = Arc::make_mut(&mut execution);
    (changed.pending_inputs, changed.pending_approvals) = (0, 0);
    ended(work, execution, Outcome::Cancelled)
}
