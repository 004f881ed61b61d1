//! Writing what core decided, one statement a write, and giving each event its place in the chain.

use std::sync::LazyLock;

use rusqlite::types::Value;
use rusqlite::{Connection, ToSql, params};
use sayso_core::command::{Token, Write};
use sayso_core::event::{Event, NewEvent};
use sayso_core::execution::{Execution, Outcome};
use sayso_core::id::RoundId;
use sayso_core::policy::Grant;
use sayso_core::round::Round;

use super::known::Known;
use super::reader::ReadError;
use super::rows;
use crate::pending::grant_scope_text;

/// The end of the event chain, within one transaction.
#[derive(Clone)]
pub(super) struct Chain {
    last_seq: u64,
    last_hash: [u8; 32],
    /// Events of this transaction that are not stored yet.
    waiting: Vec<Event>,
}

/// How many events one statement stores; each number of them is a statement of its own to compile.
const EVENTS_A_STATEMENT: usize = 8;

impl Chain {
    pub(super) fn load(db: &Connection) -> Result<Self, ReadError> {
        let (last_seq, last_hash) = rows::last_event(db)?;
        Ok(Self { last_seq, last_hash, waiting: Vec::new() })
    }

    /// The number of the last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub(super) fn write(&mut self, db: &Connection, known: &Known, write: &Write) -> Result<(), ReadError> {
        match write {
            Write::Round(round) => match known.round(round.id) {
                Some(before) => change_round(db, &before, round)?,
                None => put_round(db, round)?,
            },
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
            Write::EraseRequestState(round) if known.has_no_state(*round) => {}
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
            Write::Execution(execution) => match known.execution(execution.id) {
                Some(_) => change_execution(db, execution)?,
                None => put_execution(db, execution)?,
            },
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
    pub(super) fn store(&mut self, db: &Connection) -> Result<(), ReadError> {
        for events in self.waiting.chunks(EVENTS_A_STATEMENT) {
            let places = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?)"; events.len()].join(", ");
            let mut statement = db.prepare_cached(&format!(
                "INSERT INTO events (seq, at, execution_id, round_id, principal, channel, body, previous_hash, hash)
                 VALUES {places}"
            ))?;
            let mut place = 0;
            for Event { seq, event, previous_hash, hash } in events {
                let body = serde_json::to_string(&event.body).map_err(|_| ReadError::Corrupt("event"))?;
                let (execution, round) =
                    (event.execution_id.map(|id| id.to_bytes()), event.round_id.map(|id| id.to_bytes()));
                let principal = event.principal.as_ref().map(ToString::to_string);
                let values: [&dyn ToSql; 9] = [
                    &i64::try_from(*seq).unwrap_or(i64::MAX),
                    &event.at.0,
                    &execution,
                    &round,
                    &principal,
                    &event.channel.map(|channel| channel.as_str()),
                    &body,
                    previous_hash,
                    hash,
                ];
                for value in values {
                    place += 1;
                    statement.raw_bind_parameter(place, value)?;
                }
            }
            statement.raw_execute()?;
        }
        self.waiting.clear();
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

/// What may change of a round, in groups that change together. A statement names only the groups that did: SQLite then
/// leaves the indexes over the others alone.
struct Group {
    columns: &'static str,
    differs: fn(&Round, &Round) -> bool,
    values: fn(&Round) -> Vec<Value>,
}

const GROUPS: [Group; 6] = [
    Group {
        columns: "owner = ?, token = ?",
        differs: |before, after| before.fence != after.fence,
        values: |round| {
            let fence = round.fence.as_ref();
            vec![
                Value::from(fence.map(|fence| fence.owner.clone())),
                Value::from(fence.map(|fence| fence.token.0.to_be_bytes().to_vec())),
            ]
        },
    },
    Group {
        columns: "answer_key = ?, answer_hash = ?, answered_by = ?, answered_channel = ?, answered_at = ?, \
                  answered_action = ?",
        differs: |before, after| before.answer_key != after.answer_key || before.answered != after.answered,
        values: |round| {
            let answered = round.answered.as_ref();
            let action = answered.and_then(|answered| answered.action);
            vec![
                Value::from(round.answer_key.as_ref().map(|(key, _)| key.clone())),
                Value::from(round.answer_key.as_ref().map(|(_, hash)| hash.to_vec())),
                Value::from(answered.map(|answered| answered.principal.to_string())),
                Value::from(answered.map(|answered| answered.channel.as_str().to_owned())),
                Value::from(answered.map(|answered| answered.at.0)),
                Value::from(action.map(|action| action.as_str().to_owned())),
            ]
        },
    },
    Group {
        columns: "delivery_attempts = ?, delivery_started_at = ?, delivered_at = ?",
        differs: |before, after| {
            (before.delivery_attempts, before.delivery_started_at, before.delivered_at)
                != (after.delivery_attempts, after.delivery_started_at, after.delivered_at)
        },
        values: |round| {
            vec![
                Value::from(i64::from(round.delivery_attempts)),
                Value::from(round.delivery_started_at.map(|at| at.0)),
                Value::from(round.delivered_at.map(|at| at.0)),
            ]
        },
    },
    Group {
        columns: "collect_key = ?",
        differs: |before, after| before.collect_key != after.collect_key,
        values: |round| vec![Value::from(round.collect_key.clone())],
    },
    Group {
        columns: "url_completed_at = ?",
        differs: |before, after| before.url_completed_at != after.url_completed_at,
        values: |round| vec![Value::from(round.url_completed_at.map(|at| at.0))],
    },
    Group {
        columns: "finished_at = ?, failure_code = ?, failure_message = ?",
        differs: |before, after| before.finished_at != after.finished_at || before.failure != after.failure,
        values: |round| {
            let failure = round.failure.as_ref();
            vec![
                Value::from(round.finished_at.map(|at| at.0)),
                Value::from(failure.map(|failure| failure.code.clone())),
                Value::from(failure.map(|failure| failure.message.clone())),
            ]
        },
    },
];

fn change_round(db: &Connection, before: &Round, after: &Round) -> rusqlite::Result<()> {
    let mut statement = String::from("UPDATE rounds SET status = ?, rev = ?");
    let mut values = vec![Value::from(after.status.as_str().to_owned()), Value::from(i64::from(after.rev))];
    for group in GROUPS.iter().filter(|group| (group.differs)(before, after)) {
        statement.push_str(", ");
        statement.push_str(group.columns);
        values.extend((group.values)(after));
    }
    statement.push_str(" WHERE id = ?");
    values.push(Value::from(after.id.to_bytes().to_vec()));
    db.prepare_cached(&statement)?.execute(rusqlite::params_from_iter(values))?;
    Ok(())
}

fn change_execution(db: &Connection, execution: &Execution) -> rusqlite::Result<()> {
    let failure = match &execution.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    };
    db.prepare_cached(
        "UPDATE executions SET pending_inputs = ?1, pending_approvals = ?2, finished_at = ?3, outcome = ?4,
             failure_code = ?5, failure_message = ?6, collected_at = ?7 WHERE id = ?8",
    )?
    .execute(params![
        execution.pending_inputs,
        execution.pending_approvals,
        execution.finished_at.map(|at| at.0),
        execution.outcome.as_ref().map(Outcome::as_str),
        failure.map(|failure| &failure.code),
        failure.map(|failure| &failure.message),
        execution.collected_at.map(|at| at.0),
        execution.id.to_bytes(),
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
