//! What the policy decides in a person's place, for the audit trail: a denial, and what the mode `autonomous` lets run.
//! Calls that a rule allows leave no event; nobody would have been asked about them.

use super::apply::{Decided, Work};
use super::{Reply, View};
use crate::event::{EventBody, NewEvent};
use crate::principal::{Channel, Principal, PrincipalKind};

/// The key of a gated call, in its round and here.
const CALL_KEY: &str = "call";

pub(super) fn record<V: View>(work: &mut Work<V>, by: &Principal, ruling: &super::PolicyRuling) -> Decided<V> {
    work.event(NewEvent {
        at: work.now,
        execution_id: None,
        round_id: None,
        principal: Some(by.clone()),
        channel: Some(Channel::Service),
        body: EventBody::Approval {
            request_key: CALL_KEY.to_owned(),
            approved: ruling.approved,
            decided_by: Principal { kind: PrincipalKind::Policy, name: ruling.rule.as_str().into() },
            tool: Some(ruling.tool.clone()),
        },
    });
    Ok(Reply::Done)
}
