//! Direct operations against one MCP server, a program or one over HTTP (protocol versions 2025-06-18 and 2025-11-25): a
//! tool is called, a prompt is got, a resource is read, and a scripted plan answers what the server asks meanwhile. Nothing is stored, and
//! no person is asked: this is how a server's author tests elicitation.

mod client;
mod connection;
mod error;
mod operation;
mod reach;

pub use client::Client;
pub(crate) use connection::{Answer, Asked, Connection, Planned};
pub use error::{ANSWER_EXPECTATION_FAILED, OperateError};
pub use operation::{Exchange, Operation, Reply, Report};
pub use reach::reach;
