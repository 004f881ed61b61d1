//! What `sayso demo` shows: a sample MCP server and a scripted client, each speaking the real protocol.

pub mod client;
pub mod shipping;
