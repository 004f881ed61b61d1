//! Where agents come in. The gateway is an MCP server in front of another: it stores what the upstream asks, waits for a
//! person, and hands the answer over. Direct operations call a server themselves, with a scripted plan in the person's place.
//! The MCP server of our own ([`mcp`]) lets an agent ask by itself.
//!
//! This crate speaks the dialects of agents and must never know HTML or SQL. Its folders do not see each other, `jsonrpc`
//! and the tools of our own apart. A foreign message is kept as the text it came in, beside a narrow view of the members that are read; a change
//! splices the range of one member, so everything else passes byte for byte.

pub mod gateway;
pub mod jsonrpc;
pub mod kit;
pub mod mcp;
pub mod native;
pub mod operate;
mod tools;
