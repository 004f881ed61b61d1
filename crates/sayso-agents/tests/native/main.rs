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
mod policies;
mod resuming;
mod scene;
mod servers;
mod tools;
mod vectors;
