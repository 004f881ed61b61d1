//! What is written, as one statement: a part a table, each from arrays, a column each, so that a batch of any size is one
//! message to the database and one back.

use super::open::SCHEMA_VERSION;
use super::rows;

/// What is done to one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// Executions that were decided by and do not change.
    CheckExecutions,
    /// Workers that were taken to live.
    CheckOwners,
    InsertExecutions,
    UpdateExecutions,
    InsertFacts,
    /// New rounds that are as they begin.
    InsertFirstStates,
    /// New rounds that have moved on already.
    InsertStates,
    /// Rounds that move on along their way, as most do.
    MoveStates,
    /// Rounds of which anything may change.
    UpdateStates,
    InsertTokens,
    UpdateTokens,
    InsertGrants,
    UpdateGrants,
    InsertRequestStates,
    DeleteRequestStates,
    InsertAnswers,
    InsertCreations,
    InsertResults,
    InsertDetails,
    InsertEvents,
    UpsertOwners,
    UpsertReviewed,
    DeleteOwners,
}

/// The columns of a round that never change.
const ROUND_FACTS: &str = "id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, \
    round_index, round_limit, created_at, digest, has_approval, requests, calls, suggestion_of";
/// Those that a round begins with.
const FIRST_STATE: &str = "id, deadline, sought, status, rev, owner, token, delivery_attempts";
/// Those that a round changes on its way from question to end.
const ROUND_HOP: &str = "status, rev, delivery_attempts, answered_at, delivery_started_at, delivered_at, finished_at";
/// All that change.
const ROUND_STATE: &str = "status, rev, owner, token, delivery_attempts, collect_key, answered_at, delivery_started_at, \
    delivered_at, finished_at, url_completed_at, failure_code, failure_message, withdrawn_from";
const ANSWER_COLUMNS: &str =
    "round_id, answer_key, answer_hash, answered_by, answered_channel, answered_action, submitted, effective";
const EXECUTION_STATE: &str =
    "owner, ends_with_round, finished_at, outcome, failure_code, failure_message, collected_at";
const EVENT_COLUMNS: &str = "at, execution_id, round_id, principal, channel, body";

impl Part {
    /// The types of its columns.
    fn types(self) -> &'static str {
        match self {
            Self::CheckExecutions => "uuid, bigint",
            Self::CheckOwners | Self::UpsertOwners => "text, bigint",
            Self::InsertExecutions => "uuid, text, text, text, boolean, bigint, bigint, text, text, text, bigint",
            Self::UpdateExecutions => "uuid, bigint, text, boolean, bigint, text, text, text, bigint",
            Self::InsertFacts => {
                "uuid, uuid, text, text, text, text, text, text, bigint, bigint, bigint, bytea, boolean, text, text, uuid"
            }
            Self::InsertFirstStates => "uuid, bigint, text, text, bigint, text, uuid, bigint",
            Self::MoveStates => "uuid, bigint, text, bigint, bigint, bigint, bigint, bigint, bigint",
            Self::InsertStates => {
                "uuid, bigint, text, text, bigint, text, uuid, bigint, text, bigint, bigint, bigint, bigint, bigint, text, \
                 text, text"
            }
            Self::UpdateStates => {
                "uuid, bigint, text, bigint, text, uuid, bigint, text, bigint, bigint, bigint, bigint, bigint, text, text, \
                 text"
            }
            Self::InsertTokens => "uuid, text, text, bytea, bigint, bigint, bigint",
            Self::UpdateTokens => "uuid, bigint, bigint",
            Self::InsertGrants => "uuid, text, text, text, uuid, text, bigint, bigint, bigint, bigint, bigint",
            Self::UpdateGrants => "uuid, bigint, bigint, bigint",
            Self::InsertRequestStates => "uuid, bytea",
            Self::DeleteRequestStates => "uuid",
            Self::InsertAnswers => "uuid, text, bytea, text, text, text, text, text",
            Self::InsertCreations => "text, text, uuid, bytea",
            Self::InsertResults | Self::InsertDetails => "uuid, text",
            Self::InsertEvents => "bigint[], uuid[], uuid[], text[], text[], text[]",
            Self::UpsertReviewed => "text, bytea, bytea, bigint",
            Self::DeleteOwners => "text",
        }
    }

    /// Its SQL, with parameters from `$first`: arrays, or the values of the `only` row.
    fn sql(self, first: usize, only: bool) -> String {
        let values = values(self.types(), first, only || self == Self::InsertEvents);
        let keys = |kind: &str| if only { format!("= ${first}") } else { format!("= ANY (${first}::{kind}[])") };
        let insert =
            |table: &str, columns: &str| format!("INSERT INTO {table} ({columns}) SELECT * FROM {values} AS n");
        match self {
            Self::CheckExecutions => format!(
                "SELECT 1 FROM executions t JOIN {values} AS n (id, was) ON t.id = n.id WHERE t.rev = n.was FOR SHARE OF t"
            ),
            Self::CheckOwners => format!(
                "SELECT 1 FROM owners t JOIN {values} AS n (owner, lives) ON t.owner = n.owner WHERE t.expires_at >= n.lives"
            ),
            Self::InsertExecutions => insert("executions", rows::EXECUTION_COLUMNS),
            Self::UpdateExecutions => update("executions", EXECUTION_STATE, &values, ", rev = t.rev + 1", "rev"),
            Self::InsertFacts => insert("round_facts", ROUND_FACTS),
            Self::InsertFirstStates => insert("round_states", FIRST_STATE),
            Self::MoveStates => update("round_states", ROUND_HOP, &values, "", "rev"),
            Self::InsertStates => insert("round_states", &format!("id, deadline, sought, {ROUND_STATE}")),
            Self::UpdateStates => update("round_states", ROUND_STATE, &values, "", "rev"),
            Self::InsertTokens => insert("tokens", rows::TOKEN_COLUMNS),
            Self::UpdateTokens => update("tokens", "revoked_at", &values, "", "created_at"),
            Self::InsertGrants => insert("grants", rows::GRANT_COLUMNS),
            Self::UpdateGrants => update("grants", "uses, revoked_at", &values, "", "uses"),
            Self::InsertRequestStates => insert("request_states", "round_id, request_state"),
            Self::DeleteRequestStates => format!("DELETE FROM request_states WHERE round_id {}", keys("uuid")),
            Self::InsertAnswers => insert("round_answers", ANSWER_COLUMNS),
            Self::InsertCreations => insert("creations", "principal, key, round_id, fingerprint"),
            Self::InsertResults => insert("results", "execution_id, result"),
            Self::InsertDetails => insert("round_details", "round_id, details"),
            // One row, however many they are.
            Self::InsertEvents => insert("new_events", EVENT_COLUMNS),
            Self::UpsertOwners => {
                let insert = insert("owners", "owner, expires_at");
                format!("{insert} ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at")
            }
            Self::UpsertReviewed => {
                let insert = insert("reviewed", "agent, tool, definition, at");
                format!(
                    "{insert} ON CONFLICT (agent, tool) DO UPDATE SET definition = excluded.definition, at = excluded.at"
                )
            }
            Self::DeleteOwners => format!("DELETE FROM owners WHERE owner {}", keys("text")),
        }
    }

    /// Whether it answers with a row for each that it found as it should be: all of them must be.
    fn is_guarded(self) -> bool {
        matches!(
            self,
            Self::CheckExecutions
                | Self::CheckOwners
                | Self::UpdateExecutions
                | Self::MoveStates
                | Self::UpdateStates
                | Self::UpdateTokens
                | Self::UpdateGrants
        )
    }
}

/// `UPDATE` of a table by its id; `was` is the column that must still be as it was.
fn update(table: &str, columns: &str, values: &str, and: &str, was: &str) -> String {
    let sets: Vec<_> = columns.split(',').map(str::trim).map(|name| format!("{name} = n.{name}")).collect();
    format!(
        "UPDATE {table} t SET {}{and} FROM {values} AS n (id, was, {columns}) WHERE t.id = n.id AND t.{was} = n.was RETURNING 1",
        sets.join(", "),
    )
}

/// The rows of the parameters, in the order in which they are given. Arrays are read by their subscripts: `unnest` would
/// set up a table function for each of them, whose fixed cost is many times that of a row. One row is spelled out.
fn values(types: &str, first: usize, only: bool) -> String {
    let mut kinds = types.split(',').map(str::trim).zip(first..).peekable();
    if only {
        let values: Vec<_> = kinds.map(|(kind, place)| format!("${place}::{kind}")).collect();
        return format!("(VALUES ({}))", values.join(", "));
    }
    let key = kinds.peek().map_or("", |(kind, _)| *kind);
    let values: Vec<_> = kinds.map(|(kind, place)| format!("(${place}::{kind}[])[i]")).collect();
    format!("(SELECT {} FROM generate_series(1, cardinality(${first}::{key}[])) AS i)", values.join(", "))
}

/// What a statement that writes is composed of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) parts: Vec<Part>,
    /// Each part has one row.
    pub(super) only: bool,
    /// It is a transaction of its own.
    pub(super) guessed: bool,
    /// Its transaction notifies a channel, the last parameter but one, of a payload, the last.
    pub(super) tells: bool,
}

/// The statement of this shape. It fails, with a division by zero, unless every guarded part finds every row that it is
/// given as it should be; where it is `guessed` also unless the schema is ours and the database's time is between the last two
/// parameters, once the rows are locked. It answers with that time.
pub(super) fn composed(Shape { parts, only, guessed, tells }: &Shape) -> String {
    let (only, guessed, tells) = (*only, *guessed, *tells);
    let (mut with, mut guards, mut first) = (Vec::new(), String::from("TRUE"), 1);
    for (number, part) in parts.iter().enumerate() {
        with.push(format!("p{number} AS ({})", part.sql(first, only)));
        if part.is_guarded() {
            // A chain of CASE keeps the order: rows are locked in it, and the time is asked last.
            let all = if only { "1".to_owned() } else { format!("cardinality(${first})") };
            guards = format!("CASE WHEN {guards} THEN (SELECT count(*) FROM p{number}) = {all} END");
        }
        first += part.types().split(',').count();
    }
    if guessed {
        guards = format!(
            "CASE WHEN {guards} THEN {NOW} BETWEEN ${first}::bigint AND ${}::bigint
                AND (SELECT version FROM sayso_schema) = {SCHEMA_VERSION} END",
            first + 1
        );
        first += 2;
    }
    let tell = if tells { format!(", pg_notify(${first}::text, ${}::text)", first + 1) } else { String::new() };
    let with = if with.is_empty() { String::new() } else { format!("WITH {}", with.join(",\n")) };
    format!("{with} SELECT 1 / coalesce({guards}, FALSE)::int, {NOW}{tell}")
}

/// The database's time. It goes on within a transaction.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// One notification a payload; they are merged with those of the same transaction only.
pub(super) const NOTIFY: &str = "SELECT pg_notify($1, n.payload) FROM unnest($2::text[]) AS n (payload)";
