//! The statements that the writer runs all the time: compiled once and held, so that running one is binding its values
//! and nothing else.

use std::cell::RefCell;

use foldhash::{HashMap, HashMapExt as _};
use rusqlite::{Connection, Statement, ToSql};

use super::rows;

/// A statement that is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sql {
    Begin,
    Commit,
    InsertFacts,
    InsertState,
    /// Changes these groups of a round's columns, a bit each; see [`super::change::GROUPS`].
    ChangeRound(u8),
    InsertAnswer,
    InsertExecution,
    PutExecution,
    PutOwner,
    /// Stores a list of events.
    InsertEvents,
}

impl Sql {
    fn text(self) -> String {
        match self {
            Self::Begin => "BEGIN IMMEDIATE".to_owned(),
            Self::Commit => "COMMIT".to_owned(),
            Self::InsertFacts => insert("round_facts", rows::FACT_COLUMNS),
            Self::InsertState => {
                insert("round_states", "n, id, status, rev, holder, token, held, deadline, sought, delivery_attempts")
            }
            Self::ChangeRound(groups) => super::change::statement(groups),
            Self::InsertAnswer => insert(
                "round_answers",
                "n, answer_key, answer_hash, answered_by, answered_channel, answered_action, submitted, instead",
            ),
            Self::InsertExecution => insert("execution_states", rows::EXECUTION_COLUMNS),
            Self::PutExecution => upsert("execution_states", "id", rows::EXECUTION_COLUMNS),
            Self::PutOwner => upsert("owners", "owner", "owner, expires_at"),
            Self::InsertEvents => insert("event_lists", "last_seq, at, previous_hash, hash, events"),
        }
    }
}

/// A statement that stores a new row.
fn insert(table: &str, columns: &str) -> String {
    format!("INSERT INTO {table} ({columns}) VALUES ({})", vec!["?"; columns.split(',').count()].join(", "))
}

/// A statement that stores a row, or changes the row of the same key. Never `OR REPLACE`, which would silently delete
/// another row that holds the same unique value.
pub(super) fn upsert(table: &str, key: &str, columns: &str) -> String {
    let names = columns.split(',').map(str::trim);
    let changes: Vec<_> = names.filter(|name| *name != key).map(|name| format!("{name} = excluded.{name}")).collect();
    format!("{} ON CONFLICT ({key}) DO UPDATE SET {}", insert(table, columns), changes.join(", "))
}

/// The writer's connection with the statements it has compiled.
pub(super) struct Statements<'db> {
    pub(super) db: &'db Connection,
    held: RefCell<HashMap<Sql, Statement<'db>>>,
}

/// A statement being given its values, in their order.
pub(super) struct Binding<'s, 'db> {
    statement: &'s mut Statement<'db>,
    place: usize,
}

impl Binding<'_, '_> {
    pub(super) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.place += 1;
        self.statement.raw_bind_parameter(self.place, value)
    }
}

impl<'db> Statements<'db> {
    pub(super) fn of(db: &'db Connection) -> Self {
        Self { db, held: RefCell::new(HashMap::new()) }
    }

    /// Runs a statement with the values that `bind` gives it: all of them, each time.
    pub(super) fn run(
        &self,
        sql: Sql,
        bind: impl FnOnce(&mut Binding<'_, 'db>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut held = self.held.borrow_mut();
        let statement = match held.entry(sql) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(self.db.prepare(&sql.text())?),
        };
        bind(&mut Binding { statement, place: 0 })?;
        statement.raw_execute().map(drop)
    }
}
