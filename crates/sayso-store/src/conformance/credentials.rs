//! Credentials: hashes only, revoked once, and a link that becomes one session.

use sayso_core::command::{Command, Reply, Token, TokenUse};
use sayso_core::error::ErrorCode;
use sayso_core::id::TokenId;
use sayso_core::limits::{LOGIN_LINK_MS, SESSION_MS};
use sayso_core::principal::Principal;
use sayso_core::time::UnixMs;

use super::Subject;
use super::bench::{Bench, START, ada, agent, code};

/// A credential whose secret hashes to `n` everywhere.
fn token(n: u8, use_: TokenUse, principal: Principal) -> Token {
    Token {
        id: TokenId::from_parts(START.0, u128::from(n)),
        use_,
        principal,
        hash: [n; 32],
        created_at: UnixMs(0),
        expires_at: None,
        revoked_at: None,
    }
}

async fn add<S: Subject>(bench: &Bench<S>, token: Token, good_for_ms: Option<i64>) -> Token {
    match bench.run(Command::AddToken { token, good_for_ms, by: ada() }).await {
        Ok(Reply::Token(token)) => *token,
        other => panic!("{other:?}"),
    }
}

async fn by_hash<S: Subject>(bench: &Bench<S>, n: u8) -> Option<Token> {
    bench.store.token_by_hash([n; 32]).await.expect("is read")
}

pub(super) async fn a_token_is_found_by_its_hash_until_it_is_revoked<S: Subject>(bench: &Bench<S>) {
    let first = add(bench, token(1, TokenUse::Api, agent()), None).await;
    assert_eq!(first.created_at, bench.now().await, "by the store's clock");
    let second = add(bench, token(2, TokenUse::Api, ada()), Some(10)).await;
    add(bench, token(3, TokenUse::Login, ada()), None).await;
    assert_eq!(by_hash(bench, 1).await, Some(first.clone()));
    assert_eq!(by_hash(bench, 9).await, None);
    assert_eq!(bench.store.tokens().await, Ok(vec![second.clone(), first.clone()]), "the API's, newest first");
    let now = bench.now().await;
    assert!(second.is_good(now.plus_ms(9)) && !second.is_good(now.plus_ms(10)), "good for ten milliseconds");
    let revoke = || Command::RevokeToken { token: first.id, by: ada() };
    let Ok(Reply::Token(revoked)) = bench.run(revoke()).await else { panic!("revoked") };
    assert_eq!(revoked.revoked_at, Some(now));
    assert!(by_hash(bench, 1).await.is_some_and(|token| !token.is_good(now)));
    bench.advance_ms(1);
    assert_eq!(bench.run(revoke()).await, Ok(Reply::Token(revoked)), "a repeat");
    let unknown = Command::RevokeToken { token: TokenId::from_parts(START.0, 99), by: ada() };
    assert_eq!(code(bench.run(unknown).await), ErrorCode::NotFound);
    assert_eq!(bench.event_names(0).await, ["token_added", "token_added", "token_added", "token_revoked"]);
}

pub(super) async fn revoking_a_credential_ends_the_sessions_that_began_with_it<S: Subject>(bench: &Bench<S>) {
    let api = add(bench, token(1, TokenUse::Api, ada()), None).await;
    add(bench, token(2, TokenUse::Session, ada()), None).await;
    add(bench, token(3, TokenUse::Login, ada()), None).await;
    add(bench, token(4, TokenUse::Session, Principal::person("somebody else")), None).await;
    let now = bench.now().await;
    bench.run(Command::RevokeToken { token: api.id, by: ada() }).await.expect("revoked");
    for (n, is_good) in [(1, false), (2, false), (3, false), (4, true)] {
        let found = by_hash(bench, n).await.expect("is kept");
        assert_eq!(found.is_good(now), is_good, "token {n}");
    }
}

pub(super) async fn a_login_link_becomes_one_session<S: Subject>(bench: &Bench<S>) {
    let use_it = |link: u8, session: u8| Command::UseLogin {
        login_hash: [link; 32],
        session: TokenId::from_parts(START.0, u128::from(session)),
        session_hash: [session; 32],
    };
    add(bench, token(1, TokenUse::Login, ada()), Some(LOGIN_LINK_MS)).await;
    bench.advance_ms(LOGIN_LINK_MS - 1);
    let Ok(Reply::Token(session)) = bench.run(use_it(1, 2)).await else { panic!("in time") };
    assert_eq!((session.use_, &session.principal), (TokenUse::Session, &ada()));
    assert_eq!(session.expires_at, Some(bench.now().await.plus_ms(SESSION_MS)));
    assert_eq!(by_hash(bench, 2).await, Some(*session));
    assert_eq!(code(bench.run(use_it(1, 3)).await), ErrorCode::Unauthenticated, "used up");
    assert_eq!(by_hash(bench, 3).await, None);
    add(bench, token(4, TokenUse::Login, ada()), Some(LOGIN_LINK_MS)).await;
    bench.advance_ms(LOGIN_LINK_MS);
    assert_eq!(code(bench.run(use_it(4, 5)).await), ErrorCode::Unauthenticated, "too old");
    add(bench, token(6, TokenUse::Api, ada()), None).await;
    for not_a_link in [2, 6, 7] {
        assert_eq!(code(bench.run(use_it(not_a_link, 8)).await), ErrorCode::Unauthenticated);
    }
    assert_eq!(by_hash(bench, 8).await, None);
}
