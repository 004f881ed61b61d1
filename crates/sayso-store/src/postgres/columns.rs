//! Rows as columns: what the statements that write take.

use std::sync::Arc;

use foldhash::HashMap;
use sayso_core::command::{Creation, Token};
use sayso_core::event::NewEvent;
use sayso_core::execution::{Execution, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::round::{Answered, Digest, Failure, Round};
use sayso_core::time::UnixMs;
use tokio_postgres::types::ToSql;

use super::connection::Parameter;
use super::memory::Requests;
use super::statements::Part;
use super::value::{Corrupt, Key, Private};
use crate::pending::{grant_scope_text, is_sought};

/// One column of some rows.
pub(super) type Column<'a> = Box<dyn Values + 'a>;

/// The values of a column as a parameter.
pub(super) trait Values: Send + Sync {
    /// All of them as an array.
    fn array(&self) -> Parameter<'_>;
    /// The only one, where there is one.
    fn only(&self) -> Option<Parameter<'_>>;
}

impl<T: ToSql + Sync + Send> Values for Vec<T> {
    fn array(&self) -> Parameter<'_> {
        self
    }
    fn only(&self) -> Option<Parameter<'_>> {
        match self.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// A row as it is now, with what is stored of it.
type Change<'a, T> = (&'a T, &'a T);

pub(super) fn column<'a, R: Copy, T: ToSql + Sync + Send + 'a>(rows: &[R], pick: impl Fn(R) -> T) -> Column<'a> {
    Box::new(rows.iter().copied().map(pick).collect::<Vec<T>>())
}

/// What never changes, with what is asked.
pub(super) fn of_facts<'a>(rows: &[(&'a Round, &'a Requests)]) -> Vec<Column<'a>> {
    vec![
        column(rows, |(row, _)| Key(row.id.to_bytes())),
        column(rows, |(row, _)| Key(row.execution_id.to_bytes())),
        column(rows, |(row, _)| row.logical_operation_id.as_str()),
        column(rows, |(row, _)| row.server.as_str()),
        column(rows, |(row, _)| row.operation_kind.as_str()),
        column(rows, |(row, _)| row.operation_name.as_str()),
        column(rows, |(row, _)| row.asked_by.to_string()),
        column(rows, |(row, _)| row.delivery.as_str()),
        column(rows, |(row, _)| i64::from(row.index)),
        column(rows, |(row, _)| i64::from(row.limit)),
        column(rows, |(row, _)| row.created_at.0),
        column(rows, |(row, _)| row.digest.to_bytes().to_vec()),
        column(rows, |(row, _)| row.has_approval),
        column(rows, |(_, asked): (&'a Round, &'a Requests)| Private(asked.requests.as_str())),
        column(rows, |(_, asked): (&'a Round, &'a Requests)| Private(asked.calls.as_str())),
        column(rows, |(_, asked)| asked.suggestion_of.map(|id| Key(id.to_bytes()))),
    ]
}

/// The state of new rounds: of what a round begins with, unless one has moved on already.
pub(super) fn of_states<'a>(rows: &[&'a Round]) -> (Part, Vec<Column<'a>>) {
    let sought = |row: &'a Round| Some(row.logical_operation_id.as_str()).filter(|name| is_sought(name));
    let mut columns = vec![
        column(rows, |row| Key(row.id.to_bytes())),
        column(rows, |row| row.deadline.map(|at| at.0)),
        column(rows, sought),
    ];
    if rows.iter().all(|row| row.rev == FIRST_REV) {
        columns.extend([
            column(rows, |row| row.status.as_str()),
            column(rows, |row| i64::from(row.rev)),
            column(rows, owner),
            column(rows, token),
            column(rows, |row| i64::from(row.delivery_attempts)),
        ]);
        return (Part::InsertFirstStates, columns);
    }
    columns.extend(round_state(rows));
    (Part::InsertStates, columns)
}

/// The number of a round's first state: whatever happens to it counts on.
const FIRST_REV: u32 = 1;

fn owner(row: &Round) -> Option<&str> {
    row.fence.as_ref().map(|fence| fence.owner.as_str())
}

fn token(row: &Round) -> Option<Key> {
    row.fence.as_ref().map(|fence| Key(fence.token.0.to_be_bytes()))
}

/// The key and the guard, then what changes: only what changes on a round's way, unless anything else of one does.
pub(super) fn of_state_changes<'a>(changes: &[Change<'a, Arc<Round>>]) -> (Part, Vec<Column<'a>>) {
    let rows: Vec<&'a Round> = changes.iter().map(|(row, _): &Change<'a, Arc<Round>>| &***row).collect();
    let mut columns = vec![
        column(&rows, |row| Key(row.id.to_bytes())),
        column(changes, |(_, before): Change<'a, Arc<Round>>| i64::from(before.rev)),
    ];
    if changes.iter().all(|(row, before)| beside_its_way(row) == beside_its_way(before)) {
        columns.extend([
            column(&rows, |row| row.status.as_str()),
            column(&rows, |row| i64::from(row.rev)),
            column(&rows, |row| i64::from(row.delivery_attempts)),
            column(&rows, answered_at),
            column(&rows, |row| row.delivery_started_at.map(|at| at.0)),
            column(&rows, |row| row.delivered_at.map(|at| at.0)),
            column(&rows, |row| row.finished_at.map(|at| at.0)),
        ]);
        return (Part::MoveStates, columns);
    }
    columns.extend(round_state(&rows));
    (Part::UpdateStates, columns)
}

/// What of a state may change and seldom does.
fn beside_its_way(row: &Round) -> impl PartialEq + '_ {
    (&row.fence, &row.collect_key, row.url_completed_at, &row.failure)
}

fn answered_at(row: &Round) -> Option<i64> {
    row.answered.as_ref().map(|answered| answered.at.0)
}

fn round_state<'a>(rows: &[&'a Round]) -> Vec<Column<'a>> {
    let withdrawn_from = |row: &'a Round| {
        let failure = row.failure.as_ref()?;
        (failure.code == Failure::WITHDRAWN).then_some(row.server.as_str())
    };
    vec![
        column(rows, |row| row.status.as_str()),
        column(rows, |row| i64::from(row.rev)),
        column(rows, owner),
        column(rows, token),
        column(rows, |row| i64::from(row.delivery_attempts)),
        column(rows, |row| row.collect_key.as_deref()),
        column(rows, answered_at),
        column(rows, |row| row.delivery_started_at.map(|at| at.0)),
        column(rows, |row| row.delivered_at.map(|at| at.0)),
        column(rows, |row| row.finished_at.map(|at| at.0)),
        column(rows, |row| row.url_completed_at.map(|at| at.0)),
        column(rows, |row| row.failure.as_ref().map(|failure| failure.code.as_str())),
        column(rows, |row| row.failure.as_ref().map(|failure| failure.message.as_str())),
        column(rows, withdrawn_from),
    ]
}

fn failure(row: &Execution) -> Option<&Failure> {
    match &row.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    }
}

pub(super) fn of_executions<'a>(rows: &[&'a Execution]) -> Vec<Column<'a>> {
    vec![
        column(rows, |row| Key(row.id.to_bytes())),
        column(rows, |row| row.kind.as_str()),
        column(rows, |row| row.started_by.to_string()),
        column(rows, |row| row.owner.as_deref()),
        column(rows, |row| row.ends_with_round),
        column(rows, |row| row.created_at.0),
        column(rows, |row| row.finished_at.map(|at| at.0)),
        column(rows, |row| row.outcome.as_ref().map(Outcome::as_str)),
        column(rows, |row: &'a Execution| failure(row).map(|failure| failure.code.as_str())),
        column(rows, |row: &'a Execution| failure(row).map(|failure| failure.message.as_str())),
        column(rows, |row| row.collected_at.map(|at| at.0)),
    ]
}

/// The key and the guard, which is how often the row had been written, then what changes.
pub(super) fn of_execution_states<'a>(
    changes: &[Change<'a, Arc<Execution>>],
    revs: &HashMap<ExecutionId, i64>,
) -> Vec<Column<'a>> {
    let rows: Vec<&'a Execution> = changes.iter().map(|(row, _): &Change<'a, Arc<Execution>>| &***row).collect();
    vec![
        column(&rows, |row| Key(row.id.to_bytes())),
        column(&rows, |row| revs.get(&row.id).copied().unwrap_or_default()),
        column(&rows, |row| row.owner.as_deref()),
        column(&rows, |row| row.ends_with_round),
        column(&rows, |row| row.finished_at.map(|at| at.0)),
        column(&rows, |row| row.outcome.as_ref().map(Outcome::as_str)),
        column(&rows, |row: &'a Execution| failure(row).map(|failure| failure.code.as_str())),
        column(&rows, |row: &'a Execution| failure(row).map(|failure| failure.message.as_str())),
        column(&rows, |row| row.collected_at.map(|at| at.0)),
    ]
}

pub(super) fn of_tokens<'a>(rows: &[&'a Token]) -> Vec<Column<'a>> {
    vec![
        column(rows, |row| Key(row.id.to_bytes())),
        column(rows, |row| row.use_.as_str()),
        column(rows, |row| row.principal.to_string()),
        column(rows, |row: &'a Token| row.hash.as_slice()),
        column(rows, |row| row.created_at.0),
        column(rows, |row| row.expires_at.map(|at| at.0)),
        column(rows, |row| row.revoked_at.map(|at| at.0)),
    ]
}

pub(super) fn of_token_states<'a>(changes: &[Change<'a, Token>]) -> Vec<Column<'a>> {
    vec![
        column(changes, |(row, _): Change<'a, Token>| Key(row.id.to_bytes())),
        column(changes, |(row, _): Change<'a, Token>| row.created_at.0),
        column(changes, |(row, _): Change<'a, Token>| row.revoked_at.map(|at| at.0)),
    ]
}

pub(super) fn of_grants<'a>(rows: &[&'a Grant]) -> Result<Vec<Column<'a>>, Corrupt> {
    let scopes: Vec<String> =
        rows.iter().map(|row| grant_scope_text(&row.scope).ok_or(Corrupt("grant"))).collect::<Result<_, _>>()?;
    Ok(vec![
        column(rows, |row| Key(row.id.to_bytes())),
        Box::new(scopes),
        column(rows, |row| row.scope.session()),
        column(rows, |row| row.agent.as_ref().map(ToString::to_string)),
        column(rows, |row| row.round.map(|id| Key(id.to_bytes()))),
        column(rows, |row| row.granted_by.to_string()),
        column(rows, |row| row.granted_at.0),
        column(rows, |row| row.expires_at.map(|at| at.0)),
        column(rows, |row| row.uses_max.map(i64::from)),
        column(rows, |row| i64::from(row.uses)),
        column(rows, |row| row.revoked_at.map(|at| at.0)),
    ])
}

pub(super) fn of_grant_states<'a>(changes: &[Change<'a, Grant>]) -> Vec<Column<'a>> {
    vec![
        column(changes, |(row, _): Change<'a, Grant>| Key(row.id.to_bytes())),
        column(changes, |(_, before): Change<'a, Grant>| i64::from(before.uses)),
        column(changes, |(row, _): Change<'a, Grant>| i64::from(row.uses)),
        column(changes, |(row, _): Change<'a, Grant>| row.revoked_at.map(|at| at.0)),
    ]
}

/// An answer with who gave it: its round's key and its mark of being answered.
pub(super) type Given<'a> = (&'a (RoundId, Json, Json), &'a (String, [u8; 32]), &'a Answered);

pub(super) fn of_answers<'a>(rows: &[Given<'a>]) -> Vec<Column<'a>> {
    vec![
        column(rows, |((round, _, _), _, _)| Key(round.to_bytes())),
        column(rows, |(_, (key, _), _): Given<'a>| key.as_str()),
        column(rows, |(_, (_, hash), _): Given<'a>| hash.as_slice()),
        column(rows, |(_, _, answered)| answered.principal.to_string()),
        column(rows, |(_, _, answered)| answered.channel.as_str()),
        column(rows, |(_, _, answered)| answered.action.map(|action| action.as_str())),
        column(rows, |((_, submitted, _), _, _): Given<'a>| Private(submitted.as_str())),
        column(rows, |((_, _, effective), _, _): Given<'a>| Private(effective.as_str())),
    ]
}

pub(super) fn of_creations<'a>(rows: &[&'a (String, Creation, RoundId)]) -> Vec<Column<'a>> {
    vec![
        column(rows, |(principal, _, _): &'a (String, Creation, RoundId)| principal.as_str()),
        column(rows, |(_, creation, _): &'a (String, Creation, RoundId)| creation.key.as_str()),
        column(rows, |(_, _, round)| Key(round.to_bytes())),
        column(rows, |(_, creation, _): &'a (String, Creation, RoundId)| creation.fingerprint.as_slice()),
    ]
}

pub(super) fn of_reviewed<'a>(rows: &[(&'a str, &'a [u8], Digest, UnixMs)]) -> Vec<Column<'a>> {
    vec![
        column(rows, |(agent, ..)| agent),
        column(rows, |(_, tool, ..)| tool),
        column(rows, |(_, _, definition, _)| definition.to_bytes().to_vec()),
        column(rows, |(.., at)| at.0),
    ]
}

pub(super) fn of_results<'a>(rows: &[&'a (ExecutionId, Json)]) -> Vec<Column<'a>> {
    vec![
        column(rows, |(execution, _)| Key(execution.to_bytes())),
        column(rows, |(_, result): &'a (ExecutionId, Json)| Private(result.as_str())),
    ]
}

pub(super) fn of_details<'a>(rows: &[&'a (RoundId, Json)]) -> Vec<Column<'a>> {
    vec![
        column(rows, |(round, _)| Key(round.to_bytes())),
        column(rows, |(_, details): &'a (RoundId, Json)| Private(details.as_str())),
    ]
}

/// What an event says beside its place in the chain.
pub(super) fn of_events<'a>(rows: &[&'a NewEvent]) -> Result<Vec<Column<'a>>, Corrupt> {
    let bodies: Vec<String> = rows
        .iter()
        .map(|row| serde_json::to_string(&row.body).map_err(|_| Corrupt("event")))
        .collect::<Result<_, _>>()?;
    Ok(vec![
        column(rows, |row| row.at.0),
        column(rows, |row| row.execution_id.map(|id| Key(id.to_bytes()))),
        column(rows, |row| row.round_id.map(|id| Key(id.to_bytes()))),
        column(rows, |row| row.principal.as_ref().map(ToString::to_string)),
        column(rows, |row| row.channel.map(|channel| channel.as_str())),
        Box::new(bodies),
    ])
}
