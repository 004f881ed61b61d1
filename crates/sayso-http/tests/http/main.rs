//! The HTTP API, the event stream and the inbox, driven from outside.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod access;
mod answering;
mod api;
mod documented;
mod gate;
mod guard;
mod inbox;
mod login;
mod mcp;
mod served;
mod stream;
mod workers;
