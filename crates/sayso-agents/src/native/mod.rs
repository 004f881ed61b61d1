//! The native tool loop: a model behind an OpenAI-compatible endpoint, tools of the program and of MCP servers, and a
//! person wherever a call needs one. A run that waits lives in no process: it is stored whole, and goes on wherever its
//! tools are (`docs/native.md`).

mod answers;
mod asking;
mod judge;
mod model;
mod offer;
mod outcome;
mod resume;
mod runner;
mod runtime;
mod sealed;
mod servers;
mod state;
mod tool;
mod turns;

pub use model::{ANSWER_WITHIN_DEFAULT, ChatEndpoint};
pub use outcome::{RunOutcome, Said};
pub use runner::{HARNESS, NativeRunner};
pub use runtime::AgentRuntime;
pub use sealed::{Keyring, KeyringError};
pub use state::{AllowedBy, PendingCall, SuspendedRunState, WaitsFor};
pub use tool::{OWN_SERVER, RequiresApproval, RequiresApprovedInput, RequiresInput, Tool, Toolbox};
