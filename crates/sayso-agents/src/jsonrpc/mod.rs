//! JSON-RPC 2.0, kept raw: a message is its text and the places of its members. The ways to a server are here too, lines
//! over a process's pipes and MCP's streamable HTTP behind one [`Transport`], and the form of MCP's elicitations.

mod compose;
mod elicitation;
mod http;
mod lines;
mod message;
mod process;
mod transport;

pub use compose::{Outgoing, error, notification, request, result};
pub use elicitation::{elicit_result, read_elicitation};
pub use http::{Endpoint, HttpFault, Posted};
pub use lines::{Line, LineReader};
pub use message::{Kind, Malformed, Message};
pub use process::{Launch, Launched, Program, Running};
pub use transport::{Conversation, MessageReceiver, MessageSender, Received, Transport};

/// Invalid JSON (JSON-RPC 2.0, section 5.1).
pub const PARSE_ERROR: i64 = -32700;
/// Not a request this peer can take.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit.
pub const INVALID_PARAMS: i64 = -32602;
/// It could not be done.
pub const INTERNAL_ERROR: i64 = -32603;
