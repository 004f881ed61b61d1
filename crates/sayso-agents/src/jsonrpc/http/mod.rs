//! MCP's streamable HTTP (2025-06-18 and 2025-11-25), as a client: a message goes out as a POST; the answer to a request is
//! a JSON body, or a stream of events with what the server asks meanwhile. A further stream, where the server has one,
//! carries what belongs to no request.
//!
//! There is no TLS here: servers are on this machine, or reached by a tunnel, or somebody has allowed plain HTTP.
//! Every exchange has a connection of its own.

mod endpoint;
mod events;
mod exchange;
mod fault;
mod post;
mod session;
mod stream;

pub use endpoint::Endpoint;
pub use fault::HttpFault;
pub use post::Posted;
