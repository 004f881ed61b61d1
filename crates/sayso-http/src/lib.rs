//! Where people and remote workers come in: the HTTP API, the event stream and the inbox.
//!
//! This crate must never know SQL or a harness's dialect, and has no rules of its own: whatever may be asked, answered
//! or seen is decided by [`sayso`], and every answer goes through [`sayso::People::answer`].

mod api;
mod app;
mod auth;
mod body;
pub mod client;
mod events;
mod guard;
mod inbox;
mod mcp;
mod openapi;
mod options;
mod problem;
mod query;
mod routes;
mod serve;

pub use mcp::McpService;
pub use openapi::openapi;
pub use options::ServeOptions;
pub use serve::{router, serve};
