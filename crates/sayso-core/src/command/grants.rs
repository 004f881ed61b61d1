//! The commands on grants. What a grant covers is judged before ([`Grant::covers`]) and never changes; whether it still
//! stands is decided here, in the transaction that counts its use.

use super::apply::{Decided, Stop, Work};
use super::{Reply, View, Write};
use crate::error::Error;
use crate::event::{EventBody, NewEvent};
use crate::id::{ExecutionId, GrantId};
use crate::policy::Grant;
use crate::principal::{Channel, Principal, PrincipalKind};

fn event<V: View>(
    work: &mut Work<V>,
    grant: &Grant,
    (by, channel): (&Principal, Channel),
    execution: Option<ExecutionId>,
    body: EventBody,
) {
    work.event(NewEvent {
        at: work.now,
        execution_id: execution,
        round_id: grant.round,
        principal: Some(by.clone()),
        channel: Some(channel),
        body,
    });
}

fn check_person(by: &Principal) -> Result<(), Error> {
    if by.kind == PrincipalKind::Person {
        return Ok(());
    }
    Err(Error::Forbidden("only a person grants, and takes back what was granted"))
}

pub(super) fn add<V: View>(
    work: &mut Work<V>,
    grant: &Grant,
    good_for_ms: Option<i64>,
    channel: Channel,
    not_by_starter_of: Option<ExecutionId>,
) -> Decided<V> {
    check_person(&grant.granted_by)?;
    grant.scope.check().map_err(|error| Error::field(format!("/{}", error.key), error.message))?;
    if let Some(execution) = not_by_starter_of
        && work.execution(execution)?.started_by.is_the_hand_of(&grant.granted_by)
    {
        return Err(Error::Forbidden(crate::round::SECOND_PERSON).into());
    }
    if good_for_ms.is_some_and(|ms| ms <= 0) || grant.uses_max == Some(0) {
        return Err(Error::field("/expires_in_seconds", "must leave the grant something to cover").into());
    }
    if work.view.grant(grant.id).map_err(Stop::Read)?.is_some() {
        return Err(Error::conflict("there is a grant of this id already").into());
    }
    let grant = Grant {
        granted_at: work.now,
        expires_at: good_for_ms.map(|ms| work.now.plus_ms(ms)),
        uses_max: grant.uses_limit(),
        uses: 0,
        revoked_at: None,
        ..grant.clone()
    };
    work.writes.push(Write::Grant(Box::new(grant.clone())));
    let by = (&grant.granted_by, channel);
    event(work, &grant, by, None, EventBody::GrantAdded { grant_id: grant.id });
    Ok(Reply::Grant(Box::new(grant)))
}

pub(super) fn use_once<V: View>(
    work: &mut Work<V>,
    id: GrantId,
    by: &Principal,
    execution: Option<ExecutionId>,
) -> Decided<V> {
    let grant = work.view.grant(id).map_err(Stop::Read)?.ok_or(Error::NotFound("grant"))?;
    grant.is_usable(work.now).map_err(|why| Error::conflict(why.to_string()))?;
    let grant = Grant { uses: grant.uses.saturating_add(1), ..grant };
    work.writes.push(Write::Grant(Box::new(grant.clone())));
    event(work, &grant, (by, Channel::Service), execution, EventBody::GrantUsed { grant_id: id });
    Ok(Reply::Grant(Box::new(grant)))
}

pub(super) fn revoke<V: View>(work: &mut Work<V>, id: GrantId, by: &Principal, channel: Channel) -> Decided<V> {
    check_person(by)?;
    let grant = work.view.grant(id).map_err(Stop::Read)?.ok_or(Error::NotFound("grant"))?;
    if grant.revoked_at.is_some() {
        return Ok(Reply::Grant(Box::new(grant)));
    }
    let grant = Grant { revoked_at: Some(work.now), ..grant };
    work.writes.push(Write::Grant(Box::new(grant.clone())));
    event(work, &grant, (by, channel), None, EventBody::GrantRevoked { grant_id: id });
    Ok(Reply::Grant(Box::new(grant)))
}
