//! Random commands against the rules: whatever is tried in whatever order, nothing leaves the table of `docs/rounds.md`.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod memory;

use memory::{Memory, START, execution_id, fence, json, new_round, pending_of, round_id, submission, submit};
use proptest::prelude::*;
use sayso_core::command::{Command, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::{ExecutionKind, Lifecycle, Outcome};
use sayso_core::principal::Principal;
use sayso_core::round::{Claim, Delivery, Evidence, Failure, FailureRequest, FenceToken, Round, Status};
use sayso_core::time::UnixMs;

/// One command of a sequence: which, on which round, with which of a few owners, tokens, keys and so on.
#[derive(Debug, Clone)]
struct Op {
    which: u8,
    slot: usize,
    x: u8,
    y: u8,
    later_ms: i64,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let later = prop::sample::select(vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 5_000, 29_999, 30_000, 30_001, -40_000]);
    let op = (0u8..20, 0usize..4, 0u8..3, 0u8..3, later).prop_map(|(which, slot, x, y, later_ms)| Op {
        which,
        slot,
        x,
        y,
        later_ms,
    });
    prop::collection::vec(op, 1..120)
}

const OWNERS: [&str; 3] = ["own_a", "own_b", "own_c"];

fn person(n: u8) -> Principal {
    Principal::person(["ada", "bob", "eve"][usize::from(n)])
}

fn create(op: &Op, memory: &Memory, now: UnixMs) -> Command {
    let n = u128::try_from(memory.rounds.len()).expect("few");
    let live = op.x != 0;
    let mut new = new_round(n, live.then(|| fence(OWNERS[usize::from(op.y)], u128::from(op.x))));
    new.has_approval = op.slot.is_multiple_of(2);
    new.limit = 3;
    new.deadline = (op.y == 1).then(|| now.plus_ms(29_999));
    if op.slot > 1 && !memory.rounds.is_empty() {
        new.execution = RoundExecution::Existing(target(op, memory).execution_id);
    }
    Command::CreateRound(Box::new(new))
}

fn target<'a>(op: &Op, memory: &'a Memory) -> &'a Round {
    let at = op.slot * 7 + usize::from(op.x);
    memory.rounds.values().nth(at % memory.rounds.len()).expect("a round")
}

fn failure_request(op: &Op, held: bool) -> FailureRequest {
    let code = [Failure::WITHDRAWN, Failure::UNAVAILABLE, "worker_gave_up"][usize::from(op.y)];
    let fence = held.then(|| fence(OWNERS[usize::from(op.y)], u128::from(op.x)));
    FailureRequest {
        fence,
        principal: Principal::agent("a"),
        failure: Failure::new(code, "because"),
        only_pending: op.slot == 3,
    }
}

fn claim(op: &Op) -> Claim {
    let evidence = match op.x {
        0 => None,
        1 => Some(Evidence::Delivered),
        _ => Some(Evidence::NotDelivered { idempotent: op.y != 0 }),
    };
    let expected = (op.y == 2).then_some(FenceToken(u128::from(op.x)));
    Claim { fence: fence(OWNERS[usize::from(op.y)], u128::from(op.x)), expected, evidence }
}

fn command(op: &Op, memory: &Memory, now: UnixMs) -> Command {
    if op.which < 3 || memory.rounds.is_empty() {
        return create(op, memory, now);
    }
    let row = target(op, memory);
    let (round, execution) = (row.id, row.execution_id);
    // Mostly the fence that holds the round, so that sequences get somewhere; else one made up.
    let made_up = fence(OWNERS[usize::from(op.y)], u128::from(op.x));
    let held = row.fence.clone().filter(|_| op.x != 2).unwrap_or_else(|| made_up.clone());
    let owner = OWNERS[usize::from(op.y)].to_owned();
    match op.which {
        3..=6 => submit(round, submission(["k1", "k2", "k3"][usize::from(op.x)], op.y, &person(op.y))),
        7 => Command::Claim { round, claim: claim(op) },
        8 | 9 => Command::StartDelivery { round, fence: held },
        10 => Command::MarkDelivered { round, fence: held },
        11 => Command::Resolve { round, fence: held },
        12 => Command::Fail { round, request: failure_request(op, op.x != 0) },
        13 => Command::FailRecovery { round, expected: held.token },
        14 => Command::Collect { round, key: ["c1", "c2", "c3"][usize::from(op.x)].to_owned(), fence: made_up },
        15 => Command::Expire { round },
        16 => Command::RenewOwner { owner },
        17 => Command::ReleaseOwner { owner },
        18 if op.x == 0 => Command::Cancel { execution, principal: person(op.y) },
        18 => Command::CompleteUrl { round },
        _ if op.x == 0 => Command::Orphan { execution, owner },
        _ => Command::Finish { execution, outcome: Outcome::Completed, result: Some(json("1")) },
    }
}

/// The whole relation, written out from `docs/rounds.md`: which command may move a round of which delivery from where to where.
fn may_move(command: &Command, delivery: Delivery, from: Status, to: Status) -> bool {
    use Status::{Delivered, DeliveryStarted, Failed, Pending, Resolved, ResponseValidated};
    match (command, from, to) {
        (Command::Submit { .. }, Pending, ResponseValidated | Failed) => true,
        (Command::Claim { .. }, DeliveryStarted, ResponseValidated | Delivered) => delivery == Delivery::Resumable,
        (Command::StartDelivery { .. }, ResponseValidated, DeliveryStarted) => true,
        (Command::MarkDelivered { .. }, DeliveryStarted, Delivered) => true,
        (Command::Resolve { .. }, Delivered, Resolved) => true,
        (Command::Fail { .. }, Pending, Failed) => true,
        (Command::Fail { .. }, ResponseValidated | DeliveryStarted | Delivered, Failed) => true,
        (Command::FailRecovery { .. }, Pending, Failed) => delivery == Delivery::Live,
        (Command::FailRecovery { .. }, ResponseValidated | DeliveryStarted | Delivered, Failed) => true,
        (Command::Collect { .. }, ResponseValidated, Resolved) => delivery == Delivery::Resumable,
        (Command::Expire { .. } | Command::Cancel { .. }, Pending, Failed) => true,
        _ => false,
    }
}

fn check_rounds(command: &Command, before: &Memory, after: &Memory) -> Result<(), TestCaseError> {
    for (id, now) in &after.rounds {
        let Some(was) = before.rounds.get(id) else {
            prop_assert_eq!((now.status, now.rev), (Status::Pending, 1));
            continue;
        };
        prop_assert_eq!(&was.facts, &now.facts);
        if was.status != now.status {
            prop_assert!(may_move(command, was.delivery, was.status, now.status), "{:?} to {:?}", was, now);
        }
        prop_assert_eq!(was == now, was.rev == now.rev, "every change counts");
        prop_assert!(was.rev <= now.rev);
        if was.status.is_finished() {
            let visited = Round { rev: now.rev, url_completed_at: now.url_completed_at, ..was.clone() };
            prop_assert_eq!(&visited, now, "a finished round is final");
        }
        if was.answered.is_some() {
            prop_assert_eq!(&was.answered, &now.answered, "one answer wins");
            prop_assert_eq!(&was.answer_key, &now.answer_key);
        }
        prop_assert_eq!(now.answered.is_some(), after.answers.contains_key(id));
        prop_assert_eq!(now.status == Status::Failed, now.failure.is_some());
        prop_assert_eq!(now.status.is_finished(), now.finished_at.is_some());
        prop_assert_eq!(after.request_states.contains_key(id), !now.status.is_finished());
    }
    Ok(())
}

fn check_executions(before: &Memory, after: &Memory) -> Result<(), TestCaseError> {
    for (id, now) in &after.executions {
        let (inputs, approvals) = (pending_of(after, *id, false), pending_of(after, *id, true));
        prop_assert_eq!(usize::try_from(now.pending_inputs).expect("few"), inputs);
        prop_assert_eq!(usize::try_from(now.pending_approvals).expect("few"), approvals);
        let expected = match (&now.outcome, approvals, inputs) {
            (Some(_), ..) => Lifecycle::Finished,
            (None, 1.., _) => Lifecycle::WaitingForApproval,
            (None, 0, 1..) => Lifecycle::WaitingForInput,
            (None, 0, 0) => Lifecycle::Running,
        };
        prop_assert_eq!(now.lifecycle(), expected);
        prop_assert_eq!(now.outcome.is_some(), now.finished_at.is_some());
        if let Some(outcome) = before.executions.get(id).and_then(|was| was.outcome.as_ref()) {
            prop_assert_eq!(Some(outcome), now.outcome.as_ref(), "an outcome is final");
        }
        let all_over = after.rounds.values().filter(|round| round.execution_id == *id).all(|r| r.status.is_finished());
        if now.ends_with_round && all_over {
            prop_assert!(now.outcome.is_some(), "an execution started for its rounds ends with the last of them");
        }
    }
    Ok(())
}

/// A refusal leaves the state as it was; an answer's refusal leaves one event and, past the deadline, the expiry.
fn check_refusal(command: &Command, before: &Memory, after: &Memory, now: UnixMs) -> Result<(), TestCaseError> {
    let Command::Submit { round, .. } = command else {
        prop_assert_eq!(before, after);
        return Ok(());
    };
    let was = &before.rounds[round];
    if was.status == Status::Pending && was.is_overdue(now) {
        let code = after.rounds[round].failure.as_ref().map(|failure| failure.code.as_str());
        prop_assert_eq!(code, Some(Failure::EXPIRED));
        return Ok(());
    }
    prop_assert_eq!(before.without_events(), after.without_events());
    prop_assert_eq!(before.events.len() + 1, after.events.len());
    prop_assert_eq!(after.events.last().map(|event| event.body.name()), Some("response_refused"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_commands_leaves_the_table(ops in ops()) {
        let (mut memory, mut now) = (Memory::default(), START);
        for op in ops {
            now = now.plus_ms(op.later_ms);
            let command = command(&op, &memory, now);
            let before = memory.clone();
            let reply = memory.run(&command, now);
            check_rounds(&command, &before, &memory)?;
            check_executions(&before, &memory)?;
            if reply.is_err() {
                check_refusal(&command, &before, &memory, now)?;
            }
        }
    }

    #[test]
    fn whoever_comes_first_wins_and_everybody_else_is_told_who(keys in prop::collection::vec((0u8..4, 0u8..3, 0u8..3), 2..12)) {
        let mut memory = Memory::default();
        memory.run(&Command::CreateRound(Box::new(new_round(1, None))), START).expect("stored");
        let mut winner: Option<(u8, u8, u8)> = None;
        for (key, hash, who) in keys {
            let told = memory.run(&submit(round_id(1), submission(&format!("k{key}"), hash, &person(who))), START);
            let first = *winner.get_or_insert((key, hash, who));
            if first == (key, hash, who) {
                prop_assert!(told.is_ok());
            } else {
                let Err(Error::Conflict { winner: Some(told), .. }) = told else { panic!("{told:?}") };
                prop_assert_eq!(told.principal, person(first.2));
            }
        }
        prop_assert_eq!(memory.events.iter().filter(|event| event.body.name() == "answered").count(), 1);
    }
}

#[test]
fn an_execution_started_for_a_round_that_got_another_ends_with_the_last() {
    let mut memory = Memory::default();
    let mut second = new_round(2, None);
    second.execution = RoundExecution::Existing(execution_id(1));
    for new in [new_round(1, None), second] {
        memory.run(&Command::CreateRound(Box::new(new)), START).expect("stored");
    }
    for (n, lifecycle) in [(1, Lifecycle::WaitingForInput), (2, Lifecycle::Finished)] {
        memory.run(&submit(round_id(n), submission("k", 0, &person(0))), START).expect("accepted");
        let collect = Command::Collect { round: round_id(n), key: "c".to_owned(), fence: fence("own_a", n) };
        memory.run(&collect, START).expect("collected");
        assert_eq!(memory.executions[&execution_id(1)].lifecycle(), lifecycle);
    }
}

#[test]
fn a_record_that_was_begun_before_anything_was_asked_waits_runs_and_finishes() {
    let mut memory = Memory::default();
    let start = Command::StartExecution {
        execution: execution_id(1),
        kind: ExecutionKind::Operation,
        started_by: Principal::agent("a"),
        owner: "own_a".to_owned(),
    };
    memory.run(&start, START).expect("started");
    let lifecycle = |memory: &Memory| memory.executions[&execution_id(1)].lifecycle();
    assert_eq!(lifecycle(&memory), Lifecycle::Running);
    let mut new = new_round(1, Some(fence("own_a", 1)));
    new.execution = RoundExecution::Existing(execution_id(1));
    memory.run(&Command::CreateRound(Box::new(new)), START).expect("stored");
    assert_eq!(lifecycle(&memory), Lifecycle::WaitingForInput);
    memory.run(&submit(round_id(1), submission("k", 0, &person(0))), START).expect("accepted");
    assert_eq!(lifecycle(&memory), Lifecycle::Running);
    let finish = Command::Finish { execution: execution_id(1), outcome: Outcome::Completed, result: None };
    memory.run(&finish, START).expect("finished");
    assert_eq!(lifecycle(&memory), Lifecycle::Finished);
}
