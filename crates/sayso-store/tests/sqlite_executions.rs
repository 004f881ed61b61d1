//! Executions that SQLite keeps no row of, since their round says all of them: beside a store that keeps each as core wrote it.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use sayso_core::command::{Command, NewRound, Reply, RoundExecution};
use sayso_core::execution::{ExecutionKind, Outcome};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::Principal;
use sayso_core::round::{Delivery, Failure, FailureRequest, Fence, FenceToken};
use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::memory::{MemoryData, MemoryStore};
use sayso_store::{ExecutionFilter, SqliteOptions, SqliteStore, Store};
use support::{answering, asking, count, file_in, round_id};

const OWNER: &str = "own_opener";

fn execution_id(n: u128) -> ExecutionId {
    ExecutionId::from_parts(START.0, n)
}

fn fence() -> Fence {
    Fence { owner: OWNER.to_owned(), token: FenceToken(7) }
}

/// A question numbered `n`, changed by `change`.
fn asked(n: u128, change: impl FnOnce(&mut NewRound)) -> Command {
    let mut command = asking(n, 1);
    if let Command::CreateRound(new) = &mut command {
        change(new);
    }
    command
}

/// One that its worker holds and that is good for a minute. Even ones ask for a verdict.
fn live(n: u128) -> Command {
    asked(n, |new| {
        new.delivery = Delivery::Live;
        new.fence = Some(fence());
        let RoundExecution::New { ends_with_round, .. } = &mut new.execution else { unreachable!("a new one") };
        *ends_with_round = false;
        new.deadline = Some(START.plus_ms(60_000));
        new.has_approval = n.is_multiple_of(2);
        new.request_state = None;
    })
}

/// One more question in the execution numbered `n`, with its own operation.
fn beside(round: u128, n: u128) -> Command {
    asked(round, |new| {
        new.execution = RoundExecution::Existing(execution_id(n));
        new.logical_operation_id = format!("operation {round}");
    })
}

/// The end of a round that is held, or of one that nobody holds, which whoever asked takes back.
fn failing(n: u128, is_held: bool, failure: Failure) -> Command {
    let (fence, principal) = (is_held.then(fence), Principal::agent("booking"));
    let request = FailureRequest { fence, principal, failure, only_pending: false };
    Command::Fail { round: round_id(n), request }
}

/// Both stores, at one time.
struct Pair {
    clock: Arc<ManualClock>,
    sqlite: SqliteStore,
    oracle: MemoryStore,
    folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let (folder, clock) = (tempfile::tempdir().expect("a folder"), Arc::new(ManualClock::at(START)));
        let oracle = MemoryStore::open(&MemoryData::default(), clock.clone(), None);
        let sqlite = opened(&folder, &clock);
        Self { clock, sqlite, oracle, folder }
    }

    /// Another process, which knows nothing yet.
    fn reopened(self) -> Self {
        drop(self.sqlite);
        Self { sqlite: opened(&self.folder, &self.clock), ..self }
    }

    /// Does it in both, and compares what they say, each execution by itself and in the lists.
    async fn does(&self, commands: Vec<Command>) -> Result<Vec<Reply>, sayso_core::error::Error> {
        let done = self.sqlite.commit(commands.clone()).await;
        assert_eq!(format!("{done:?}"), format!("{:?}", self.oracle.commit(commands).await));
        for now in [START, START.plus_ms(600_000)] {
            assert_eq!(self.sqlite.abandoned(now, 100).await, self.oracle.abandoned(now, 100).await);
        }
        let everything = ExecutionFilter { limit: 100, ..ExecutionFilter::default() };
        let all = self.oracle.executions(everything.clone()).await.expect("are read");
        assert_eq!(self.sqlite.executions(everything.clone()).await.as_ref(), Ok(&all));
        for (execution, pending) in &all {
            let found = self.sqlite.execution(execution.id).await.expect("is read").expect("is there");
            assert_eq!((&found.0, &found.1), (execution, pending));
            let filter = ExecutionFilter {
                before: Some(execution.id),
                started_by: Some(execution.started_by.clone()),
                limit: 2,
            };
            let found = self.sqlite.executions(filter.clone()).await;
            assert_eq!(found, self.oracle.executions(filter).await);
        }
        done
    }

    async fn stored(&self, command: Command) {
        self.does(vec![command]).await.expect("stored");
    }

    /// What a sweeper looks at.
    fn held(&self) -> i64 {
        count(self.folder.path(), "round_states WHERE held IS NOT NULL")
    }

    fn rows(&self) -> i64 {
        count(self.folder.path(), "execution_states")
    }
}

fn opened(folder: &tempfile::TempDir, clock: &Arc<ManualClock>) -> SqliteStore {
    let options = SqliteOptions { clock: clock.clone(), hints: None };
    SqliteStore::open(&file_in(folder.path()), options).expect("opens")
}

/// Every way in which a round ends, unit by unit: rounds 1 to 4 are live, 8 and 9 resumable.
fn ends() -> Vec<Vec<Command>> {
    let step = |to: fn(RoundId, Fence) -> Command, n| to(round_id(n), fence());
    let start = |n| step(|round, fence| Command::StartDelivery { round, fence }, n);
    let delivered = |n| step(|round, fence| Command::MarkDelivered { round, fence }, n);
    let resolve = |n| step(|round, fence| Command::Resolve { round, fence }, n);
    let collect = Command::Collect { round: round_id(8), key: "once".to_owned(), fence: fence() };
    vec![
        // Step by step, and as whoever waits does it.
        vec![answering(1)],
        vec![start(1)],
        vec![delivered(1)],
        vec![resolve(1)],
        vec![answering(2), start(2)],
        vec![delivered(2), resolve(2)],
        vec![failing(3, true, Failure::new(Failure::WITHDRAWN, "taken back"))],
        vec![failing(4, true, Failure::new(Failure::CANCELLED, "no more"))],
        vec![answering(8)],
        vec![collect],
        vec![failing(9, false, Failure::new(Failure::WITHDRAWN, "taken back"))],
        vec![cancelling(10)],
    ]
}

fn cancelling(n: u128) -> Command {
    Command::Cancel { execution: execution_id(n), principal: Principal::person("local:ada") }
}

fn finishing(n: u128) -> Command {
    Command::Finish { execution: execution_id(n), outcome: Outcome::Completed, result: None }
}

#[tokio::test]
async fn an_execution_has_no_row_while_its_round_says_it() {
    for reopens in [false, true] {
        let mut pair = Pair::new();
        for n in 1..=7 {
            pair.stored(live(n)).await;
        }
        for n in 8..=11 {
            pair.stored(asking(n, 1)).await;
        }
        for unit in ends() {
            if reopens {
                pair = pair.reopened();
            }
            pair.does(unit).await.expect("stored");
            pair.clock.advance_ms(5);
        }
        // The time of round 5 runs out.
        pair.clock.advance_ms(60_000);
        pair.stored(Command::Expire { round: round_id(5) }).await;
        assert_eq!(pair.rows(), 0);
        let going_on = "executions WHERE finished_at IS NULL";
        assert_eq!(count(pair.folder.path(), "executions"), 11);
        assert_eq!(count(pair.folder.path(), going_on), 7 + 1, "those of live rounds, and the last");
        // What ends them otherwise: their worker's word, somebody else's, or that it is gone.
        pair.stored(cancelling(6)).await;
        pair.stored(Command::FailRecovery { round: round_id(7), expected: fence().token }).await;
        for n in 1..=4 {
            if reopens {
                pair = pair.reopened();
            }
            pair.stored(finishing(n)).await;
        }
        pair.stored(Command::Orphan { execution: execution_id(5), owner: OWNER.to_owned() }).await;
        assert_eq!((pair.rows(), count(pair.folder.path(), going_on)), (7, 1));
        assert_eq!(pair.held(), 0, "nothing is left to sweep");
    }
}

#[tokio::test]
async fn whatever_else_changes_an_execution_gives_it_a_row() {
    let suspending = |round: u128, n: u128| {
        asked(round, |new| {
            new.execution = RoundExecution::Suspending(execution_id(n));
            new.logical_operation_id = format!("operation {round}");
        })
    };
    let collected = |n| Command::MarkCollected { execution: execution_id(n) };
    for (reopens, is_held) in [(false, true), (true, true), (false, false), (true, false)] {
        let withdrawn = |n| failing(n, is_held && n == 1, Failure::new(Failure::WITHDRAWN, "taken back"));
        for change in [
            vec![collected(1)],
            vec![finishing(1)],
            vec![finishing(1), withdrawn(1)],
            vec![withdrawn(1), if is_held { finishing(1) } else { collected(1) }],
            // One more question, and the execution ends with the last of the two.
            vec![beside(2, 1), withdrawn(1), withdrawn(2)],
            vec![beside(2, 1), withdrawn(2), withdrawn(1)],
            vec![suspending(2, 1), withdrawn(1), withdrawn(2)],
            vec![withdrawn(1), collected(1)],
        ] {
            let mut pair = Pair::new();
            pair.stored(if is_held { live(1) } else { asking(1, 1) }).await;
            assert_eq!(pair.rows(), 0);
            for command in change.clone() {
                if reopens {
                    pair = pair.reopened();
                }
                pair.stored(command).await;
                pair.clock.advance_ms(5);
            }
            assert_eq!(pair.rows(), 1, "{change:?}");
            let is_over = change.iter().any(|command| matches!(command, Command::Fail { .. }));
            assert_eq!(pair.held() == 0, is_over || !is_held, "{change:?}");
            assert_eq!(count(pair.folder.path(), "executions"), 1);
        }
    }
}

#[tokio::test]
async fn executions_with_rows_and_without_are_one_list() {
    let pair = Pair::new();
    for n in 1..=6 {
        let start = Command::StartExecution {
            execution: execution_id(n),
            kind: ExecutionKind::Agent,
            started_by: Principal::agent(if n.is_multiple_of(2) { "booking" } else { "other" }),
            owner: OWNER.to_owned(),
        };
        pair.stored(if n.is_multiple_of(3) { live(n) } else { start }).await;
    }
    // Half of a unit is refused: nothing of it is left, and what is known is read anew.
    let refused = pair.does(vec![live(7), Command::Expire { round: round_id(99) }]).await.expect_err("is not there");
    assert_eq!(pair.sqlite.execution(execution_id(7)).await, Ok(None), "{refused}");
    pair.stored(live(7)).await;
    assert_eq!(pair.rows(), 4);
    let clock = ManualClock::at(START);
    let examined = SqliteStore::examine(&file_in(pair.folder.path()), &clock);
    assert_eq!(examined.unread, Vec::<String>::new());
    let counted = examined.owners.into_iter().map(|found| (found.owner, found.rounds, found.executions));
    assert_eq!(counted.collect::<Vec<_>>(), [(OWNER.to_owned(), 3, 7)]);
}
