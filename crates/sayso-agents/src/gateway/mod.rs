//! An MCP server in front of another, over stdio on both sides. Everything it does not need to touch passes as the bytes
//! it came in; what the upstream asks becomes a stored round that a person answers.
//!
//! One task owns all state and takes one event at a time (`session.rs`): a line from either side, a round that changed,
//! a timer. Storing is awaited in place, so that nothing is written to a peer before it is stored.

mod approval;
mod ask;
mod ask_user;
mod call;
mod from_client;
mod from_upstream;
mod gate;
mod handles;
mod handshake;
mod late;
mod leave;
mod lists;
mod options;
mod passage;
mod resume;
mod reviewed;
mod session;
mod stored;
mod timers;
mod upstream;

pub use crate::jsonrpc::{Launch, Launched, Program};
pub use crate::tools::Hold;
pub use options::{Gate, GatewayExit, GatewayOptions, GatewayReport, Replay};
pub use session::run;
