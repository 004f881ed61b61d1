//! Durable human input for AI agents, as a library: rounds are stored before anybody sees them, answered once, handed
//! over once, and survive restarts.
//!
//! This crate must never know HTTP, MCP, HTML or terminals. Agents speak to it through [`Desk`], people through
//! [`People`]; both are handed an authenticated principal and never ask a body who somebody is.
//!
//! ```
//! use sayso::{Answer, Ask, Desk, Json, Options, People, Principal, Request, Response, Sayso};
//! use std::time::Duration;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let sayso = Sayso::open(Options::at(folder.path())).await?;
//! let agent = sayso.desk(Principal::agent("booking"));
//! let schema = r#"{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}"#;
//! let round = agent.ask(Ask::one("address", Request::form("Where to?", Json::parse(schema)?)), None).await?;
//!
//! // A person answers here, in the inbox, over HTTP or on the command line.
//! let content = Json::parse(r#"{"street":"1 Main Street"}"#)?;
//! let answer = Answer::one("address", Response::accept(content));
//! sayso.people().answer(round.round_id, answer, "first-answer").await?;
//!
//! let collected = agent.collect(round.round_id, "once", Duration::from_secs(45)).await?;
//! let street = collected.responses.get("address").and_then(|response| response.content.clone());
//! assert_eq!(street.map(|content| content.as_str().to_owned()).as_deref(), Some(r#"{"street":"1 Main Street"}"#));
//! # Ok(())
//! # }
//! ```

mod access;
mod believed;
mod bell;
pub mod blocking;
mod collecting;
mod desk;
pub mod doctor;
pub mod engine;
pub mod gate;
mod granted;
mod granting;
mod grants;
mod heard;
mod ids;
pub mod kit;
mod local_desk;
pub mod measure;
mod new_round;
mod open;
mod owner;
mod people;
pub mod plan;
pub mod policy;
mod question;
mod read;
mod step;
pub mod storage;
mod suspended;
mod sweeper;
mod waiters;
pub mod words;

pub use access::{Login, MintedToken};
pub use desk::{ClaimOf, Claimed, Desk, Handed, Opened, Received};
pub use grants::NewGrant;
pub use ids::random_bytes;
pub use local_desk::LocalDesk;
pub use open::{Options, Sayso, default_person};
pub use people::{LocalPeople, People};
pub use step::Step;
pub use suspended::Held;
pub use sweeper::Sweeper;
pub use waiters::{EventFeed, Hub};

pub use sayso_core::command::PolicyRuling;
pub use sayso_core::error::{Error, ErrorCode, FieldError};
pub use sayso_core::execution::{ExecutionKind, Outcome};
pub use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
pub use sayso_core::json::Json;
pub use sayso_core::principal::{Channel, Principal, PrincipalKind};
pub use sayso_core::round::{Digest, Evidence, Failure, Fence, FenceToken, OperationKind, Status};
pub use sayso_core::wire::{self, Answer, NewRound as Ask, Request, Response};
pub use sayso_core::{limits, time::UnixMs};
pub use sayso_store::clock;
pub use sayso_store::{ExecutionFilter, GATE_PREFIX, GrantFilter, GrantsOf, LATE_PREFIX, RoundFilter};
