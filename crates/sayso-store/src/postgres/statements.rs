//! The statements that write: from arrays, a column each, so that a batch of any size is one statement a table.

use std::sync::LazyLock;

use super::rows;

/// `INSERT` of a table's columns from arrays of these types. Not an upsert: what is new here must not be there yet.
fn insert(table: &str, columns: &str, types: &str) -> String {
    format!("INSERT INTO {table} ({columns}) SELECT * FROM {}", unnest(types))
}

/// `UPDATE` of a table by its id from arrays of these types. It fails unless it changes every row that it should: `guard`
/// says what must still hold.
fn update(table: &str, columns: &str, types: &str, guard: &str) -> String {
    let sets: Vec<_> = columns.split(',').map(str::trim).map(|name| format!("{name} = n.{name}")).collect();
    format!(
        "WITH changed AS (UPDATE {table} t SET {} FROM {} AS n (id, was, {columns}) WHERE t.id = n.id{guard} RETURNING 1)
         SELECT 1 / (count(*) = cardinality($1))::int FROM changed",
        sets.join(", "),
        unnest(&format!("uuid, bigint, {types}")),
    )
}

fn unnest(types: &str) -> String {
    let places: Vec<_> =
        types.split(',').map(str::trim).zip(1..).map(|(kind, place)| format!("${place}::{kind}[]")).collect();
    format!("unnest({})", places.join(", "))
}

const ROUND_TYPES: &str = "uuid, uuid, text, text, text, text, text, text, bigint, bigint, bigint, bigint, bytea, boolean, \
    text, bigint, text, uuid, bigint, text, bytea, text, text, bigint, text, text, bigint, bigint, bigint, bigint, text, text";
/// The columns of a round that change, the last of [`rows::ROUND_COLUMNS`].
const ROUND_STATE: &str = "status, rev, owner, token, delivery_attempts, answer_key, answer_hash, answered_by, \
    answered_channel, answered_at, answered_action, collect_key, delivery_started_at, delivered_at, finished_at, \
    url_completed_at, failure_code, failure_message";
const ROUND_STATE_TYPES: &str = "text, bigint, text, uuid, bigint, text, bytea, text, text, bigint, text, text, bigint, \
    bigint, bigint, bigint, text, text";
const EXECUTION_TYPES: &str =
    "uuid, text, text, text, boolean, bigint, bigint, bigint, bigint, text, text, text, bigint";
const EXECUTION_STATE: &str = "owner, ends_with_round, pending_inputs, pending_approvals, finished_at, outcome, failure_code, failure_message, \
     collected_at";
const EXECUTION_STATE_TYPES: &str = "text, boolean, bigint, bigint, bigint, text, text, text, bigint";
const GRANT_TYPES: &str = "uuid, text, text, text, uuid, text, bigint, bigint, bigint, bigint, bigint";
const TOKEN_TYPES: &str = "uuid, text, text, bytea, bigint, bigint, bigint";

pub(super) static INSERT_ROUNDS: LazyLock<String> =
    LazyLock::new(|| insert("rounds", rows::ROUND_COLUMNS, ROUND_TYPES));
pub(super) static UPDATE_ROUNDS: LazyLock<String> =
    LazyLock::new(|| update("rounds", ROUND_STATE, ROUND_STATE_TYPES, " AND t.rev = n.was"));
pub(super) static INSERT_EXECUTIONS: LazyLock<String> =
    LazyLock::new(|| insert("executions", rows::EXECUTION_COLUMNS, EXECUTION_TYPES));
pub(super) static UPDATE_EXECUTIONS: LazyLock<String> =
    LazyLock::new(|| update("executions", EXECUTION_STATE, EXECUTION_STATE_TYPES, ""));
pub(super) static INSERT_TOKENS: LazyLock<String> =
    LazyLock::new(|| insert("tokens", rows::TOKEN_COLUMNS, TOKEN_TYPES));
pub(super) static UPDATE_TOKENS: LazyLock<String> = LazyLock::new(|| update("tokens", "revoked_at", "bigint", ""));
pub(super) static INSERT_GRANTS: LazyLock<String> =
    LazyLock::new(|| insert("grants", rows::GRANT_COLUMNS, GRANT_TYPES));
pub(super) static UPDATE_GRANTS: LazyLock<String> =
    LazyLock::new(|| update("grants", "uses, revoked_at", "bigint, bigint", " AND t.uses = n.was"));
pub(super) static INSERT_REQUESTS: LazyLock<String> =
    LazyLock::new(|| insert("round_requests", "round_id, requests, calls, suggestion_of", "uuid, text, text, uuid"));
pub(super) static INSERT_STATES: LazyLock<String> =
    LazyLock::new(|| insert("request_states", "round_id, request_state", "uuid, bytea"));
pub(super) const DELETE_STATES: &str = "DELETE FROM request_states WHERE round_id = ANY ($1::uuid[])";
pub(super) static INSERT_ANSWERS: LazyLock<String> =
    LazyLock::new(|| insert("answers", "round_id, submitted, effective", "uuid, text, text"));
pub(super) static INSERT_CREATIONS: LazyLock<String> =
    LazyLock::new(|| insert("creations", "principal, key, round_id, fingerprint", "text, text, uuid, bytea"));
pub(super) static INSERT_RESULTS: LazyLock<String> =
    LazyLock::new(|| insert("results", "execution_id, result", "uuid, text"));
pub(super) static INSERT_DETAILS: LazyLock<String> =
    LazyLock::new(|| insert("round_details", "round_id, details", "uuid, text"));
pub(super) const INSERT_EVENTS: &str = "INSERT INTO new_events (at, execution_id, round_id, principal, channel, body)
    SELECT at, execution_id, round_id, principal, channel, body
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[])
        WITH ORDINALITY AS n (at, execution_id, round_id, principal, channel, body, place) ORDER BY place";
pub(super) static UPSERT_OWNERS: LazyLock<String> = LazyLock::new(|| {
    let insert = insert("owners", "owner, expires_at", "text, bigint");
    format!("{insert} ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at")
});
pub(super) static UPSERT_REVIEWED: LazyLock<String> = LazyLock::new(|| {
    let insert = insert("reviewed", "agent, tool, definition, at", "text, bytea, bytea, bigint");
    format!("{insert} ON CONFLICT (agent, tool) DO UPDATE SET definition = excluded.definition, at = excluded.at")
});
pub(super) const DELETE_OWNERS: &str = "DELETE FROM owners WHERE owner = ANY ($1::text[])";

/// One notification a payload; they are merged with those of the same transaction only.
pub(super) const NOTIFY: &str = "SELECT pg_notify($1, n.payload) FROM unnest($2::text[]) AS n (payload)";
