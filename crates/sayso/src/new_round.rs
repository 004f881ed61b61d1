//! What an agent asks, checked, as the round that it becomes.

use sayso_core::command::{Creation, NewRound, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::round::{Delivery, Digest};
use sayso_core::time::UnixMs;
use sayso_store::GATE_PREFIX;

use crate::local_desk::LocalDesk;
use crate::question::Question;
use crate::{Ask, ids};

impl LocalDesk {
    /// The round that `ask` becomes once it is stored, and what it asks.
    pub(crate) async fn prepare(&self, mut ask: Ask, key: Option<String>) -> Result<(NewRound, Question), Error> {
        let delivery = ask.delivery.unwrap_or(Delivery::Resumable);
        let owner = ask.owner_id.take();
        if owner.is_some_and(|owner| delivery == Delivery::Resumable || owner != self.owner.name()) {
            return Err(Error::field("/owner_id", "must be this worker's, and only for a live round"));
        }
        check_names(&ask, key.as_deref())?;
        if let Some(suggestion) = ask.suggestion_of {
            self.own(suggestion).await?;
        }
        let (requests, compiled) = self.sayso.inner.questions.check(&ask.requests)?;
        let creation = match key {
            Some(key) => Some(Creation { key, fingerprint: Digest::of_text(&to_json(&ask)?.canonical()).to_bytes() }),
            None => None,
        };
        let now = self.sayso.store().now().await?;
        let deadline = deadline(&ask, now)?;
        let new_execution = ids::new_id(now, ExecutionId::from_parts)?;
        let execution = match ask.execution_id {
            Some(id) => RoundExecution::Existing(id),
            None => RoundExecution::New {
                id: new_execution,
                kind: ExecutionKind::Operation,
                // A live worker finishes its execution itself, with the operation's result.
                ends_with_round: delivery == Delivery::Resumable,
            },
        };
        let fence = match delivery {
            Delivery::Live => Some(self.owner.fence()?),
            Delivery::Resumable => None,
        };
        let default_name = || self.caller.name.to_string();
        let new = NewRound {
            id: ids::new_id(now, RoundId::from_parts)?,
            execution,
            logical_operation_id: ask.logical_operation_id.unwrap_or_else(|| "main".to_owned()),
            server: ask.server.unwrap_or_else(default_name),
            operation_kind: ask.operation_kind.unwrap_or_default(),
            operation_name: ask.operation_name.unwrap_or_else(default_name),
            asked_by: self.caller.clone(),
            delivery,
            fence,
            deadline,
            limit: ask.round_limit.unwrap_or(limits::ROUND_LIMIT_DEFAULT),
            digest: compiled.digest,
            has_approval: compiled.requests.has_approval(),
            requests: requests.clone(),
            calls: to_json(&ask.calls)?,
            suggestion_of: ask.suggestion_of,
            request_state: ask.request_state,
            creation,
        };
        let caller = self.caller.clone();
        let question = Question::new((caller, delivery), (ask.requests, requests), ask.calls, ask.suggestion_of);
        Ok((new, question))
    }
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<Json, Error> {
    let text = serde_json::to_string(value).map_err(|_| Error::field("/requests", "cannot be written as JSON"))?;
    Json::parse_within(&text, limits::ROUND_BYTES_MAX, sayso_core::limits::JSON_DEPTH_CEILING)
        .map_err(|_| Error::Limit(format!("a round may have at most {} bytes", limits::ROUND_BYTES_MAX)))
}

/// When the round expires: the moment that was asked for, or so long from `now`.
fn deadline(ask: &Ask, now: UnixMs) -> Result<Option<UnixMs>, Error> {
    match (ask.deadline, ask.deadline_in_ms) {
        (deadline, None) => Ok(deadline),
        (Some(_), Some(_)) => Err(Error::field("/deadline_in_ms", "stands in the place of deadline")),
        (None, Some(ms)) if (1..=limits::DEADLINE_MS_MAX).contains(&ms) => Ok(Some(now.plus_ms(ms))),
        (None, Some(_)) => Err(Error::field("/deadline_in_ms", format!("must be 1 to {}", limits::DEADLINE_MS_MAX))),
    }
}

fn check_names(ask: &Ask, key: Option<&str>) -> Result<(), Error> {
    let names = [
        ("/logical_operation_id", ask.logical_operation_id.as_deref()),
        ("/server", ask.server.as_deref()),
        ("/operation_name", ask.operation_name.as_deref()),
        ("/idempotency_key", key),
    ];
    if ask.logical_operation_id.as_ref().is_some_and(|operation| operation.starts_with(GATE_PREFIX)) {
        let message = format!("begins with {GATE_PREFIX}, which only a gate's rounds do");
        return Err(Error::field("/logical_operation_id", message));
    }
    for (pointer, name) in names {
        if name.is_some_and(|name| name.is_empty() || name.len() > limits::NAME_BYTES_MAX) {
            return Err(Error::field(pointer, format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX)));
        }
    }
    if ask.request_state.as_ref().is_some_and(|state| state.len() > limits::REQUEST_STATE_BYTES_MAX) {
        let message = format!("must have at most {} bytes", limits::REQUEST_STATE_BYTES_MAX);
        return Err(Error::field("/request_state", message));
    }
    Ok(())
}
