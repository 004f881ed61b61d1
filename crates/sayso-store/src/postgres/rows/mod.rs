//! Reading rows back into what core knows.

mod events;
mod executions;
mod grants;
mod reviewed;
mod rounds;
mod sweep;
mod tokens;

pub(super) use events::{events_after, last_event, read_new_events, unsequenced, unsequenced_up_to};
pub(super) use executions::{
    COLUMN_COUNT as EXECUTION_COLUMN_COUNT, COLUMNS as EXECUTION_COLUMNS, execution_with_pending, executions, owner,
    read as read_execution, result,
};
pub(super) use grants::{COLUMNS as GRANT_COLUMNS, grant, grants, read as read_grant};
pub(super) use reviewed::reviewed;
pub(super) use rounds::{
    COLUMNS as ROUND_COLUMNS, answer, details, read as read_round, request_state, stored_round, stored_rounds,
};
pub(super) use sweep::{abandoned, last_wait_ms, next_deadline, overdue};
pub(super) use tokens::{COLUMNS as TOKEN_COLUMNS, read as read_token, token_by_hash, tokens};

/// A row count as the database takes it.
fn row_count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
