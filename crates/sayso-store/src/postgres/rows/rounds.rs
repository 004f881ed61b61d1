use std::sync::{Arc, LazyLock};

use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{Answered, Delivery, Digest, Facts, Failure, Fence, FenceToken, OperationKind, Round, Status};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::connection::{Parameter, Taken};
use super::super::failure;
use super::super::known::Known;
use super::super::statements::NOW;
use super::super::value::{Columns, Corrupt, Key};
use super::{executions, row_count};
use crate::pending::{PENDING, in_status};
use crate::{RoundFilter, StoredAnswer, StoredRound};

/// The columns of a round's row in the order they are read and written.
pub(crate) const COLUMNS: &str = "id, execution_id, operation, server, operation_kind, operation_name, asked_by, \
    delivery, round_index, round_limit, created_at, deadline, digest, has_approval, status, rev, owner, token, \
    delivery_attempts, answer_key, answer_hash, answered_by, answered_channel, answered_at, answered_action, \
    collect_key, delivery_started_at, delivered_at, finished_at, url_completed_at, failure_code, failure_message";
const COLUMN_COUNT: usize = 32;

pub(crate) fn read(row: &Row) -> Result<Round, Corrupt> {
    let columns = Columns::of(row, "round");
    let token = columns.maybe_id(17, |bytes| FenceToken(u128::from_be_bytes(bytes)))?;
    let fence = columns.pair(columns.get::<Option<String>>(16)?, token)?;
    let hash = match columns.get::<Option<&[u8]>>(20)? {
        Some(bytes) => Some(bytes.try_into().map_err(|_| columns.corrupt())?),
        None => None,
    };
    let failure = columns.pair(columns.get::<Option<String>>(30)?, columns.get::<Option<String>>(31)?)?;
    let facts = Facts {
        id: columns.id(0, RoundId::from_bytes)?,
        execution_id: columns.id(1, ExecutionId::from_bytes)?,
        logical_operation_id: columns.get(2)?,
        server: columns.get(3)?,
        operation_kind: columns.word(4, OperationKind::parse)?,
        operation_name: columns.get(5)?,
        asked_by: columns.word(6, Principal::parse)?,
        delivery: columns.word(7, Delivery::parse)?,
        index: columns.count(8)?,
        limit: columns.count(9)?,
        created_at: columns.time(10)?,
        deadline: columns.maybe_time(11)?,
        digest: Digest::from_bytes(columns.hash(12)?),
        has_approval: columns.get(13)?,
    };
    Ok(Round {
        facts: Arc::new(facts),
        status: columns.word(14, Status::parse)?,
        rev: columns.count(15)?,
        fence: fence.map(|(owner, token)| Fence { owner, token }),
        delivery_attempts: columns.count(18)?,
        answer_key: columns.pair(columns.get::<Option<String>>(19)?, hash)?,
        answered: read_answered(&columns)?,
        collect_key: columns.get(25)?,
        delivery_started_at: columns.maybe_time(26)?,
        delivered_at: columns.maybe_time(27)?,
        finished_at: columns.maybe_time(28)?,
        url_completed_at: columns.maybe_time(29)?,
        failure: failure.map(|(code, message)| Failure { code, message }),
    })
}

fn read_answered(columns: &Columns<'_>) -> Result<Option<Answered>, Corrupt> {
    let by = columns.pair(columns.maybe_word(21, Principal::parse)?, columns.maybe_word(22, Channel::parse)?)?;
    let Some(((principal, channel), at)) = columns.pair(by, columns.maybe_time(23)?)? else { return Ok(None) };
    Ok(Some(Answered { principal, channel, at, action: columns.maybe_word(24, Action::parse)? }))
}

fn read_stored(row: &Row) -> Result<StoredRound, Corrupt> {
    let content = Columns::of(row, "requests");
    Ok(StoredRound {
        row: read(row)?,
        requests: content.json(COLUMN_COUNT)?,
        calls: content.json(COLUMN_COUNT + 1)?,
        suggestion_of: content.maybe_id(COLUMN_COUNT + 2, RoundId::from_bytes)?,
    })
}

/// With its execution and its lease: whoever reads a round is often about to write it.
static STORED_ROUND: LazyLock<String> = LazyLock::new(|| {
    let of = |table: &str, columns: &str| {
        columns.split(',').map(|column| format!("{table}.{}", column.trim())).collect::<Vec<_>>().join(", ")
    };
    format!(
        "SELECT {}, r.requests, r.calls, r.suggestion_of, {NOW}, o.expires_at, e.rev, {}
         FROM rounds r LEFT JOIN executions e ON e.id = r.execution_id LEFT JOIN owners o ON o.owner = r.owner WHERE r.id = $1",
        of("r", COLUMNS),
        of("e", executions::COLUMNS)
    )
});

pub(crate) async fn stored_round(
    db: &mut Taken<'_>,
    id: RoundId,
    known: &Known,
) -> Result<Option<StoredRound>, failure::Failure> {
    let Some(found) = db.first(&STORED_ROUND, &[&Key(id.to_bytes())]).await? else { return Ok(None) };
    let stored = read_stored(&found)?;
    let columns = Columns::of(&found, "execution");
    known.note_now(columns.time(COLUMN_COUNT + 3)?);
    let lease = columns.maybe_time(COLUMN_COUNT + 4)?;
    let rev = columns.get::<Option<i64>>(COLUMN_COUNT + 5)?;
    let execution = executions::read_from(&found, COLUMN_COUNT + 6).ok();
    known.note_read(&stored.row, rev.zip(execution.map(Arc::new)), lease);
    Ok(Some(stored))
}

pub(crate) async fn stored_rounds(
    db: &mut Taken<'_>,
    filter: &RoundFilter,
) -> Result<Vec<StoredRound>, failure::Failure> {
    let mut conditions = String::from("TRUE");
    let mut values: Vec<Box<dyn ToSql + Sync + Send>> = Vec::new();
    if let Some(status) = filter.status {
        conditions.push_str(&format!(" AND {}", in_status(status)));
    }
    if filter.finished_or_answered {
        conditions.push_str(&format!(" AND NOT ({PENDING})"));
    }
    let mut condition = |column: &str, value: Box<dyn ToSql + Sync + Send>| {
        values.push(value);
        conditions.push_str(&format!(" AND {column} ${}", values.len()));
    };
    if let Some(execution) = filter.execution {
        condition("execution_id =", Box::new(Key(execution.to_bytes())));
    }
    if let Some(asker) = &filter.asked_by {
        condition("asked_by =", Box::new(asker.to_string()));
    }
    // The condition of the partial index is spelled out, so that it is used.
    for prefix in [&filter.unfinished_late, &filter.unfinished_gated].into_iter().flatten() {
        let from = "sought IS NOT NULL AND finished_at IS NULL AND sought COLLATE \"C\" >=";
        condition(from, Box::new(prefix.clone()));
        condition("sought COLLATE \"C\" <", Box::new(format!("{prefix}{}", char::MAX)));
    }
    if let Some(before) = filter.before {
        condition("id <", Box::new(Key(before.to_bytes())));
    }
    values.push(Box::new(row_count(filter.limit)));
    let sql = format!(
        "SELECT {COLUMNS}, requests, calls, suggestion_of FROM rounds
         WHERE {conditions} ORDER BY id DESC LIMIT ${}",
        values.len()
    );
    let parameters: Vec<Parameter<'_>> = values.iter().map(|value| value.as_ref() as Parameter<'_>).collect();
    let found = db.query(&sql, &parameters).await?;
    Ok(found.iter().map(read_stored).collect::<Result<_, _>>()?)
}

pub(crate) async fn answer(db: &mut Taken<'_>, id: RoundId) -> Result<Option<StoredAnswer>, failure::Failure> {
    let sql = "SELECT submitted, effective FROM round_answers WHERE round_id = $1";
    let Some(row) = db.first(sql, &[&Key(id.to_bytes())]).await? else { return Ok(None) };
    let columns = Columns::of(&row, "answer");
    Ok(Some(StoredAnswer { submitted: columns.json(0)?, effective: columns.json(1)? }))
}

pub(crate) async fn details(db: &mut Taken<'_>, id: RoundId) -> Result<Option<Json>, failure::Failure> {
    let sql = "SELECT details FROM round_details WHERE round_id = $1";
    let Some(row) = db.first(sql, &[&Key(id.to_bytes())]).await? else { return Ok(None) };
    Ok(Some(Columns::of(&row, "round").json(0)?))
}

pub(crate) async fn request_state(db: &mut Taken<'_>, id: RoundId) -> Result<Option<String>, failure::Failure> {
    let sql = "SELECT request_state FROM request_states WHERE round_id = $1";
    let Some(row) = db.first(sql, &[&Key(id.to_bytes())]).await? else { return Ok(None) };
    let columns = Columns::of(&row, "request state");
    let text = String::from_utf8(columns.get::<&[u8]>(0)?.to_vec()).map_err(|_| columns.corrupt())?;
    Ok(Some(text))
}
