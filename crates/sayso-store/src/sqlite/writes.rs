//! Writing what core decided, a statement a write, and giving each event its place in the chain.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, params};
use sayso_core::command::{Token, Write};
use sayso_core::event::{Event, NewEvent};
use sayso_core::execution::{Execution, Outcome};
use sayso_core::id::RoundId;
use sayso_core::policy::Grant;
use sayso_core::round::{Failure, Round};

use super::change::Waiting;
use super::known::Known;
use super::reader::ReadError;
use super::rows;
use super::statements::{Sql, Statements, upsert};
use crate::pending::grant_scope_text;

/// The end of the event chain, within one transaction.
pub(super) struct Chain {
    last_seq: u64,
    last_hash: [u8; 32],
    /// Events of this transaction that are not stored yet.
    waiting: Vec<Event>,
}

/// A place in the chain.
pub(super) struct Mark {
    last_seq: u64,
    last_hash: [u8; 32],
    waiting: usize,
}

/// How many events one statement stores; each number of them is a statement of its own to compile.
const EVENTS_A_STATEMENT: usize = 8;

impl Chain {
    pub(super) fn load(db: &Connection) -> Result<Self, ReadError> {
        let (last_seq, last_hash) = rows::last_event(db)?;
        Ok(Self { last_seq, last_hash, waiting: Vec::new() })
    }

    /// Where the chain ends now, to go back to.
    pub(super) fn mark(&self) -> Mark {
        Mark { last_seq: self.last_seq, last_hash: self.last_hash, waiting: self.waiting.len() }
    }

    /// Takes back the events since `mark`, none of which is stored yet.
    pub(super) fn back_to(&mut self, mark: Mark) {
        (self.last_seq, self.last_hash) = (mark.last_seq, mark.last_hash);
        self.waiting.truncate(mark.waiting);
    }

    /// The number of the last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub(super) fn write(
        &mut self,
        statements: &Statements<'_>,
        known: &Known,
        waiting: &Waiting,
        write: &Write,
    ) -> Result<(), ReadError> {
        let db = statements.db;
        match write {
            Write::Round(round) if round.rev == 1 => put_round(statements, round)?,
            Write::Round(round) => {
                let before = match known.round(round.id) {
                    Some(before) => before,
                    None => rows::round(db, round.id)?.map(Arc::new).ok_or(ReadError::Corrupt("round"))?,
                };
                waiting.put(statements, before, round)?;
            }
            Write::Requests { round, requests, calls, suggestion_of, request_state } => {
                statements.run(Sql::InsertRequests, |to| {
                    to.put(round.to_bytes())?;
                    to.put(requests.as_str())?;
                    to.put(calls.as_str())?;
                    to.put(suggestion_of.map(RoundId::to_bytes))
                })?;
                if let Some(state) = request_state {
                    db.prepare_cached("INSERT INTO request_states (round_id, request_state) VALUES (?1, ?2)")?
                        .execute(params![round.to_bytes(), state])?;
                }
            }
            Write::EraseRequestState(round) if known.has_no_state(*round) => {}
            Write::Details { round, details } => {
                db.prepare_cached("INSERT INTO round_details (round_id, details) VALUES (?1, ?2)")?
                    .execute(params![round.to_bytes(), details.as_str()])?;
            }
            Write::EraseRequestState(round) => {
                db.prepare_cached("DELETE FROM request_states WHERE round_id = ?1")?
                    .execute(params![round.to_bytes()])?;
            }
            Write::Answer { round, submitted, effective } => statements.run(Sql::InsertAnswer, |to| {
                to.put(round.to_bytes())?;
                to.put(submitted.as_str())?;
                to.put(effective.as_str())
            })?,
            Write::Creation { principal, creation, round } => {
                db.prepare_cached(
                    "INSERT INTO creations (principal, key, round_id, fingerprint) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    principal.to_string(),
                    creation.key,
                    round.to_bytes(),
                    creation.fingerprint
                ])?;
            }
            Write::Execution(execution) => match known.execution(execution.id) {
                Some(before) if is_held_alike(&before, execution) => change_execution(statements, execution)?,
                _ => put_execution(statements, execution)?,
            },
            Write::Result { execution, result } => {
                db.prepare_cached("INSERT INTO results (execution_id, result) VALUES (?1, ?2)")?
                    .execute(params![execution.to_bytes(), result.as_str()])?;
            }
            Write::Owner { owner, expires_at: Some(until) } => statements.run(Sql::PutOwner, |to| {
                to.put(owner)?;
                to.put(until.0)
            })?,
            Write::Owner { owner, expires_at: None } => {
                db.prepare_cached("DELETE FROM owners WHERE owner = ?1")?.execute(params![owner])?;
            }
            Write::Token(token) => put_token(db, token)?,
            Write::Grant(grant) => put_grant(db, grant)?,
            Write::Event(event) => self.append(event.clone()),
        }
        Ok(())
    }

    /// Gives the event its place. It is stored with the others of its transaction, by [`Chain::store`].
    fn append(&mut self, event: NewEvent) {
        let event = Event::chained(event, self.last_seq.saturating_add(1), self.last_hash);
        (self.last_seq, self.last_hash) = (event.seq, event.hash);
        self.waiting.push(event);
    }

    /// Stores the events that have been given their places, several a statement. Nothing in a transaction reads them.
    pub(super) fn store(&mut self, statements: &Statements<'_>) -> Result<(), ReadError> {
        for events in self.waiting.chunks(EVENTS_A_STATEMENT) {
            let bodies: Vec<String> = events
                .iter()
                .map(|event| serde_json::to_string(&event.event.body).map_err(|_| ReadError::Corrupt("event")))
                .collect::<Result<_, _>>()?;
            statements.run(Sql::InsertEvents(events.len()), |to| {
                for (Event { seq, event, previous_hash, hash }, body) in events.iter().zip(&bodies) {
                    to.put(i64::try_from(*seq).unwrap_or(i64::MAX))?;
                    to.put(event.at.0)?;
                    to.put(event.execution_id.map(|id| id.to_bytes()))?;
                    to.put(event.round_id.map(|id| id.to_bytes()))?;
                    to.put(event.principal.as_ref().map(ToString::to_string))?;
                    to.put(event.channel.map(|channel| channel.as_str()))?;
                    to.put(body)?;
                    to.put(previous_hash)?;
                    to.put(hash)?;
                }
                Ok(())
            })?;
        }
        self.waiting.clear();
        Ok(())
    }
}

/// Stores a new round.
fn put_round(statements: &Statements<'_>, round: &Round) -> rusqlite::Result<()> {
    let answered = round.answered.as_ref();
    statements.run(Sql::InsertRound, |to| {
        to.put(round.id.to_bytes())?;
        to.put(round.execution_id.to_bytes())?;
        to.put(round.logical_operation_id.as_str())?;
        to.put(round.server.as_str())?;
        to.put(round.operation_kind.as_str())?;
        to.put(round.operation_name.as_str())?;
        to.put(round.asked_by.to_string())?;
        to.put(round.delivery.as_str())?;
        to.put(round.index)?;
        to.put(round.limit)?;
        to.put(round.created_at.0)?;
        to.put(round.deadline.map(|at| at.0))?;
        to.put(round.digest.to_bytes())?;
        to.put(round.has_approval)?;
        to.put(round.status.as_str())?;
        to.put(round.rev)?;
        to.put(round.fence.as_ref().map(|fence| fence.owner.as_str()))?;
        to.put(round.fence.as_ref().map(|fence| fence.token.0.to_be_bytes()))?;
        to.put(round.delivery_attempts)?;
        to.put(round.answer_key.as_ref().map(|(key, _)| key.as_str()))?;
        to.put(round.answer_key.as_ref().map(|(_, hash)| *hash))?;
        to.put(answered.map(|answered| answered.principal.to_string()))?;
        to.put(answered.map(|answered| answered.channel.as_str()))?;
        to.put(answered.map(|answered| answered.at.0))?;
        to.put(answered.and_then(|answered| answered.action).map(|action| action.as_str()))?;
        to.put(round.collect_key.as_deref())?;
        to.put(round.delivery_started_at.map(|at| at.0))?;
        to.put(round.delivered_at.map(|at| at.0))?;
        to.put(round.finished_at.map(|at| at.0))?;
        to.put(round.url_completed_at.map(|at| at.0))?;
        to.put(round.failure.as_ref().map(|failure| failure.code.as_str()))?;
        to.put(round.failure.as_ref().map(|failure| failure.message.as_str()))
    })
}

fn failure_of(execution: &Execution) -> Option<&Failure> {
    match &execution.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    }
}

fn put_execution(statements: &Statements<'_>, execution: &Execution) -> rusqlite::Result<()> {
    let failure = failure_of(execution);
    statements.run(Sql::PutExecution, |to| {
        to.put(execution.id.to_bytes())?;
        to.put(execution.kind.as_str())?;
        to.put(execution.started_by.to_string())?;
        to.put(execution.owner.as_deref())?;
        to.put(execution.ends_with_round)?;
        to.put(execution.pending_inputs)?;
        to.put(execution.pending_approvals)?;
        to.put(execution.created_at.0)?;
        to.put(execution.finished_at.map(|at| at.0))?;
        to.put(execution.outcome.as_ref().map(Outcome::as_str))?;
        to.put(failure.map(|failure| failure.code.as_str()))?;
        to.put(failure.map(|failure| failure.message.as_str()))?;
        to.put(execution.collected_at.map(|at| at.0))
    })
}

/// Whether nothing changed but what usually does: only suspending makes an execution nobody's.
fn is_held_alike(before: &Execution, after: &Execution) -> bool {
    before.owner == after.owner && before.ends_with_round == after.ends_with_round
}

fn change_execution(statements: &Statements<'_>, execution: &Execution) -> rusqlite::Result<()> {
    let failure = failure_of(execution);
    statements.run(Sql::ChangeExecution, |to| {
        to.put(execution.pending_inputs)?;
        to.put(execution.pending_approvals)?;
        to.put(execution.finished_at.map(|at| at.0))?;
        to.put(execution.outcome.as_ref().map(Outcome::as_str))?;
        to.put(failure.map(|failure| failure.code.as_str()))?;
        to.put(failure.map(|failure| failure.message.as_str()))?;
        to.put(execution.collected_at.map(|at| at.0))?;
        to.put(execution.id.to_bytes())
    })
}

fn put_token(db: &Connection, token: &Token) -> rusqlite::Result<()> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("tokens", "id", rows::TOKEN_COLUMNS));
    db.prepare_cached(&STATEMENT)?.execute(params![
        token.id.to_bytes(),
        token.use_.as_str(),
        token.principal.to_string(),
        token.hash,
        token.created_at.0,
        token.expires_at.map(|at| at.0),
        token.revoked_at.map(|at| at.0),
    ])?;
    Ok(())
}

fn put_grant(db: &Connection, grant: &Grant) -> Result<(), ReadError> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("grants", "id", rows::GRANT_COLUMNS));
    let scope = grant_scope_text(&grant.scope).ok_or(ReadError::Corrupt("grant"))?;
    db.prepare_cached(&STATEMENT)?.execute(params![
        grant.id.to_bytes(),
        scope,
        grant.scope.session(),
        grant.agent.as_ref().map(ToString::to_string),
        grant.round.map(RoundId::to_bytes),
        grant.granted_by.to_string(),
        grant.granted_at.0,
        grant.expires_at.map(|at| at.0),
        grant.uses_max,
        grant.uses,
        grant.revoked_at.map(|at| at.0),
    ])?;
    Ok(())
}
