//! Grants: given by persons, counted in the transaction that decides, ended for good, and kept.

use sayso_core::command::{Command, Reply};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::policy::{Grant, GrantScope, Pins, ToolName};
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;

use super::Subject;
use super::bench::{Bench, CONFLICT, INVALID, START, ada, agent, code, json};
use crate::{GrantFilter, GrantsOf};

fn of_session(n: u128, session: &str) -> Grant {
    let pins = Pins::Exactly(json(r#"{"n":0.10,"deep":{"b":1,"a":[9007199254740993]}}"#));
    let tool = ToolName::parse("shop:book").expect("a tool");
    let definition = Digest::of_text("definition");
    grant(n, GrantScope::Session { session: session.to_owned(), tool, definition, pins })
}

fn grant(n: u128, scope: GrantScope) -> Grant {
    Grant {
        id: GrantId::from_parts(START.0, n),
        scope,
        granted_by: ada(),
        granted_at: UnixMs(0),
        expires_at: None,
        uses_max: None,
        uses: 7,
        revoked_at: None,
        agent: Some(agent()),
        round: Some(RoundId::from_parts(START.0, n)),
    }
}

fn adding(grant: Grant, good_for_ms: Option<i64>) -> Command {
    Command::AddGrant { grant: Box::new(grant), good_for_ms, channel: Channel::Cli, not_by_starter_of: None }
}

fn using(grant: &Grant) -> Command {
    Command::UseGrant { grant: grant.id, by: agent(), execution: None }
}

fn revoking(grant: &Grant) -> Command {
    Command::RevokeGrant { grant: grant.id, by: ada(), channel: Channel::Http }
}

async fn granted<S: Subject>(bench: &Bench<S>, command: Command) -> Result<Grant, Error> {
    match bench.run(command).await? {
        Reply::Grant(grant) => {
            assert_eq!(bench.store.grant(grant.id).await.expect("is read"), Some((*grant).clone()));
            Ok(*grant)
        }
        other => panic!("no grant: {other:?}"),
    }
}

async fn listed<S: Subject>(bench: &Bench<S>, filter: GrantFilter) -> Vec<GrantId> {
    let limit = if filter.limit == 0 { 100 } else { filter.limit };
    let found = bench.store.grants(GrantFilter { limit, ..filter }).await.expect("is read");
    found.iter().map(|grant| grant.id).collect()
}

pub(super) async fn a_grant_is_kept_as_it_was_given<S: Subject>(bench: &Bench<S>) {
    let given = of_session(1, "s");
    let kept = granted(bench, adding(given.clone(), Some(10))).await.expect("granted");
    let now = bench.now().await;
    let expected = Grant { granted_at: now, expires_at: Some(now.plus_ms(10)), uses: 0, ..given };
    assert_eq!(kept, expected, "its moments and counts are the store's");
    let other = bench.reopen().await;
    assert_eq!(other.grant(kept.id).await, Ok(Some(kept.clone())));
    assert_eq!(code(granted(bench, adding(of_session(1, "t"), None)).await), CONFLICT, "an id is given once");
    let rule = GrantScope::Rule { tools: "shop:*".to_owned(), effects: None, pins: Pins::Any };
    granted(bench, adding(grant(2, rule), None)).await.expect("granted");
    assert_eq!(bench.event_names(0).await, ["grant_added", "grant_added"]);
}

pub(super) async fn only_a_person_grants_and_only_what_can_be_read<S: Subject>(bench: &Bench<S>) {
    let by_agent = Grant { granted_by: agent(), ..of_session(1, "s") };
    assert_eq!(code(granted(bench, adding(by_agent, None)).await), ErrorCode::Forbidden);
    let nonsense = GrantScope::Rule { tools: "no colon".to_owned(), effects: None, pins: Pins::Any };
    assert_eq!(code(granted(bench, adding(grant(1, nonsense), None)).await), INVALID);
    assert_eq!(code(granted(bench, adding(of_session(1, "s"), Some(0))).await), INVALID);
    let kept = granted(bench, adding(of_session(1, "s"), None)).await.expect("granted");
    let by_agent = Command::RevokeGrant { grant: kept.id, by: agent(), channel: Channel::Http };
    assert_eq!(code(granted(bench, by_agent).await), ErrorCode::Forbidden);
    assert_eq!(code(granted(bench, using(&grant(9, kept.scope.clone()))).await), ErrorCode::NotFound);
    assert_eq!(bench.event_names(0).await, ["grant_added"]);
}

/// Where a second person is required, whoever started the execution grants nothing for it.
pub(super) async fn whoever_started_a_call_does_not_grant_it_where_a_second_person_is_needed<S: Subject>(
    bench: &Bench<S>,
) {
    let execution = ExecutionId::from_parts(START.0, bench.draw());
    let started_by = Principal::agent("local:ada");
    let (kind, owner) = (ExecutionKind::Gate, "own_opener".to_owned());
    bench.run(Command::StartExecution { execution, kind, started_by, owner }).await.expect("started");
    let by = |granted_by: Principal| Command::AddGrant {
        grant: Box::new(Grant { granted_by, ..of_session(1, "s") }),
        good_for_ms: None,
        channel: Channel::Cli,
        not_by_starter_of: Some(execution),
    };
    assert_eq!(code(granted(bench, by(ada())).await), ErrorCode::Forbidden);
    granted(bench, by(Principal::person("grace"))).await.expect("a second person");
}

pub(super) async fn a_use_is_counted_and_recorded_until_none_is_left<S: Subject>(bench: &Bench<S>) {
    let twice = Grant { uses_max: Some(2), ..of_session(1, "s") };
    let kept = granted(bench, adding(twice, None)).await.expect("granted");
    for uses in 1..=2 {
        assert_eq!(granted(bench, using(&kept)).await.expect("used").uses, uses);
    }
    assert_eq!(code(granted(bench, using(&kept)).await), CONFLICT, "used up");
    let brief = granted(bench, adding(of_session(2, "s"), Some(10))).await.expect("granted");
    bench.advance_ms(9);
    granted(bench, using(&brief)).await.expect("in time");
    bench.advance_ms(1);
    assert_eq!(code(granted(bench, using(&brief)).await), CONFLICT, "expired");
    let names = ["grant_added", "grant_used", "grant_used", "grant_added", "grant_used"];
    assert_eq!(bench.event_names(0).await, names, "what was refused was not used");
    let events = bench.events().await;
    let text = format!("{events:?}");
    assert!(!text.contains("0.10") && !text.contains("shop:book"), "ids only: {text}");
}

pub(super) async fn a_revoked_grant_covers_nothing_and_is_still_listed<S: Subject>(bench: &Bench<S>) {
    let kept = granted(bench, adding(of_session(1, "s"), None)).await.expect("granted");
    let revoked = granted(bench, revoking(&kept)).await.expect("revoked");
    assert_eq!(revoked.revoked_at, Some(bench.now().await));
    bench.advance_ms(1);
    assert_eq!(granted(bench, revoking(&kept)).await, Ok(revoked), "a repeat");
    assert_eq!(code(granted(bench, using(&kept)).await), CONFLICT);
    assert_eq!(listed(bench, GrantFilter::default()).await, [kept.id]);
    assert_eq!(bench.event_names(0).await, ["grant_added", "grant_revoked"]);
}

pub(super) async fn of_many_uses_at_once_a_grant_for_one_call_covers_one<S: Subject>(bench: &Bench<S>) {
    let once = grant(1, GrantScope::Once { digest: Digest::of_text("round") });
    let kept = granted(bench, adding(once, None)).await.expect("granted");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, command) = (bench.store.clone(), using(&kept));
        tasks.spawn(async move { store.commit(vec![command]).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.into_iter().filter(Result::is_err).all(|outcome| code(outcome) == CONFLICT));
    assert_eq!(bench.store.grant(kept.id).await.expect("is read").map(|grant| grant.uses), Some(1));
    assert_eq!(bench.event_names(0).await, ["grant_added", "grant_used"]);
    bench.check_chain().await;
}

pub(super) async fn grants_are_listed_by_session_newest_first_and_paged<S: Subject>(bench: &Bench<S>) {
    let rule = GrantScope::Rule { tools: "shop:*".to_owned(), effects: None, pins: Pins::Any };
    for grant in [of_session(1, "s"), of_session(2, "t"), grant(3, rule), of_session(4, "s")] {
        granted(bench, adding(grant, None)).await.expect("granted");
    }
    let used_up = Grant { uses_max: Some(1), ..of_session(5, "s") };
    let used_up = granted(bench, adding(used_up, None)).await.expect("granted");
    granted(bench, using(&used_up)).await.expect("used");
    granted(bench, adding(of_session(6, "s"), Some(1))).await.expect("granted");
    bench.advance_ms(1);
    let id = |n: u128| GrantId::from_parts(START.0, n);
    let ids = |numbers: &[u128]| numbers.iter().map(|n| id(*n)).collect::<Vec<_>>();
    let now = Some(bench.now().await);
    let all = GrantFilter::default();
    assert_eq!(listed(bench, all.clone()).await, ids(&[6, 5, 4, 3, 2, 1]));
    assert_eq!(listed(bench, GrantFilter { limit: 2, before: Some(id(5)), ..all.clone() }).await, ids(&[4, 3]));
    assert_eq!(listed(bench, GrantFilter { usable_at: now, ..all.clone() }).await, ids(&[4, 3, 2, 1]));
    let of = |of| GrantFilter { of, ..all.clone() };
    assert_eq!(listed(bench, of(GrantsOf::Session("s".to_owned()))).await, ids(&[6, 5, 4, 1]));
    let calls = GrantFilter { usable_at: now, ..of(GrantsOf::CallsIn("s".to_owned())) };
    assert_eq!(listed(bench, calls).await, ids(&[4, 3, 1]), "the session's, and those of none");
    let elsewhere = of(GrantsOf::CallsIn("elsewhere".to_owned()));
    assert_eq!(listed(bench, elsewhere).await, ids(&[3]));
}
