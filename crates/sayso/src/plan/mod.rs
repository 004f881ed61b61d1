//! Scripted plans: what an operation is expected to ask, and what it is answered. They stand in for the person where
//! there is none, in the tests of an MCP server. Nothing here does IO: a [`Run`] is handed what came and says what to
//! answer.
//!
//! ```
//! use sayso::plan::{Elicitation, PlanError, expect_form, maybe_url, sequence};
//! use sayso::{Json, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = sequence([
//!     maybe_url("login").cancel(),
//!     expect_form("address").message("Where to").accept(Json::parse(r#"{"city":"Pune"}"#)?),
//! ]);
//! let schema = r#"{"type":"object","properties":{"city":{"type":"string"},"insured":{"type":"boolean","default":false}}}"#;
//! let asked = Elicitation::new("address", Request::form("Where to?", Json::parse(schema)?));
//!
//! let mut run = plan.begin()?;
//! assert!(matches!(run.finish(), Err(PlanError::Unfinished { .. })));
//! let answers = run.answer(&[asked.clone()])?;
//! let content = answers.get("address").and_then(|response| response.content.clone());
//! assert_eq!(content.map(|content| content.as_str().to_owned()).as_deref(), Some(r#"{"city":"Pune","insured":false}"#));
//! run.finish()?;
//!
//! let again = run.answer(&[asked]).unwrap_err();
//! assert_eq!(
//!     again.to_string(),
//!     r#"nobody expected a form "Where to?" under the key address; nothing more was expected"#
//! );
//! # Ok(())
//! # }
//! ```
//!
//! Every expectation that could take what came is looked at, not the first alone: where two would answer differently the
//! plan is ambiguous, and that is an error.

mod automaton;
mod compare;
mod elicitation;
mod error;
mod expect;
mod run;
mod tree;

pub use elicitation::{DEFAULT_KEY, Elicitation};
pub use error::{EXPECTATION_FAILED, Malformed, PlanError};
pub use expect::{Expectation, Form, Url, expect_form, expect_url, maybe_form, maybe_url};
pub use run::Run;
pub use tree::{Plan, one_of, optional, round_of, sequence};
