//! A transaction of many units, each of them whole or not at all.

use rusqlite::Connection;
use sayso_core::command::{Command, Write, apply};
use sayso_core::error::Error;
use sayso_core::time::UnixMs;

use super::chain::{Chain, Mark};
use super::change::Waiting;
use super::known::Known;
use super::reader::ReadError;
use super::statements::{Sql, Statements};
use super::touched::Touched;
use super::view::SqliteView;
use super::writer::Answer;
use super::writes::Writing;

/// A transaction; it is undone unless it is committed.
pub(super) struct Transaction<'a, 'db> {
    statements: &'a Statements<'db>,
}

impl<'a, 'db> Transaction<'a, 'db> {
    pub(super) fn begin(statements: &'a Statements<'db>) -> rusqlite::Result<Self> {
        statements.run(Sql::Begin, |_| Ok(()))?;
        Ok(Self { statements })
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.statements.run(Sql::Commit, |_| Ok(()))
    }
}

impl Drop for Transaction<'_, '_> {
    fn drop(&mut self) {
        if !self.statements.db.is_autocommit() {
            // Where even this fails, the next transaction cannot begin and says so.
            let _ = self.statements.db.execute_batch("ROLLBACK");
        }
    }
}

pub(super) fn data_version(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// A transaction at work.
pub(super) struct Batch<'a, 'db> {
    pub(super) statements: &'a Statements<'db>,
    pub(super) now: UnixMs,
    pub(super) known: Known,
    pub(super) waiting: Waiting,
    pub(super) chain: Chain,
    pub(super) touched: &'a mut Touched,
    /// Whether a unit of several commands is run so that it can be undone by itself.
    pub(super) undoes: bool,
}

impl<'db> Batch<'_, 'db> {
    /// Applies one unit: all of it or none of it. Nothing where it would have to be undone and cannot be.
    pub(super) fn unit(&mut self, unit: &[Command]) -> Result<Option<Answer>, ReadError> {
        let several = unit.len() > 1;
        if several && self.undoes {
            self.statements.db.prepare_cached("SAVEPOINT unit")?.execute([])?;
        }
        let before = self.chain.mark();
        let mut replies = Vec::with_capacity(unit.len());
        for command in unit {
            let refused = match apply(&self.view(), command, self.now) {
                Ok(applied) => {
                    if applied.reply.is_ok() || !several {
                        self.write(applied.writes)?;
                    }
                    match applied.reply {
                        Ok(reply) => {
                            replies.push(reply);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                // A row that cannot be read refuses its own unit; the neighbours in the batch go on.
                Err(ReadError::Corrupt(what)) => Error::Corrupt(what),
                Err(error) => return Err(error),
            };
            if !several || (replies.is_empty() && !self.undoes) {
                self.waiting.write(self.statements)?;
                return Ok(Some(Err(refused)));
            }
            if !self.undoes {
                return Ok(None);
            }
            self.undo(before)?;
            return Ok(Some(Err(refused)));
        }
        self.waiting.write(self.statements)?;
        self.known.unit_is_over();
        if several && self.undoes {
            self.statements.db.prepare_cached("RELEASE unit")?.execute([])?;
        }
        Ok(Some(Ok(replies)))
    }

    fn view(&self) -> SqliteView<'_, 'db> {
        SqliteView { statements: self.statements, known: &self.known, waiting: &self.waiting }
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<(), ReadError> {
        let mut writes = writes.into_iter().peekable();
        while let Some(write) = writes.next() {
            self.touched.note(&write);
            let Self { statements, known, waiting, chain, .. } = self;
            match write {
                Write::Event(event) => chain.append(event),
                row => Writing { statements, known, waiting }.write(&row, writes.peek())?,
            }
        }
        Ok(())
    }

    fn undo(&mut self, before: Mark) -> Result<(), ReadError> {
        self.waiting = Waiting::default();
        self.statements.db.prepare_cached("ROLLBACK TO unit")?.execute([])?;
        self.statements.db.prepare_cached("RELEASE unit")?.execute([])?;
        self.chain.back_to(before);
        self.known = Known::default();
        Ok(())
    }
}
