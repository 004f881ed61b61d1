//! What another system's waiting side was recorded to do, carried out on a [`Desk`] that waits and a handle that answers.
//!
//! Of the steps that may be done otherwise these are: a missed deadline is `expired` (M3-35), and one that has passed
//! already is refused before anything is stored, so it uses up no round (M3-33); parallel questions are rounds of their
//! own (M3-32); who may ask in an execution is its starter, and nothing else is bound, so other identities cannot be said
//! (M3-36), an unknown execution is `not_found`, and a round is resolved by its holder, as often as it says so (M3-36).
//! Deadline and acceptance have one clock (M3-31). An execution that has finished asks nothing more, which is a conflict.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;
#[path = "m3/vectors.rs"]
mod vectors;

use std::time::Duration;

use sayso::kit::{ExecutionHandle, Kit, KitStore};
use sayso::{
    Ask, Desk, Error, ErrorCode, ExecutionId, ExecutionKind, Failure, Fence, Json, LocalDesk, Received, Request,
    RoundId, Sayso, Step as Known, UnixMs, words,
};
use sayso_core::round::Delivery;
use serde_json::Value;
use support::{LONG, Place, START, agent};
use vectors::Step;

const SEQUENCES: &str = include_str!("data/m3_runtime.jsonl");
/// A deadline that is soon.
const SOON_MS: i64 = 5_000;

struct Waiting {
    place: Place,
    sayso: Sayso,
    desk: LocalDesk,
    execution: ExecutionId,
    handle: ExecutionHandle,
    round: Option<(RoundId, Fence)>,
    limit: u32,
}

/// What a step came to: the stable word of an error, or none.
type Came = Option<String>;

fn word(error: &Error) -> String {
    match error {
        Error::State { failure: Some(failure), .. } if failure.code == Failure::CANCELLED => failure.code.clone(),
        error => error.code().as_str().to_owned(),
    }
}

fn came<T>(result: Result<T, Error>) -> Came {
    result.err().map(|error| word(&error))
}

impl Waiting {
    async fn new(limit: u32) -> Self {
        let place = Place::new();
        let sayso = place.open().await;
        let desk = sayso.desk(agent());
        let execution = desk.begin_as(ExecutionKind::Agent).await.unwrap();
        let kit = Kit::new(KitStore::of(std::sync::Arc::new(desk.clone()), std::sync::Arc::new(sayso.people())));
        let handle = kit.handle(execution).unwrap();
        Self { place, sayso, desk, execution, handle, round: None, limit }
    }

    async fn begin(&mut self, execution: ExecutionId, deadline: Option<UnixMs>) -> Result<(), Error> {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        let ask = Ask {
            execution_id: Some(execution),
            delivery: Some(Delivery::Live),
            round_limit: Some(self.limit),
            deadline,
            ..Ask::one("city", Request::form("Where to?", Json::parse(schema).unwrap()))
        };
        let opened = self.desk.open(ask, None).await?;
        self.round.get_or_insert((opened.round.round_id, opened.fence.unwrap()));
        Ok(())
    }

    /// What a worker does that waits for the round: an answer is taken over, everything else is an error.
    async fn ends(&self) -> Result<(), Error> {
        let (round, fence) = self.round.clone().unwrap();
        match self.desk.receive(round, fence, LONG).await? {
            Received::Handed(_) => Ok(()),
            Received::Failed(ended) => Err(words::waiter_error(ended.failure.as_ref().unwrap())),
        }
    }

    async fn resolve(&self, round: RoundId) -> Result<(), Error> {
        let (_, fence) = self.round.clone().unwrap();
        self.desk.settle(vec![Known::Delivered(round, fence.clone()), Known::Resolved(round, fence)]).await
    }

    async fn sweep_after(&self, ms: i64) {
        self.place.clock.advance_ms(ms);
        self.sayso.sweep(&mut sayso::Sweeper::default(), Duration::ZERO).await.unwrap();
    }

    /// Carries a step out; nothing where it cannot be said.
    async fn run(&mut self, step: &Step) -> Option<Came> {
        let round = self.round.as_ref().map(|(round, _)| *round);
        Some(match step.op.as_str() {
            "person_answers" => {
                let (responses, key) = (step.responses().unwrap(), step.text("key").unwrap());
                came(self.handle.respond_elicitation(round.unwrap(), responses.0, &key).await)
            }
            "wait_begins" => came(self.begin(self.execution, Some(START.plus_ms(SOON_MS))).await),
            "wait_ends" => {
                if step.text("at").is_some() || step.recorded_word() == Some("timeout") {
                    self.sweep_after(SOON_MS + 1).await;
                }
                came(self.ends().await)
            }
            "execution_cancelled" => {
                self.handle.cancel().await.unwrap();
                self.handle.cancel().await.unwrap();
                came(self.ends().await)
            }
            "wait_again" => came(self.begin(self.execution, None).await),
            "wait" if step.text("deadline").is_some() => came(self.begin(self.execution, Some(START)).await),
            "wait" if step.text("execution").is_some() => {
                came(self.begin(ExecutionId::from_parts(START.0, 9), None).await)
            }
            "wait" if step.text("round_id").is_some() => came(self.begin(self.execution, None).await),
            "wait" => return None,
            "time_passes" => {
                for _ in 0..8 {
                    self.place.clock.advance_ms(10_000);
                    self.desk.renew_all().await.unwrap();
                }
                None
            }
            "another_process_fails_round" => {
                self.place.clock.advance_ms(30_000);
                let (round, fence) = self.round.clone().unwrap();
                let other = self.place.open().await.desk(agent());
                came(other.fail_recovery(round, fence.token).await)
            }
            "resolve_round" if step.text("round_id").is_some() => {
                came(self.resolve(RoundId::from_parts(START.0, 9)).await)
            }
            "resolve_round" => came(self.resolve(round.unwrap()).await),
            other => panic!("{other}"),
        })
    }

    async fn state(&self) -> Value {
        let Some((round, _)) = &self.round else { return Value::Null };
        let row = self.place.store().round(*round).await.unwrap().unwrap().row;
        let mut state = serde_json::json!({
            "status": row.status.as_str(), "round_index": row.index, "round_limit": row.limit,
            "delivery_attempts": row.delivery_attempts, "answered": row.answered.is_some(),
        });
        if let Some(failure) = row.failure {
            state["failure_code"] = failure.code.into();
        }
        state
    }
}

/// What is expected of a step that may, or must, be done otherwise: an error's word or none. The state then is not that
/// of the recording.
fn otherwise(name: &str, at: usize, step: &Step) -> Option<Came> {
    let error = |code: ErrorCode| Some(Some(code.as_str().to_owned()));
    if step.op == "wait_again" {
        return error(ErrorCode::ManagedInputConflict);
    }
    match (step.rule.as_deref()?, name, at) {
        ("M3-35", "runtime/failed_rounds_count", _) => error(ErrorCode::ManagedInputInvalid),
        ("M3-35", _, 1) => error(ErrorCode::OperationTimeout),
        ("M3-35", ..) => error(ErrorCode::ManagedInputState),
        ("M3-31" | "M3-32" | "M3-33", ..) => Some(None),
        ("M3-36", "runtime/not_bound", _) => error(ErrorCode::NotFound),
        ("M3-36", _, 0) => error(ErrorCode::NotFound),
        ("M3-36", ..) => Some(None),
        (rule, ..) => panic!("{rule} has no row"),
    }
}

#[tokio::test]
async fn a_recorded_wait_ends_as_recorded_or_better() {
    let (mut followed, mut apart, mut unsayable) = (0, 0, 0);
    for sequence in vectors::read(SEQUENCES) {
        let name = sequence.name.as_str();
        let mut waiting = Waiting::new(if name == "runtime/failed_rounds_count" { 1 } else { 10 }).await;
        let begins_itself = ["runtime/deadline_passes", "runtime/failed_rounds_count", "runtime/not_bound"];
        if !begins_itself.contains(&name) {
            let deadline = (name == "runtime/store_clock_ahead").then(|| START.plus_ms(3_600_000));
            waiting.begin(waiting.execution, deadline).await.unwrap();
        }
        if name == "runtime/resolve_wrong_round" {
            let answer = [("city", sayso::Response::accept(Json::parse(r#"{"city":"Pune"}"#).unwrap()))];
            let round = waiting.round.as_ref().unwrap().0;
            waiting.handle.respond_elicitation(round, answer, "key-1").await.unwrap();
            waiting.ends().await.unwrap();
        }
        for (at, step) in sequence.steps.iter().enumerate() {
            // The first wait of this one ends with an answer that the recording does not show.
            if name == "runtime/overlap" && step.op == "wait_ends" {
                let answer = [("city", sayso::Response::accept(Json::parse(r#"{"city":"Pune"}"#).unwrap()))];
                let error = waiting.handle.pending_elicitation().await.unwrap_err();
                assert_eq!(error.code(), ErrorCode::ManagedInputState);
                let round = waiting.round.as_ref().unwrap().0;
                waiting.handle.respond_elicitation(round, answer, "key-1").await.unwrap();
            }
            let Some(came) = waiting.run(step).await else {
                unsayable += 1;
                continue;
            };
            if let Some(expected) = otherwise(name, at, step) {
                assert_eq!(came, expected, "{name}, step {at}");
                apart += 1;
                continue;
            }
            assert_eq!(step.follow, "yes", "{name}, step {at}");
            assert_eq!(came.as_deref(), step.recorded_word(), "{name}, step {at}");
            if let Some(recorded) = &step.state_after {
                assert_eq!(waiting.state().await, *recorded, "{name}, step {at}");
            }
            followed += 1;
        }
    }
    assert_eq!((followed, apart, unsayable), (13, 10, 4));
}
