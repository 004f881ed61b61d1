//! Writing what core decided, a statement or two a write.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, params};
use sayso_core::command::{Token, Write};
use sayso_core::execution::{Execution, ExecutionKind, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::round::{Delivery, Failure, Round};

use super::change::{Change, Waiting};
use super::known::{Known, StoredExecution};
use super::reader::ReadError;
use super::rows;
use super::statements::{Sql, Statements, upsert};
use super::view;
use crate::pending::{grant_scope_text, is_sought};

/// The rows of a transaction being written: what is known of them, and what waits for its end.
pub(super) struct Writing<'a, 'db> {
    pub(super) statements: &'a Statements<'db>,
    pub(super) known: &'a Known,
    pub(super) waiting: &'a Waiting,
}

impl Writing<'_, '_> {
    /// Writes it; `next` is what will be written after it.
    pub(super) fn write(&self, write: &Write, next: Option<&Write>) -> Result<(), ReadError> {
        let (statements, db) = (self.statements, self.statements.db);
        match write {
            Write::NewRound { round, requests, calls, suggestion_of, request_state } => {
                let own_execution = self.own_execution(round)?;
                let n = self.put_round(round, own_execution, (requests, calls, *suggestion_of))?;
                if let Some(state) = request_state {
                    db.prepare_cached("INSERT INTO request_states (round_id, request_state) VALUES (?1, ?2)")?
                        .execute(params![round.id.to_bytes(), state])?;
                }
                self.known.new_round(n, round, request_state.as_ref());
            }
            Write::Round(round) => self.change_round(round)?,
            Write::Details { round, details } => {
                db.prepare_cached("INSERT INTO round_details (round_id, details) VALUES (?1, ?2)")?
                    .execute(params![round.to_bytes(), details.as_str()])?;
            }
            Write::EraseRequestState(round) if self.known.has_no_state(*round) => {}
            Write::EraseRequestState(round) => {
                db.prepare_cached("DELETE FROM request_states WHERE round_id = ?1")?
                    .execute(params![round.to_bytes()])?;
            }
            Write::Answer { round, submitted, effective } => self.put_answer(*round, submitted, effective)?,
            Write::Creation { principal, creation, round } => {
                db.prepare_cached(
                    "INSERT INTO creations (principal, key, round_id, fingerprint) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    principal.to_string(),
                    creation.key,
                    round.to_bytes(),
                    creation.fingerprint
                ])?;
            }
            Write::NewExecution(execution) => self.new_execution(execution, next)?,
            Write::Execution(execution) if self.known.is_stored(execution) => {}
            Write::Execution(execution) => {
                let StoredExecution { own, .. } = self.stored_execution(execution.id)?;
                self.give_row(execution, own)?;
            }
            Write::Result { execution, result } => {
                db.prepare_cached("INSERT INTO results (execution_id, result) VALUES (?1, ?2)")?
                    .execute(params![execution.to_bytes(), result.as_str()])?;
            }
            Write::Owner { owner, expires_at: Some(until) } => statements.run(Sql::PutOwner, |to| {
                to.put(owner)?;
                to.put(until.0)
            })?,
            Write::Owner { owner, expires_at: None } => {
                db.prepare_cached("UPDATE owners SET expires_at = NULL WHERE owner = ?1")?.execute(params![owner])?;
            }
            Write::Token(token) => put_token(db, token)?,
            Write::Grant(grant) => put_grant(db, grant)?,
            Write::Reviewed { by, tool, definition, at } => {
                db.prepare_cached(
                    "INSERT INTO reviewed (agent, tool, definition, at) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (agent, tool) DO UPDATE SET definition = excluded.definition, at = excluded.at",
                )?
                .execute(params![by.to_string(), tool, definition.to_bytes(), at.0])?;
            }
            // Its place is the chain.
            Write::Event(_) => {}
        }
        self.known.note(write);
        Ok(())
    }

    fn change_round(&self, after: &Arc<Round>) -> Result<(), ReadError> {
        let (n, before) = match self.known.numbered_round(after.id) {
            Some(found) => found,
            None => {
                let found = rows::numbered_round(self.statements.db, after.id)?;
                let (n, before) = found.ok_or(ReadError::Corrupt("round"))?;
                (n, Arc::new(before))
            }
        };
        let holder = self.holder(after)?;
        let frees = after.delivery == Delivery::Live
            && after.status.is_finished()
            && self.stored_execution(after.execution_id)?.own != Some(after.id);
        Ok(self.waiting.put(self.statements, Change { n, before, after: after.clone(), holder, frees })?)
    }

    /// The number of whoever holds the round.
    fn holder(&self, round: &Round) -> rusqlite::Result<Option<i64>> {
        round.fence.as_ref().map(|fence| self.number(&fence.owner)).transpose()
    }

    /// The number of a worker, which it keeps.
    fn number(&self, owner: &str) -> rusqlite::Result<i64> {
        if let Some(n) = self.known.number(owner) {
            return Ok(n);
        }
        // What is there already is changed to what it is, since a row that is left alone is not returned.
        let sql = "INSERT INTO owners (owner) VALUES (?1) ON CONFLICT (owner) DO UPDATE SET owner = owner RETURNING n";
        let n = self.statements.db.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?;
        self.known.found_number(owner, n);
        Ok(n)
    }

    /// Stores the answer with who gave it, which the round says that was written just before.
    fn put_answer(&self, round: RoundId, submitted: &Json, effective: &Json) -> Result<(), ReadError> {
        let found = self.known.numbered_round(round);
        let Some((n, round)) = found else { return Err(ReadError::Corrupt("round")) };
        let (Some((key, hash)), Some(answered)) = (&round.answer_key, &round.answered) else {
            return Err(ReadError::Corrupt("answer"));
        };
        self.statements.run(Sql::InsertAnswer, |to| {
            to.put(n)?;
            to.put(key)?;
            to.put(hash)?;
            to.put(answered.principal.to_string())?;
            to.put(answered.channel.as_str())?;
            to.put(answered.action.map(|action| action.as_str()))?;
            to.put(submitted.as_str())?;
            to.put((effective != submitted).then(|| effective.as_str()))
        })?;
        Ok(())
    }

    /// Stores a new round, and answers with its number.
    fn put_round(
        &self,
        round: &Round,
        own_execution: Option<ExecutionKind>,
        (requests, calls, suggestion_of): (&Json, &Json, Option<RoundId>),
    ) -> rusqlite::Result<i64> {
        let (statements, holder) = (self.statements, self.holder(round)?);
        statements.run(Sql::InsertFacts, |to| {
            to.put(round.id.to_bytes())?;
            to.put(round.execution_id.to_bytes())?;
            to.put(round.logical_operation_id.as_str())?;
            to.put(round.server.as_str())?;
            to.put(round.operation_kind.as_str())?;
            to.put(round.operation_name.as_str())?;
            to.put(round.asked_by.to_string())?;
            to.put(round.delivery.as_str())?;
            to.put(round.index)?;
            to.put(round.limit)?;
            to.put(round.created_at.0)?;
            to.put(round.digest.to_bytes())?;
            to.put(round.has_approval)?;
            to.put(requests.as_str())?;
            to.put(calls.as_str())?;
            to.put(suggestion_of.map(RoundId::to_bytes))?;
            to.put(own_execution.map(ExecutionKind::as_str))
        })?;
        let n = statements.db.last_insert_rowid();
        let operation = round.logical_operation_id.as_str();
        statements.run(Sql::InsertState, |to| {
            to.put(n)?;
            to.put(round.id.to_bytes())?;
            to.put(round.status.as_str())?;
            to.put(round.rev)?;
            to.put(holder)?;
            to.put(round.fence.as_ref().map(|fence| fence.token.0.to_be_bytes()))?;
            to.put(holder.filter(|_| round.delivery == Delivery::Live))?;
            to.put(round.deadline.map(|at| at.0))?;
            to.put(is_sought(operation).then_some(operation))?;
            to.put(round.delivery_attempts)
        })?;
        Ok(n)
    }

    /// The number of the worker that it lives in.
    fn owner_of(&self, execution: &Execution) -> rusqlite::Result<Option<i64>> {
        execution.owner.as_deref().map(|owner| self.number(owner)).transpose()
    }

    fn put_execution(&self, sql: Sql, execution: &Execution) -> rusqlite::Result<()> {
        let (failure, holder) = (failure_of(execution), self.owner_of(execution)?);
        self.statements.run(sql, |to| {
            to.put(execution.id.to_bytes())?;
            to.put(execution.kind.as_str())?;
            to.put(execution.started_by.to_string())?;
            to.put(holder)?;
            to.put(execution.ends_with_round)?;
            to.put(execution.created_at.0)?;
            to.put(execution.finished_at.map(|at| at.0))?;
            to.put(execution.outcome.as_ref().map(Outcome::as_str))?;
            to.put(failure.map(|failure| failure.code.as_str()))?;
            to.put(failure.map(|failure| failure.message.as_str()))?;
            to.put(execution.collected_at.map(|at| at.0))
        })
    }

    /// Stores a new execution, unless the round that is written next says it.
    fn new_execution(&self, execution: &Arc<Execution>, next: Option<&Write>) -> rusqlite::Result<()> {
        let own = match next {
            Some(Write::NewRound { round, .. }) if **execution == Execution::only_for(round, execution.kind) => {
                Some(round.id)
            }
            _ => {
                self.put_execution(Sql::InsertExecution, execution)?;
                None
            }
        };
        self.known.new_execution(execution, own);
        Ok(())
    }

    /// What kind of execution a new round says, which is then in no row. One that another round says gets its row, as they
    /// are two now.
    fn own_execution(&self, round: &Round) -> Result<Option<ExecutionKind>, ReadError> {
        let StoredExecution { execution, own } = self.stored_execution(round.execution_id)?;
        if own == Some(round.id) {
            return Ok(Some(execution.kind));
        }
        if own.is_some() {
            self.give_row(&execution, own)?;
        }
        Ok(None)
    }

    /// Stores an execution, and frees the round that said it from its worker where it is over.
    fn give_row(&self, execution: &Execution, own: Option<RoundId>) -> Result<(), ReadError> {
        self.put_execution(Sql::PutExecution, execution)?;
        self.known.has_row(execution.id);
        if let Some(round) = own {
            self.waiting.write(self.statements)?;
            let free = "UPDATE round_states SET held = NULL
                WHERE n = (SELECT n FROM round_facts WHERE id = ?1) AND finished_at IS NOT NULL AND held IS NOT NULL";
            self.statements.db.prepare_cached(free)?.execute([round.to_bytes()])?;
        }
        Ok(())
    }

    /// What is stored of an execution that there is.
    fn stored_execution(&self, id: ExecutionId) -> Result<StoredExecution, ReadError> {
        view::stored_execution(self.statements, self.known, self.waiting, id)?.ok_or(ReadError::Corrupt("execution"))
    }
}

fn failure_of(execution: &Execution) -> Option<&Failure> {
    match &execution.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    }
}

fn put_token(db: &Connection, token: &Token) -> rusqlite::Result<()> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("tokens", "id", rows::TOKEN_COLUMNS));
    db.prepare_cached(&STATEMENT)?.execute(params![
        token.id.to_bytes(),
        token.use_.as_str(),
        token.principal.to_string(),
        token.hash,
        token.created_at.0,
        token.expires_at.map(|at| at.0),
        token.revoked_at.map(|at| at.0),
    ])?;
    Ok(())
}

fn put_grant(db: &Connection, grant: &Grant) -> Result<(), ReadError> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| upsert("grants", "id", rows::GRANT_COLUMNS));
    let scope = grant_scope_text(&grant.scope).ok_or(ReadError::Corrupt("grant"))?;
    db.prepare_cached(&STATEMENT)?.execute(params![
        grant.id.to_bytes(),
        scope,
        grant.scope.session(),
        grant.agent.as_ref().map(ToString::to_string),
        grant.round.map(RoundId::to_bytes),
        grant.granted_by.to_string(),
        grant.granted_at.0,
        grant.expires_at.map(|at| at.0),
        grant.uses_max,
        grant.uses,
        grant.revoked_at.map(|at| at.0),
    ])?;
    Ok(())
}
