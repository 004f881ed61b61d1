use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::limits::WAIT_MS_MAX;
use sayso_core::round::Status;
use sayso_core::wire::{Answer, Keyed};
use sayso_store::RoundFilter;
use tokio::sync::watch;
use tokio::time::Instant;

use super::store::KitStore;
use crate::storage::{ElicitationResponse, PendingElicitationRound};

/// Where an execution stands.
pub use sayso_core::execution::Lifecycle as ExecutionStatus;
/// A snapshot of an execution.
pub use sayso_core::wire::Execution as ExecutionState;
/// A finished execution with what it answered.
pub use sayso_core::wire::ExecutionResult;

/// An execution in this process, as its supervisor and its handles share it.
pub(super) struct Live {
    /// Whether it is to stop.
    pub stop: watch::Sender<bool>,
    /// How it stands, for executions that are kept nowhere else.
    pub state: watch::Sender<ExecutionResult>,
}

#[derive(Clone)]
pub(super) enum Record {
    /// Kept in a store; live if it runs in this process.
    Stored(KitStore, Option<Arc<Live>>),
    /// Kept in this process alone.
    Unstored(Arc<Live>),
}

/// One execution: what it asks, how it stands, and what it came to. Cheap to clone; dropping it stops nothing.
#[derive(Clone)]
pub struct ExecutionHandle {
    id: ExecutionId,
    record: Record,
}

impl std::fmt::Debug for ExecutionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutionHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ExecutionHandle {
    pub(super) fn new(id: ExecutionId, record: Record) -> Self {
        Self { id, record }
    }

    /// Whether it may still run in this process.
    pub(super) fn is_running_here(&self) -> bool {
        match &self.record {
            Record::Stored(_, Some(live)) | Record::Unstored(live) => live.state.borrow().execution.outcome.is_none(),
            Record::Stored(_, None) => false,
        }
    }

    /// Returns once it no longer runs in this process.
    pub(super) async fn gone(&self) {
        if let Record::Stored(_, Some(live)) | Record::Unstored(live) = &self.record {
            // The sender lives as long as this handle, so this only returns once it has ended.
            let _ = live.state.subscribe().wait_for(|state| state.execution.outcome.is_some()).await;
        }
    }

    /// The execution's id.
    pub fn execution_id(&self) -> ExecutionId {
        self.id
    }

    /// Every round that waits for a person, by operation and index.
    pub async fn pending_rounds(&self) -> Result<Vec<PendingElicitationRound>, Error> {
        let Record::Stored(store, _) = &self.record else { return Ok(Vec::new()) };
        let filter = RoundFilter { execution: Some(self.id), status: Some(Status::Pending), ..RoundFilter::default() };
        let mut rounds = store.people.list(filter).await?.rounds;
        rounds.sort_by(|a, b| (&a.logical_operation_id, a.round_index).cmp(&(&b.logical_operation_id, b.round_index)));
        Ok(rounds.into_iter().map(PendingElicitationRound::from).collect())
    }

    /// The one round that waits for a person, if any; a state error that names them all where there are several.
    pub async fn pending_elicitation(&self) -> Result<Option<PendingElicitationRound>, Error> {
        let mut rounds = self.pending_rounds().await?;
        if rounds.len() > 1 {
            let ids: Vec<_> = rounds.iter().map(|round| round.round_id.to_string()).collect();
            let detail = format!("{} rounds are pending: {}", rounds.len(), ids.join(", "));
            return Err(Error::State { detail, status: Status::Pending, failure: None });
        }
        Ok(rounds.pop())
    }

    /// Answers a round of this execution, bound to what it asks. The same answer under the same key may be sent again.
    pub async fn respond_elicitation<K: Into<String>>(
        &self,
        round_id: RoundId,
        responses: impl IntoIterator<Item = (K, ElicitationResponse)>,
        idempotency_key: &str,
    ) -> Result<(), Error> {
        let Record::Stored(store, _) = &self.record else { return Err(Error::NotFound("round")) };
        let round = store.people.show(round_id).await?;
        if round.execution_id != self.id {
            return Err(Error::NotFound("round"));
        }
        let responses = Keyed(responses.into_iter().map(|(key, response)| (key.into(), response)).collect());
        // What a round asks never changes, so its digest is that of what this handle has shown.
        let answer = Answer { digest: Some(round.digest), responses };
        store.people.answer(round_id, answer, idempotency_key).await.map(drop)
    }

    /// How the execution stands.
    pub async fn snapshot(&self) -> Result<ExecutionState, Error> {
        match &self.record {
            Record::Stored(store, _) => store.desk.execution(self.id).await,
            Record::Unstored(live) => Ok(live.state.borrow().execution.clone()),
        }
    }

    /// Waits for the execution to finish, at most for `timeout`, then [`Error::Timeout`]; the execution goes on.
    pub async fn result(&self, timeout: Option<Duration>) -> Result<ExecutionResult, Error> {
        match &self.record {
            Record::Stored(store, _) => self.stored_result(store, timeout).await,
            Record::Unstored(live) => {
                let mut state = live.state.subscribe();
                let finished = state.wait_for(|state| state.execution.outcome.is_some());
                match timeout {
                    Some(timeout) => tokio::time::timeout(timeout, finished).await.map_err(|_| Error::Timeout)?,
                    None => finished.await,
                }
                .map(|state| state.clone())
                .map_err(|_| Error::Unavailable("the kit has been closed".to_owned()))
            }
        }
    }

    async fn stored_result(&self, store: &KitStore, timeout: Option<Duration>) -> Result<ExecutionResult, Error> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let longest = Duration::from_millis(WAIT_MS_MAX);
            let left = until.map_or(longest, |until| until.saturating_duration_since(Instant::now()).min(longest));
            match store.desk.result(self.id, left).await {
                Err(Error::Timeout) if until.is_none_or(|until| Instant::now() < until) => {}
                outcome => return outcome,
            }
        }
    }

    /// Cancels the execution; its pending rounds fail as `cancelled`. One that has finished stays as it is.
    pub async fn cancel(&self) -> Result<(), Error> {
        let live = match &self.record {
            Record::Unstored(live) => Some(live),
            Record::Stored(store, live) => {
                if let Err(error) = store.people.cancel(self.id).await {
                    let is_over = matches!(error, Error::Conflict { .. }) && self.snapshot().await?.outcome.is_some();
                    if !is_over {
                        return Err(error);
                    }
                }
                live.as_ref()
            }
        };
        if let Some(live) = live {
            live.stop.send_replace(true);
        }
        Ok(())
    }
}
