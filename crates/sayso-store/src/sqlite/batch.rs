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

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use sayso_core::command::{NewRound, RoundExecution};
    use sayso_core::execution::ExecutionKind;
    use sayso_core::json::Json;
    use sayso_core::round::{Failure, FailureRequest, Round};

    use super::*;
    use crate::sample::answered;
    use crate::sqlite::open;

    fn asking(row: &Round) -> Command {
        let json = |text| Json::parse(text).expect("JSON");
        let execution =
            RoundExecution::New { id: row.execution_id, kind: ExecutionKind::Operation, ends_with_round: false };
        Command::CreateRound(Box::new(NewRound {
            id: row.id,
            execution,
            logical_operation_id: row.logical_operation_id.clone(),
            server: row.server.clone(),
            operation_kind: row.operation_kind,
            operation_name: row.operation_name.clone(),
            asked_by: row.asked_by.clone(),
            delivery: row.delivery,
            fence: row.fence.clone(),
            deadline: None,
            limit: row.limit,
            digest: row.digest,
            has_approval: false,
            requests: json("{}"),
            calls: json("[]"),
            suggestion_of: None,
            request_state: None,
            creation: None,
        }))
    }

    #[test]
    fn the_execution_of_a_live_round_is_known_until_the_unit_that_ends_the_round() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = open::prepare_file(&folder.path().join("sayso.sqlite")).expect("a file");
        let db = open::connection(&path).expect("opens");
        open::migrate(&db).expect("has its schema");
        let (statements, mut touched, row) = (Statements::of(&db), Touched::default(), answered("main"));
        let _transaction = Transaction::begin(&statements).expect("begins");
        let mut batch = Batch {
            statements: &statements,
            now: row.created_at,
            known: Known::default(),
            waiting: Waiting::default(),
            chain: Chain::load(&db).expect("is read"),
            touched: &mut touched,
            undoes: false,
        };
        let done = |batch: &mut Batch<'_, '_>, unit| {
            let answer = batch.unit(&[unit]).ok().flatten().expect("is not undone");
            answer.expect("is done");
            batch.known.stored_execution(row.execution_id).is_some()
        };
        assert!(done(&mut batch, asking(&row)));
        let failure = Failure::new(Failure::UNAVAILABLE, "nobody is there");
        let principal = row.asked_by.clone();
        let request = FailureRequest { fence: row.fence.clone(), principal, failure, only_pending: false };
        assert!(!done(&mut batch, Command::Fail { round: row.id, request }));
    }
}
