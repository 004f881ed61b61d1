//! Looking at a database from outside, in transactions that can only read.

use std::collections::BTreeMap;

use sayso_core::error::Error;
use sayso_core::time::UnixMs;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::connection::{Connection, Pool, Taken, configure};
use super::failure::Failure;
use super::value::{Columns, Key};
use super::{PostgresStore, database_now, open, rows};
use crate::examine::{Backing, Cell, DatabaseFacts, Examined, Table, Walk, questions, read};

/// Settings that decide whether what was acknowledged survives, or how fast it is.
const SETTINGS: &str = "SELECT name, setting FROM pg_settings WHERE name IN
    ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'jit', 'transaction_read_only',
     'max_connections') ORDER BY name";

const ORPHANS: [(&str, &str); 4] = [
    (
        "rounds without what they ask",
        "FROM round_states WHERE NOT EXISTS (SELECT 1 FROM round_facts WHERE round_facts.id = round_states.id)",
    ),
    (
        "rounds without their execution",
        "FROM rounds WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.id = rounds.execution_id)",
    ),
    (
        "answered rounds without their answer",
        "FROM round_states WHERE answered_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM round_answers WHERE round_answers.round_id = round_states.id)",
    ),
    (
        "finished rounds whose opaque state is still kept",
        "FROM request_states JOIN rounds ON rounds.id = request_states.round_id
         WHERE rounds.status IN ('resolved', 'failed')",
    ),
];

impl PostgresStore {
    /// What can be said of the database at `url`; an error where it cannot be reached or the URL is none. Nothing is
    /// changed.
    pub async fn examine(url: &str) -> Result<Examined, Error> {
        let config = configure(url)?;
        let first = Connection::open(&config).await.map_err(Failure::unchanged)?;
        // What is asked here cannot write, whatever it says.
        let read_only = first.client.batch_execute("SET default_transaction_read_only = on").await;
        read_only.map_err(|error| Failure::from(error).unchanged())?;
        let pool = Pool::new(config, 1, first);
        let mut db = pool.take().await.map_err(Failure::unchanged)?;
        let mut examined = Examined { schema_known: open::SCHEMA_VERSION, ..Examined::default() };
        let mut facts = DatabaseFacts::default();
        look(&mut db, &mut examined, &mut facts).await;
        examined.backing = Some(Backing::Database(Box::new(facts)));
        Ok(examined)
    }
}

/// Why something was not read.
fn said(failure: Failure) -> String {
    let told = failure.unchanged().to_string();
    told.strip_suffix("; nothing was changed").unwrap_or(&told).to_owned()
}

async fn look(db: &mut Taken<'_>, examined: &mut Examined, facts: &mut DatabaseFacts) {
    match table(db, SETTINGS).await {
        Ok(settings) => {
            let text = |cell: Option<&Cell>| match cell {
                Some(Cell::Text(text)) => text.clone(),
                _ => String::new(),
            };
            facts.settings = settings.iter().map(|row| (text(row.first()), text(row.get(1)))).collect();
        }
        Err(failure) => examined.unread.push(format!("the settings: {}", said(failure))),
    }
    facts.listens = Some(table(db, "LISTEN sayso_examines").await.is_ok());
    match table(db, "SELECT version FROM sayso_schema").await {
        Ok(found) => {
            examined.schema_version = match found.first().and_then(|row| row.first()) {
                // Created and not filled yet.
                Some(Cell::Number(0)) | None => return,
                Some(Cell::Number(version)) => Some(*version),
                _ => None,
            }
        }
        Err(failure) if failure.is(&SqlState::UNDEFINED_TABLE) => return,
        Err(failure) => examined.unread.push(format!("the schema's version: {}", said(failure))),
    }
    let now = match database_now(db).await {
        Ok(now) => now,
        Err(failure) => return examined.unread.push(format!("the time: {}", said(failure))),
    };
    examined.now = Some(now);
    if examined.schema_version.is_some_and(|version| version != open::SCHEMA_VERSION) {
        return;
    }
    let mut answers = BTreeMap::new();
    for (question, sql) in questions(now, &ORPHANS, "events") {
        match table(db, &sql).await {
            Ok(table) => drop(answers.insert(question, table)),
            Err(failure) => examined.unread.push(format!("{}: {}", question.words(), said(failure))),
        }
    }
    read(examined, now, answers);
    look_at_events(db, examined, facts).await;
}

async fn look_at_events(db: &mut Taken<'_>, examined: &mut Examined, facts: &mut DatabaseFacts) {
    // The end as noted first: the chain may grow while it is followed, and never shrinks.
    let end = sequencer(db, facts).await;
    match table(db, "SELECT coalesce(sum(cardinality(at)), 0)::bigint, min(at[1]) FROM new_events").await {
        Ok(found) => {
            let number = |at| match found.first().and_then(|row| row.get(at)) {
                Some(Cell::Number(number)) => Some(*number),
                _ => None,
            };
            let count = number(0).and_then(|count| u64::try_from(count).ok());
            facts.behind = count.map(|count| (count, number(1).map(UnixMs)));
        }
        Err(failure) => examined.unread.push(format!("the events without a place: {}", said(failure))),
    }
    let (last, hash) = match end {
        Ok(end) => end,
        Err(failure) => return examined.unread.push(format!("the end of the chain: {}", said(failure))),
    };
    let mut walk = Walk::default();
    while let Some((after, limit)) = walk.next() {
        match rows::events_after(db, after, limit).await {
            Ok(mut page) => {
                page.retain(|event| event.seq <= last);
                if !walk.take(&page) {
                    break;
                }
            }
            Err(failure) => walk.stop(&said(failure)),
        }
    }
    walk.ends_at(last, hash);
    examined.chain = Some(walk.facts());
}

/// Notes who lengthens the chain; its end.
async fn sequencer(db: &mut Taken<'_>, facts: &mut DatabaseFacts) -> Result<(u64, [u8; 32]), Failure> {
    let sql = "SELECT last_seq, last_hash, owner, expires_at FROM sequencer";
    let row = db.first(sql, &[]).await?.ok_or(Failure::Corrupt("event"))?;
    let columns = Columns::of(&row, "event");
    let owner: Option<String> = columns.get(2)?;
    let expires_at = columns.time(3)?;
    facts.sequencer = owner.filter(|_| expires_at.0 > 0).map(|owner| (owner, expires_at));
    let last = u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?;
    Ok((last, columns.hash(1)?))
}

async fn table(db: &mut Taken<'_>, sql: &str) -> Result<Table, Failure> {
    Ok(db.query(sql, &[]).await?.iter().map(cells).collect())
}

fn cells(row: &Row) -> Vec<Cell> {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| match *column.type_() {
        Type::INT8 => row.try_get::<_, Option<i64>>(at).ok().flatten().map(Cell::Number),
        Type::TEXT | Type::VARCHAR | Type::NAME => row.try_get::<_, Option<String>>(at).ok().flatten().map(Cell::Text),
        Type::UUID => row.try_get::<_, Option<Key>>(at).ok().flatten().map(|key| Cell::Id(key.0)),
        _ => None,
    };
    row.columns().iter().enumerate().map(|column| cell(column).unwrap_or(Cell::Nothing)).collect()
}
