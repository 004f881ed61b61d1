//! The native tool loop against a scripted model on loopback: what suspends a run, what goes on with it and where, and
//! that nothing runs twice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod approvals;
mod decisions;
mod ending;
mod inputs;
mod kit;
mod model;
mod paused;
mod policies;
mod recorded;
mod relaying;
mod resuming;
mod scene;
mod servers;
mod stalling;
mod tampering;
mod tools;
mod vectors;
