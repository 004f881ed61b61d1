//! A world in which everything that can go wrong between a process and its store does, decided by a seed: processes are
//! killed before and after every call, wake-ups are lost, the clock steps by hours, leases run out by a millisecond,
//! workers and sweepers race. Beside the seeds there is one script, at every single gap of which somebody dies in turn.
//! The library, its desks and its sweepers are the real ones. After every step the store is read by a witness that nothing
//! happens to.
//!
//! `SAYSO_SIM_SEED=17 cargo nextest run -p sayso --test simulator` runs one seed and prints its story;
//! `SAYSO_SIM_SEEDS=50000` runs so many in each store.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod answering;
mod asking;
mod checks;
mod delivering;
mod ending;
mod faults;
mod process;
mod rng;
mod script;
mod steps;
mod world;

use std::sync::Arc;

use faults::{Gap, Kill};
use process::Kept;
use world::{Checked, World};

const MEMORY_SEEDS: u64 = 2000;
const SQLITE_SEEDS: u64 = 300;
const MEMORY_STEPS: usize = 45;
/// Fewer, since each of them costs the disk's time.
const SQLITE_STEPS: usize = 30;
/// The tests that share the gaps of the script in one store.
const GAP_SHARES: usize = 2;
/// The script makes more calls to its store than this.
const GAPS_MIN: usize = 80;
/// The tests that share the seeds of one store, so that they run beside each other.
const SHARES: u64 = 4;

#[expect(clippy::disallowed_methods, reason = "how many seeds are tried is for whoever runs the tests")]
fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number")))
}

/// A world from its beginning to its end; the story, and what broke.
fn live(
    seed: u64,
    kept: Kept,
    gap: &Arc<Gap>,
    life: impl AsyncFnOnce(&mut World) -> Checked,
) -> (Vec<String>, Checked) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    // Paused time runs ahead by itself while nothing blocks; here only the world moves it.
    let (over, holds_time) = std::sync::mpsc::sync_channel::<()>(1);
    runtime.spawn_blocking(move || holds_time.recv());
    let (story, checked) = runtime.block_on(async {
        let mut world = World::new(seed, kept, gap.clone());
        let mut checked = life(&mut world).await;
        gap.close();
        if checked.is_ok() {
            checked = world.end().await;
        }
        (std::mem::take(&mut world.log), checked)
    });
    drop(over);
    (story, checked)
}

/// Runs one seed to its end; the story, and what broke.
fn live_through(seed: u64, kept: Kept) -> (Vec<String>, Checked) {
    let steps = if kept == Kept::Memory { MEMORY_STEPS } else { SQLITE_STEPS };
    live(seed, kept, &Arc::default(), async |world: &mut World| {
        for _ in 0..steps {
            world.step().await?;
        }
        Ok(())
    })
}

fn try_seed(seed: u64, kept: Kept, tells: bool) {
    let (story, checked) = live_through(seed, kept);
    if tells || checked.is_err() {
        story.iter().for_each(|line| eprintln!("  {line}"));
    }
    if let Err(broken) = checked {
        panic!("seed {seed}: {broken}\nalone: SAYSO_SIM_SEED={seed} cargo nextest run -p sayso --test simulator");
    }
}

fn share_of(share: u64, kept: Kept) {
    if let Some(seed) = number_from("SAYSO_SIM_SEED") {
        if share == seed % SHARES {
            try_seed(seed, kept, true);
        }
        return;
    }
    let usual = if kept == Kept::Memory { MEMORY_SEEDS } else { SQLITE_SEEDS };
    let seeds = number_from("SAYSO_SIM_SEEDS").unwrap_or(usual);
    (0..seeds).filter(|seed| seed % SHARES == share).for_each(|seed| try_seed(seed, kept, false));
}

macro_rules! shares {
    ($kept:expr => $($name:ident $share:literal)*) => { $(
        #[test]
        fn $name() {
            share_of($share, $kept);
        }
    )* };
}

shares! { Kept::Memory => memory_0 0 memory_1 1 memory_2 2 memory_3 3 }
shares! { Kept::Sqlite => sqlite_0 0 sqlite_1 1 sqlite_2 2 sqlite_3 3 }

/// Lives by the script as often as it has calls to the store, and each time somebody dies at another one of them: untold,
/// after it, and in memory also before it, which a disk cannot tell from the gap before. One of [`GAP_SHARES`].
fn die_at_every_gap(share: usize, kept: Kept) {
    let kills: &[Kill] = if kept == Kept::Memory { &[Kill::Before, Kill::After] } else { &[Kill::After] };
    for call in (1..).skip(share).step_by(GAP_SHARES) {
        for kill in kills.iter().copied() {
            let gap = Gap::at(call, kill);
            let (story, checked) = live(script::SEED, kept, &gap, World::follow_the_script);
            if let Err(broken) = checked {
                story.iter().for_each(|line| eprintln!("  {line}"));
                panic!("whoever made call {call} died {kill:?} it: {broken}");
            }
            if !gap.was_reached() {
                assert!(call > GAPS_MIN, "the script makes fewer calls than it did: {call}");
                return;
            }
        }
    }
}

macro_rules! gaps {
    ($kept:expr => $($name:ident $share:literal)*) => { $(
        #[test]
        fn $name() {
            die_at_every_gap($share, $kept);
        }
    )* };
}

gaps! { Kept::Memory => every_gap_in_memory_0 0 every_gap_in_memory_1 1 }
gaps! { Kept::Sqlite => every_gap_on_sqlite_0 0 every_gap_on_sqlite_1 1 }

#[test]
fn a_seed_tells_the_same_story_twice() {
    for seed in 0..20 {
        let (once, again) = (live_through(seed, Kept::Memory).0, live_through(seed, Kept::Memory).0);
        let differs = once.iter().zip(&again).position(|(a, b)| a != b);
        let told = differs.map(|line| (&once[line], &again[line]));
        assert!(differs.is_none() && once.len() == again.len(), "seed {seed} differs: {told:?}");
    }
}
