//! The maps, what is written into them, and what core reads of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use sayso_core::command::{Creation, DeliveryContent, Operation, Token, TokenUse, View, Write};
use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Round};
use sayso_core::time::UnixMs;

use crate::StoredAnswer;

/// What a round asks, kept as it came.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) requests: Json,
    pub(super) calls: Json,
    pub(super) suggestion_of: Option<RoundId>,
}

#[derive(Clone, Default)]
pub(super) struct Tables {
    pub(super) rounds: BTreeMap<RoundId, Round>,
    pub(super) requests: BTreeMap<RoundId, Requests>,
    pub(super) request_states: BTreeMap<RoundId, String>,
    pub(super) details: BTreeMap<RoundId, Json>,
    pub(super) answers: BTreeMap<RoundId, StoredAnswer>,
    pub(super) creations: BTreeMap<(String, String), (RoundId, [u8; 32])>,
    pub(super) executions: BTreeMap<ExecutionId, Arc<Execution>>,
    pub(super) results: BTreeMap<ExecutionId, Json>,
    pub(super) owners: BTreeMap<String, UnixMs>,
    pub(super) tokens: BTreeMap<TokenId, Token>,
    pub(super) grants: BTreeMap<GrantId, Grant>,
    /// By agent, the definitions of its tools.
    pub(super) reviewed: BTreeMap<String, BTreeMap<String, Digest>>,
    pub(super) events: Vec<Event>,
}

impl Tables {
    /// A second answer, result or creation is a fault of core: refused before anything of its command is written, as
    /// the unique keys of a database would.
    pub(super) fn check_written_once(&self, writes: &[Write]) -> Result<(), Error> {
        let is_there = |write: &Write| match write {
            Write::NewRound { round, .. } => self.requests.contains_key(&round.id),
            Write::NewExecution(execution) => self.executions.contains_key(&execution.id),
            Write::Answer { round, .. } => self.answers.contains_key(round),
            Write::Details { round, .. } => self.details.contains_key(round),
            Write::Creation { principal, creation, .. } => {
                self.creations.contains_key(&(principal.to_string(), creation.key.clone()))
            }
            Write::Result { execution, .. } => self.results.contains_key(execution),
            _ => false,
        };
        if writes.iter().any(is_there) {
            return Err(Error::Unavailable("what is written once is there already; nothing was changed".to_owned()));
        }
        Ok(())
    }

    pub(super) fn write(&mut self, write: Write) {
        match write {
            Write::Round(round) => drop(self.rounds.insert(round.id, Arc::unwrap_or_clone(round))),
            Write::NewRound { round, requests, calls, suggestion_of, request_state } => {
                self.requests.insert(round.id, Requests { requests, calls, suggestion_of });
                if let Some(state) = request_state {
                    self.request_states.insert(round.id, state);
                }
                self.rounds.insert(round.id, Arc::unwrap_or_clone(round));
            }
            Write::Details { round, details } => drop(self.details.insert(round, details)),
            Write::EraseRequestState(round) => drop(self.request_states.remove(&round)),
            Write::Answer { round, submitted, effective } => {
                self.answers.insert(round, StoredAnswer { submitted, effective });
            }
            Write::Creation { principal, creation: Creation { key, fingerprint }, round } => {
                self.creations.insert((principal.to_string(), key), (round, fingerprint));
            }
            Write::NewExecution(execution) | Write::Execution(execution) => {
                self.executions.insert(execution.id, execution);
            }
            Write::Result { execution, result } => drop(self.results.insert(execution, result)),
            Write::Owner { owner, expires_at: Some(until) } => drop(self.owners.insert(owner, until)),
            Write::Owner { owner, expires_at: None } => drop(self.owners.remove(&owner)),
            Write::Token(token) => drop(self.tokens.insert(token.id, *token)),
            Write::Grant(grant) => drop(self.grants.insert(grant.id, *grant)),
            Write::Reviewed { by, tool, definition, .. } => {
                self.reviewed.entry(by.to_string()).or_default().insert(tool, definition);
            }
            Write::Event(event) => {
                let previous = self.events.last().map_or([0; 32], |last| last.hash);
                self.events.push(Event::chained(event, self.last_event().saturating_add(1), previous));
            }
        }
    }
}

impl Tables {
    /// The definition under which an agent's tool was last reviewed.
    pub(super) fn definition(&self, by: &Principal, tool: &str) -> Option<Digest> {
        self.reviewed.get(&by.to_string())?.get(tool).copied()
    }
}

impl View for Tables {
    type Error = Infallible;
    fn round(&self, id: RoundId) -> Result<Option<Arc<Round>>, Infallible> {
        Ok(self.rounds.get(&id).cloned().map(Arc::new))
    }
    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, Infallible> {
        Ok(self.unfinished(execution).cloned().collect())
    }
    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, Infallible> {
        let of_it = |round: &&Round| round.execution_id == execution && round.logical_operation_id == operation;
        Ok(self.rounds.values().filter(of_it).max_by_key(|round| round.index).map(|round| Operation {
            last_index: round.index,
            server: round.server.clone(),
            operation_kind: round.operation_kind,
            operation_name: round.operation_name.clone(),
        }))
    }
    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<(RoundId, [u8; 32])>, Infallible> {
        Ok(self.creations.get(&(principal.to_string(), key.to_owned())).copied())
    }
    fn execution(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, Infallible> {
        Ok(self.executions.get(&id).cloned())
    }
    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, Infallible> {
        Ok(self.owners.get(owner).copied())
    }
    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, Infallible> {
        let request_state = self.request_states.get(&id).cloned();
        let content = |found: &StoredAnswer| DeliveryContent { responses: found.effective.clone(), request_state };
        Ok(self.answers.get(&id).map(content))
    }
    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, Infallible> {
        Ok(self.token_of(hash))
    }
    fn token(&self, id: TokenId) -> Result<Option<Token>, Infallible> {
        Ok(self.tokens.get(&id).cloned())
    }
    fn grant(&self, id: GrantId) -> Result<Option<Grant>, Infallible> {
        Ok(self.grants.get(&id).cloned())
    }
    fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Infallible> {
        Ok(self.definition(by, tool))
    }
    fn tools_reviewed(&self, by: &Principal) -> Result<usize, Infallible> {
        Ok(self.reviewed.get(&by.to_string()).map_or(0, BTreeMap::len))
    }
    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, Infallible> {
        let is_its =
            |token: &&Token| token.principal == *principal && token.use_ != TokenUse::Api && token.revoked_at.is_none();
        Ok(self.tokens.values().filter(is_its).cloned().collect())
    }
}
