//! What both stores share. How they say in SQL that a round is pending: by columns that the hops of a delivery leave alone, so that these
//! touch no index.

use sayso_core::policy::GrantScope;
use sayso_core::round::Status;

/// The condition that a row of `rounds` is pending; the words of the partial indexes.
pub(crate) const PENDING: &str = "answered_at IS NULL AND finished_at IS NULL";

/// The condition that a row of `rounds` is in `status`. Its words are ours, so they stand in the statement itself.
pub(crate) fn in_status(status: Status) -> String {
    match status {
        Status::Pending => PENDING.to_owned(),
        other => format!("status = '{}'", other.as_str()),
    }
}

/// What a grant covers, from the text that is stored of it.
pub(crate) fn grant_scope(text: &str) -> Option<GrantScope> {
    serde_json::from_str(text).ok()
}

/// What is stored of what a grant covers; none where it cannot be written, which no scope that was checked is.
pub(crate) fn grant_scope_text(scope: &GrantScope) -> Option<String> {
    serde_json::to_string(scope).ok()
}
