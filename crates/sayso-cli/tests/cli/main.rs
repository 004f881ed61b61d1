//! The real binary, as a person runs it on a terminal and as a script runs it without one.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at what it did not expect"
)]

mod agents;
mod answers;
mod benching;
#[path = "../../../sayso-store/tests/support/cluster.rs"]
mod cluster;
mod contest;
mod credentials;
mod database;
mod disk;
mod doctor;
mod folder;
mod forms;
mod gating;
mod kit;
#[path = "../../../sayso-store/tests/support/mount.rs"]
mod mount;
mod pages;
mod plans;
mod policies;
mod remote;
mod replaying;
mod server;
mod serving;
mod terminal;
mod watching;
