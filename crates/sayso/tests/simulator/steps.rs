//! What may happen next.

use std::time::Duration;

use sayso::{Error, limits};

use crate::world::{Came, Checked, PROCESSES, World, check_not_broken, ensure};

const TWO_HOURS_MS: i64 = 2 * 60 * 60 * 1000;

impl World {
    pub async fn step(&mut self) -> Checked {
        let process = self.rng.below(PROCESSES);
        match self.rng.below(40) {
            0..=6 => self.ask_something(process).await?,
            7 => self.repeat_an_asking(process).await?,
            8..=15 => self.answer_something(process).await?,
            16..=23 => {
                let worker = self.some_worker();
                self.deliver(worker).await?;
            }
            24..=25 => self.claim_something(process).await?,
            26..=27 => self.collect_something(process).await?,
            28 => self.wait_in_the_background(process).await?,
            29 => self.take_back(process).await?,
            30 => self.cancel(process).await?,
            31..=32 => self.time_passes().await,
            33..=34 => self.clock_alone_moves(),
            35 if self.rng.one_in(2) => self.restart(process),
            35 if self.rng.one_in(2) => self.accuse(process).await?,
            35 => self.leave(process).await?,
            _ => self.sweep(process).await?,
        }
        self.settle().await;
        self.check().await
    }

    async fn time_passes(&mut self) {
        let ms = self.rng.pick(&[1, 900, 1_100, 9_999, 10_000, 10_001, 31_000, 61_000]);
        self.note(format!("{ms} ms pass"));
        self.pass(Duration::from_millis(ms)).await;
    }

    /// The machine slept, or its clock was set: no process notices.
    fn clock_alone_moves(&mut self) {
        let by_ms = self.rng.pick(&[
            limits::LEASE_MS - 1,
            limits::LEASE_MS,
            limits::LEASE_MS + 1,
            TWO_HOURS_MS,
            -TWO_HOURS_MS,
            TWO_HOURS_MS,
            -TWO_HOURS_MS,
        ]);
        self.note(format!("the clock steps by {by_ms} ms"));
        self.clock.advance_ms(by_ms);
    }

    /// One sweeper, or two at once. Each has its own memory of what it saw, which dies with its process.
    pub async fn sweep(&mut self, process: usize) -> Checked {
        let monotonic = self.monotonic;
        let other = (process + 1) % PROCESSES;
        let both = self.rng.one_in(2);
        let (sayso, _, fate) = self.lend(process);
        let (other_sayso, _, other_fate) = self.lend(other);
        let mut sweeper = std::mem::take(&mut self.processes[process].sweeper);
        let mut other_sweeper = std::mem::take(&mut self.processes[other].sweeper);
        let (first, second): (Came<()>, Came<()>) =
            tokio::join!(fate.run(sayso.sweep(&mut sweeper, monotonic)), async {
                if both { other_fate.run(other_sayso.sweep(&mut other_sweeper, monotonic)).await } else { None }
            });
        self.processes[process].sweeper = sweeper;
        self.processes[other].sweeper = other_sweeper;
        self.note(format!("{} at once sweep", if both { "two" } else { "one" }));
        for came in [first, second].iter().flatten() {
            check_not_broken(came)?;
            ensure!(came.is_ok(), "a sweep ended with {:?}", came.as_ref().err().map(Error::to_string));
        }
        Ok(())
    }
}
