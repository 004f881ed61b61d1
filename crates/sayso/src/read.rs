//! Reading rounds and executions, as a caller may see them: persons everything, agents what is their own.

use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::event::Event;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits::{PAGE_ROWS_MAX, WAIT_MS_MAX};
use sayso_core::principal::{Principal, PrincipalKind};
use sayso_core::round::Round;
use sayso_core::time::UnixMs;
use sayso_core::wire;
use sayso_store::{ExecutionFilter, RoundFilter, StoredRound};
use tokio::time::{Instant, timeout_at};

use crate::open::Sayso;
use crate::question::Question;
use crate::waiters::{Awaited, EventFeed, Listener};

/// When a wait of this length is over.
fn until(wait: Duration) -> Instant {
    Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX))
}

/// How long a row that is remembered as unchanged may go unread by whoever waits for its change. Most change sooner, and are
/// never read; where the hint of a change came before it was remembered, the wait is longer by this.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// Until when to wait for a hint: where the row has not been looked at, no longer than that may take.
pub(crate) fn first_look(has_looked: bool, until: Instant) -> Instant {
    if has_looked { until } else { until.min(Instant::now() + LOOK_WITHIN) }
}

/// Whether `caller` may see what `asked_by` asked.
fn may_see(caller: &Principal, asked_by: &Principal) -> bool {
    caller.kind == PrincipalKind::Person || caller == asked_by
}

fn as_wire(stored: &StoredRound) -> Result<wire::Round, Error> {
    Ok(Question::read(stored)?.shown(&stored.row))
}

impl Sayso {
    /// What the round asks, if `caller` may see it; whose it is never changes.
    pub(crate) async fn question(&self, caller: &Principal, id: RoundId) -> Result<Arc<Question>, Error> {
        let question = match self.inner.questions.known(id) {
            Some(question) => question,
            None => {
                let stored = self.store().round(id).await?.ok_or(Error::NotFound("round"))?;
                self.inner.questions.keep(id, Question::read(&stored)?)
            }
        };
        if may_see(caller, &question.asked_by) { Ok(question) } else { Err(Error::NotFound("round")) }
    }

    /// The round's row and what it asks, if `caller` may see it.
    pub(crate) async fn seen_round(&self, caller: &Principal, id: RoundId) -> Result<(Round, Arc<Question>), Error> {
        let question = self.question(caller, id).await?;
        let row = self.store().row(id).await?.ok_or(Error::NotFound("round"))?;
        Ok((row, question))
    }

    /// A round, as `caller` may see it.
    pub async fn round(&self, caller: &Principal, id: RoundId) -> Result<wire::Round, Error> {
        let (row, question) = self.seen_round(caller, id).await?;
        Ok(question.shown(&row))
    }

    /// Waits until the round's `rev` is past `after`, or `wait` (at most 50 s) is over; either way, the round as it is.
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a million may wait")]
    pub fn round_after(
        &self,
        caller: &Principal,
        id: RoundId,
        after: u32,
        wait: Duration,
    ) -> impl Future<Output = Result<wire::Round, Error>> + Send {
        // Looked at before and after, and not held meanwhile. For the same reason nothing large stays in what a waiter keeps.
        async move {
            drop(self.question(caller, id).await?);
            let row = Box::new(self.row_after(id, after, until(wait)).await?);
            Ok(self.question(caller, id).await?.shown(&row))
        }
    }

    /// Whoever waits for a change of the round; registered before its row is read.
    pub(crate) fn listen(&self, id: RoundId) -> Listener {
        self.inner.hub.listen(Awaited::Round(id), self.store())
    }

    /// Waits until the round's `rev` is past `after`, or it is `until`; either way, its row. The caller has seen to it
    /// that it may be seen.
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a million may wait")]
    pub(crate) fn row_after(
        &self,
        id: RoundId,
        after: u32,
        until: Instant,
    ) -> impl Future<Output = Result<Round, Error>> + Send {
        async move {
            let listener = self.listen(id);
            let mut over = false;
            let mut looks = self.store().known_row(id).is_none_or(|row| row.rev > after);
            loop {
                if looks && let Some(row) = self.row_past(id, after, over).await? {
                    return Ok(row);
                }
                match timeout_at(first_look(looks, until), listener.maybe_changed()).await {
                    Ok(Some(row)) if row.rev > after => return Ok(Arc::unwrap_or_clone(row)),
                    Ok(_) => {}
                    // When the wait is over the row is read once more: the hint of a change may have been lost.
                    Err(_) => over = Instant::now() >= until,
                }
                looks = true;
            }
        }
    }

    /// The row as it is stored, if its `rev` is past `after`, or `whichever`. A function of its own: a row that lived in
    /// the loop around this would be kept through the wait.
    async fn row_past(&self, id: RoundId, after: u32, whichever: bool) -> Result<Option<Round>, Error> {
        let row = self.store().row(id).await?.ok_or(Error::NotFound("round"))?;
        Ok((row.rev > after || whichever).then_some(row))
    }

    /// One page of rounds, newest first.
    pub async fn rounds(&self, caller: &Principal, mut filter: RoundFilter) -> Result<wire::RoundPage, Error> {
        let rows = if filter.limit == 0 { PAGE_ROWS_MAX } else { filter.limit.min(PAGE_ROWS_MAX) };
        filter.limit = rows + 1;
        if caller.kind != PrincipalKind::Person {
            filter.asked_by = Some(caller.clone());
        }
        let mut found = self.store().rounds(filter).await?;
        let more = found.len() > rows;
        found.truncate(rows);
        let rounds = found.iter().map(as_wire).collect::<Result<Vec<_>, _>>()?;
        let next_cursor = rounds.last().filter(|_| more).map(|round| round.round_id);
        Ok(wire::RoundPage { rounds, next_cursor })
    }

    /// An execution, as `caller` may see it.
    pub async fn execution(&self, caller: &Principal, id: ExecutionId) -> Result<wire::Execution, Error> {
        let (row, pending) = self.store().execution(id).await?.ok_or(Error::NotFound("execution"))?;
        if !may_see(caller, &row.started_by) {
            return Err(Error::NotFound("execution"));
        }
        Ok(wire::Execution::new(&row, pending))
    }

    /// One page of executions, newest first.
    pub async fn executions(
        &self,
        caller: &Principal,
        mut filter: ExecutionFilter,
    ) -> Result<wire::ExecutionPage, Error> {
        let rows = if filter.limit == 0 { PAGE_ROWS_MAX } else { filter.limit.min(PAGE_ROWS_MAX) };
        filter.limit = rows + 1;
        if caller.kind != PrincipalKind::Person {
            filter.started_by = Some(caller.clone());
        }
        let mut found = self.store().executions(filter).await?;
        let more = found.len() > rows;
        found.truncate(rows);
        let executions: Vec<_> = found.into_iter().map(|(row, pending)| wire::Execution::new(&row, pending)).collect();
        let next_cursor = executions.last().filter(|_| more).map(|execution| execution.execution_id);
        Ok(wire::ExecutionPage { executions, next_cursor })
    }

    /// Waits until the execution is finished, or `wait` (at most 50 s) is over: then `Error::Timeout`.
    pub async fn execution_result(
        &self,
        caller: &Principal,
        id: ExecutionId,
        wait: Duration,
    ) -> Result<wire::ExecutionResult, Error> {
        let until = until(wait);
        let listener = self.inner.hub.listen(Awaited::Execution(id), self.store());
        let mut over = false;
        loop {
            let execution = self.execution(caller, id).await?;
            if execution.outcome.is_some() {
                let result: Option<Json> = self.store().result(id).await?;
                return Ok(wire::ExecutionResult { execution, result });
            }
            if over {
                return Err(Error::Timeout);
            }
            // When the wait is over the row is read once more: the hint of a change may have been lost.
            over = timeout_at(until, listener.maybe_changed()).await.is_err();
        }
    }

    /// Events after `seq`, at most a page of them, with their hashes; none exactly if there are no more that `caller`
    /// may see.
    pub async fn events_after(&self, caller: &Principal, seq: u64) -> Result<Vec<Event>, Error> {
        let mut after = seq;
        loop {
            let mut events = self.store().events_after(after, PAGE_ROWS_MAX).await?;
            let Some(last) = events.last().map(|event| event.seq) else { return Ok(events) };
            if caller.kind != PrincipalKind::Person {
                self.keep_own(caller, &mut events).await?;
            }
            if !events.is_empty() {
                return Ok(events);
            }
            // A page of others' events: the caller's next one may lie behind it.
            after = last;
        }
    }

    async fn keep_own(&self, caller: &Principal, events: &mut Vec<Event>) -> Result<(), Error> {
        let mut own = std::collections::HashMap::new();
        for id in events.iter().filter_map(|event| event.event.execution_id) {
            if let std::collections::hash_map::Entry::Vacant(entry) = own.entry(id) {
                entry.insert(match self.execution(caller, id).await {
                    Ok(_) => true,
                    Err(Error::NotFound(_)) => false,
                    Err(error) => return Err(error),
                });
            }
        }
        events.retain(|event| event.event.execution_id.is_some_and(|id| own.get(&id) == Some(&true)));
        Ok(())
    }

    /// The time by the clock that decides leases and deadlines.
    pub async fn now(&self) -> Result<UnixMs, Error> {
        self.store().now().await
    }

    /// The number of the last event; 0 before the first.
    pub async fn last_event(&self) -> Result<u64, Error> {
        self.store().last_event().await
    }

    /// Says when there may be new events, by this process or another.
    pub fn event_feed(&self) -> EventFeed {
        self.inner.hub.feed(self.store())
    }

    /// How long `server` waited before it last took a question back.
    pub async fn last_wait(&self, server: &str) -> Result<Option<Duration>, Error> {
        let waited = self.store().last_wait_ms(server).await?;
        Ok(waited.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis))
    }
}
