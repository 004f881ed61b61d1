//! A store that is a few maps: what core decides is written as told, and nothing else. Nothing of it is kept, so it is
//! for tests: the suite runs on it, and simulators do, which open it thousands of times.

mod reads;
mod tables;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sayso_core::command::{Command, Reply, Token, Write, apply};
use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;

use crate::clock::Clock;
use crate::{
    Abandoned, ChangedRound, ExecutionFilter, GrantFilter, Hints, Observing, RoundFilter, Store, StoredAnswer,
    StoredRound,
};

use tables::Tables;

/// What several [`MemoryStore`] objects share, as several processes share a file. It lives as long as one of them.
#[derive(Clone, Default)]
pub struct MemoryData(Arc<Shared>);

#[derive(Default)]
struct Shared {
    tables: Mutex<Tables>,
    listening: Mutex<Vec<(u64, Arc<dyn Hints>)>>,
}

/// A store in memory; see the module.
pub struct MemoryStore {
    data: MemoryData,
    clock: Arc<dyn Clock>,
    hints: Option<Arc<dyn Hints>>,
    /// Its place among the listeners.
    number: u64,
}

impl MemoryStore {
    /// One more store object on `data`, as another process would have. It hears of its own commits and of others'.
    pub fn open(data: &MemoryData, clock: Arc<dyn Clock>, hints: Option<Arc<dyn Hints>>) -> Self {
        let mut listening = data.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        let number = listening.last().map_or(1, |(last, _)| last.saturating_add(1));
        if let Some(hints) = &hints {
            listening.push((number, hints.clone()));
        }
        Self { data: data.clone(), clock, hints, number }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.data.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies one unit: all of it or none of it.
    fn run(&self, unit: &[Command], touched: &mut Touched) -> Result<Vec<Reply>, Error> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let before = (unit.len() > 1).then(|| tables.clone());
        let mut replies = Vec::with_capacity(unit.len());
        for command in unit {
            let reply = match tables.decide(command, now, touched) {
                Ok(reply) => reply,
                Err(error) => {
                    if let Some(before) = before {
                        *tables = before;
                        *touched = Touched::default();
                    }
                    return Err(error);
                }
            };
            replies.push(reply);
        }
        touched.last_event = tables.last_event();
        Ok(replies)
    }

    /// After the commit, outside any lock.
    fn tell(&self, touched: &Touched) {
        if !touched.anything {
            return;
        }
        if let Some(hints) = &self.hints {
            let rounds: Vec<_> = touched.rounds.iter().copied().map(ChangedRound::from).collect();
            let executions: Vec<_> = touched.executions.iter().copied().collect();
            hints.changed(&rounds, &executions, touched.last_event);
        }
        let listening = self.data.0.listening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (_, hints) in listening.iter().filter(|(number, _)| *number != self.number) {
            hints.changed_elsewhere();
        }
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        let mut listening = self.data.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.retain(|(number, _)| *number != self.number);
    }
}

/// What a unit changed, for the hints.
#[derive(Default)]
struct Touched {
    rounds: BTreeSet<RoundId>,
    executions: BTreeSet<ExecutionId>,
    last_event: u64,
    anything: bool,
}

impl Touched {
    fn note(&mut self, write: &Write) {
        match write {
            Write::NewRound { round, .. } | Write::Round(round) => drop(self.rounds.insert(round.id)),
            Write::NewExecution(execution) | Write::Execution(execution) => drop(self.executions.insert(execution.id)),
            Write::Event(_) => {}
            _ => return,
        }
        self.anything = true;
    }
}

impl Tables {
    /// Decides one command and writes what follows; also what a refusal leaves.
    fn decide(&mut self, command: &Command, now: UnixMs, touched: &mut Touched) -> Result<Reply, Error> {
        let Ok(applied) = apply(self, command, now);
        self.check_written_once(&applied.writes)?;
        for write in applied.writes {
            touched.note(&write);
            self.write(write);
        }
        applied.reply
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error> {
        let mut touched = Touched::default();
        let replies = self.run(&unit, &mut touched);
        self.tell(&touched);
        replies
    }
    async fn now(&self) -> Result<UnixMs, Error> {
        Ok(self.clock.now())
    }
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error> {
        Ok(self.tables().stored_round(id))
    }
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error> {
        Ok(self.tables().stored_rounds(&filter))
    }
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error> {
        Ok(self.tables().details.get(&id).cloned())
    }
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error> {
        Ok(self.tables().request_states.get(&id).cloned())
    }
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error> {
        Ok(self.tables().owners.get(owner).copied())
    }
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error> {
        Ok(self.tables().answer(id))
    }
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error> {
        Ok(self.tables().execution_with_pending(id))
    }
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error> {
        Ok(self.tables().executions(&filter))
    }
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error> {
        Ok(self.tables().result(id))
    }
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error> {
        Ok(self.tables().events_after(seq, limit))
    }
    async fn last_event(&self) -> Result<u64, Error> {
        Ok(self.tables().last_event())
    }
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error> {
        Ok(self.tables().token_of(&hash))
    }
    async fn tokens(&self) -> Result<Vec<Token>, Error> {
        Ok(self.tables().api_tokens())
    }
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error> {
        Ok(self.tables().grants.get(&id).cloned())
    }
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error> {
        Ok(self.tables().listed_grants(&filter))
    }
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error> {
        Ok(self.tables().definition(by, tool))
    }
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error> {
        Ok(self.tables().overdue(now, limit))
    }
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error> {
        Ok(self.tables().next_deadline())
    }
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error> {
        Ok(self.tables().abandoned(now, limit))
    }
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error> {
        Ok(self.tables().last_wait_ms(server))
    }
    /// Others tell of their commits themselves: there is nothing to look for.
    fn observe(&self) -> Observing {
        Observing::new(Arc::new(|| {}))
    }
}
