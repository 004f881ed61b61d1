//! Credentials: made once, shown once, stored as hashes; and the one-time link that becomes a browser's session.

use sayso_core::command::{Command, Reply, Token, TokenUse};
use sayso_core::error::Error;
use sayso_core::id::TokenId;
use sayso_core::limits::{LOGIN_LINK_MS, NAME_BYTES_MAX};
use sayso_core::principal::{Principal, PrincipalKind};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, NewTokenKind};
use tokio::time::Instant;

use crate::believed::BELIEVED;
use crate::ids;
use crate::open::Sayso;

/// A new credential with its secret; there is no second chance to read it.
#[derive(Clone)]
pub struct MintedToken {
    /// The credential, its secret included.
    pub token: wire::Token,
}

/// A one-time secret for the inbox.
#[derive(Clone)]
pub struct Login {
    /// What goes into the link.
    pub secret: String,
    /// Until when it can be used.
    pub expires_at: Option<UnixMs>,
}

/// Only the owner of the data folder makes and revokes credentials.
fn check_admin(caller: &Principal) -> Result<(), Error> {
    if caller.kind == PrincipalKind::Person && caller.name.starts_with("local:") {
        return Ok(());
    }
    Err(Error::Forbidden("only the owner of the data folder makes and revokes tokens"))
}

const UNKNOWN: Error = Error::Unauthenticated("the token is unknown, revoked or too old");

impl Sayso {
    async fn add_token(
        &self,
        by: &Principal,
        use_: TokenUse,
        principal: Principal,
        secret: &str,
        good_for_ms: Option<i64>,
    ) -> Result<Token, Error> {
        let now = self.store().now().await?;
        let token = Token {
            id: ids::new_id(now, TokenId::from_parts)?,
            use_,
            principal,
            hash: ids::secret_hash(secret),
            created_at: now,
            expires_at: None,
            revoked_at: None,
        };
        let command = Command::AddToken { token, good_for_ms, by: by.clone() };
        match self.store().commit(vec![command]).await?.into_iter().next() {
            Some(Reply::Token(token)) => Ok(*token),
            _ => Err(Error::Corrupt("token")),
        }
    }

    /// Makes a credential for the API and the command line.
    pub async fn new_token(&self, by: &Principal, new: wire::NewToken) -> Result<MintedToken, Error> {
        check_admin(by)?;
        let name = new.name.trim();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(Error::field("/name", format!("must have 1 to {NAME_BYTES_MAX} bytes, none of them control")));
        }
        if name.starts_with("local:") {
            return Err(Error::field("/name", "must not start with local:, which is the owner of the data folder"));
        }
        let (principal, prefix) = match new.kind {
            NewTokenKind::Person => (Principal::person(name), "sayso_person_"),
            NewTokenKind::Agent => (Principal::agent(name), "sayso_agent_"),
        };
        let secret = ids::secret(prefix)?;
        let token = self.add_token(by, TokenUse::Api, principal, &secret, None).await?;
        Ok(MintedToken { token: wire::Token::new(&token, Some(secret)) })
    }

    /// The credentials of the API, newest first.
    pub async fn tokens(&self, by: &Principal) -> Result<wire::TokenPage, Error> {
        check_admin(by)?;
        let tokens = self.store().tokens().await?;
        Ok(wire::TokenPage { tokens: tokens.iter().map(|token| wire::Token::new(token, None)).collect() })
    }

    /// Revokes a credential. Idempotent. Once this returns, no process takes it any more.
    pub async fn revoke_token(&self, by: &Principal, id: TokenId) -> Result<wire::Token, Error> {
        check_admin(by)?;
        let replies = self.store().commit(vec![Command::RevokeToken { token: id, by: by.clone() }]).await?;
        self.inner.believed.forget_all();
        // Other processes, and reads of this one that began before, believe it no longer than this.
        tokio::time::sleep(BELIEVED).await;
        match replies.into_iter().next() {
            Some(Reply::Token(token)) => Ok(wire::Token::new(&token, None)),
            _ => Err(Error::Corrupt("token")),
        }
    }

    /// Whom a secret speaks for, where it is a credential of the API.
    pub async fn authenticate(&self, secret: &str) -> Result<Principal, Error> {
        self.principal_of(secret, TokenUse::Api).await
    }

    /// As [`Sayso::authenticate`], for whoever is asked with every request: a token that was read within the last 25 ms is
    /// not read again. [`Sayso::revoke_token`] returns only after that.
    pub async fn recognize(&self, secret: &str) -> Result<Principal, Error> {
        let hash = ids::secret_hash(secret);
        if let Some(principal) = self.inner.believed.principal(&hash) {
            return Ok(principal);
        }
        let since = Instant::now();
        let token = self.good_token(hash, TokenUse::Api).await?;
        if token.expires_at.is_none() {
            self.inner.believed.keep(hash, token.principal.clone(), since);
        }
        Ok(token.principal)
    }

    /// Whom a browser's session speaks for.
    pub async fn authenticate_session(&self, secret: &str) -> Result<Principal, Error> {
        self.principal_of(secret, TokenUse::Session).await
    }

    async fn principal_of(&self, secret: &str, use_: TokenUse) -> Result<Principal, Error> {
        Ok(self.good_token(ids::secret_hash(secret), use_).await?.principal)
    }

    async fn good_token(&self, hash: [u8; 32], use_: TokenUse) -> Result<Token, Error> {
        let found = self.store().token_by_hash(hash).await?.ok_or(UNKNOWN)?;
        let now = self.store().now().await?;
        if found.use_ == use_ && found.is_good(now) { Ok(found) } else { Err(UNKNOWN) }
    }

    /// A one-time secret for a link to the inbox, good for ten minutes.
    pub async fn new_login(&self, person: &Principal) -> Result<Login, Error> {
        if person.kind != PrincipalKind::Person {
            return Err(Error::Forbidden("only a person logs in to the inbox"));
        }
        let secret = ids::secret("")?;
        let token = self.add_token(person, TokenUse::Login, person.clone(), &secret, Some(LOGIN_LINK_MS)).await?;
        Ok(Login { secret, expires_at: token.expires_at })
    }

    /// Exchanges a one-time secret for a session's secret; the one-time secret is used up.
    pub async fn use_login(&self, secret: &str) -> Result<String, Error> {
        let session_secret = ids::secret("")?;
        let now = self.store().now().await?;
        let command = Command::UseLogin {
            login_hash: ids::secret_hash(secret),
            session: ids::new_id(now, TokenId::from_parts)?,
            session_hash: ids::secret_hash(&session_secret),
        };
        self.store().commit(vec![command]).await?;
        Ok(session_secret)
    }

    /// Ends a browser's session; a secret of anything else ends nothing.
    pub async fn end_session(&self, secret: &str) -> Result<(), Error> {
        let found = self.store().token_by_hash(ids::secret_hash(secret)).await?;
        let Some(found) = found.filter(|token| token.use_ == TokenUse::Session) else { return Ok(()) };
        let command = Command::RevokeToken { token: found.id, by: found.principal };
        self.store().commit(vec![command]).await.map(drop)
    }
}
