//! The client against a real server over TCP: every verb, restarts, lost answers and leases.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod leases;
mod lost;
mod proxy;
mod restarts;
mod rig;
mod strangers;
mod verbs;
