//! The rows of one transaction in memory: what was loaded, what the batch has changed so far, and what one unit changes,
//! each a layer over the one before. Dropping a layer undoes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use sayso_core::command::{Creation, DeliveryContent, Operation, Token, TokenUse, View, Write};
use sayso_core::event::NewEvent;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Round};
use sayso_core::time::UnixMs;

use super::keys::Key;
use super::value::{Corrupt, Found};

/// What was created under a key: the round, and the fingerprint of what it asked.
pub(super) type Created = (RoundId, [u8; 32]);

/// A definition that was reviewed, and when.
pub(super) type Review = (Digest, UnixMs);

/// Rows by their keys. A key that is not there has not been looked at; `None` is a row that is not there.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) rounds: HashMap<RoundId, Found<Arc<Round>>>,
    pub(super) executions: HashMap<ExecutionId, Found<Arc<Execution>>>,
    /// How often the row of an execution had been written when it was loaded.
    pub(super) revs: HashMap<ExecutionId, i64>,
    /// Executions that something was decided by; an answer is accepted whatever its execution says.
    pub(super) decisive: HashSet<ExecutionId>,
    pub(super) owners: HashMap<String, Option<UnixMs>>,
    pub(super) answers: HashMap<RoundId, Found<Json>>,
    pub(super) request_states: HashMap<RoundId, Option<String>>,
    pub(super) operations: HashMap<(ExecutionId, String), Found<Operation>>,
    pub(super) creations: HashMap<(String, String), Found<Created>>,
    pub(super) tokens: HashMap<TokenId, Found<Token>>,
    pub(super) grants: HashMap<GrantId, Found<Grant>>,
    pub(super) tokens_by_hash: HashMap<[u8; 32], Option<TokenId>>,
    /// By principal, every unrevoked session and one-time link.
    pub(super) sessions: HashMap<String, BTreeSet<TokenId>>,
    /// By agent and tool, the reviewed definition and when it was.
    pub(super) reviewed: HashMap<(String, String), Found<Review>>,
    /// By agent, how many of its tools are stored.
    pub(super) tools_reviewed: HashMap<String, usize>,
    /// Rounds of an execution; of one in `complete`, every unfinished one is among them.
    pub(super) members: HashMap<ExecutionId, BTreeSet<RoundId>>,
    pub(super) complete: HashSet<ExecutionId>,
    /// Executions that began in this batch: nothing of them is stored.
    pub(super) begun: HashSet<ExecutionId>,
}

/// What is written once and not looked at as rows.
#[derive(Default)]
pub(super) struct Once {
    pub(super) requests: Vec<Requests>,
    pub(super) erased: HashSet<RoundId>,
    pub(super) answers: Vec<(RoundId, Json, Json)>,
    pub(super) creations: Vec<(String, Creation, RoundId)>,
    pub(super) results: Vec<(ExecutionId, Json)>,
    pub(super) details: Vec<(RoundId, Json)>,
    pub(super) events: Vec<NewEvent>,
}

/// What a new round asks.
pub(super) struct Requests {
    pub(super) round: RoundId,
    pub(super) requests: Json,
    pub(super) calls: Json,
    pub(super) suggestion_of: Option<RoundId>,
    pub(super) request_state: Option<String>,
}

/// What a unit, or a batch of them, changes.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) rows: Rows,
    pub(super) once: Once,
    /// Executions of which only the counts of pending rounds have changed, which no row holds.
    pub(super) recounted: HashMap<ExecutionId, Arc<Execution>>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        let Self { rows, once, recounted: _ } = self;
        rows.rounds.is_empty()
            && rows.executions.is_empty()
            && rows.owners.is_empty()
            && rows.tokens.is_empty()
            && rows.grants.is_empty()
            && rows.reviewed.is_empty()
            && once.results.is_empty()
            && once.events.is_empty()
    }

    pub(super) fn record(&mut self, write: Write) {
        let Self { rows, once, .. } = self;
        match write {
            Write::NewRound { round, requests, calls, suggestion_of, request_state } => {
                let id = round.id;
                rows.note_round(round);
                rows.note_new_round(id, request_state.clone());
                once.requests.push(Requests { round: id, requests, calls, suggestion_of, request_state });
            }
            Write::Round(round) => rows.note_round(round),
            Write::Details { round, details } => once.details.push((round, details)),
            Write::EraseRequestState(round) => {
                rows.request_states.insert(round, None);
                once.erased.insert(round);
            }
            Write::Answer { round, submitted, effective } => {
                rows.answers.insert(round, Ok(Some(effective.clone())));
                once.answers.push((round, submitted, effective));
            }
            Write::Creation { principal, creation, round } => {
                let principal = principal.to_string();
                let key = (principal.clone(), creation.key.clone());
                rows.creations.insert(key, Ok(Some((round, creation.fingerprint))));
                once.creations.push((principal, creation, round));
            }
            Write::NewExecution(execution) | Write::Execution(execution) => {
                rows.executions.insert(execution.id, Ok(Some(execution)));
            }
            Write::Result { execution, result } => once.results.push((execution, result)),
            Write::Owner { owner, expires_at } => drop(rows.owners.insert(owner, expires_at)),
            Write::Token(token) => {
                rows.tokens_by_hash.insert(token.hash, Some(token.id));
                rows.tokens.insert(token.id, Ok(Some(*token)));
            }
            Write::Grant(grant) => drop(rows.grants.insert(grant.id, Ok(Some(*grant)))),
            Write::Reviewed { by, tool, definition, at } => {
                rows.reviewed.insert((by.to_string(), tool), Ok(Some((definition, at))));
            }
            Write::Event(event) => once.events.push(event),
        }
    }

    /// Keeps what a unit has changed.
    pub(super) fn absorb(&mut self, unit: Self) {
        let Self { rows, once, .. } = self;
        rows.rounds.extend(unit.rows.rounds);
        rows.executions.extend(unit.rows.executions);
        rows.owners.extend(unit.rows.owners);
        rows.answers.extend(unit.rows.answers);
        rows.request_states.extend(unit.rows.request_states);
        rows.operations.extend(unit.rows.operations);
        rows.creations.extend(unit.rows.creations);
        rows.tokens.extend(unit.rows.tokens);
        rows.grants.extend(unit.rows.grants);
        rows.reviewed.extend(unit.rows.reviewed);
        rows.tokens_by_hash.extend(unit.rows.tokens_by_hash);
        for (execution, members) in unit.rows.members {
            rows.members.entry(execution).or_default().extend(members);
        }
        once.requests.extend(unit.once.requests);
        once.erased.extend(unit.once.erased);
        once.answers.extend(unit.once.answers);
        once.creations.extend(unit.once.creations);
        once.results.extend(unit.once.results);
        once.details.extend(unit.once.details);
        once.events.extend(unit.once.events);
    }

    /// Sets apart executions of which nothing that is stored has changed. One that got a round is written all the same:
    /// whoever remembers its unfinished rounds finds by that that there are others.
    pub(super) fn leave_out_recounted(&mut self, loaded: &Rows) {
        let Self { rows, once, recounted } = self;
        let asked = once.requests.iter().filter_map(|new| rows.rounds.get(&new.round)?.as_ref().ok()?.as_ref());
        let asking: HashSet<ExecutionId> = asked.map(|round| round.execution_id).collect();
        let is_as_stored =
            |id: &ExecutionId, found: &mut Found<Arc<Execution>>| match (found, loaded.executions.get(id)) {
                (Ok(Some(row)), Some(Ok(Some(before)))) => !asking.contains(id) && stored(row) == stored(before),
                _ => false,
            };
        let same = rows.executions.extract_if(is_as_stored);
        recounted.extend(same.filter_map(|(id, found)| Some((id, found.ok()??))));
    }
}

/// What can change of an execution's row.
fn stored(row: &Execution) -> impl PartialEq + '_ {
    (&row.owner, row.ends_with_round, row.finished_at, &row.outcome, row.collected_at)
}

impl Rows {
    /// A new round has its row written before what it asks, and is the last of its operation.
    fn note_round(&mut self, round: Arc<Round>) {
        self.members.entry(round.execution_id).or_default().insert(round.id);
        self.rounds.insert(round.id, Ok(Some(round)));
    }

    fn note_new_round(&mut self, id: RoundId, request_state: Option<String>) {
        self.answers.insert(id, Ok(None));
        self.request_states.insert(id, request_state);
        if let Some(Ok(Some(round))) = self.rounds.get(&id) {
            let operation = Operation {
                last_index: round.index,
                server: round.server.clone(),
                operation_kind: round.operation_kind,
                operation_name: round.operation_name.clone(),
            };
            let key = (round.execution_id, round.logical_operation_id.clone());
            self.operations.insert(key, Ok(Some(operation)));
        }
    }
}

/// Why a look came to nothing.
#[derive(Debug)]
pub(super) enum Miss {
    /// The row has not been loaded.
    Needs(Key),
    /// The row cannot be read.
    Corrupt(&'static str),
}

impl From<Corrupt> for Miss {
    fn from(Corrupt(what): Corrupt) -> Self {
        Self::Corrupt(what)
    }
}

/// What one unit sees: its own changes over those of the batch over what was loaded.
pub(super) struct Layers<'a> {
    pub(super) unit: &'a Rows,
    pub(super) batch: &'a Rows,
    pub(super) loaded: &'a Rows,
}

impl<'a> Layers<'a> {
    fn all(&self) -> [&'a Rows; 3] {
        [self.unit, self.batch, self.loaded]
    }

    fn find<T: 'a>(&self, look: impl FnMut(&'a Rows) -> Option<&'a T>) -> Option<&'a T> {
        self.all().into_iter().find_map(look)
    }

    fn row<T: Clone + 'a>(
        &self,
        look: impl FnMut(&'a Rows) -> Option<&'a Found<T>>,
        key: impl FnOnce() -> Key,
    ) -> Result<Option<T>, Miss> {
        match self.find(look) {
            Some(found) => Ok(found.clone()?),
            None => Err(Miss::Needs(key())),
        }
    }
}

impl View for Layers<'_> {
    type Error = Miss;

    fn round(&self, id: RoundId) -> Result<Option<Arc<Round>>, Miss> {
        self.row(|rows| rows.rounds.get(&id), || Key::Round(id))
    }

    fn unfinished_rounds(&self, execution: ExecutionId) -> Result<Vec<Round>, Miss> {
        let loaded = self.loaded;
        if !loaded.complete.contains(&execution) && !loaded.begun.contains(&execution) {
            return Err(Miss::Needs(Key::Unfinished(execution)));
        }
        let members: BTreeSet<RoundId> =
            self.all().iter().filter_map(|rows| rows.members.get(&execution)).flatten().copied().collect();
        let mut unfinished = Vec::new();
        for id in members {
            let round = self.round(id)?.filter(|round| !round.status.is_finished());
            unfinished.extend(round.map(Arc::unwrap_or_clone));
        }
        Ok(unfinished)
    }

    fn operation(&self, execution: ExecutionId, operation: &str) -> Result<Option<Operation>, Miss> {
        let key = (execution, operation.to_owned());
        match self.find(|rows| rows.operations.get(&key)) {
            Some(found) => Ok(found.clone()?),
            None if self.loaded.begun.contains(&execution) => Ok(None),
            None => Err(Miss::Needs(Key::Operation(key.0, key.1))),
        }
    }

    fn creation(&self, principal: &Principal, key: &str) -> Result<Option<Created>, Miss> {
        let key = (principal.to_string(), key.to_owned());
        self.row(|rows| rows.creations.get(&key), || Key::Creation(key.0.clone(), key.1.clone()))
    }

    fn execution(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, Miss> {
        self.row(|rows| rows.executions.get(&id), || Key::Execution(id))
    }

    fn owner(&self, owner: &str) -> Result<Option<UnixMs>, Miss> {
        self.find(|rows| rows.owners.get(owner)).copied().ok_or_else(|| Miss::Needs(Key::Owner(owner.to_owned())))
    }

    fn content(&self, id: RoundId) -> Result<Option<DeliveryContent>, Miss> {
        let needs = || Miss::Needs(Key::Content(id));
        let Some(responses) = self.find(|rows| rows.answers.get(&id)).ok_or_else(needs)?.clone()? else {
            return Ok(None);
        };
        let request_state = self.find(|rows| rows.request_states.get(&id)).ok_or_else(needs)?.clone();
        Ok(Some(DeliveryContent { responses, request_state }))
    }

    fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Token>, Miss> {
        let found = self.find(|rows| rows.tokens_by_hash.get(hash)).ok_or(Miss::Needs(Key::TokenByHash(*hash)))?;
        found.map_or(Ok(None), |id| self.token(id))
    }

    fn token(&self, id: TokenId) -> Result<Option<Token>, Miss> {
        self.row(|rows| rows.tokens.get(&id), || Key::Token(id))
    }

    fn grant(&self, id: GrantId) -> Result<Option<Grant>, Miss> {
        self.row(|rows| rows.grants.get(&id), || Key::Grant(id))
    }

    fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Miss> {
        let key = (by.to_string(), tool.to_owned());
        let found = self.row(|rows| rows.reviewed.get(&key), || Key::Reviewed(key.0.clone(), key.1.clone()))?;
        Ok(found.map(|(definition, _)| definition))
    }

    fn tools_reviewed(&self, by: &Principal) -> Result<usize, Miss> {
        let agent = by.to_string();
        let Some(stored) = self.loaded.tools_reviewed.get(&agent) else {
            return Err(Miss::Needs(Key::ToolsReviewed(agent)));
        };
        let written: BTreeSet<_> = [self.unit, self.batch].into_iter().flat_map(|rows| rows.reviewed.keys()).collect();
        let is_new =
            |key: &&&(String, String)| key.0 == agent && matches!(self.loaded.reviewed.get(**key), Some(Ok(None)));
        Ok(stored.saturating_add(written.iter().filter(is_new).count()))
    }

    fn sessions(&self, principal: &Principal) -> Result<Vec<Token>, Miss> {
        let name = principal.to_string();
        let stored = self.loaded.sessions.get(&name).ok_or(Miss::Needs(Key::Sessions(name)))?;
        let is_theirs = |token: &Token| token.principal == *principal && token.use_ != TokenUse::Api;
        let written = [self.unit, self.batch].into_iter().flat_map(|rows| rows.tokens.values());
        let written = written.filter_map(|found| found.as_ref().ok()?.as_ref()).filter(|token| is_theirs(token));
        let ids: BTreeSet<TokenId> = stored.iter().copied().chain(written.map(|token| token.id)).collect();
        let mut sessions = Vec::new();
        for id in ids {
            sessions.extend(self.token(id)?.filter(|token| token.revoked_at.is_none()));
        }
        Ok(sessions)
    }
}
