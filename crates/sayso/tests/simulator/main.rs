//! A world in which everything that can go wrong between a process and its store does, decided by a seed: processes are
//! killed before and after every call, wake-ups are lost, the clock steps by hours, leases run out by a millisecond,
//! workers and sweepers race. The library, its desks and its sweepers are the real ones. After every step the store is
//! read by a witness that nothing happens to.
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
mod steps;
mod world;

use process::Kept;
use world::World;

const MEMORY_SEEDS: u64 = 2000;
const SQLITE_SEEDS: u64 = 300;
const MEMORY_STEPS: usize = 45;
/// Fewer, since each of them costs the disk's time.
const SQLITE_STEPS: usize = 30;
/// The tests that share the seeds of one store, so that they run beside each other.
const SHARES: u64 = 4;

#[expect(clippy::disallowed_methods, reason = "how many seeds are tried is for whoever runs the tests")]
fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number")))
}

/// Runs one seed to its end; the story, and what broke.
fn live_through(seed: u64, kept: Kept) -> (Vec<String>, Result<(), String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    // Paused time runs ahead by itself while nothing blocks; here only the world moves it.
    let (over, holds_time) = std::sync::mpsc::sync_channel::<()>(1);
    runtime.spawn_blocking(move || holds_time.recv());
    let steps = if kept == Kept::Memory { MEMORY_STEPS } else { SQLITE_STEPS };
    let (story, checked) = runtime.block_on(async {
        let mut world = World::new(seed, kept);
        let mut checked = Ok(());
        for _ in 0..steps {
            checked = world.step().await;
            if checked.is_err() {
                break;
            }
        }
        if checked.is_ok() {
            checked = world.end().await;
        }
        (std::mem::take(&mut world.log), checked)
    });
    drop(over);
    (story, checked)
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

#[test]
fn a_seed_tells_the_same_story_twice() {
    for seed in 0..20 {
        let (once, again) = (live_through(seed, Kept::Memory).0, live_through(seed, Kept::Memory).0);
        let differs = once.iter().zip(&again).position(|(a, b)| a != b);
        let told = differs.map(|line| (&once[line], &again[line]));
        assert!(differs.is_none() && once.len() == again.len(), "seed {seed} differs: {told:?}");
    }
}
