//! Commands: what can be done to stored state. A store loads what a command touches, lets [`apply`] decide, and writes
//! what it says, all in one transaction; it never knows what a transition means.

mod apply;
mod credentials;
mod effect;
mod executions;
mod grants;
mod reviews;
mod rounds;
mod rulings;
mod token;

pub use apply::apply;
pub use effect::{Applied, DeliveryContent, Operation, Reply, View, Write};
pub use token::{Token, TokenUse};

use crate::execution::{ExecutionKind, Outcome};
use crate::id::{ExecutionId, GrantId, RoundId, TokenId};
use crate::json::Json;
use crate::policy::Grant;
use crate::principal::{Channel, Principal};
use crate::round::{Claim, Delivery, Digest, FailureRequest, Fence, FenceToken, OperationKind, Submission};
use crate::time::UnixMs;

/// The execution a new round belongs to.
#[derive(Debug, Clone)]
pub enum RoundExecution {
    /// One that runs already, started by the same principal.
    Existing(ExecutionId),
    /// One that runs already and suspends: from now on it lives in no worker, and ends with its rounds.
    Suspending(ExecutionId),
    /// A new one, stored in the same transaction.
    New {
        /// Its id.
        id: ExecutionId,
        /// What kind of run it is.
        kind: ExecutionKind,
        /// Whether it is started only for this round and ends with it.
        ends_with_round: bool,
    },
}

/// What a stored round says of its creation: compared when the same creation is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The key it was created under, scoped to the principal.
    pub key: String,
    /// The hash of everything that was asked.
    pub fingerprint: [u8; 32],
}

/// A round to be stored. Its requests have been checked; they travel as the text that will be kept.
#[derive(Clone)]
pub struct NewRound {
    /// Its id.
    pub id: RoundId,
    /// The execution it belongs to.
    pub execution: RoundExecution,
    /// The operation that asks; by default the execution's only one.
    pub logical_operation_id: String,
    /// The server that asks.
    pub server: String,
    /// Tool, prompt or resource.
    pub operation_kind: OperationKind,
    /// Its name.
    pub operation_name: String,
    /// Who asks.
    pub asked_by: Principal,
    /// Live (then with a fence) or resumable (then without).
    pub delivery: Delivery,
    /// The opener of a live round.
    pub fence: Option<Fence>,
    /// Until when an answer is accepted.
    pub deadline: Option<UnixMs>,
    /// How many rounds the operation may have.
    pub limit: u32,
    /// The digest of the requests.
    pub digest: Digest,
    /// Whether a call waits for a verdict in it.
    pub has_approval: bool,
    /// The wire form of the requests, kept byte for byte.
    pub requests: Json,
    /// The calls that this round may be about, as shown to the person.
    pub calls: Json,
    /// An earlier round whose answer is suggested to the person.
    pub suggestion_of: Option<RoundId>,
    /// Opaque state the asker wants back; erased when the round is finished.
    pub request_state: Option<String>,
    /// For a creation that may be repeated.
    pub creation: Option<Creation>,
}

/// The opaque state never appears in `Debug`.
impl std::fmt::Debug for NewRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewRound")
            .field("id", &self.id)
            .field("execution", &self.execution)
            .field("logical_operation_id", &self.logical_operation_id)
            .field("asked_by", &self.asked_by)
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}

/// One change. Everything random or timed in it was drawn outside; "now" is the store's.
#[derive(Debug, Clone)]
pub enum Command {
    /// Stores a question (`create_round`).
    CreateRound(Box<NewRound>),
    /// Stores a question whose place in its operation its caller chose, with what the caller wants kept beside it. The
    /// execution is the one of that id, begun where there is none.
    CreateRecord {
        /// The question. It is repeated under its `creation`, which names its id.
        new: Box<NewRound>,
        /// From 0, within its operation, and past every earlier one.
        index: u32,
        /// The caller's own facts, kept as written.
        details: Option<Json>,
    },
    /// Accepts an answer (`submit_responses`): the only door through which one enters.
    Submit {
        /// The round.
        round: RoundId,
        /// The answer's frame.
        submission: Box<Submission>,
        /// Keys in the round's order, their actions, and whether each is an approval.
        verdicts: Vec<Verdict>,
        /// The map as submitted, in wire form.
        submitted: Json,
        /// The map as it takes effect.
        effective: Json,
    },
    /// Refuses an answer whose payload does not fit, and leaves an event. Key, state and digest are looked at first:
    /// what they forbid is what is refused, and what is reported.
    RecordRefusal {
        /// The round.
        round: RoundId,
        /// The answer's frame; its hash is that of no answer.
        submission: Box<Submission>,
        /// The code of what is wrong with the payload.
        code: &'static str,
    },
    /// Takes a resumable round over (`claim_round`).
    Claim {
        /// The round.
        round: RoundId,
        /// The claim.
        claim: Claim,
    },
    /// Begins to hand the answer over.
    StartDelivery {
        /// The round.
        round: RoundId,
        /// Its holder.
        fence: Fence,
    },
    /// The receipt is in hand.
    MarkDelivered {
        /// The round.
        round: RoundId,
        /// Its holder.
        fence: Fence,
    },
    /// The operation has gone on.
    Resolve {
        /// The round.
        round: RoundId,
        /// Its holder.
        fence: Fence,
    },
    /// Ends a round with a reason.
    Fail {
        /// The round.
        round: RoundId,
        /// By whom and why.
        request: FailureRequest,
    },
    /// Ends a round whose holder is gone.
    FailRecovery {
        /// The round.
        round: RoundId,
        /// The token that was seen.
        expected: FenceToken,
    },
    /// Claims, starts, delivers and resolves at once, for a caller that is its own agent.
    Collect {
        /// The round.
        round: RoundId,
        /// The same key reads the same answer again.
        key: String,
        /// The worker and token to do it under.
        fence: Fence,
    },
    /// Fails a pending round whose deadline has passed.
    Expire {
        /// The round.
        round: RoundId,
    },
    /// Records that the asker called a visit to a URL complete.
    CompleteUrl {
        /// The round.
        round: RoundId,
    },
    /// A worker process lives: extends its lease, and with it those of all its rounds.
    RenewOwner {
        /// The worker.
        owner: String,
    },
    /// A worker process leaves, having settled what it held.
    ReleaseOwner {
        /// The worker.
        owner: String,
    },
    /// Starts a record that lives in a worker, before anything is asked in it.
    StartExecution {
        /// Its id.
        execution: ExecutionId,
        /// What kind of run it is.
        kind: ExecutionKind,
        /// Who starts it.
        started_by: Principal,
        /// The worker.
        owner: String,
    },
    /// Stores how an execution ended, with its result.
    Finish {
        /// The execution.
        execution: ExecutionId,
        /// How it ended.
        outcome: Outcome,
        /// What the operation answered, raw.
        result: Option<Json>,
    },
    /// Notes that the stored result was handed over.
    MarkCollected {
        /// The execution.
        execution: ExecutionId,
    },
    /// Ends an execution whose worker is gone.
    Orphan {
        /// The execution.
        execution: ExecutionId,
        /// The worker that was seen.
        owner: String,
    },
    /// Cancels an execution and its pending rounds.
    Cancel {
        /// The execution.
        execution: ExecutionId,
        /// Who cancels.
        principal: Principal,
    },
    /// Stores a person's word that covers calls to come (`docs/policy.md`, "Grants").
    AddGrant {
        /// The grant. The store's clock says when it was given; uses and revocation begin at none.
        grant: Box<Grant>,
        /// How long it is good for, in milliseconds.
        good_for_ms: Option<i64>,
        /// By which surface it was given.
        channel: Channel,
        /// Who must not have given it: whoever started this execution.
        not_by_starter_of: Option<ExecutionId>,
    },
    /// Has a grant stand in for a person: checked and counted in the same transaction, before the call runs.
    UseGrant {
        /// Which.
        grant: GrantId,
        /// Whose call it is.
        by: Principal,
        /// The execution of the call, where it has one.
        execution: Option<ExecutionId>,
    },
    /// Takes a grant back. A repeat changes nothing.
    RevokeGrant {
        /// Which.
        grant: GrantId,
        /// Who takes it back.
        by: Principal,
        /// By which surface.
        channel: Channel,
    },
    /// Leaves the event of what the policy decided in a person's place.
    RecordRuling {
        /// Whose call it is.
        by: Principal,
        /// What it decided.
        ruling: PolicyRuling,
    },
    /// Takes the definition of a tool as reviewed, whatever was before. What is stored already changes nothing.
    RecordReview {
        /// Whose calls of it that is about.
        by: Principal,
        /// The tool, `server:name`.
        tool: String,
        /// The digest of its definition.
        definition: Digest,
    },
    /// Stores a credential's hash.
    AddToken {
        /// The credential; its `created_at` is set by the store's clock.
        token: Token,
        /// How long it is good for, in milliseconds.
        good_for_ms: Option<i64>,
        /// Who made it.
        by: Principal,
    },
    /// Revokes a credential.
    RevokeToken {
        /// Which.
        token: TokenId,
        /// Who revokes.
        by: Principal,
    },
    /// Exchanges a one-time link for a browser session.
    UseLogin {
        /// The hash of the link's secret.
        login_hash: [u8; 32],
        /// The session's id.
        session: TokenId,
        /// The hash of the session's secret.
        session_hash: [u8; 32],
    },
}

/// What the policy decided about a call of which nobody was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRuling {
    /// The tool, `server:name`. Of a resource without its address, which may hold a secret.
    pub tool: String,
    /// Whether the mode let it run, or the rules denied it.
    pub approved: bool,
    /// The rule that denied, or that would have asked.
    pub rule: String,
}

/// What one request of a round was answered with, for the audit trail.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The request's key.
    pub request_key: String,
    /// Whether it was a call waiting for a verdict.
    pub is_approval: bool,
    /// Whether it was accepted.
    pub accepted: bool,
}
