//! Managed input as a store: rounds whose ids, places and leases their caller chooses, one operation a method.
//!
//! This is a thin front: every rule is [`sayso_core::command`]'s, and everything is kept beside the rounds of
//! [`Desk`](crate::Desk) and [`People`](crate::People), which see it as well. A second object on the same file or
//! database reads everything.
//!
//! ```
//! use sayso::storage::{
//!     ElicitationRequest, ElicitationResponse, ManagedInputStatus, ManagedInputStore, NewLease, NewManagedInput, Options,
//!     PendingElicitationRound, SqliteManagedInputStore,
//! };
//! use sayso::wire::Keyed;
//! use sayso::{ExecutionId, Json, OperationKind, RoundId, UnixMs};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = SqliteManagedInputStore::open(folder.path().join("executions.sqlite"), Options::default()).await?;
//! let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#)?;
//! let pending = PendingElicitationRound {
//!     round_id: RoundId::from_parts(0, 1),
//!     execution_id: ExecutionId::from_parts(0, 1),
//!     logical_operation_id: "book-1".to_owned(),
//!     server: "shipping".to_owned(),
//!     operation_kind: OperationKind::Tool,
//!     operation_name: "book_shipment".to_owned(),
//!     requests: Keyed(vec![("city".to_owned(), ElicitationRequest::form("city", "Where to?", schema))]),
//!     created_at: UnixMs(0),
//!     request_state: None,
//!     deadline: None,
//! };
//! let round = pending.round_id;
//! let new = NewManagedInput { lease: Some(NewLease::of("worker-1")), ..NewManagedInput::first(pending) };
//! let record = store.create_round(new).await?;
//! let lease = record.lease.ok_or("a live round is held")?;
//!
//! let answer = ElicitationResponse::accept(Json::parse(r#"{"city":"Pune"}"#)?);
//! store.submit_responses(round, Keyed(vec![("city".to_owned(), answer)]), "first", None).await?;
//! store.start_delivery(round, lease.fence()).await?;
//! store.mark_delivered(round, lease.fence()).await?;
//! assert_eq!(store.resolve(round, lease.fence()).await?.status, ManagedInputStatus::Resolved);
//! # Ok(())
//! # }
//! ```

mod details;
mod managed;
mod new_input;
mod open;
mod record;
mod requests;

pub use managed::ManagedInputStore;
pub use new_input::{NewLease, NewManagedInput};
pub use open::{
    Options, PostgresExecutionStore, PostgresManagedInputStore, SqliteExecutionStore, SqliteManagedInputStore,
};
pub use record::{ManagedInputLease, ManagedInputRecord, ManagedInputStatus, PendingElicitationRound};
pub use requests::{ElicitationRequest, ElicitationResponse, FormElicitationRequest, UrlElicitationRequest};
