//! Writes what a batch changed and commits it: one statement a table, all of them and the commit in one flight. A
//! statement that fails makes the database turn the commit into a rollback.

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use sayso_core::command::Creation;
use sayso_core::event::NewEvent;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::time::UnixMs;
use tokio_postgres::Statement;

use super::columns::{self, Column, column};
use super::connection::Connection;
use super::failure::Failure;
use super::memory::{Changes, Once, Requests, Rows};
use super::statements as sql;
use super::value::{Corrupt, Found, Key, Private};

/// One statement with its arrays, a column each.
pub(super) struct Step<'a> {
    sql: &'static str,
    columns: Vec<Column<'a>>,
}

/// Every statement that `changes` need, given what is stored already. Leases come last: a worker's one row is written by
/// most of its batches, and so is locked for the shortest time.
pub(super) fn steps<'a>(changes: &'a Changes, loaded: &'a Rows) -> Result<Vec<Step<'a>>, Failure> {
    let mut steps = Vec::new();
    let mut push = |sql: &'static str, columns: Vec<Column<'a>>| steps.push(Step { sql, columns });
    let Changes { rows, once } = changes;
    let (new, changed) = split(&rows.executions, &loaded.executions)?;
    if !new.is_empty() {
        push(&sql::INSERT_EXECUTIONS, columns::of_executions(&new));
    }
    if !changed.is_empty() {
        push(&sql::UPDATE_EXECUTIONS, columns::of_execution_states(&changed));
    }
    let (new, changed) = split(&rows.rounds, &loaded.rounds)?;
    if !new.is_empty() {
        push(&sql::INSERT_ROUNDS, columns::of_rounds(&new));
    }
    if !changed.is_empty() {
        push(&sql::UPDATE_ROUNDS, columns::of_round_states(&changed));
    }
    let (new, changed) = split(&rows.tokens, &loaded.tokens)?;
    if !new.is_empty() {
        push(&sql::INSERT_TOKENS, columns::of_tokens(&new));
    }
    if !changed.is_empty() {
        push(&sql::UPDATE_TOKENS, columns::of_token_states(&changed));
    }
    let (new, changed) = split(&rows.grants, &loaded.grants)?;
    if !new.is_empty() {
        push(&sql::INSERT_GRANTS, columns::of_grants(&new)?);
    }
    if !changed.is_empty() {
        push(&sql::UPDATE_GRANTS, columns::of_grant_states(&changed));
    }
    push_reviewed(rows, &mut push)?;
    push_once(once, &mut push)?;
    let mut leases: Vec<(&str, Option<UnixMs>)> = rows.owners.iter().map(|(owner, at)| (owner.as_str(), *at)).collect();
    leases.sort_unstable();
    let held: Vec<_> = leases.iter().filter_map(|(owner, at)| at.map(|at| (*owner, at.0))).collect();
    if !held.is_empty() {
        push(&sql::UPSERT_OWNERS, vec![column(&held, |(owner, _)| owner), column(&held, |(_, at)| at)]);
    }
    let released: Vec<&str> = leases.iter().filter(|(_, at)| at.is_none()).map(|(owner, _)| *owner).collect();
    if !released.is_empty() {
        push(sql::DELETE_OWNERS, vec![column(&released, |owner| owner)]);
    }
    Ok(steps)
}

/// What was reviewed, in the order of its keys: two batches never wait for each other in a circle.
fn push_reviewed<'a>(rows: &'a Rows, push: &mut impl FnMut(&'static str, Vec<Column<'a>>)) -> Result<(), Failure> {
    let mut written = Vec::with_capacity(rows.reviewed.len());
    for ((agent, tool), review) in &rows.reviewed {
        let Some((definition, at)) = review.as_ref().map_err(|corrupt| *corrupt)? else { continue };
        written.push((agent.as_str(), tool.as_bytes(), *definition, *at));
    }
    if !written.is_empty() {
        written.sort_unstable_by_key(|(agent, tool, ..)| (*agent, *tool));
        push(&sql::UPSERT_REVIEWED, columns::of_reviewed(&written));
    }
    Ok(())
}

/// What is written once.
fn push_once<'a>(once: &'a Once, push: &mut impl FnMut(&'static str, Vec<Column<'a>>)) -> Result<(), Failure> {
    let requests: Vec<&Requests> = once.requests.iter().collect();
    if !requests.is_empty() {
        push(&sql::INSERT_REQUESTS, columns::of_requests(&requests));
    }
    // What is erased by the same batch that brought it was never there.
    let kept = requests.iter().filter(|new| !once.erased.contains(&new.round));
    let states: Vec<(RoundId, &str)> =
        kept.filter_map(|new| new.request_state.as_deref().map(|state| (new.round, state))).collect();
    if !states.is_empty() {
        let ids = column(&states, |(id, _): (RoundId, &str)| Key(id.to_bytes()));
        push(&sql::INSERT_STATES, vec![ids, column(&states, |(_, state)| Private(state))]);
    }
    let mut erased: Vec<RoundId> = once.erased.iter().copied().collect();
    erased.retain(|id| requests.iter().all(|new| new.round != *id));
    if !erased.is_empty() {
        erased.sort_unstable();
        push(sql::DELETE_STATES, vec![column(&erased, |id| Key(id.to_bytes()))]);
    }
    let answers: Vec<&(RoundId, Json, Json)> = once.answers.iter().collect();
    if !answers.is_empty() {
        push(&sql::INSERT_ANSWERS, columns::of_answers(&answers));
    }
    let creations: Vec<&(String, Creation, RoundId)> = once.creations.iter().collect();
    if !creations.is_empty() {
        push(&sql::INSERT_CREATIONS, columns::of_creations(&creations));
    }
    let results: Vec<&(ExecutionId, Json)> = once.results.iter().collect();
    if !results.is_empty() {
        push(&sql::INSERT_RESULTS, columns::of_results(&results));
    }
    let details: Vec<&(RoundId, Json)> = once.details.iter().collect();
    if !details.is_empty() {
        push(&sql::INSERT_DETAILS, columns::of_details(&details));
    }
    let events: Vec<&NewEvent> = once.events.iter().collect();
    if !events.is_empty() {
        push(sql::INSERT_EVENTS, columns::of_events(&events)?);
    }
    Ok(())
}

/// Rows that are new, and rows that change with what is stored of them, each in the order of their keys.
type Split<'a, T> = (Vec<&'a T>, Vec<(&'a T, &'a T)>);

fn split<'a, K: Ord + std::hash::Hash, T>(
    changed: &'a std::collections::HashMap<K, Found<T>>,
    loaded: &'a std::collections::HashMap<K, Found<T>>,
) -> Result<Split<'a, T>, Corrupt> {
    let mut rows: Vec<_> = changed.iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    let (mut new, mut old) = (Vec::new(), Vec::new());
    for (key, row) in rows {
        let Some(row) = row.as_ref().map_err(|corrupt| *corrupt)? else { continue };
        match loaded.get(key) {
            Some(Ok(Some(before))) => old.push((row, before)),
            Some(Err(corrupt)) => return Err(*corrupt),
            _ => new.push(row),
        }
    }
    Ok((new, old))
}

/// What other processes are told after a commit.
pub(super) struct Notice<'a> {
    pub(super) channel: &'a str,
    pub(super) payloads: Vec<String>,
}

/// Runs the steps and commits. The notice is a hint: it goes out behind the commit, and nobody waits for it.
pub(super) async fn commit(
    db: &mut Connection,
    steps: Vec<Step<'_>>,
    notice: Option<Notice<'_>>,
) -> Result<(), Failure> {
    let mut prepared: Vec<(Statement, Vec<Column<'_>>)> = Vec::with_capacity(steps.len());
    for step in steps {
        prepared.push((db.statement(step.sql).await?, step.columns));
    }
    let notify = db.statement_if(notice.is_some(), sql::NOTIFY).await?;
    let client = &db.client;
    let writing = try_join_all(prepared.iter().map(|(statement, columns)| async move {
        // Polled once each in this order, which is when they are sent.
        let parameters: Vec<_> =
            columns.iter().map(|column| column.as_ref() as super::connection::Parameter<'_>).collect();
        client.query(statement, &parameters).await
    }));
    let (written, committed, ()) = tokio::join!(
        biased;
        writing,
        client.batch_execute("COMMIT"),
        async {
            if let (Some(statement), Some(notice)) = (&notify, &notice) {
                let parameters: [super::connection::Parameter<'_>; 2] = [&notice.channel, &notice.payloads];
                drop(client.query(statement, &parameters).now_or_never());
            }
        },
    );
    written?;
    committed?;
    Ok(())
}
