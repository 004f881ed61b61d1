use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, Row, ToSql, params};
use sayso_core::command::{DeliveryContent, Operation};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{Answered, Delivery, Digest, Facts, Failure, Fence, FenceToken, OperationKind, Round, Status};
use sayso_core::time::UnixMs;

use super::super::reader::ReadError;
use super::{every, first, json, maybe_word, moment, of_execution, row_count, word};
use crate::pending::{PENDING, in_status};
use crate::{RoundFilter, StoredAnswer, StoredRound};

/// The columns of what never changes of a round, in the order they are written.
pub(crate) const FACT_COLUMNS: &str = "id, execution_id, operation, server, operation_kind, operation_name, asked_by, \
    delivery, round_index, round_limit, created_at, digest, has_approval, requests, calls, suggestion_of, own_execution";

/// The columns of a round in the order they are read.
const COLUMNS: &str = "facts.id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, \
    round_index, round_limit, created_at, deadline, digest, has_approval, status, rev, \
    (SELECT owner FROM owners WHERE owners.n = holder), token, \
    delivery_attempts, answer_key, answer_hash, answered_by, answered_channel, answered_at, answered_action, \
    collect_key, delivery_started_at, delivered_at, finished_at, url_completed_at, failure_code, failure_message";
const COLUMN_COUNT: usize = 32;

/// The rows of rounds that are found by what never changes.
const BY_FACTS: &str = "round_facts AS facts CROSS JOIN round_states AS states ON states.n = facts.n \
    LEFT JOIN round_answers AS answers ON answers.n = facts.n";
/// The rows of rounds that are found by where they stand.
const BY_STATES: &str = "round_states AS states CROSS JOIN round_facts AS facts ON facts.n = states.n \
    LEFT JOIN round_answers AS answers ON answers.n = facts.n";

fn read_round(row: &Row<'_>) -> Result<Round, ReadError> {
    let corrupt = || ReadError::Corrupt("round");
    let fence = match (row.get::<_, Option<String>>(16)?, row.get::<_, Option<[u8; 16]>>(17)?) {
        (Some(owner), Some(token)) => Some(Fence { owner, token: FenceToken(u128::from_be_bytes(token)) }),
        (None, None) => None,
        _ => return Err(corrupt()),
    };
    let answer_key = match (row.get(19)?, row.get(20)?) {
        (Some(key), Some(hash)) => Some((key, hash)),
        (None, None) => None,
        _ => return Err(corrupt()),
    };
    let failure = match (row.get(30)?, row.get(31)?) {
        (Some(code), Some(message)) => Some(Failure { code, message }),
        (None, None) => None,
        _ => return Err(corrupt()),
    };
    let facts = Facts {
        id: RoundId::from_bytes(row.get(0)?),
        execution_id: ExecutionId::from_bytes(row.get(1)?),
        logical_operation_id: row.get(2)?,
        server: row.get(3)?,
        operation_kind: word(row, 4, OperationKind::parse, "round")?,
        operation_name: row.get(5)?,
        asked_by: word(row, 6, Principal::parse, "round")?,
        delivery: word(row, 7, Delivery::parse, "round")?,
        index: row.get(8)?,
        limit: row.get(9)?,
        created_at: UnixMs(row.get(10)?),
        deadline: moment(row, 11)?,
        digest: Digest::from_bytes(row.get(12)?),
        has_approval: row.get(13)?,
    };
    Ok(Round {
        facts: Arc::new(facts),
        status: word(row, 14, Status::parse, "round")?,
        rev: row.get(15)?,
        fence,
        delivery_attempts: row.get(18)?,
        answer_key,
        answered: read_answered(row)?,
        collect_key: row.get(25)?,
        delivery_started_at: moment(row, 26)?,
        delivered_at: moment(row, 27)?,
        finished_at: moment(row, 28)?,
        url_completed_at: moment(row, 29)?,
        failure,
    })
}

fn read_answered(row: &Row<'_>) -> Result<Option<Answered>, ReadError> {
    let principal = maybe_word(row, 21, Principal::parse, "round")?;
    let channel = maybe_word(row, 22, Channel::parse, "round")?;
    match (principal, channel, moment(row, 23)?) {
        (Some(principal), Some(channel), Some(at)) => {
            let action = maybe_word(row, 24, Action::parse, "round")?;
            Ok(Some(Answered { principal, channel, at, action }))
        }
        (None, None, None) => Ok(None),
        _ => Err(ReadError::Corrupt("round")),
    }
}

/// The round, and the number of its rows.
pub(crate) fn numbered_round(db: &Connection, id: RoundId) -> Result<Option<(i64, Round)>, ReadError> {
    static STATEMENT: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {COLUMNS}, facts.n FROM {BY_FACTS} WHERE facts.id = ?1"));
    let mut statement = db.prepare_cached(&STATEMENT)?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| Ok((row.get(COLUMN_COUNT)?, read_round(row)?)))
}

pub(crate) fn unfinished_rounds(db: &Connection, execution: ExecutionId) -> Result<Vec<Round>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM {BY_FACTS} WHERE {} AND finished_at IS NULL ORDER BY facts.id",
        of_execution("?1")
    ))?;
    every(statement.query(params![execution.to_bytes()])?, read_round)
}

pub(crate) fn operation(
    db: &Connection,
    execution: ExecutionId,
    operation: &str,
) -> Result<Option<Operation>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT round_index, server, operation_kind, operation_name FROM round_facts
         WHERE {} AND operation = ?2 ORDER BY round_index DESC LIMIT 1",
        of_execution("?1")
    ))?;
    first(&mut statement.query(params![execution.to_bytes(), operation])?, |row| {
        Ok(Operation {
            last_index: row.get(0)?,
            server: row.get(1)?,
            operation_kind: word(row, 2, OperationKind::parse, "round")?,
            operation_name: row.get(3)?,
        })
    })
}

pub(crate) fn creation(
    db: &Connection,
    principal: &Principal,
    key: &str,
) -> Result<Option<(RoundId, [u8; 32])>, ReadError> {
    let mut statement =
        db.prepare_cached("SELECT round_id, fingerprint FROM creations WHERE principal = ?1 AND key = ?2")?;
    first(&mut statement.query(params![principal.to_string(), key])?, |row| {
        Ok((RoundId::from_bytes(row.get(0)?), row.get(1)?))
    })
}

pub(crate) fn content(db: &Connection, id: RoundId) -> Result<Option<DeliveryContent>, ReadError> {
    let mut statement = db.prepare_cached(
        "SELECT coalesce(instead, submitted), request_state FROM round_facts JOIN round_answers USING (n)
         LEFT JOIN request_states ON round_id = id WHERE id = ?1",
    )?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| {
        let responses = json(&row.get::<_, String>(0)?, "answer")?;
        Ok(DeliveryContent { responses, request_state: row.get(1)? })
    })
}

pub(crate) fn details(db: &Connection, id: RoundId) -> Result<Option<Json>, ReadError> {
    let mut statement = db.prepare_cached("SELECT details FROM round_details WHERE round_id = ?1")?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| json(&row.get::<_, String>(0)?, "round"))
}

pub(crate) fn request_state(db: &Connection, id: RoundId) -> Result<Option<String>, ReadError> {
    let mut statement = db.prepare_cached("SELECT request_state FROM request_states WHERE round_id = ?1")?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| Ok(row.get(0)?))
}

pub(crate) fn answer(db: &Connection, id: RoundId) -> Result<Option<StoredAnswer>, ReadError> {
    let mut statement = db.prepare_cached(
        "SELECT submitted, coalesce(instead, submitted) FROM round_facts JOIN round_answers USING (n) WHERE id = ?1",
    )?;
    first(&mut statement.query(params![id.to_bytes()])?, |row| {
        Ok(StoredAnswer {
            submitted: json(&row.get::<_, String>(0)?, "answer")?,
            effective: json(&row.get::<_, String>(1)?, "answer")?,
        })
    })
}

fn read_stored(row: &Row<'_>) -> Result<StoredRound, ReadError> {
    Ok(StoredRound {
        row: read_round(row)?,
        requests: json(&row.get::<_, String>(COLUMN_COUNT)?, "requests")?,
        calls: json(&row.get::<_, String>(COLUMN_COUNT + 1)?, "requests")?,
        suggestion_of: row.get::<_, Option<_>>(COLUMN_COUNT + 2)?.map(RoundId::from_bytes),
    })
}

pub(crate) fn stored_round(db: &Connection, id: RoundId) -> Result<Option<StoredRound>, ReadError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS}, requests, calls, suggestion_of FROM {BY_FACTS} WHERE facts.id = ?1"
    ))?;
    first(&mut statement.query(params![id.to_bytes()])?, read_stored)
}

pub(crate) fn stored_rounds(db: &Connection, filter: &RoundFilter) -> Result<Vec<StoredRound>, ReadError> {
    let mut conditions = String::from("1 = 1");
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    if let Some(status) = filter.status {
        conditions.push_str(&format!(" AND {}", in_status(status)));
    }
    if filter.finished_or_answered {
        conditions.push_str(&format!(" AND NOT ({PENDING})"));
    }
    let mut condition = |text: &str, value: Box<dyn ToSql>| {
        conditions.push_str(text);
        values.push(value);
    };
    if let Some(execution) = filter.execution {
        // The first that is bound, and named by its place.
        condition(&format!(" AND {}", of_execution("?1")), Box::new(execution.to_bytes()));
    }
    if let Some(asker) = &filter.asked_by {
        condition(" AND asked_by = ?", Box::new(asker.to_string()));
    }
    for prefix in [&filter.unfinished_late, &filter.unfinished_gated].into_iter().flatten() {
        condition(" AND finished_at IS NULL AND sought >= ?", Box::new(prefix.clone()));
        condition(" AND sought < ?", Box::new(format!("{prefix}{}", char::MAX)));
    }
    let is_sought = filter.unfinished_late.is_some() || filter.unfinished_gated.is_some();
    // Each way begins where its index is. A rare status is found by scanning, as the pages of history are few.
    let is_by_state = filter.execution.is_none() && (is_sought || filter.status == Some(Status::Pending));
    let (rows, id) = if is_by_state { (BY_STATES, "states.id") } else { (BY_FACTS, "facts.id") };
    if let Some(before) = filter.before {
        condition(&format!(" AND {id} < ?"), Box::new(before.to_bytes()));
    }
    values.push(Box::new(row_count(filter.limit)));
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS}, requests, calls, suggestion_of FROM {rows} WHERE {conditions} ORDER BY {id} DESC LIMIT ?"
    ))?;
    every(statement.query(rusqlite::params_from_iter(values))?, read_stored)
}
