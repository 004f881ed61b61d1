//! The end of a world: every process is gone, time has passed, and every round has an explanation.

use std::collections::HashMap;
use std::time::Duration;

use sayso::{ClaimOf, Desk, ErrorCode, Evidence, Fence, People, RoundId, Status, Step, limits};
use sayso_core::event::EventBody;
use sayso_core::round::{Delivery, Round};

use crate::answering::{answer_of, value_of};
use crate::world::{ALL, Checked, PROCESSES, World, ensure};

const LEASE: Duration = Duration::from_millis(limits::LEASE_MS.unsigned_abs());

impl World {
    pub async fn end(&mut self) -> Checked {
        self.dies_at_times = false;
        self.wake_ups_come_in_time().await?;
        for process in 0..PROCESSES {
            self.restart(process);
        }
        // A lease that was given before the clock was set back is good for longer.
        self.clock.advance_ms(12 * 60 * 60 * 1000);
        for _ in 0..3 {
            self.sweep(0).await?;
            self.pass(LEASE).await;
            self.check().await?;
        }
        let rounds = self.all_rounds().await?;
        for stored in &rounds {
            self.check_explained(&stored.row).await?;
        }
        self.check().await?;
        self.check_executions_are_over().await?;
        self.check_story().await
    }

    /// Whoever waits is told within a second or two, also if every wake-up was lost.
    async fn wake_ups_come_in_time(&mut self) -> Checked {
        self.pass(Duration::from_secs(3)).await;
        self.check().await?;
        for waiting in &self.waiting {
            let row = self.row(waiting.asked).await?.ok_or("a round is gone")?;
            ensure!(row.status == Status::Pending, "somebody waits for {}, which is over", waiting.asked);
        }
        Ok(())
    }

    /// Resolved, failed with a reason, or still open to whoever comes: tried.
    async fn check_explained(&mut self, row: &Round) -> Checked {
        let (number, id) = (self.number_of(row.id)?, row.id);
        if row.status.is_finished() {
            return self.check_late_answer(number, row).await;
        }
        ensure!(row.delivery == Delivery::Resumable, "{number} is {:?}, live, and everybody is gone", row.status);
        let (sayso, desk) = (self.processes[0].sayso.clone(), self.processes[0].desk.clone());
        if row.status == Status::Pending {
            let (key, value) = (format!("key {}", self.number()), format!("value {}", self.number()));
            self.asked[number].tried.push((key.clone(), value.clone()));
            let answered = sayso.people().answer(id, answer_of(&value), &key).await;
            ensure!(answered.is_ok(), "{number} is pending and takes no answer: {answered:?}");
            self.asked[number].accepted = Some((key, value));
        }
        let claim = match row.status {
            Status::DeliveryStarted => {
                let unproven = desk.claim(id, ClaimOf::default(), None).await.err().map(|error| error.code());
                let expected = Some(ErrorCode::ManagedInputRecoveryUnavailable);
                ensure!(unproven == expected, "{number} is claimed without evidence: {unproven:?}");
                let arrived = self.asked[number].arrived;
                self.asked[number].proven_lost += usize::from(!arrived);
                let lost = Evidence::NotDelivered { idempotent: true };
                ClaimOf { expected: None, evidence: Some(if arrived { Evidence::Delivered } else { lost }) }
            }
            _ => ClaimOf::default(),
        };
        let claimed =
            desk.claim(id, claim, None).await.map_err(|error| format!("{number} cannot be claimed: {error}"))?;
        self.finish(number, id, claimed.fence, claimed.round.status).await
    }

    async fn finish(&mut self, number: usize, id: RoundId, fence: Fence, status: Status) -> Checked {
        let desk = self.processes[0].desk.clone();
        let mut steps = vec![Step::Resolved(id, fence.clone())];
        if status != Status::Delivered {
            let handed = desk.start(id, fence.clone()).await.map_err(|error| format!("{number}: {error}"))?;
            let value = value_of(&handed.responses).ok_or("an answer has a value")?;
            let won = self.asked[number].accepted.as_ref().is_none_or(|(_, accepted)| *accepted == value);
            ensure!(won, "{number} is delivered as {value:?}");
            self.asked[number].sent.push(value);
            steps.insert(0, Step::Delivered(id, fence));
        }
        desk.settle(steps).await.map_err(|error| format!("{number} cannot be settled: {error}"))
    }

    /// Whoever answers what is over reads why.
    async fn check_late_answer(&mut self, number: usize, row: &Round) -> Checked {
        let key = format!("key {}", self.number());
        let late = self.processes[0].sayso.people().answer(row.id, answer_of("too late"), &key).await;
        let code = late.err().map(|error| error.code());
        let expected = match row.status {
            Status::Failed => ErrorCode::ManagedInputState,
            _ => ErrorCode::ManagedInputConflict,
        };
        ensure!(code == Some(expected), "a late answer of {number} came to {code:?}");
        Ok(())
    }

    fn number_of(&self, id: RoundId) -> Result<usize, String> {
        self.asked.iter().position(|asked| asked.id == Some(id)).ok_or_else(|| format!("nobody asked {id}"))
    }

    /// An execution that nobody runs and that waits for nothing has an end.
    async fn check_executions_are_over(&self) -> Checked {
        for (execution, pending) in self.all_executions().await? {
            ensure!(pending.is_empty(), "{} still waits", execution.id);
            ensure!(execution.outcome.is_some(), "{} has no end", execution.id);
        }
        Ok(())
    }

    /// The events tell of each round what its row says.
    async fn check_story(&self) -> Checked {
        let events = self.witness.events_after(0, usize::MAX).await.map_err(|error| error.to_string())?;
        ensure!(events.last().map_or(0, |event| event.seq) == self.last_event.0, "events were lost");
        let mut told: HashMap<RoundId, [usize; 4]> = HashMap::new();
        for event in &events {
            let Some(round) = event.event.round_id else { continue };
            let place = match event.event.body {
                EventBody::RoundCreated => 0,
                EventBody::Answered => 1,
                EventBody::Resolved => 2,
                EventBody::Failed { .. } => 3,
                _ => continue,
            };
            told.entry(round).or_default()[place] += 1;
        }
        ensure!(self.rows.len() < ALL, "more rounds than are looked at");
        for (id, row) in &self.rows {
            let is = |holds: bool| usize::from(holds);
            let answered = is(row.answered.is_some());
            let expected = [1, answered, is(row.status == Status::Resolved), is(row.status == Status::Failed)];
            let found = told.get(id).copied().unwrap_or_default();
            ensure!(found == expected, "the events of {id} tell {found:?}, its row says {expected:?}");
        }
        Ok(())
    }
}
