//! Writes what a batch changed and commits it: one statement, which is a transaction of its own where the rows were
//! guessed, or goes out together with the commit of the one in which they were loaded.

use std::sync::Arc;

use foldhash::HashMap;
use futures_util::FutureExt as _;
use sayso_core::command::Creation;
use sayso_core::event::NewEvent;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::round::Round;
use sayso_core::time::UnixMs;
use tokio_postgres::{Client, Statement};

use super::columns::{self, Column, Given, column};
use super::connection::{Connection, Parameter};
use super::failure::Failure;
use super::memory::{Changes, Once, Requests, Rows};
use super::statements::{self, Part, Shape};
use super::value::{Columns, Corrupt, Found, Key, Private};

/// One part of the statement with its arrays, a column each.
pub(super) struct Step<'a> {
    part: Part,
    columns: Vec<Column<'a>>,
}

/// Everything that `changes` need, given what is stored already. Leases come last: a worker's one row is written by
/// most of its batches, and so is locked for the shortest time.
pub(super) fn steps<'a>(changes: &'a Changes, loaded: &'a Rows) -> Result<Vec<Step<'a>>, Failure> {
    let mut steps = Vec::new();
    let mut push = |part: Part, columns: Vec<Column<'a>>| steps.push(Step { part, columns });
    let Changes { rows, once, .. } = changes;
    let (new, changed) = split(&rows.executions, &loaded.executions)?;
    if !new.is_empty() {
        let new: Vec<&Execution> = new.into_iter().map(Arc::as_ref).collect();
        push(Part::InsertExecutions, columns::of_executions(&new));
    }
    if !changed.is_empty() {
        push(Part::UpdateExecutions, columns::of_execution_states(&changed, &loaded.revs));
    }
    let (new, changed) = split(&rows.rounds, &loaded.rounds)?;
    if !new.is_empty() {
        let new: Vec<&Round> = new.into_iter().map(Arc::as_ref).collect();
        push(Part::InsertFacts, columns::of_facts(&asked(&new, once)?));
        let (part, columns) = columns::of_states(&new);
        push(part, columns);
    }
    if !changed.is_empty() {
        let (part, columns) = columns::of_state_changes(&changed);
        push(part, columns);
    }
    let (new, changed) = split(&rows.tokens, &loaded.tokens)?;
    if !new.is_empty() {
        push(Part::InsertTokens, columns::of_tokens(&new));
    }
    if !changed.is_empty() {
        push(Part::UpdateTokens, columns::of_token_states(&changed));
    }
    let (new, changed) = split(&rows.grants, &loaded.grants)?;
    if !new.is_empty() {
        push(Part::InsertGrants, columns::of_grants(&new)?);
    }
    if !changed.is_empty() {
        push(Part::UpdateGrants, columns::of_grant_states(&changed));
    }
    push_reviewed(rows, &mut push)?;
    push_once(changes, loaded, &mut push)?;
    let mut leases: Vec<(&str, Option<UnixMs>)> = rows.owners.iter().map(|(owner, at)| (owner.as_str(), *at)).collect();
    leases.sort_unstable();
    let held: Vec<_> = leases.iter().filter_map(|(owner, at)| at.map(|at| (*owner, at.0))).collect();
    if !held.is_empty() {
        push(Part::UpsertOwners, vec![column(&held, |(owner, _)| owner), column(&held, |(_, at)| at)]);
    }
    let released: Vec<&str> = leases.iter().filter(|(_, at)| at.is_none()).map(|(owner, _)| *owner).collect();
    if !released.is_empty() {
        push(Part::DeleteOwners, vec![column(&released, |owner| owner)]);
    }
    Ok(steps)
}

/// What was reviewed, in the order of its keys: two batches never wait for each other in a circle.
fn push_reviewed<'a>(rows: &'a Rows, push: &mut impl FnMut(Part, Vec<Column<'a>>)) -> Result<(), Failure> {
    let mut written = Vec::with_capacity(rows.reviewed.len());
    for ((agent, tool), review) in &rows.reviewed {
        let Some((definition, at)) = review.as_ref().map_err(|corrupt| *corrupt)? else { continue };
        written.push((agent.as_str(), tool.as_bytes(), *definition, *at));
    }
    if !written.is_empty() {
        written.sort_unstable_by_key(|(agent, tool, ..)| (*agent, *tool));
        push(Part::UpsertReviewed, columns::of_reviewed(&written));
    }
    Ok(())
}

/// What is written once.
fn push_once<'a>(
    Changes { rows, once, .. }: &'a Changes,
    loaded: &Rows,
    push: &mut impl FnMut(Part, Vec<Column<'a>>),
) -> Result<(), Failure> {
    let requests: Vec<&Requests> = once.requests.iter().collect();
    // What is erased by the same batch that brought it was never there.
    let kept = requests.iter().filter(|new| !once.erased.contains(&new.round));
    let states: Vec<(RoundId, &str)> =
        kept.filter_map(|new| new.request_state.as_deref().map(|state| (new.round, state))).collect();
    if !states.is_empty() {
        let ids = column(&states, |(id, _): (RoundId, &str)| Key(id.to_bytes()));
        push(Part::InsertRequestStates, vec![ids, column(&states, |(_, state)| Private(state))]);
    }
    let mut erased: Vec<RoundId> = once.erased.iter().copied().collect();
    // One that has no state never gets one: it comes with the round.
    erased.retain(|id| !matches!(loaded.request_states.get(id), Some(None)));
    erased.retain(|id| requests.iter().all(|new| new.round != *id));
    if !erased.is_empty() {
        erased.sort_unstable();
        push(Part::DeleteRequestStates, vec![column(&erased, |id| Key(id.to_bytes()))]);
    }
    let answers = given(rows, once)?;
    if !answers.is_empty() {
        push(Part::InsertAnswers, columns::of_answers(&answers));
    }
    let creations: Vec<&(String, Creation, RoundId)> = once.creations.iter().collect();
    if !creations.is_empty() {
        push(Part::InsertCreations, columns::of_creations(&creations));
    }
    let results: Vec<&(ExecutionId, Json)> = once.results.iter().collect();
    if !results.is_empty() {
        push(Part::InsertResults, columns::of_results(&results));
    }
    let details: Vec<&(RoundId, Json)> = once.details.iter().collect();
    if !details.is_empty() {
        push(Part::InsertDetails, columns::of_details(&details));
    }
    let events: Vec<&NewEvent> = once.events.iter().collect();
    if !events.is_empty() {
        push(Part::InsertEvents, columns::of_events(&events)?);
    }
    Ok(())
}

/// New rounds, each with what it asks.
fn asked<'a>(new: &[&'a Round], once: &'a Once) -> Result<Vec<(&'a Round, &'a Requests)>, Corrupt> {
    let requests: HashMap<RoundId, &Requests> = once.requests.iter().map(|asked| (asked.round, asked)).collect();
    let with = |round: &&'a Round| Ok((*round, *requests.get(&round.id).ok_or(Corrupt("requests"))?));
    new.iter().map(with).collect()
}

/// New answers, each with who gave it.
fn given<'a>(rows: &'a Rows, once: &'a Once) -> Result<Vec<Given<'a>>, Corrupt> {
    let with = |answer: &'a (RoundId, Json, Json)| {
        let Some(Ok(Some(round))) = rows.rounds.get(&answer.0) else { return None };
        Some((answer, round.answer_key.as_ref()?, round.answered.as_ref()?))
    };
    once.answers.iter().map(|answer| with(answer).ok_or(Corrupt("answer"))).collect()
}

/// Rows that are new, and rows that change with what is stored of them, each in the order of their keys.
type Split<'a, T> = (Vec<&'a T>, Vec<(&'a T, &'a T)>);

fn split<'a, K: Ord + std::hash::Hash, T>(
    changed: &'a HashMap<K, Found<T>>,
    loaded: &'a HashMap<K, Found<T>>,
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

/// What other processes are told of a commit.
pub(super) enum Notice<'a> {
    /// By the transaction itself: it is heard if that is committed, and not otherwise.
    Within { channel: &'a str, payload: String },
    /// Behind the commit, whatever becomes of it: a hint that nobody waits for.
    Behind { channel: &'a str, payloads: Vec<String> },
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ending {
    /// The rows were loaded in the open transaction: it is committed.
    Loaded,
    /// The rows were guessed, and no transaction is open: the statement is one. The database's time must be between these.
    Guessed(UnixMs, UnixMs),
}

/// Runs the steps and commits; answers with the database's time.
pub(super) async fn commit(
    db: &mut Connection,
    steps: &[Step<'_>],
    ending: Ending,
    notice: Option<Notice<'_>>,
) -> Result<UnixMs, Failure> {
    let (within, behind) = match &notice {
        Some(Notice::Within { channel, payload }) => (Some((channel, payload)), None),
        Some(Notice::Behind { channel, payloads }) => (None, Some((channel, payloads))),
        None => (None, None),
    };
    let statement = prepare(db, steps, matches!(ending, Ending::Guessed(..)), within.is_some()).await?;
    let notify = db.statement_if(behind.is_some(), statements::NOTIFY).await?;
    let client = &db.client;
    // Each is sent when it is first polled, which is in this order.
    let (written, committed, ()) = tokio::join!(
        biased;
        write(client, &statement, steps, ending, within),
        async { if let Ending::Loaded = ending { client.batch_execute("COMMIT").await } else { Ok(()) } },
        async {
            if let (Some(statement), Some((channel, payloads))) = (&notify, behind) {
                let parameters: [Parameter<'_>; 2] = [channel, payloads];
                drop(client.query(statement, &parameters).now_or_never());
            }
        },
    );
    let now = written?;
    committed?;
    Ok(now)
}

/// Runs the steps of a guess in the open transaction, without ending it.
pub(super) async fn write_only(db: &mut Connection, steps: &[Step<'_>]) -> Result<(), Failure> {
    let statement = prepare(db, steps, true, false).await?;
    let whenever = Ending::Guessed(UnixMs(i64::MIN), UnixMs(i64::MAX));
    write(&db.client, &statement, steps, whenever, None).await.map(drop)
}

async fn prepare(db: &mut Connection, steps: &[Step<'_>], guessed: bool, tells: bool) -> Result<Statement, Failure> {
    let parts: Vec<Part> = steps.iter().map(|step| step.part).collect();
    db.composed(Shape { parts, only: have_one_row(steps), guessed, tells }).await
}

fn have_one_row(steps: &[Step<'_>]) -> bool {
    steps
        .iter()
        .all(|step| step.part == Part::InsertEvents || step.columns.iter().all(|column| column.only().is_some()))
}

async fn write(
    client: &Client,
    statement: &Statement,
    steps: &[Step<'_>],
    ending: Ending,
    told: Option<(&&str, &String)>,
) -> Result<UnixMs, Failure> {
    let only = have_one_row(steps);
    let mut parameters: Vec<Parameter<'_>> = Vec::new();
    for step in steps {
        let of_one = only && step.part != Part::InsertEvents;
        let values = step.columns.iter().map(|column| column.only().filter(|_| of_one).unwrap_or(column.array()));
        parameters.extend(values);
    }
    if let Ending::Guessed(UnixMs(from), UnixMs(until)) = &ending {
        parameters.extend([from as Parameter<'_>, until as Parameter<'_>]);
    }
    if let Some((channel, payload)) = told {
        parameters.extend([channel as Parameter<'_>, payload as Parameter<'_>]);
    }
    let found = client.query(statement, &parameters).await?;
    let row = found.first().ok_or(Corrupt("clock"))?;
    Ok(Columns::of(row, "clock").time(1)?)
}

/// The checks that rows were guessed right of which `changes` says nothing.
pub(super) fn checks<'a>(changes: &Changes, loaded: &'a Rows) -> Vec<Step<'a>> {
    let mut checks = Vec::new();
    let mut executions: Vec<(ExecutionId, i64)> = loaded.revs.iter().map(|(id, rev)| (*id, *rev)).collect();
    executions.retain(|(id, _)| loaded.decisive.contains(id) && !changes.rows.executions.contains_key(id));
    if !executions.is_empty() {
        executions.sort_unstable();
        let ids = column(&executions, |(id, _)| Key(id.to_bytes()));
        checks.push(Step { part: Part::CheckExecutions, columns: vec![ids, column(&executions, |(_, rev)| rev)] });
    }
    let mut owners: Vec<(&str, i64)> =
        loaded.owners.iter().filter_map(|(owner, lives)| lives.map(|lives| (owner.as_str(), lives.0))).collect();
    if !owners.is_empty() {
        owners.sort_unstable();
        let names = column(&owners, |(owner, _)| owner);
        checks.push(Step { part: Part::CheckOwners, columns: vec![names, column(&owners, |(_, lives)| lives)] });
    }
    checks
}
