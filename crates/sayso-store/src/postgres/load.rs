//! Loads the rows of a batch by their keys, all statements in one flight. What may be written is locked, executions
//! before rounds and each in the order of their ids, so that two batches never wait for each other in a circle.

mod found;

use std::sync::LazyLock;

use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::time::UnixMs;
use tokio_postgres::Statement;

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
    found::executions(keys, loaded, &executions?)?;
    found::counts(loaded, &counts?)?;
    drop((locked?, locked_siblings?));
    found::rounds(keys, loaded, rounds?.iter().chain(&siblings?))?;
    found::owners(keys, loaded, &owners?)?;
    found::contents(loaded, &contents?)?;
    found::operations(keys, loaded, &operations?)?;
    found::creations(keys, loaded, &creations?)?;
    found::tokens(keys, loaded, &tokens?)?;
    found::grants(keys, loaded, &grants?)?;
    drop(sessions_waited_for?);
    found::sessions(keys, loaded, &sessions?)?;
    found::reviewed(keys, loaded, &reviewed?)?;
    found::tools_reviewed(keys, loaded, &tools_reviewed?)?;
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
