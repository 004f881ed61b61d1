//! The rules of Sayso: what can be asked, what may be answered, and how a round moves from one state to the next.
//!
//! This crate is pure and total. It must never do IO, read a clock, draw a random number, be async, or know a
//! protocol: if a rule needs the time or an id, it is handed one.

pub mod command;
pub mod error;
pub mod event;
pub mod execution;
pub mod id;
pub mod json;
pub mod limits;
pub mod policy;
pub mod principal;
pub mod request;
pub mod response;
pub mod round;
pub mod schema;
pub mod time;
pub mod wire;

pub use error::{Error, ErrorCode, FieldError};
pub use time::UnixMs;
