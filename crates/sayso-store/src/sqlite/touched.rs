//! What a transaction changed, for those who wait.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use sayso_core::command::Write;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::Round;

use crate::{ChangedRound, Hints};

/// What a transaction changed, for the hints after its commit.
#[derive(Default)]
pub(super) struct Touched {
    rounds: HashMap<RoundId, Arc<Round>>,
    executions: HashSet<ExecutionId>,
    pub(super) last_event: u64,
    events: bool,
    /// The version of the store that the transaction began with.
    pub(super) seen_version: Option<i64>,
}

impl Touched {
    pub(super) fn note(&mut self, write: &Write) {
        match write {
            Write::NewRound { round, .. } | Write::Round(round) => {
                self.rounds.insert(round.id, round.clone());
            }
            Write::NewExecution(execution) | Write::Execution(execution) => {
                self.executions.insert(execution.id);
            }
            Write::Event(_) => self.events = true,
            _ => {}
        }
    }

    pub(super) fn tell(&self, hints: &dyn Hints) {
        if self.events || !self.rounds.is_empty() || !self.executions.is_empty() {
            let changed = |(id, row): (&RoundId, &Arc<Round>)| ChangedRound { id: *id, row: Some(row.clone()) };
            let rounds: Vec<_> = self.rounds.iter().map(changed).collect();
            let executions: Vec<_> = self.executions.iter().copied().collect();
            hints.changed(&rounds, &executions, self.last_event);
        }
    }
}
