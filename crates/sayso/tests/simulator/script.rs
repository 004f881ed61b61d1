//! One short life in which everything happens, the same each time, so that somebody can die at every gap of it in turn.

use std::time::Duration;

use sayso::limits;

use crate::world::{Asked, Checked, START, World};

/// The seed of what the script leaves to chance: what arrives, and who is first.
pub const SEED: u64 = 16;

/// The questions of the script, by number.
const HELD: usize = 0;
const KEPT: usize = 1;
const TAKEN: usize = 2;
const GIVEN_UP: usize = 3;
const LATE: usize = 4;
const TIMED: usize = 5;
const CALLED_OFF: usize = 6;
const LEFT: usize = 7;
const QUESTIONS: usize = 8;

/// How long the person has who is asked [`TIMED`].
const TIME_MS: i64 = 2_000;

/// What happens next; most of it in a process.
#[derive(Clone, Copy)]
enum Act {
    Ask(usize, usize),
    Answer(usize, usize),
    Deliver(usize),
    Claim(usize, usize),
    Collect(usize, usize),
    TakeBack(usize),
    Cancel(usize),
    Leave(usize),
    Sweep(usize),
    /// Milliseconds go by.
    Pass(u64),
}

use Act::{Answer, Ask, Cancel, Claim, Collect, Deliver, Leave, Pass, Sweep, TakeBack};

const LEASE_MS: u64 = limits::LEASE_MS.unsigned_abs();

const SCRIPT: [Act; 41] = [
    // A live question, to its end.
    Ask(0, HELD),
    Answer(1, HELD),
    Deliver(0),
    Deliver(0),
    Deliver(0),
    // A resumable one: asked twice under its key, answered twice under one, claimed, delivered.
    Ask(1, KEPT),
    Ask(2, KEPT),
    Answer(2, KEPT),
    Answer(0, KEPT),
    Claim(1, KEPT),
    Deliver(1),
    Deliver(1),
    Deliver(1),
    // Whoever died on the way is followed by another worker, after its lease.
    Pass(LEASE_MS + 1),
    Claim(2, KEPT),
    Deliver(2),
    Deliver(2),
    // One that is collected at once, and again.
    Ask(2, TAKEN),
    Answer(0, TAKEN),
    Collect(2, TAKEN),
    Collect(1, TAKEN),
    // Questions that are taken back, with and without a late one in their place.
    Ask(0, GIVEN_UP),
    TakeBack(0),
    Ask(0, LATE),
    TakeBack(0),
    // One that nobody answers in time.
    Ask(1, TIMED),
    Pass(TIME_MS.unsigned_abs() + LEASE_MS),
    Sweep(2),
    Answer(2, TIMED),
    // One whose execution is cancelled, by two.
    Ask(2, CALLED_OFF),
    Cancel(1),
    Cancel(2),
    // One whose worker goes.
    Ask(0, LEFT),
    Leave(0),
    Sweep(1),
    Pass(LEASE_MS),
    Sweep(1),
    Pass(LEASE_MS),
    Sweep(1),
    Sweep(2),
    Answer(1, LEFT),
];

fn question(number: usize) -> Asked {
    let live = [HELD, GIVEN_UP, LATE, CALLED_OFF, LEFT].contains(&number);
    let deadline = (number == TIMED).then(|| START.plus_ms(TIME_MS + 2 * limits::LEASE_MS));
    Asked { live, deadline, key: (!live).then(|| format!("ask {number}")), ..Asked::default() }
}

impl World {
    /// Lives by the script, whoever dies meanwhile. What has become impossible by that does not happen. What is before the
    /// death is looked at where somebody dies earlier.
    pub async fn follow_the_script(&mut self) -> Checked {
        self.dies_at_times = false;
        self.asked.extend((0..QUESTIONS).map(question));
        for act in SCRIPT {
            self.act(act).await?;
            self.settle().await;
            if self.shared.gap.was_reached() {
                self.check().await?;
            } else {
                let rounds = self.all_rounds().await?;
                self.rows = rounds.into_iter().map(|stored| (stored.row.id, stored.row)).collect();
            }
        }
        Ok(())
    }

    async fn act(&mut self, act: Act) -> Checked {
        let is_stored = |number: usize| self.asked[number].id.is_some();
        match act {
            Ask(process, number) => self.ask_again(process, number).await,
            Answer(_, number) | Claim(_, number) | Collect(_, number) if !is_stored(number) => Ok(()),
            Answer(process, number) => {
                self.answer(process, number, format!("key of {number}"), format!("value of {number}")).await
            }
            Deliver(process) if self.processes[process].held.is_empty() => Ok(()),
            Deliver(process) => self.deliver(process).await,
            Claim(process, number) => self.claim(process, number).await,
            Collect(process, number) => self.collect(process, number).await,
            TakeBack(process) => self.take_back(process).await,
            Cancel(process) => self.cancel(process).await,
            Leave(process) => self.leave(process).await,
            Sweep(process) => self.sweep(process).await,
            Pass(ms) => {
                self.note(format!("{ms} ms pass"));
                self.pass(Duration::from_millis(ms)).await;
                Ok(())
            }
        }
    }
}
