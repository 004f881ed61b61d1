//! The commands on credentials: only hashes are ever stored.

use super::apply::{Decided, Stop, Work};
use super::{Reply, Token, TokenUse, View, Write};
use crate::error::Error;
use crate::event::{EventBody, NewEvent};
use crate::id::TokenId;
use crate::limits;
use crate::principal::Principal;

fn event<V: View>(work: &mut Work<V>, by: &Principal, body: EventBody) {
    work.event(NewEvent {
        at: work.now,
        execution_id: None,
        round_id: None,
        principal: Some(by.clone()),
        channel: None,
        body,
    });
}

pub(super) fn add<V: View>(work: &mut Work<V>, token: &Token, good_for_ms: Option<i64>, by: &Principal) -> Decided<V> {
    let expires_at = good_for_ms.map(|ms| work.now.plus_ms(ms));
    let token = Token { created_at: work.now, expires_at, revoked_at: None, ..token.clone() };
    work.writes.push(Write::Token(Box::new(token.clone())));
    event(work, by, EventBody::TokenAdded { token_id: token.id });
    Ok(Reply::Token(Box::new(token)))
}

pub(super) fn revoke<V: View>(work: &mut Work<V>, id: TokenId, by: &Principal) -> Decided<V> {
    let token = work.view.token(id).map_err(Stop::Read)?.ok_or(Error::NotFound("token"))?;
    if token.revoked_at.is_some() {
        return Ok(Reply::Token(Box::new(token)));
    }
    // A session that began with this credential would outlive it; whoever should not have the one has not the other.
    let also = match token.use_ {
        TokenUse::Api => work.view.sessions(&token.principal).map_err(Stop::Read)?,
        TokenUse::Login | TokenUse::Session => Vec::new(),
    };
    let token = Token { revoked_at: Some(work.now), ..token };
    for ended in std::iter::once(token.clone()).chain(also) {
        event(work, by, EventBody::TokenRevoked { token_id: ended.id });
        work.writes.push(Write::Token(Box::new(Token { revoked_at: Some(work.now), ..ended })));
    }
    Ok(Reply::Token(Box::new(token)))
}

pub(super) fn use_login<V: View>(
    work: &mut Work<V>,
    login_hash: &[u8; 32],
    session: TokenId,
    session_hash: &[u8; 32],
) -> Decided<V> {
    let refused = Error::Unauthenticated("the link has been used or is too old; run `sayso login` for a new one");
    let login = work.view.token_by_hash(login_hash).map_err(Stop::Read)?;
    let Some(login) = login.filter(|login| login.use_ == TokenUse::Login && login.is_good(work.now)) else {
        return Err(refused.into());
    };
    let used = Token { revoked_at: Some(work.now), ..login.clone() };
    let token = Token {
        id: session,
        use_: TokenUse::Session,
        principal: login.principal.clone(),
        hash: *session_hash,
        created_at: work.now,
        expires_at: Some(work.now.plus_ms(limits::SESSION_MS)),
        revoked_at: None,
    };
    work.writes.push(Write::Token(Box::new(used)));
    work.writes.push(Write::Token(Box::new(token.clone())));
    event(work, &login.principal, EventBody::TokenAdded { token_id: session });
    Ok(Reply::Token(Box::new(token)))
}
