//! The agent's verbs. Whoever holds harness pipes or MCP connections reaches the rounds through [`Desk`] alone.

use std::time::Duration;

use async_trait::async_trait;
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::limits::WAIT_MS_MAX;
use sayso_core::round::{Digest, Evidence, Fence, FenceToken, Status};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Answer, GrantUse, Keyed, Response};
use tokio::time::Instant;

use crate::Ask;
use crate::step::Step;

/// A round that was stored, and for a live one the fence to deliver it under.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The round.
    pub round: wire::Round,
    /// The fence of a live round.
    pub fence: Option<Fence>,
}

/// A round that was claimed, and the fence to deliver it under.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The round.
    pub round: wire::Round,
    /// The fence.
    pub fence: Fence,
}

/// An answer on its way to the agent.
#[derive(Clone)]
pub struct Handed {
    /// The round, now `delivery_started`.
    pub round: wire::Round,
    /// The asker's opaque state.
    pub request_state: Option<String>,
    /// The answer, with defaults filled in.
    pub responses: Keyed<Response>,
}

/// Neither the opaque state nor a value appears in `Debug` (invariant 8).
impl std::fmt::Debug for Handed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handed").field("round", &self.round.round_id).finish_non_exhaustive()
    }
}

/// What came of waiting for an answer.
#[derive(Debug, Clone)]
pub enum Received {
    /// There is one, and its delivery has begun.
    Handed(Box<Handed>),
    /// Nobody can answer any more. The round says why.
    Failed(Box<wire::Round>),
}

/// What a claimer believes and knows of a round.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaimOf {
    /// The token the claimer believes is current.
    pub expected: Option<FenceToken>,
    /// What is known of a delivery that was started.
    pub evidence: Option<Evidence>,
}

/// The agent's verbs, bound to an authenticated caller.
#[async_trait]
pub trait Desk: Send + Sync {
    /// Stores a question; it has been asked exactly if this returns it. With an idempotency key, a repeat returns the
    /// same round.
    async fn open(&self, ask: Ask, key: Option<String>) -> Result<Opened, Error>;
    /// Starts a record of an operation that lives in this worker, before anything is asked in it.
    async fn begin(&self) -> Result<ExecutionId, Error> {
        self.begin_as(ExecutionKind::Operation).await
    }
    /// As [`Desk::begin`], for a run of any kind.
    async fn begin_as(&self, kind: ExecutionKind) -> Result<ExecutionId, Error>;
    /// Waits until the round's `rev` is past `after`, or `wait` is over; either way, the round as it is.
    async fn wait(&self, round: RoundId, after: u32, wait: Duration) -> Result<wire::Round, Error>;
    /// Takes a resumable round over for delivery, with a fresh token. A delivery that was started and not confirmed is
    /// repeated only with evidence of what became of it. With an idempotency key, a repeat finds the same lease.
    async fn claim(&self, round: RoundId, claim: ClaimOf, key: Option<String>) -> Result<Claimed, Error>;
    /// Extends the lease of a round's holder, also late, as long as nobody took over; with it that of everything this
    /// worker holds. Until when.
    async fn renew(&self, round: RoundId, fence: Fence) -> Result<UnixMs, Error>;
    /// Begins to hand the answer over; the only way to read it but [`Desk::collect`].
    async fn start(&self, round: RoundId, fence: Fence) -> Result<Handed, Error>;
    /// Waits for the answer of a round that the caller holds (at most `wait`, then `Error::Timeout`), and begins to hand it
    /// over as [`Desk::start`] does. Where whoever answers is in this process, that is stored with the answer itself. A
    /// repeat gets the same answer.
    async fn receive(&self, round: RoundId, fence: Fence, wait: Duration) -> Result<Received, Error> {
        let until = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        let (mut seen, mut over) = (0, false);
        loop {
            let found = self.wait(round, seen, until - Instant::now()).await?;
            match found.status {
                Status::Pending if over => return Err(Error::Timeout),
                // A wait that is over has been looked at once more.
                Status::Pending => (seen, over) = (found.rev, until <= Instant::now()),
                Status::Failed => return Ok(Received::Failed(Box::new(found))),
                _ => return Ok(Received::Handed(Box::new(self.start(round, fence).await?))),
            }
        }
    }
    /// The caller's unfinished rounds of operations whose id begins with `prefix`, newest first. The prefix begins with
    /// [`sayso_store::LATE_PREFIX`].
    async fn late(&self, prefix: &str) -> Result<Vec<wire::Round>, Error>;
    /// Ends a live round whose asker took it back, and opens its successor in the same transaction: people go on being
    /// asked, and the answer waits until the question comes again. A repeat finds the successor.
    async fn withdraw(&self, round: RoundId, fence: Fence, successor: Ask) -> Result<wire::Round, Error>;
    /// Stores what became known, all of it or nothing. A repeat of steps that are all stored already changes nothing.
    async fn settle(&self, steps: Vec<Step>) -> Result<(), Error>;
    /// Waits for the answer (at most `wait`, then `Error::Timeout`) and takes it, for a caller that is its own agent.
    /// The same key reads the same answer again.
    async fn collect(&self, round: RoundId, key: &str, wait: Duration) -> Result<wire::Collected, Error>;
    /// Waits for an execution to end (at most `wait`, then `Error::Timeout`); its stored result.
    async fn result(&self, execution: ExecutionId, wait: Duration) -> Result<wire::ExecutionResult, Error>;
    /// A snapshot of an execution.
    async fn execution(&self, execution: ExecutionId) -> Result<wire::Execution, Error>;
    /// The rounds of an execution of the caller's own, the oldest first; those of one millisecond in any order.
    async fn rounds_of(&self, execution: ExecutionId) -> Result<Vec<wire::Round>, Error>;
    /// Has a grant stand in for a person, where the rules ask about a call and somebody has granted it: its use is stored
    /// when this returns, for this caller's call. None where nobody has. It is for the caller to judge the call first;
    /// what its rules deny must not run whatever this says.
    async fn use_grant(&self, call: &GrantUse) -> Result<Option<GrantId>, Error>;
    /// The digest of the definition under which a tool, `server:name`, was last reviewed for this caller, in whatever
    /// process; none of one that is new to it. [`Step::Reviewed`] stores the next.
    async fn reviewed(&self, tool: &str) -> Result<Option<Digest>, Error>;
    /// Passes on what a person told this agent, as the answer to a round of its own: recorded as the agent's, through
    /// [`sayso_core::principal::Channel::Relay`]. Forbidden unless whoever opened the store trusts agents with that, and
    /// always where a second person is needed. A repeat under its key finds the same record.
    async fn relay(&self, round: RoundId, answer: Answer, key: &str) -> Result<wire::Round, Error>;
    /// Ends an unfinished round whose holder is gone: its lease has run out, and `expected` is its token.
    async fn fail_recovery(&self, round: RoundId, expected: FenceToken) -> Result<wire::Round, Error>;
    /// This worker has settled all it held and leaves.
    async fn leave(&self) -> Result<(), Error>;
}
