//! What core may read while it decides, inside the writer's transaction.

use std::sync::Arc;

use sayso_core::command::{DeliveryContent, Operation, Token, View};
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Round};
use sayso_core::time::UnixMs;

use super::change::Waiting;
use super::known::{Known, StoredExecution};
use super::reader::ReadError;
use super::rows;
use super::statements::Statements;

/// What is stored of an execution.
pub(super) fn stored_execution(
    statements: &Statements<'_>,
    known: &Known,
    waiting: &Waiting,
    id: ExecutionId,
) -> Result<Option<StoredExecution>, ReadError> {
    if let Some(found) = known.stored_execution(id) {
        return Ok(Some(found));
    }
    // Its pending rounds are counted.
    waiting.write(statements)?;
    let Some((execution, own)) = rows::execution(statements.db, id)? else { return Ok(None) };
    let found = StoredExecution { execution: Arc::new(execution), own };
    known.found_execution(&found);
    Ok(Some(found))
}

pub(super) struct SqliteView<'a, 'db> {
    pub(super) statements: &'a Statements<'db>,
    pub(super) known: &'a Known,
    pub(super) waiting: &'a Waiting,
}

impl View for SqliteView<'_, '_> {
    type Error = ReadError;
    fn round(&self, id: RoundId) -> Result<Option<Arc<Round>>, ReadError> {
        if let Some(round) = self.known.round(id) {
            return Ok(Some(round));
        }
        self.waiting.write(self.statements)?;
        let Some((n, round)) = rows::numbered_round(self.statements.db, id)? else { return Ok(None) };
        let round = Arc::new(round);
        self.known.found_round(n, &round);
        Ok(Some(round))
    }
    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, ReadError> {
        if let Some(rounds) = self.known.unfinished_rounds(execution) {
            return Ok(rounds);
        }
        self.waiting.write(self.statements)?;
        rows::unfinished_rounds(self.statements.db, execution)
    }
    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, ReadError> {
        rows::operation(self.statements.db, execution, operation)
    }
    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<(RoundId, [u8; 32])>, ReadError> {
        rows::creation(self.statements.db, principal, key)
    }
    fn execution(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, ReadError> {
        Ok(stored_execution(self.statements, self.known, self.waiting, id)?.map(|stored| stored.execution))
    }
    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, ReadError> {
        if let Some(until) = self.known.owner(owner) {
            return Ok(until);
        }
        let found = rows::owner(self.statements.db, owner)?;
        self.known.found_owner(owner, found);
        Ok(found)
    }
    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, ReadError> {
        match self.known.content(id) {
            Some(content) => Ok(Some(content)),
            None => rows::content(self.statements.db, id),
        }
    }
    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, ReadError> {
        rows::token_by_hash(self.statements.db, hash)
    }
    fn token(&self, id: TokenId) -> Result<Option<Token>, ReadError> {
        rows::token(self.statements.db, id)
    }
    fn grant(&self, id: GrantId) -> Result<Option<Grant>, ReadError> {
        rows::grant(self.statements.db, id)
    }
    fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, ReadError> {
        rows::reviewed(self.statements.db, by, tool)
    }
    fn tools_reviewed(&self, by: &Principal) -> Result<usize, ReadError> {
        rows::tools_reviewed(self.statements.db, by)
    }
    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, ReadError> {
        rows::sessions(self.statements.db, principal)
    }
}
