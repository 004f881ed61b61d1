//! What everybody but core reads of the maps.

use std::sync::Arc;

use sayso_core::command::{Token, TokenUse};
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::round::{Delivery, Failure, Round, Status};
use sayso_core::time::UnixMs;

use super::tables::Tables;
use crate::{Abandoned, ExecutionFilter, GrantFilter, GrantsOf, RoundFilter, StoredAnswer, StoredRound};

fn matches(round: &Round, filter: &RoundFilter) -> bool {
    filter.status.is_none_or(|status| round.status == status)
        && (!filter.finished_or_answered || round.status != Status::Pending)
        && filter.execution.is_none_or(|execution| round.execution_id == execution)
        && filter.asked_by.as_ref().is_none_or(|asker| round.asked_by == *asker)
        && filter
            .unfinished_late
            .as_ref()
            .is_none_or(|prefix| !round.status.is_finished() && round.logical_operation_id.starts_with(prefix.as_str()))
        && filter
            .unfinished_gated
            .as_ref()
            .is_none_or(|prefix| !round.status.is_finished() && round.logical_operation_id.starts_with(prefix.as_str()))
        && filter.before.is_none_or(|before| round.id < before)
}

fn is_of(grant: &Grant, filter: &GrantFilter) -> bool {
    let is_theirs = match &filter.of {
        GrantsOf::All => true,
        GrantsOf::Session(session) => grant.scope.session() == Some(session),
        GrantsOf::CallsIn(session) => grant.scope.session().is_none_or(|bound| bound == session),
    };
    is_theirs
        && filter.usable_at.is_none_or(|at| grant.is_usable(at).is_ok())
        && filter.before.is_none_or(|before| grant.id < before)
}

impl Tables {
    fn stored(&self, row: &Round) -> Option<StoredRound> {
        let asked = self.requests.get(&row.id)?;
        Some(StoredRound {
            row: row.clone(),
            requests: asked.requests.clone(),
            calls: asked.calls.clone(),
            suggestion_of: asked.suggestion_of,
        })
    }

    pub(super) fn stored_round(&self, id: RoundId) -> Option<StoredRound> {
        self.stored(self.rounds.get(&id)?)
    }

    pub(super) fn stored_rounds(&self, filter: &RoundFilter) -> Vec<StoredRound> {
        let found = self.rounds.values().rev().filter(|round| matches(round, filter));
        found.take(filter.limit).filter_map(|round| self.stored(round)).collect()
    }

    pub(super) fn answer(&self, id: RoundId) -> Option<StoredAnswer> {
        self.answers.get(&id).cloned()
    }

    pub(super) fn unfinished(&self, execution: ExecutionId) -> impl Iterator<Item = &Round> {
        let unfinished = move |round: &&Round| round.execution_id == execution && !round.status.is_finished();
        self.rounds.values().filter(unfinished)
    }

    fn with_pending(&self, execution: &Execution) -> (Execution, Vec<RoundId>) {
        let pending = self.unfinished(execution.id).filter(|round| round.status == Status::Pending);
        (execution.clone(), pending.map(|round| round.id).collect())
    }

    pub(super) fn execution_with_pending(&self, id: ExecutionId) -> Option<(Execution, Vec<RoundId>)> {
        self.executions.get(&id).map(|execution| self.with_pending(execution))
    }

    pub(super) fn executions(&self, filter: &ExecutionFilter) -> Vec<(Execution, Vec<RoundId>)> {
        let matches = |execution: &&Arc<Execution>| {
            filter.started_by.as_ref().is_none_or(|starter| execution.started_by == *starter)
                && filter.before.is_none_or(|before| execution.id < before)
        };
        let found = self.executions.values().rev().filter(matches);
        found.take(filter.limit).map(|execution| self.with_pending(execution)).collect()
    }

    pub(super) fn result(&self, id: ExecutionId) -> Option<Json> {
        self.results.get(&id).cloned()
    }

    pub(super) fn events_after(&self, seq: u64, limit: usize) -> Vec<Event> {
        let skipped = usize::try_from(seq).unwrap_or(usize::MAX);
        self.events.iter().skip(skipped).take(limit).cloned().collect()
    }

    pub(super) fn last_event(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    pub(super) fn token_of(&self, hash: &[u8; 32]) -> Option<Token> {
        self.tokens.values().find(|token| token.hash == *hash).cloned()
    }

    pub(super) fn api_tokens(&self) -> Vec<Token> {
        self.tokens.values().rev().filter(|token| token.use_ == TokenUse::Api).cloned().collect()
    }

    pub(super) fn listed_grants(&self, filter: &GrantFilter) -> Vec<Grant> {
        let found = self.grants.values().rev().filter(|grant| is_of(grant, filter));
        found.take(filter.limit).cloned().collect()
    }

    /// Pending rounds by their deadlines, earliest first.
    fn deadlines(&self) -> Vec<(UnixMs, RoundId)> {
        let pending = self.rounds.values().filter(|round| round.status == Status::Pending);
        let mut found: Vec<_> = pending.filter_map(|round| Some((round.deadline?, round.id))).collect();
        found.sort_unstable();
        found
    }

    pub(super) fn overdue(&self, now: UnixMs, limit: usize) -> Vec<RoundId> {
        let over = self.deadlines().into_iter().take_while(|(deadline, _)| *deadline < now);
        over.map(|(_, round)| round).take(limit).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<UnixMs> {
        self.deadlines().first().map(|(deadline, _)| *deadline)
    }

    pub(super) fn abandoned(&self, now: UnixMs, limit: usize) -> Vec<Abandoned> {
        let expired = |owner: &str| self.owners.get(owner).is_none_or(|until| *until <= now);
        let held = self.rounds.values().filter_map(|round| {
            let fence = round.fence.clone().filter(|fence| expired(&fence.owner))?;
            (round.delivery == Delivery::Live && !round.status.is_finished()).then(|| Abandoned {
                owner: fence.owner.clone(),
                expired_at: self.owners.get(&fence.owner).copied(),
                round: Some((round.id, fence)),
                execution: round.execution_id,
            })
        });
        let running = self.executions.values().filter_map(|execution| {
            let owner = execution.owner.clone().filter(|owner| expired(owner))?;
            let is_over = execution.outcome.is_some() || self.unfinished(execution.id).next().is_some();
            (!is_over).then(|| Abandoned {
                round: None,
                execution: execution.id,
                expired_at: self.owners.get(&owner).copied(),
                owner,
            })
        });
        let sorted = |found: &mut Vec<Abandoned>| {
            found.sort_by(|a, b| a.owner.cmp(&b.owner));
            found.truncate(limit);
        };
        let (mut held, mut running): (Vec<_>, Vec<_>) = (held.collect(), running.collect());
        sorted(&mut held);
        sorted(&mut running);
        held.extend(running);
        held
    }

    pub(super) fn last_wait_ms(&self, server: &str) -> Option<i64> {
        let withdrawn = self.rounds.values().filter(|round| {
            round.server == server && round.failure.as_ref().is_some_and(|failure| failure.code == Failure::WITHDRAWN)
        });
        let last = withdrawn.max_by_key(|round| round.finished_at)?;
        Some(last.finished_at?.0 - last.created_at.0)
    }
}
