//! Our wire: the one set of types used unchanged by HTTP, events, CLI `--json` and MCP structured content. Unknown
//! members are refused coming in; going out, only additive change.

mod answer;
mod execution;
mod gate;
mod grant;
mod granting;
mod keyed;
mod problem;
mod request;
mod round;
mod schemas;
mod step;
mod token;
mod worker;

pub use answer::{Answer, Collected, Response, ResponseRecord, responses_from_wire, responses_to_wire};
pub use execution::{Execution, ExecutionOutcome, ExecutionPage, ExecutionResult, StoredEvent};
pub use gate::{Gated, NewGate, Paused};
pub use grant::{Cleared, Grant, GrantKind, GrantPage, NewApproval};
pub use granting::{GrantDraft, GrantUse, GrantUsed};
pub use keyed::Keyed;
pub use problem::{Problem, Winner};
pub use request::{ChoiceOption, Request, RequestKind};
pub use round::{Answered, Call, NewRound, Round, RoundPage, Superseded};
pub use step::{Reviewed, Settlement, Step, StepKind};
pub use token::{NewToken, NewTokenKind, Token, TokenPage};
pub use worker::{
    Arrival, Evidence, ExpectedToken, Holding, Lease, LeaseToken, Leased, NewClaim, NewExecution, NewFailure, Renewed,
    Settled, Withdrawal, Worker, fence_of,
};
