//! What must hold after every step, whoever died at it.

use std::collections::BTreeMap;

use sayso::{Error, Failure, RoundId, Status};
use sayso_core::execution::Execution;
use sayso_core::round::{Delivery, Round};
use sayso_store::StoredRound;

use crate::answering::value_of;
use crate::asking::number_of;
use crate::world::{ALL, Checked, World, ensure};

impl World {
    pub async fn check(&mut self) -> Checked {
        self.harvest()?;
        self.check_chain().await?;
        let rounds = self.all_rounds().await?;
        for stored in &rounds {
            self.check_round(stored).await?;
        }
        let known = |id: &RoundId| rounds.iter().any(|stored| stored.row.id == *id);
        if let Some(gone) = self.rows.keys().find(|id| !known(id)) {
            return Err(format!("{gone} was stored and is gone"));
        }
        for (number, asked) in self.asked.iter().enumerate() {
            ensure!(!asked.acknowledged || asked.id.is_some_and(|id| known(&id)), "question {number} is not stored");
        }
        self.check_executions(&rounds).await?;
        self.rows = rounds.into_iter().map(|stored| (stored.row.id, stored.row)).collect();
        Ok(())
    }

    /// Waits that have ended in the background.
    fn harvest(&mut self) -> Checked {
        let ended = std::mem::take(&mut *self.ended.lock().expect("the lock"));
        for one in ended {
            let words = one.outcome.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
            self.note(format!("who waited for {} as {:?}: {words}", one.asked, one.key));
            self.collected(one.asked, one.key, Some(one.outcome))?;
        }
        self.waiting.retain(|waiting| !waiting.task.is_finished());
        Ok(())
    }

    /// Numbered without gaps, linked by hashes, and what was there stays.
    async fn check_chain(&mut self) -> Checked {
        let (mut seq, mut previous) = self.last_event;
        let new = self.witness.events_after(seq, ALL).await.map_err(|error| error.to_string())?;
        for event in new {
            ensure!(event.seq == seq + 1, "after event {seq} comes {}", event.seq);
            ensure!(event.previous_hash == previous && event.is_intact(), "event {} is not linked", event.seq);
            (seq, previous) = (event.seq, event.hash);
        }
        self.last_event = (seq, previous);
        Ok(())
    }

    async fn check_round(&mut self, stored: &StoredRound) -> Checked {
        let row = &stored.row;
        let number = number_of(stored.requests.as_str()).ok_or("a round has its question")?;
        let asked = self.asked.get_mut(number).ok_or_else(|| format!("nobody asked {number}"))?;
        let id = *asked.id.get_or_insert(row.id);
        ensure!(id == row.id, "question {number} is stored twice");
        asked.execution.get_or_insert(row.execution_id);
        let before = self.rows.get(&row.id);
        if before == Some(row) {
            return Ok(());
        }
        if let Some(before) = before {
            check_moved(number, before, row)?;
        }
        check_state(number, row)?;
        let asked = &self.asked[number];
        let attempts = usize::try_from(row.delivery_attempts).expect("small");
        ensure!(attempts <= 1 + asked.proven_lost, "{number} is delivered again without evidence");
        ensure!(asked.sent.len() <= attempts, "{number} was sent more often than a delivery was started");
        let fresh = row.failure.as_ref().filter(|_| before.is_none_or(|before| before.status != Status::Failed));
        if fresh.is_some_and(|failure| failure.code == Failure::RECOVERY_UNAVAILABLE) {
            ensure!(asked.holder.is_none(), "{number} was taken for abandoned, and its worker is well");
        }
        if row.answered.is_some() && before.is_none_or(|before| before.answered.is_none()) {
            self.check_answer(number, row).await?;
        }
        Ok(())
    }

    /// What was accepted is what somebody said, and what was acknowledged.
    async fn check_answer(&self, number: usize, row: &Round) -> Checked {
        let stored = self.witness.answer(row.id).await.map_err(|error: Error| error.to_string())?;
        let effective = stored.ok_or_else(|| format!("the answer of {number} is not stored"))?.effective;
        let responses = serde_json::from_str(effective.as_str()).map_err(|_| "an answer cannot be read")?;
        let value = value_of(&responses).ok_or("an answer has a value")?;
        let key = row.answer_key.as_ref().map(|(key, _)| key.clone()).ok_or("an answer has a key")?;
        let said = (key, value);
        let asked = &self.asked[number];
        ensure!(asked.tried.contains(&said), "{number} was answered with {said:?}, which nobody said");
        ensure!(asked.accepted.as_ref().is_none_or(|told| *told == said), "{number} answered with {said:?}");
        Ok(())
    }

    async fn check_executions(&mut self, rounds: &[StoredRound]) -> Checked {
        let mut found = BTreeMap::new();
        for (execution, pending) in self.all_executions().await? {
            let waits =
                |stored: &&StoredRound| stored.row.execution_id == execution.id && stored.row.status == Status::Pending;
            let waiting = rounds.iter().filter(waits).count();
            let counted = usize::try_from(execution.pending_inputs + execution.pending_approvals).expect("small");
            ensure!(waiting == counted && waiting == pending.len(), "{} counts {counted}, not {waiting}", execution.id);
            if let Some(before) = self.executions.get(&execution.id) {
                check_ended_once(before, &execution)?;
            }
            found.insert(execution.id, execution);
        }
        let gone = self.executions.keys().find(|id| !found.contains_key(id));
        ensure!(gone.is_none(), "{gone:?} was stored and is gone");
        self.executions = found;
        Ok(())
    }
}

fn check_ended_once(before: &Execution, after: &Execution) -> Checked {
    let same = before.outcome.is_none() || before.outcome == after.outcome;
    ensure!(same, "{} ended as {:?} and then as {:?}", after.id, before.outcome, after.outcome);
    Ok(())
}

fn rank(status: Status) -> usize {
    match status {
        Status::Pending => 0,
        Status::ResponseValidated => 1,
        Status::DeliveryStarted => 2,
        Status::Delivered => 3,
        Status::Resolved | Status::Failed => 4,
    }
}

/// Nothing that was decided is undone.
fn check_moved(number: usize, before: &Round, after: &Round) -> Checked {
    ensure!(after.rev > before.rev, "{number} changed and its revision did not");
    ensure!(!before.status.is_finished(), "{number} was over as {:?} and changed", before.status);
    ensure!(before.answered.is_none() || before.answered == after.answered, "{number} was answered by another later");
    ensure!(before.answer_key.is_none() || before.answer_key == after.answer_key, "{number} has another answer");
    // A started delivery begins again with evidence only, which is counted where it is given.
    let repeats = before.status == Status::DeliveryStarted && after.status == Status::ResponseValidated;
    ensure!(repeats || rank(after.status) >= rank(before.status), "{number} went back to {:?}", after.status);
    let asked = |row: &Round| (row.execution_id, row.digest, row.delivery, row.index, row.created_at, row.deadline);
    ensure!(asked(before) == asked(after), "what {number} asks has changed");
    Ok(())
}

/// What a round says of itself is whole.
fn check_state(number: usize, row: &Round) -> Checked {
    let has_answer = row.answered.is_some() && row.answer_key.is_some();
    if let (Some(answered), Some(deadline)) = (&row.answered, row.deadline) {
        ensure!(answered.at <= deadline, "{number} was answered after its deadline");
    }
    ensure!((row.status == Status::Failed) == row.failure.is_some(), "{number} is {:?}: {:?}", row.status, row.failure);
    ensure!(row.status.is_finished() == row.finished_at.is_some(), "{number} is {:?} and has no end", row.status);
    match row.status {
        Status::Pending => ensure!(row.answered.is_none(), "{number} is pending and answered"),
        Status::Failed => {
            let failure = row.failure.as_ref().ok_or("a failed round says why")?;
            ensure!(!failure.code.is_empty() && !failure.message.is_empty(), "{number} failed and does not say why");
        }
        Status::ResponseValidated => ensure!(has_answer, "{number} was never answered"),
        Status::DeliveryStarted => ensure!(has_answer && row.fence.is_some(), "{number} is delivered by nobody"),
        Status::Delivered => ensure!(has_answer && row.fence.is_some(), "{number} was delivered by nobody"),
        Status::Resolved => {
            let handed = row.delivered_at.is_some() && row.delivery_attempts > 0;
            ensure!(has_answer && handed, "{number} is resolved and was never handed over");
        }
    }
    ensure!(row.delivery == Delivery::Resumable || row.fence.is_some(), "{number} is live in nobody's hands");
    Ok(())
}
