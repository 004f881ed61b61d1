//! Changing a round's row. What may change is in groups that change together, and a statement names only the groups that
//! did: SQLite then leaves the indexes over the others alone.

use std::cell::RefCell;
use std::sync::Arc;

use sayso_core::round::Round;

use super::statements::{Binding, Sql, Statements};

struct Group {
    columns: &'static str,
    differs: fn(&Round, &Round) -> bool,
    bind: fn(&Round, &mut Binding<'_, '_>) -> rusqlite::Result<()>,
}

const GROUPS: [Group; 6] = [
    Group {
        columns: "owner = ?, token = ?",
        differs: |before, after| before.fence != after.fence,
        bind: |round, to| {
            to.put(round.fence.as_ref().map(|fence| fence.owner.as_str()))?;
            to.put(round.fence.as_ref().map(|fence| fence.token.0.to_be_bytes()))
        },
    },
    Group {
        columns: "answer_key = ?, answer_hash = ?, answered_by = ?, answered_channel = ?, answered_at = ?, \
                  answered_action = ?",
        differs: |before, after| before.answer_key != after.answer_key || before.answered != after.answered,
        bind: |round, to| {
            let answered = round.answered.as_ref();
            to.put(round.answer_key.as_ref().map(|(key, _)| key.as_str()))?;
            to.put(round.answer_key.as_ref().map(|(_, hash)| *hash))?;
            to.put(answered.map(|answered| answered.principal.to_string()))?;
            to.put(answered.map(|answered| answered.channel.as_str()))?;
            to.put(answered.map(|answered| answered.at.0))?;
            to.put(answered.and_then(|answered| answered.action).map(|action| action.as_str()))
        },
    },
    Group {
        columns: "delivery_attempts = ?, delivery_started_at = ?, delivered_at = ?",
        differs: |before, after| {
            (before.delivery_attempts, before.delivery_started_at, before.delivered_at)
                != (after.delivery_attempts, after.delivery_started_at, after.delivered_at)
        },
        bind: |round, to| {
            to.put(round.delivery_attempts)?;
            to.put(round.delivery_started_at.map(|at| at.0))?;
            to.put(round.delivered_at.map(|at| at.0))
        },
    },
    Group {
        columns: "collect_key = ?",
        differs: |before, after| before.collect_key != after.collect_key,
        bind: |round, to| to.put(round.collect_key.as_deref()),
    },
    Group {
        columns: "url_completed_at = ?",
        differs: |before, after| before.url_completed_at != after.url_completed_at,
        bind: |round, to| to.put(round.url_completed_at.map(|at| at.0)),
    },
    Group {
        columns: "finished_at = ?, failure_code = ?, failure_message = ?",
        differs: |before, after| before.finished_at != after.finished_at || before.failure != after.failure,
        bind: |round, to| {
            to.put(round.finished_at.map(|at| at.0))?;
            to.put(round.failure.as_ref().map(|failure| failure.code.as_str()))?;
            to.put(round.failure.as_ref().map(|failure| failure.message.as_str()))
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
    format!("UPDATE rounds SET status = ?, rev = ?{columns} WHERE id = ?")
}

/// A change that waits for the end of its unit, so that a round which moves twice in it is written once. Whoever looks
/// through the rows of the table has it written first.
#[derive(Default)]
pub(super) struct Waiting(RefCell<Option<(Arc<Round>, Arc<Round>)>>);

impl Waiting {
    /// Takes the change in, and writes the one of another round that waited.
    pub(super) fn put(
        &self,
        statements: &Statements<'_>,
        before: Arc<Round>,
        after: &Arc<Round>,
    ) -> rusqlite::Result<()> {
        let first = match self.0.take() {
            Some((first, waiting)) if waiting.id == after.id => first,
            Some((first, waiting)) => {
                change_round(statements, &first, &waiting)?;
                before
            }
            None => before,
        };
        self.0.replace(Some((first, after.clone())));
        Ok(())
    }

    /// Writes what waits.
    pub(super) fn write(&self, statements: &Statements<'_>) -> rusqlite::Result<()> {
        match self.0.take() {
            Some((before, after)) => change_round(statements, &before, &after),
            None => Ok(()),
        }
    }
}

/// Brings the row from `before` to `after`.
pub(super) fn change_round(statements: &Statements<'_>, before: &Round, after: &Round) -> rusqlite::Result<()> {
    let differing = GROUPS.iter().enumerate().filter(|(_, group)| (group.differs)(before, after));
    let groups = differing.fold(0, |groups, (place, _)| groups | (1 << place));
    statements.run(Sql::ChangeRound(groups), |to| {
        to.put(after.status.as_str())?;
        to.put(after.rev)?;
        for group in chosen(groups) {
            (group.bind)(after, to)?;
        }
        to.put(after.id.to_bytes())
    })
}
