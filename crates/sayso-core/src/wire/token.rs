use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command;
use crate::id::TokenId;
use crate::principal::Principal;
use crate::time::UnixMs;

/// For whom a new credential speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewTokenKind {
    /// A person, who may answer.
    Person,
    /// An agent, which may ask and collect and never answers.
    Agent,
}

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Person or agent.
    pub kind: NewTokenKind,
    /// The name its principal will have.
    pub name: String,
}

/// A credential, without its secret; with it exactly once, when it is made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Its id.
    pub token_id: TokenId,
    /// Whom it speaks for.
    pub principal: Principal,
    /// When it was made.
    pub created_at: UnixMs,
    /// When it was revoked.
    pub revoked_at: Option<UnixMs>,
    /// The secret: shown once and stored nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The secret never appears in `Debug` (invariant 8).
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("token_id", &self.token_id)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

impl Token {
    /// A credential as others see it.
    pub fn new(row: &command::Token, secret: Option<String>) -> Self {
        Self {
            token_id: row.id,
            principal: row.principal.clone(),
            created_at: row.created_at,
            revoked_at: row.revoked_at,
            secret,
        }
    }
}

/// The credentials of the API, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenPage {
    /// The credentials.
    pub tokens: Vec<Token>,
}
