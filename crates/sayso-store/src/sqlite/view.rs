//! What core may read while it decides, inside the writer's transaction.

use rusqlite::Connection;
use sayso_core::command::{DeliveryContent, Operation, Token, View};
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId, TokenId};
use sayso_core::principal::Principal;
use sayso_core::round::Round;
use sayso_core::time::UnixMs;

use super::reader::ReadError;
use super::rows;

pub(super) struct SqliteView<'a>(pub &'a Connection);

impl View for SqliteView<'_> {
    type Error = ReadError;
    fn round(&self, id: RoundId) -> Result<Option<Round>, ReadError> {
        rows::round(self.0, id)
    }
    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, ReadError> {
        rows::unfinished_rounds(self.0, execution)
    }
    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, ReadError> {
        rows::operation(self.0, execution, operation)
    }
    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<(RoundId, [u8; 32])>, ReadError> {
        rows::creation(self.0, principal, key)
    }
    fn execution(&self, id: ExecutionId) -> Result<Option<Execution>, ReadError> {
        rows::execution(self.0, id)
    }
    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, ReadError> {
        rows::owner(self.0, owner)
    }
    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, ReadError> {
        rows::content(self.0, id)
    }
    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, ReadError> {
        rows::token_by_hash(self.0, hash)
    }
    fn token(&self, id: TokenId) -> Result<Option<Token>, ReadError> {
        rows::token(self.0, id)
    }
    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, ReadError> {
        rows::sessions(self.0, principal)
    }
}
