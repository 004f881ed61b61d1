//! Loads the rows of a batch by their keys, all statements in one flight. What may be written is locked, executions
//! before rounds and each in the order of their ids, so that two batches never wait for each other in a circle.

use std::sync::{Arc, LazyLock};

use sayso_core::command::Operation;
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::round::{Digest, OperationKind};
use sayso_core::time::UnixMs;
use tokio_postgres::{Row, Statement};

use super::connection::{Connection, ask};
use super::failure::Failure;
use super::keys::Keys;
use super::memory::Rows;
use super::value::{Columns, Corrupt, Key};
use super::{open, rows};
use crate::pending::PENDING;

/// Locks the states of rounds, those with these ids. They are read by a statement behind this: one that had waited for a
/// lock would see the new state beside an answer that was not there yet when it began.
const LOCKED: &str = "SELECT 1 FROM round_states WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE";
static ROUNDS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM rounds WHERE id = ANY ($1::uuid[])", rows::ROUND_COLUMNS));

/// Also every unfinished round of executions that end with their last round, where a round that may be it is given in
/// $2, and of the executions in $3. The executions are locked, so that they get no others meanwhile.
const SIBLINGS: &str = "SELECT unnest($1::uuid[])
    UNION SELECT s.id FROM rounds s WHERE s.finished_at IS NULL AND s.execution_id IN (
        SELECT unnest($3::uuid[])
        UNION SELECT f.execution_id FROM round_facts f JOIN executions e ON e.id = f.execution_id
            WHERE f.id = ANY ($2::uuid[]) AND e.ends_with_round)";
static LOCKED_SIBLINGS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT 1 FROM round_states WHERE id IN ({SIBLINGS}) ORDER BY id FOR UPDATE"));
static ROUNDS_AND_SIBLINGS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM rounds WHERE id IN ({SIBLINGS})", rows::ROUND_COLUMNS));

static EXECUTIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, rev FROM executions WHERE id IN (
             SELECT unnest($1::uuid[]) UNION SELECT execution_id FROM round_facts WHERE id = ANY ($2::uuid[]))
         ORDER BY id FOR UPDATE",
        rows::EXECUTION_COLUMNS
    )
});

/// Behind the locks: whoever had waited for one would count what was pending before.
static COUNTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT execution_id, count(*) FILTER (WHERE NOT has_approval), count(*) FILTER (WHERE has_approval)
         FROM rounds WHERE {PENDING} AND execution_id IN (
             SELECT unnest($1::uuid[]) UNION SELECT execution_id FROM round_facts WHERE id = ANY ($2::uuid[]))
         GROUP BY execution_id"
    )
});

/// Leases are read as they stand: whoever renews one at the same time comes before or after.
const OWNERS: &str = "SELECT owner, expires_at FROM owners WHERE owner IN (
        SELECT unnest($1::text[])
        UNION SELECT owner FROM round_states WHERE id = ANY ($2::uuid[]) AND owner IS NOT NULL)";

const CONTENTS: &str = "SELECT k.round_id, effective, request_state FROM unnest($1::uuid[]) AS k (round_id)
    LEFT JOIN round_answers a ON a.round_id = k.round_id LEFT JOIN request_states s ON s.round_id = k.round_id";

const OPERATIONS: &str = "SELECT DISTINCT ON (execution_id, operation)
        execution_id, operation, round_index, server, operation_kind, operation_name
    FROM round_facts WHERE (execution_id, operation) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))
    ORDER BY execution_id, operation, round_index DESC";

const CREATIONS: &str = "SELECT principal, key, round_id, fingerprint FROM creations
    WHERE (principal, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))";

static TOKENS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM tokens WHERE id = ANY ($1::uuid[]) OR hash = ANY ($2::bytea[]) ORDER BY id FOR UPDATE",
        rows::TOKEN_COLUMNS
    )
});

static GRANTS: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {} FROM grants WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE", rows::GRANT_COLUMNS)
});

/// Asked twice: the first waits for whoever makes a session of a link just now, and the second sees that session.
static SESSIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM tokens WHERE principal = ANY ($1::text[]) AND use <> 'api' AND revoked_at IS NULL
         ORDER BY id FOR UPDATE",
        rows::TOKEN_COLUMNS
    )
});

/// Not locked: the last to write has the last word, whatever was before.
const REVIEWED: &str = "SELECT agent, tool, definition, at FROM reviewed
    WHERE (agent, tool) IN (SELECT * FROM unnest($1::text[], $2::bytea[]))";

const TOOLS_REVIEWED: &str = "SELECT agent, count(*) FROM reviewed WHERE agent = ANY ($1::text[]) GROUP BY agent";

/// Asked last: whoever held the rows may have held them for seconds, and deadlines pass meanwhile.
const MOMENT: &str = "SELECT version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM sayso_schema";

/// Loads `keys` into `loaded` within the open transaction, which this opens if it `begins`; answers with the time by the
/// database's clock, read after every lock was taken.
pub(super) async fn load(db: &mut Connection, keys: &Keys, loaded: &mut Rows, begins: bool) -> Result<UnixMs, Failure> {
    let of = Statements::prepare(db, keys).await?;
    let by = Arrays::of(keys);
    let client = &db.client;
    // Each is sent when it is first polled, which is in this order.
    let (
        begun,
        executions,
        locked,
        rounds,
        locked_siblings,
        siblings,
        counts,
        owners,
        contents,
        operations,
        creations,
        tokens,
        grants,
        sessions_waited_for,
        sessions,
        reviewed,
        tools_reviewed,
        moment,
    ) = tokio::join!(
        biased;
        async { if begins { client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await } else { Ok(()) } },
        ask(client, of.executions, [&by.executions, &by.with_execution]),
        ask(client, of.locked, [&by.rounds]),
        ask(client, of.rounds, [&by.rounds]),
        ask(client, of.locked_siblings, [&by.rounds, &by.finishing, &by.unfinished]),
        ask(client, of.siblings, [&by.rounds, &by.finishing, &by.unfinished]),
        ask(client, of.counts, [&by.executions, &by.with_execution]),
        ask(client, of.owners, [&by.owners, &by.rounds]),
        ask(client, of.contents, [&by.contents]),
        ask(client, of.operations, [&by.operations.0, &by.operations.1]),
        ask(client, of.creations, [&by.creations.0, &by.creations.1]),
        ask(client, of.tokens, [&by.tokens, &by.token_hashes]),
        ask(client, of.grants, [&by.grants]),
        ask(client, of.sessions.clone(), [&by.sessions]),
        ask(client, of.sessions, [&by.sessions]),
        ask(client, of.reviewed, [&by.reviewed.0, &by.reviewed.1]),
        ask(client, of.tools_reviewed, [&by.tools_reviewed]),
        ask(client, Some(of.moment), []),
    );
    begun?;
    note_executions(keys, loaded, &executions?)?;
    note_counts(loaded, &counts?)?;
    drop((locked?, locked_siblings?));
    note_rounds(keys, loaded, rounds?.iter().chain(&siblings?))?;
    note_owners(keys, loaded, &owners?)?;
    note_contents(loaded, &contents?)?;
    note_operations(keys, loaded, &operations?)?;
    note_creations(keys, loaded, &creations?)?;
    note_tokens(keys, loaded, &tokens?)?;
    note_grants(keys, loaded, &grants?)?;
    drop(sessions_waited_for?);
    note_sessions(keys, loaded, &sessions?)?;
    note_reviewed(keys, loaded, &reviewed?)?;
    note_tools_reviewed(keys, loaded, &tools_reviewed?)?;
    let moment = moment?.into_iter().next().ok_or(Corrupt("schema"))?;
    let moment = Columns::of(&moment, "schema");
    if moment.get::<i64>(0)? != open::SCHEMA_VERSION {
        return Err(Failure::Newer);
    }
    Ok(moment.time(1)?)
}

/// The statements that `keys` need; preparing them on a connection for the first time takes flights of its own.
struct Statements {
    executions: Option<Statement>,
    locked: Option<Statement>,
    rounds: Option<Statement>,
    locked_siblings: Option<Statement>,
    siblings: Option<Statement>,
    counts: Option<Statement>,
    owners: Option<Statement>,
    contents: Option<Statement>,
    operations: Option<Statement>,
    creations: Option<Statement>,
    tokens: Option<Statement>,
    grants: Option<Statement>,
    sessions: Option<Statement>,
    reviewed: Option<Statement>,
    tools_reviewed: Option<Statement>,
    moment: Statement,
}

impl Statements {
    async fn prepare(db: &mut Connection, keys: &Keys) -> Result<Self, Failure> {
        let with_siblings = !keys.finishing.is_empty() || !keys.unfinished.is_empty();
        let needs_executions = !keys.executions.is_empty() || !keys.with_execution.is_empty();
        let needs_tokens = !keys.tokens.is_empty() || !keys.token_hashes.is_empty();
        Ok(Self {
            executions: db.statement_if(needs_executions, &EXECUTIONS).await?,
            locked: db.statement_if(!with_siblings && !keys.rounds.is_empty(), LOCKED).await?,
            rounds: db.statement_if(!with_siblings && !keys.rounds.is_empty(), &ROUNDS).await?,
            locked_siblings: db.statement_if(with_siblings, &LOCKED_SIBLINGS).await?,
            siblings: db.statement_if(with_siblings, &ROUNDS_AND_SIBLINGS).await?,
            counts: db.statement_if(needs_executions, &COUNTS).await?,
            owners: db.statement_if(!keys.owners.is_empty() || !keys.rounds.is_empty(), OWNERS).await?,
            contents: db.statement_if(!keys.contents.is_empty(), CONTENTS).await?,
            operations: db.statement_if(!keys.operations.is_empty(), OPERATIONS).await?,
            creations: db.statement_if(!keys.creations.is_empty(), CREATIONS).await?,
            tokens: db.statement_if(needs_tokens, &TOKENS).await?,
            grants: db.statement_if(!keys.grants.is_empty(), &GRANTS).await?,
            sessions: db.statement_if(!keys.sessions.is_empty(), &SESSIONS).await?,
            reviewed: db.statement_if(!keys.reviewed.is_empty(), REVIEWED).await?,
            tools_reviewed: db.statement_if(!keys.tools_reviewed.is_empty(), TOOLS_REVIEWED).await?,
            moment: db.statement(MOMENT).await?,
        })
    }
}

/// The keys as parameters.
struct Arrays<'a> {
    executions: Vec<Key>,
    with_execution: Vec<Key>,
    rounds: Vec<Key>,
    finishing: Vec<Key>,
    unfinished: Vec<Key>,
    owners: Vec<&'a str>,
    contents: Vec<Key>,
    operations: (Vec<Key>, Vec<&'a str>),
    creations: (Vec<&'a str>, Vec<&'a str>),
    tokens: Vec<Key>,
    grants: Vec<Key>,
    token_hashes: Vec<&'a [u8]>,
    sessions: Vec<&'a str>,
    reviewed: (Vec<&'a str>, Vec<&'a [u8]>),
    tools_reviewed: Vec<&'a str>,
}

impl<'a> Arrays<'a> {
    fn of(keys: &'a Keys) -> Self {
        let rounds = |set: &std::collections::BTreeSet<RoundId>| set.iter().map(|id| Key(id.to_bytes())).collect();
        let executions =
            |set: &std::collections::BTreeSet<ExecutionId>| set.iter().map(|id| Key(id.to_bytes())).collect();
        Self {
            executions: executions(&keys.executions),
            with_execution: rounds(&keys.with_execution),
            rounds: rounds(&keys.rounds),
            finishing: rounds(&keys.finishing),
            unfinished: executions(&keys.unfinished),
            owners: keys.owners.iter().map(String::as_str).collect(),
            contents: rounds(&keys.contents),
            operations: keys.operations.iter().map(|(id, name)| (Key(id.to_bytes()), name.as_str())).unzip(),
            creations: keys.creations.iter().map(|(principal, key)| (principal.as_str(), key.as_str())).unzip(),
            tokens: keys.tokens.iter().map(|id| Key(id.to_bytes())).collect(),
            grants: keys.grants.iter().map(|id| Key(id.to_bytes())).collect(),
            token_hashes: keys.token_hashes.iter().map(<[u8; 32]>::as_slice).collect(),
            sessions: keys.sessions.iter().map(String::as_str).collect(),
            reviewed: keys.reviewed.iter().map(|(agent, tool)| (agent.as_str(), tool.as_bytes())).unzip(),
            tools_reviewed: keys.tools_reviewed.iter().map(String::as_str).collect(),
        }
    }
}

fn note_executions(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    loaded.begun.extend(&keys.begun);
    for id in &keys.executions {
        loaded.executions.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "execution");
        let id = columns.id(0, ExecutionId::from_bytes)?;
        loaded.revs.insert(id, columns.get(rows::EXECUTION_COLUMN_COUNT)?);
        loaded.executions.insert(id, rows::read_execution(row).map(Some));
    }
    Ok(())
}

fn note_counts(loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for row in found {
        let columns = Columns::of(row, "execution");
        if let Some(Ok(Some(execution))) = loaded.executions.get_mut(&columns.id(0, ExecutionId::from_bytes)?) {
            (execution.pending_inputs, execution.pending_approvals) = (columns.count(1)?, columns.count(2)?);
        }
    }
    Ok(())
}

fn note_rounds<'a>(keys: &Keys, loaded: &mut Rows, found: impl Iterator<Item = &'a Row>) -> Result<(), Corrupt> {
    for id in &keys.rounds {
        loaded.rounds.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "round");
        let id = columns.id(0, RoundId::from_bytes)?;
        let execution = columns.id(1, ExecutionId::from_bytes)?;
        loaded.rounds.insert(id, rows::read_round(row).map(Arc::new).map(Some));
        loaded.members.entry(execution).or_default().insert(id);
        let ends_with_round = matches!(loaded.executions.get(&execution), Some(Ok(Some(row))) if row.ends_with_round);
        if ends_with_round && keys.finishing.contains(&id) {
            loaded.complete.insert(execution);
        }
    }
    loaded.complete.extend(&keys.unfinished);
    Ok(())
}

/// Whoever has no row does not live.
fn note_owners(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    let holders = keys.rounds.iter().filter_map(|id| match loaded.rounds.get(id) {
        Some(Ok(Some(round))) => round.fence.as_ref().map(|fence| fence.owner.clone()),
        _ => None,
    });
    for owner in holders.chain(keys.owners.iter().cloned()).collect::<Vec<_>>() {
        loaded.owners.entry(owner).or_insert(None);
    }
    for row in found {
        let columns = Columns::of(row, "owner");
        loaded.owners.insert(columns.get(0)?, Some(columns.time(1)?));
    }
    Ok(())
}

fn note_contents(loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for row in found {
        let columns = Columns::of(row, "answer");
        let id = columns.id(0, RoundId::from_bytes)?;
        let answer = if columns.is_null(1) { Ok(None) } else { columns.json(1).map(Some) };
        // Stored from a text of ours: anything else is as unreadable as the answer would be.
        let state = columns.get::<Option<&[u8]>>(2)?.map(|bytes| String::from_utf8(bytes.to_vec())).transpose();
        loaded.answers.insert(id, state.as_ref().map_or(Err(columns.corrupt()), |_| answer));
        loaded.request_states.insert(id, state.unwrap_or_default());
    }
    Ok(())
}

fn note_operations(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.operations {
        loaded.operations.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "round");
        let operation = || {
            Ok(Operation {
                last_index: columns.count(2)?,
                server: columns.get(3)?,
                operation_kind: columns.word(4, OperationKind::parse)?,
                operation_name: columns.get(5)?,
            })
        };
        let key = (columns.id(0, ExecutionId::from_bytes)?, columns.get(1)?);
        loaded.operations.insert(key, operation().map(Some));
    }
    Ok(())
}

fn note_creations(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.creations {
        loaded.creations.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "creation");
        let creation = || Ok((columns.id(2, RoundId::from_bytes)?, columns.hash(3)?));
        loaded.creations.insert((columns.get(0)?, columns.get(1)?), creation().map(Some));
    }
    Ok(())
}

fn note_tokens(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for id in &keys.tokens {
        loaded.tokens.entry(*id).or_insert(Ok(None));
    }
    for hash in &keys.token_hashes {
        loaded.tokens_by_hash.entry(*hash).or_insert(None);
    }
    for row in found {
        let columns = Columns::of(row, "token");
        let id = columns.id(0, TokenId::from_bytes)?;
        loaded.tokens.insert(id, rows::read_token(row).map(Some));
        loaded.tokens_by_hash.insert(columns.hash(3)?, Some(id));
    }
    Ok(())
}

fn note_grants(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for id in &keys.grants {
        loaded.grants.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let id = Columns::of(row, "grant").id(0, GrantId::from_bytes)?;
        loaded.grants.insert(id, rows::read_grant(row).map(Some));
    }
    Ok(())
}

fn note_sessions(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for principal in &keys.sessions {
        loaded.sessions.entry(principal.clone()).or_default();
    }
    for row in found {
        let columns = Columns::of(row, "token");
        let id = columns.id(0, TokenId::from_bytes)?;
        loaded.sessions.entry(columns.get(2)?).or_default().insert(id);
        loaded.tokens.insert(id, rows::read_token(row).map(Some));
    }
    Ok(())
}

fn note_reviewed(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.reviewed {
        loaded.reviewed.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "reviewed");
        let tool = String::from_utf8(columns.get::<&[u8]>(1)?.to_vec()).map_err(|_| columns.corrupt())?;
        let review = || Ok((columns.hash(2).map(Digest::from_bytes)?, columns.time(3)?));
        loaded.reviewed.insert((columns.get(0)?, tool), review().map(Some));
    }
    Ok(())
}

/// Whoever has no row has no tools.
fn note_tools_reviewed(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for agent in &keys.tools_reviewed {
        loaded.tools_reviewed.insert(agent.clone(), 0);
    }
    for row in found {
        let columns = Columns::of(row, "reviewed");
        let count = usize::try_from(columns.get::<i64>(1)?).map_err(|_| columns.corrupt())?;
        loaded.tools_reviewed.insert(columns.get(0)?, count);
    }
    Ok(())
}
