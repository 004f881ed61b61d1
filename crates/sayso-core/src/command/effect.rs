//! What deciding a command reads, writes and answers.

use super::{Creation, Token};
use std::sync::Arc;

use crate::error::Error;
use crate::event::NewEvent;
use crate::execution::Execution;
use crate::id::{ExecutionId, GrantId, RoundId, TokenId};
use crate::json::Json;
use crate::policy::Grant;
use crate::principal::Principal;
use crate::round::{Digest, OperationKind, Round};
use crate::time::UnixMs;

/// What an operation has asked so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The index of its last round.
    pub last_index: u32,
    /// What all its rounds share.
    pub server: String,
    /// What all its rounds share.
    pub operation_kind: OperationKind,
    /// What all its rounds share.
    pub operation_name: String,
}

/// The answer of a round, for whoever delivers it.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryContent {
    /// The effective responses in wire form.
    pub responses: Json,
    /// The asker's opaque state.
    pub request_state: Option<String>,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for DeliveryContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeliveryContent(..)")
    }
}

/// What a command answers with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The round as it is now.
    Round(Arc<Round>),
    /// A created round; `is_new` is false where the creation was a repeat.
    Created {
        /// The round.
        round: Arc<Round>,
        /// Whether this command stored it.
        is_new: bool,
    },
    /// A round that was handed over, with its answer.
    Handed {
        /// The round.
        round: Arc<Round>,
        /// The answer.
        content: DeliveryContent,
    },
    /// The execution as it is now.
    Execution(Arc<Execution>),
    /// The credential as it is now.
    Token(Box<Token>),
    /// The grant as it is now.
    Grant(Box<Grant>),
    /// Nothing to say.
    Done,
}

/// One thing to write.
#[derive(Clone)]
pub enum Write {
    /// A new round and what it asks.
    NewRound {
        /// The row.
        round: Arc<Round>,
        /// The wire form of the requests.
        requests: Json,
        /// The calls it may be about.
        calls: Json,
        /// An earlier round whose answer is suggested.
        suggestion_of: Option<RoundId>,
        /// The asker's opaque state.
        request_state: Option<String>,
    },
    /// The round's row, changed.
    Round(Arc<Round>),
    /// What its creator wants kept beside a new round, once.
    Details {
        /// The round.
        round: RoundId,
        /// The creator's own facts.
        details: Json,
    },
    /// Forgets the opaque state of a finished round.
    EraseRequestState(RoundId),
    /// What was answered, once.
    Answer {
        /// The round.
        round: RoundId,
        /// As submitted.
        submitted: Json,
        /// As it takes effect.
        effective: Json,
    },
    /// Under which key a round was created.
    Creation {
        /// Whose key.
        principal: Principal,
        /// The key and fingerprint.
        creation: Creation,
        /// The round.
        round: RoundId,
    },
    /// A new execution's row.
    NewExecution(Arc<Execution>),
    /// The execution's row, changed.
    Execution(Arc<Execution>),
    /// What an execution answered, once.
    Result {
        /// The execution.
        execution: ExecutionId,
        /// The raw result.
        result: Json,
    },
    /// A worker's lease; `None` removes it.
    Owner {
        /// The worker.
        owner: String,
        /// Until when it is taken to live.
        expires_at: Option<UnixMs>,
    },
    /// The credential's row, new or changed.
    Token(Box<Token>),
    /// The grant's row, new or changed.
    Grant(Box<Grant>),
    /// Under which definition an agent's tool was last reviewed, new or changed.
    Reviewed {
        /// Whose calls of it that is about.
        by: Principal,
        /// The tool, `server:name`.
        tool: String,
        /// The digest of its definition.
        definition: Digest,
        /// When.
        at: UnixMs,
    },
    /// An event for the chain.
    Event(NewEvent),
}

/// The opaque state never appears in `Debug`.
impl std::fmt::Debug for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NewRound { round, .. } => f.debug_tuple("NewRound").field(round).finish_non_exhaustive(),
            Self::Round(round) => f.debug_tuple("Round").field(round).finish(),
            Self::Details { round, .. } => f.debug_tuple("Details").field(round).finish_non_exhaustive(),
            Self::EraseRequestState(round) => f.debug_tuple("EraseRequestState").field(round).finish(),
            Self::Answer { round, .. } => f.debug_tuple("Answer").field(round).finish_non_exhaustive(),
            Self::Creation { round, .. } => f.debug_tuple("Creation").field(round).finish_non_exhaustive(),
            Self::NewExecution(execution) => f.debug_tuple("NewExecution").field(execution).finish(),
            Self::Execution(execution) => f.debug_tuple("Execution").field(execution).finish(),
            Self::Result { execution, .. } => f.debug_tuple("Result").field(execution).finish_non_exhaustive(),
            Self::Owner { owner, expires_at } => f.debug_tuple("Owner").field(owner).field(expires_at).finish(),
            Self::Token(token) => f.debug_tuple("Token").field(token).finish(),
            Self::Grant(grant) => f.debug_tuple("Grant").field(&grant.id).finish_non_exhaustive(),
            Self::Reviewed { by, tool, .. } => {
                f.debug_struct("Reviewed").field("by", by).field("tool", tool).finish_non_exhaustive()
            }
            Self::Event(event) => f.debug_tuple("Event").field(event).finish(),
        }
    }
}

/// What [`apply`](super::apply()) may read. Reads see what earlier commands of the same transaction wrote.
pub trait View {
    /// Why a read failed.
    type Error;
    /// A round's row.
    fn round(&self, id: RoundId) -> Result<Option<Arc<Round>>, Self::Error>;
    /// The rows of an execution's unfinished rounds.
    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, Self::Error>;
    /// What an operation has asked so far.
    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, Self::Error>;
    /// The round that a principal created under a key, with the fingerprint of what it asked.
    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<(RoundId, [u8; 32])>, Self::Error>;
    /// An execution's row.
    fn execution(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, Self::Error>;
    /// Until when a worker is taken to live.
    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, Self::Error>;
    /// A round's effective answer and opaque state.
    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, Self::Error>;
    /// A credential by the hash of its secret.
    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, Self::Error>;
    /// A credential by its id.
    fn token(&self, id: TokenId) -> Result<Option<Token>, Self::Error>;
    /// A grant by its id.
    fn grant(&self, id: GrantId) -> Result<Option<Grant>, Self::Error>;
    /// The definition under which an agent's tool was last reviewed.
    fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Self::Error>;
    /// Of how many tools that is known, for this agent.
    fn tools_reviewed(&self, by: &Principal) -> Result<usize, Self::Error>;
    /// The unrevoked sessions and one-time links of a principal.
    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, Self::Error>;
}

/// What a command comes to: what to write, and what to answer. A refusal may write too (an expiry, an event).
#[derive(Debug)]
pub struct Applied {
    /// To be written in this order, in the same transaction.
    pub writes: Vec<Write>,
    /// The answer to the caller.
    pub reply: Result<Reply, Error>,
}
