//! Credentials as they are stored.

use crate::id::TokenId;
use crate::principal::{Principal, PrincipalKind};
use crate::time::UnixMs;

/// A credential's row; the secret itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What it is for.
    pub use_: TokenUse,
    /// Whom it speaks for.
    pub principal: Principal,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: UnixMs,
    /// From when it is no longer good.
    pub expires_at: Option<UnixMs>,
    /// When it was revoked or used up.
    pub revoked_at: Option<UnixMs>,
}

/// What a credential is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenUse {
    /// The API and the command line.
    Api,
    /// A one-time link to the inbox.
    Login,
    /// A browser's session.
    Session,
}

impl TokenUse {
    /// The word used in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Login => "login",
            Self::Session => "session",
        }
    }
    /// The use that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Api, Self::Login, Self::Session].into_iter().find(|kind| kind.as_str() == word)
    }
}

impl Token {
    /// Whether it is good at `now`.
    pub fn is_good(&self, now: UnixMs) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|until| now < until)
    }
    /// The kind of caller it speaks for.
    pub fn kind(&self) -> PrincipalKind {
        self.principal.kind
    }
}
