//! What another system was recorded to do, step by step, carried out on [`sayso::storage`] and the handles of
//! [`sayso::kit`]. `tests/m3/decisions.rs` has a row for everything that is done otherwise, and why.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "../../sayso-store/tests/support/cluster.rs"]
mod cluster;
#[path = "m3/decisions.rs"]
mod decisions;
#[path = "m3/special.rs"]
mod special;
#[path = "m3/vectors.rs"]
mod vectors;
#[path = "m3/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use decisions::Does;
use sayso::Error;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use vectors::{Sequence, Step};
use world::{Got, Place, World};

const SEQUENCES: &str = include_str!("data/m3_sequences.jsonl");

/// Members of the state that differ. The words of a recovery are this store's own.
fn differing(got: &Value, recorded: &Value, but: &[&str]) -> Vec<String> {
    let is_recovery = got["failure_code"] == "recovery_unavailable" && got["failure_message"] != "gone";
    let names = got.as_object().into_iter().chain(recorded.as_object()).flatten().map(|(name, _)| name.as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    let is_left_out = |name: &&str| but.contains(name) || (is_recovery && *name == "failure_message");
    let differs = |name: &&str| got.get(*name) != recorded.get(*name);
    let line = |name: &str| format!("{name} is {:?} and was {:?}", got.get(name), recorded.get(name));
    names.into_iter().filter(|name| !is_left_out(name)).filter(differs).map(line).collect()
}

/// What is wrong with a step, given what it should have done.
async fn wrong(world: &World, step: &Step, does: Does, got: &Result<Got, Error>) -> Vec<String> {
    let code = got.as_ref().err().map(Error::code);
    let mut wrong = Vec::new();
    let (expected, but, compares_state): (_, &[&str], bool) = match does {
        Does::AsRecorded => (step.recorded(), &[], true),
        Does::But(_, but) => (step.recorded(), but, true),
        Does::Otherwise { code, ends, .. } => (code, &[], !ends),
        Does::Unsayable(_) => return wrong,
    };
    if code != expected {
        wrong.push(format!("it gave {got:?}, expected was {expected:?}"));
    }
    let record = world.store.get_round(World::round(step)).await.expect("is read");
    let state = record.as_ref().map_or(Value::Null, |record| world.state(record));
    if compares_state {
        wrong.extend(differing(&state, step.state_after.as_ref().unwrap_or(&Value::Null), but));
    }
    if let (Ok(got), Some(recorded)) = (got, &step.result) {
        match step.op.as_str() {
            "get_round" => wrong.extend(differing(&got.result, recorded, but)),
            "redacted_responses" => wrong.extend(unredacted(&got.result, recorded, step)),
            _ if got.result != *recorded => wrong.push(format!("the result is {} and was {recorded}", got.result)),
            _ => {}
        }
    }
    wrong
}

/// Everything that was redacted there is redacted here; what should be, too.
fn unredacted(got: &Value, recorded: &Value, step: &Step) -> Vec<String> {
    let recorded =
        step.should.as_ref().map(|should| &should["result"]).filter(|should| should.is_object()).unwrap_or(recorded);
    let mut wrong = Vec::new();
    for (key, response) in recorded.as_object().into_iter().flatten() {
        if got[key]["action"] != response["action"] {
            wrong.push(format!("the action of {key} is {}", got[key]["action"]));
        }
        for (name, value) in response["content"].as_object().into_iter().flatten() {
            let here = &got[key]["content"][name];
            let is_hidden = |value: &Value| value.to_string().to_lowercase().contains("redacted");
            if is_hidden(value) && !is_hidden(here) {
                wrong.push(format!("{name} is shown as {here}"));
            }
        }
    }
    wrong
}

/// How often what was done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    followed: usize,
    apart: BTreeMap<&'static str, usize>,
    /// Steps behind one that leads to another state here.
    behind: usize,
}

impl Counts {
    fn count(&mut self, does: Does) {
        match does {
            Does::AsRecorded => self.followed += 1,
            Does::But(rule, _) | Does::Otherwise { rule, .. } | Does::Unsayable(rule) => {
                *self.apart.entry(rule).or_default() += 1;
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.followed += other.followed;
        self.behind += other.behind;
        for (rule, count) in other.apart {
            *self.apart.entry(rule).or_default() += count;
        }
    }

    fn steps(&self) -> usize {
        self.followed + self.behind + self.apart.values().sum::<usize>()
    }
}

async fn run(sequence: &Sequence, place: Place) -> (Counts, Vec<String>) {
    let (mut counts, mut faults) = (Counts::default(), Vec::new());
    let mode = decisions::mode(sequence);
    let mut world = World::new(place, mode).await;
    let mut steps = sequence.steps.iter().enumerate();
    for (n, step) in steps.by_ref() {
        let does = decisions::decide(sequence, step, mode);
        world.at(step.at_ms);
        counts.count(does);
        let goes_on = matches!(does, Does::Otherwise { ends: false, .. });
        assert!(!(step.diverges && goes_on), "{}, step {n}: what follows is of another state", sequence.name);
        let line = |wrong: String| format!("{}, step {n}, {} ({:?}): {wrong}", sequence.name, step.op, step.rule);
        if special::is_special(step) {
            faults.extend(special::wrong(&mut world, step, does).await.into_iter().map(line));
            continue;
        }
        let got = match does {
            Does::Unsayable(_) => Ok(Got::default()),
            _ => world.run(step).await,
        };
        faults.extend(wrong(&world, step, does, &got).await.into_iter().map(line));
        if matches!(does, Does::Otherwise { ends: true, .. }) {
            break;
        }
    }
    counts.behind += steps.count();
    (counts, faults)
}

/// Sequences that are carried out at once.
const AT_ONCE: usize = 8;

async fn run_all(sequences: Vec<Sequence>, places: impl AsyncFn() -> Place) -> Counts {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for sequence in sequences {
        let permit = permits.clone().acquire_owned().await.expect("a permit");
        let place = places().await;
        running.spawn(async move {
            let done = run(&sequence, place).await;
            drop(permit);
            done
        });
    }
    let (mut counts, mut faults) = (Counts::default(), Vec::new());
    while let Some(done) = running.join_next().await {
        let (counted, found) = done.expect("is run");
        counts.add(counted);
        faults.extend(found);
    }
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n"));
    counts
}

/// Every step is counted: what is followed to the letter, what is decided otherwise by which row, and what comes behind a
/// step that leads to another state.
fn expected() -> Counts {
    let apart = [
        ("M3-02", 2),
        ("M3-03", 33),
        ("M3-04", 1),
        ("M3-06", 3),
        ("M3-08", 2),
        ("M3-10", 3),
        ("M3-12 and 13", 2),
        ("M3-14", 1),
        ("M3-14 and 15", 8),
        ("M3-17", 3),
        ("M3-18", 6),
        ("M3-22", 2),
        ("M3-24", 12),
        ("M3-29", 1),
        (decisions::AN_END_COMES_FIRST, 34),
        (decisions::ANSWERS_CARRY_NO_TOKEN, 20),
        (decisions::EVIDENCE_IS_FOR_DELIVERIES, 1),
        (decisions::BY_TYPE, 5),
        (decisions::LEASES_ARE_THEIR_OWNERS, 20),
        (decisions::LEASES_HAVE_ONE_LENGTH, 22),
        (decisions::NO_BELIEF_IS_NOT_WRONG, 5),
        (decisions::NOBODY_HOLDS_A_QUESTION, 24),
        (decisions::QUESTIONS_ARE_NOT_CLAIMED, 15),
        (decisions::RECOVERY_HAS_ITS_WORDS, 6),
        (decisions::ROUNDS_ARE_NUMBERED_IN_ORDER, 1),
    ];
    Counts { followed: 999, apart: apart.into(), behind: 47 }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_sequences_are_followed_or_decided_otherwise_on_sqlite() {
    let sequences = vectors::read(SEQUENCES);
    assert_eq!(sequences.len(), 218);
    let steps: usize = sequences.iter().map(|sequence| sequence.steps.len()).sum();
    assert_eq!(steps, 1278);
    let counts = run_all(sequences, async || Place::File(tempfile::tempdir().expect("a folder"))).await;
    assert_eq!(counts, expected());
    assert_eq!(counts.steps(), steps);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_sequences_are_followed_or_decided_otherwise_on_postgresql() {
    let sequences = vectors::read(SEQUENCES);
    let cluster = cluster::Cluster::shared();
    let counts = run_all(sequences, async || Place::Database(cluster.fresh().await)).await;
    assert_eq!(counts, expected());
}
