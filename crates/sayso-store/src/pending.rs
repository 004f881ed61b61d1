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

/// What the names begin with of operations whose unfinished rounds are looked for by name.
pub(crate) const SOUGHT: [&str; 2] = ["late:", "gate:"];

/// Whether unfinished rounds of the operation are looked for by its name.
pub(crate) fn is_sought(operation: &str) -> bool {
    SOUGHT.iter().any(|prefix| operation.starts_with(prefix))
}

/// What a grant covers, from the text that is stored of it.
pub(crate) fn grant_scope(text: &str) -> Option<GrantScope> {
    serde_json::from_str(text).ok()
}

/// What is stored of what a grant covers; none where it cannot be written, which no scope that was checked is.
pub(crate) fn grant_scope_text(scope: &GrantScope) -> Option<String> {
    serde_json::to_string(scope).ok()
}
