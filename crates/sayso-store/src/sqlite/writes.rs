//! Writing what core decided, one statement a write, and giving each event its place in the chain.

use std::sync::LazyLock;

use rusqlite::{Connection, params};
use sayso_core::command::{Token, Write};
use sayso_core::event::{Event, NewEvent};
use sayso_core::execution::{Execution, Outcome};
use sayso_core::id::RoundId;
use sayso_core::round::Round;

use super::reader::ReadError;
use super::rows;

/// The end of the event chain, within one transaction.
#[derive(Clone)]
pub(super) struct Chain {
    last_seq: u64,
    last_hash: [u8; 32],
}

impl Chain {
    pub(super) fn load(db: &Connection) -> Result<Self, ReadError> {
        let (last_seq, last_hash) = rows::last_event(db)?;
        Ok(Self { last_seq, last_hash })
    }

    /// The number of the last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub(super) fn write(&mut self, db: &Connection, write: &Write) -> Result<(), ReadError> {
        match write {
            Write::Round(round) => put_round(db, round)?,
            Write::Requests { round, requests, calls, suggestion_of, request_state } => {
                let suggestion = suggestion_of.map(RoundId::to_bytes);
                db.prepare_cached(
                    "INSERT INTO round_requests (round_id, requests, calls, suggestion_of) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![round.to_bytes(), requests.as_str(), calls.as_str(), suggestion])?;
                if let Some(state) = request_state {
                    db.prepare_cached("INSERT INTO request_states (round_id, request_state) VALUES (?1, ?2)")?
                        .execute(params![round.to_bytes(), state])?;
                }
            }
            Write::Details { round, details } => {
                db.prepare_cached("INSERT INTO round_details (round_id, details) VALUES (?1, ?2)")?
                    .execute(params![round.to_bytes(), details.as_str()])?;
            }
            Write::EraseRequestState(round) => {
                db.prepare_cached("DELETE FROM request_states WHERE round_id = ?1")?
                    .execute(params![round.to_bytes()])?;
            }
            Write::Answer { round, submitted, effective } => {
                db.prepare_cached("INSERT INTO answers (round_id, submitted, effective) VALUES (?1, ?2, ?3)")?
                    .execute(params![round.to_bytes(), submitted.as_str(), effective.as_str()])?;
            }
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
            Write::Execution(execution) => put_execution(db, execution)?,
            Write::Result { execution, result } => {
                db.prepare_cached("INSERT INTO results (execution_id, result) VALUES (?1, ?2)")?
                    .execute(params![execution.to_bytes(), result.as_str()])?;
            }
            Write::Owner { owner, expires_at: Some(until) } => {
                db.prepare_cached(
                    "INSERT INTO owners (owner, expires_at) VALUES (?1, ?2)
                     ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at",
                )?
                .execute(params![owner, until.0])?;
            }
            Write::Owner { owner, expires_at: None } => {
                db.prepare_cached("DELETE FROM owners WHERE owner = ?1")?.execute(params![owner])?;
            }
            Write::Token(token) => put_token(db, token)?,
            Write::Event(event) => self.append(db, event.clone())?,
        }
        Ok(())
    }

    fn append(&mut self, db: &Connection, event: NewEvent) -> Result<(), ReadError> {
        let Event { seq, event, previous_hash, hash } =
            Event::chained(event, self.last_seq.saturating_add(1), self.last_hash);
        let body = serde_json::to_string(&event.body).map_err(|_| ReadError::Corrupt("event"))?;
        db.prepare_cached(
            "INSERT INTO events (seq, at, execution_id, round_id, principal, channel, body, previous_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            i64::try_from(seq).unwrap_or(i64::MAX),
            event.at.0,
            event.execution_id.map(|id| id.to_bytes()),
            event.round_id.map(|id| id.to_bytes()),
            event.principal.map(|principal| principal.to_string()),
            event.channel.map(|channel| channel.as_str()),
            body,
            previous_hash,
            hash,
        ])?;
        (self.last_seq, self.last_hash) = (seq, hash);
        Ok(())
    }
}

/// A statement that stores a row, or changes the row of the same key. Never `OR REPLACE`, which would silently delete
/// another row that holds the same unique value.
fn upsert(table: &str, key: &str, columns: &str) -> String {
    let names: Vec<&str> = columns.split(',').map(str::trim).collect();
    let places = vec!["?"; names.len()].join(", ");
    let changes: Vec<_> =
        names.iter().filter(|name| **name != key).map(|name| format!("{name} = excluded.{name}")).collect();
    format!(
        "INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT ({key}) DO UPDATE SET {}",
        changes.join(", ")
    )
}

fn put_round(db: &Connection, round: &Round) -> rusqlite::Result<()> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("rounds", "id", rows::ROUND_COLUMNS));
    let answered = round.answered.as_ref();
    db.prepare_cached(&STATEMENT)?.execute(params![
        round.id.to_bytes(),
        round.execution_id.to_bytes(),
        round.logical_operation_id,
        round.server,
        round.operation_kind.as_str(),
        round.operation_name,
        round.asked_by.to_string(),
        round.delivery.as_str(),
        round.index,
        round.limit,
        round.created_at.0,
        round.deadline.map(|at| at.0),
        round.digest.to_bytes(),
        round.has_approval,
        round.status.as_str(),
        round.rev,
        round.fence.as_ref().map(|fence| fence.owner.clone()),
        round.fence.as_ref().map(|fence| fence.token.0.to_be_bytes()),
        round.delivery_attempts,
        round.answer_key.as_ref().map(|(key, _)| key.clone()),
        round.answer_key.as_ref().map(|(_, hash)| *hash),
        answered.map(|answered| answered.principal.to_string()),
        answered.map(|answered| answered.channel.as_str()),
        answered.map(|answered| answered.at.0),
        answered.and_then(|answered| answered.action).map(|action| action.as_str()),
        round.collect_key,
        round.delivery_started_at.map(|at| at.0),
        round.delivered_at.map(|at| at.0),
        round.finished_at.map(|at| at.0),
        round.url_completed_at.map(|at| at.0),
        round.failure.as_ref().map(|failure| failure.code.clone()),
        round.failure.as_ref().map(|failure| failure.message.clone()),
    ])?;
    Ok(())
}

fn put_execution(db: &Connection, execution: &Execution) -> rusqlite::Result<()> {
    let failure = match &execution.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    };
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("executions", "id", rows::EXECUTION_COLUMNS));
    db.prepare_cached(&STATEMENT)?.execute(params![
        execution.id.to_bytes(),
        execution.kind.as_str(),
        execution.started_by.to_string(),
        execution.owner,
        execution.ends_with_round,
        execution.pending_inputs,
        execution.pending_approvals,
        execution.created_at.0,
        execution.finished_at.map(|at| at.0),
        execution.outcome.as_ref().map(Outcome::as_str),
        failure.map(|failure| failure.code.clone()),
        failure.map(|failure| failure.message.clone()),
        execution.collected_at.map(|at| at.0),
    ])?;
    Ok(())
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
