//! What the disk and the database can do by themselves: the least work that is durable in the same way, with none of the
//! rules. Measured beside the product in the same run, so that its figures are ratios and carry over to other machines.
//!
//! A raw cycle is five durable transitions of a round in three tables: a narrow row that changes, and a request and an
//! answer that are written once, with as many bytes as the product stores.

mod postgres;
mod sqlite;
mod time;

pub use postgres::{ScratchSchema, postgres_cycles, postgres_cycles_grouped, postgres_notify};
pub use sqlite::{sqlite_commit, sqlite_cycles};
pub use time::{Samples, Stopwatch};

/// The transitions of a cycle: create, submit, start, deliver, resolve.
const TRANSITIONS: i64 = 5;

/// How many bytes a round stores beside its narrow row.
#[derive(Debug, Clone, Copy)]
pub struct RowBytes {
    /// What is asked, and what never changes of the round itself.
    pub request: usize,
    /// What is answered, and by whom.
    pub answer: usize,
}

/// What raw cycles reached.
#[derive(Debug, Clone)]
pub struct Cycles {
    /// Whole cycles a second.
    pub per_second: f64,
    /// How long a group of rounds took from its first transition to its last.
    pub took: Samples,
}

/// Keys in order of time, as ids are.
fn key(number: u64) -> [u8; 16] {
    (0x0190_0000_0000_0000_0000_0000_0000_0000_u128 + u128::from(number)).to_be_bytes()
}

/// `count` bytes that are no zeros.
fn filling(count: usize) -> Vec<u8> {
    vec![b'x'; count]
}
