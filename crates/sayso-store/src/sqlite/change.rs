//! Changing the narrow row of a round. What may change is in groups that change together, and a statement names only the groups that
//! did: SQLite then leaves the indexes over the others alone.

use std::cell::RefCell;
use std::sync::Arc;

use sayso_core::round::{Failure, Round};

use super::statements::{Binding, Sql, Statements};

struct Group {
    columns: &'static str,
    differs: fn(&Change) -> bool,
    bind: fn(&Change, &mut Binding<'_, '_>) -> rusqlite::Result<()>,
}

const GROUPS: [Group; 8] = [
    Group {
        columns: "holder = ?, token = ?",
        differs: |Change { before, after, .. }| before.fence != after.fence,
        bind: |change, to| {
            to.put(change.holder)?;
            to.put(change.after.fence.as_ref().map(|fence| fence.token.0.to_be_bytes()))
        },
    },
    Group {
        columns: "answered_at = ?",
        differs: |Change { before, after, .. }| before.answered != after.answered,
        bind: |change, to| to.put(change.after.answered.as_ref().map(|answered| answered.at.0)),
    },
    Group {
        columns: "delivery_attempts = ?, delivery_started_at = ?, delivered_at = ?",
        differs: |Change { before, after, .. }| {
            (before.delivery_attempts, before.delivery_started_at, before.delivered_at)
                != (after.delivery_attempts, after.delivery_started_at, after.delivered_at)
        },
        bind: |Change { after, .. }, to| {
            to.put(after.delivery_attempts)?;
            to.put(after.delivery_started_at.map(|at| at.0))?;
            to.put(after.delivered_at.map(|at| at.0))
        },
    },
    Group {
        columns: "collect_key = ?",
        differs: |Change { before, after, .. }| before.collect_key != after.collect_key,
        bind: |change, to| to.put(change.after.collect_key.as_deref()),
    },
    Group {
        columns: "url_completed_at = ?",
        differs: |Change { before, after, .. }| before.url_completed_at != after.url_completed_at,
        bind: |change, to| to.put(change.after.url_completed_at.map(|at| at.0)),
    },
    Group {
        columns: "finished_at = ?",
        differs: |Change { before, after, .. }| before.finished_at != after.finished_at,
        bind: |change, to| to.put(change.after.finished_at.map(|at| at.0)),
    },
    Group { columns: "held = NULL", differs: |change| change.frees, bind: |_, _| Ok(()) },
    Group {
        columns: "failure_code = ?, failure_message = ?, withdrawn_from = ?",
        differs: |Change { before, after, .. }| before.failure != after.failure,
        bind: |Change { after, .. }, to| {
            to.put(after.failure.as_ref().map(|failure| failure.code.as_str()))?;
            to.put(after.failure.as_ref().map(|failure| failure.message.as_str()))?;
            to.put(withdrawn_from(after))
        },
    },
];

/// The groups whose bits are set in `groups`.
fn chosen(groups: u8) -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().enumerate().filter(move |(place, _)| groups & (1 << place) != 0).map(|(_, group)| group)
}

/// The statement that changes these groups.
pub(super) fn statement(groups: u8) -> String {
    let columns: String = chosen(groups).map(|group| format!(", {}", group.columns)).collect();
    format!("UPDATE round_states SET status = ?, rev = ?{columns} WHERE n = ?")
}

/// The server, where it took the round back.
fn withdrawn_from(round: &Round) -> Option<&str> {
    let failure = round.failure.as_ref()?;
    (failure.code == Failure::WITHDRAWN).then_some(round.server.as_str())
}

/// A change that waits for the end of its unit, so that a round which moves twice in it is written once. Whoever looks
/// through the rows of the table has it written first.
#[derive(Default)]
pub(super) struct Waiting(RefCell<Option<Change>>);

/// The row numbered `n`, as it is stored and as it is to be.
pub(super) struct Change {
    pub(super) n: i64,
    pub(super) before: Arc<Round>,
    pub(super) after: Arc<Round>,
    /// The number of whoever holds it afterwards.
    pub(super) holder: Option<i64>,
    /// Whether nothing of it dies with its worker any more.
    pub(super) frees: bool,
}

impl Waiting {
    /// Takes the change in, and writes the one of another round that waited.
    pub(super) fn put(&self, statements: &Statements<'_>, mut change: Change) -> rusqlite::Result<()> {
        match self.0.take() {
            Some(first) if first.n == change.n => change.before = first.before,
            Some(other) => other.write(statements)?,
            None => {}
        }
        self.0.replace(Some(change));
        Ok(())
    }

    /// Writes what waits.
    pub(super) fn write(&self, statements: &Statements<'_>) -> rusqlite::Result<()> {
        self.0.take().map_or(Ok(()), |change| change.write(statements))
    }
}

impl Change {
    fn write(&self, statements: &Statements<'_>) -> rusqlite::Result<()> {
        let differing = GROUPS.iter().enumerate().filter(|(_, group)| (group.differs)(self));
        let groups = differing.fold(0, |groups, (place, _)| groups | (1 << place));
        statements.run(Sql::ChangeRound(groups), |to| {
            to.put(self.after.status.as_str())?;
            to.put(self.after.rev)?;
            for group in chosen(groups) {
                (group.bind)(self, to)?;
            }
            to.put(self.n)
        })
    }
}
