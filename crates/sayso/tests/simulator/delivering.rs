//! Workers that hand answers over, with and without receipts, and agents that collect.

use std::time::Duration;

use sayso::{ClaimOf, Claimed, Desk, Error, Evidence, Failure, Handed, Outcome, Received, Status, Step};
use sayso_core::json::Json;

use crate::answering::value_of;
use crate::asking::words;
use crate::process::{Held, Stage};
use crate::world::{Came, Checked, World, check_not_broken, ensure};

const ANSWERED: [Status; 3] = [Status::ResponseValidated, Status::DeliveryStarted, Status::Delivered];

impl World {
    /// A worker goes on with something that it holds.
    pub async fn deliver(&mut self, process: usize) -> Checked {
        let many = self.processes[process].held.len();
        if many == 0 {
            return self.claim_something(process).await;
        }
        let place = self.rng.below(many);
        let held = self.processes[process].held[place].clone();
        match held.stage {
            Stage::Open => self.start(process, place, held).await,
            // Asked again by one that has lost count: it is told the same, and sends nothing.
            Stage::Started { .. } if self.rng.one_in(6) => self.start(process, place, held).await,
            Stage::Started { arrived: false } => self.give_up(process, place, held).await,
            Stage::Started { arrived: true } | Stage::Delivered => self.confirm(process, place, held).await,
        }
    }

    /// What the holder of a round is told when it cannot go on: it renews, or lets go.
    async fn renew(&mut self, process: usize, place: usize, held: &Held) -> Checked {
        let Some(id) = self.asked[held.asked].id else { return Ok(()) };
        let (_, desk, fate) = self.lend(process);
        let came = fate.run(desk.renew(id, held.fence.clone())).await;
        self.note(format!("process {process} renews for {}: {}", held.asked, words(&came)));
        if let Some(Err(Error::Conflict { .. } | Error::State { .. })) = came {
            self.processes[process].held.remove(place);
        }
        came.as_ref().map_or(Ok(()), check_not_broken)
    }

    async fn start(&mut self, process: usize, place: usize, held: Held) -> Checked {
        let Some(id) = self.asked[held.asked].id else { return Ok(()) };
        let has_lapsed = held.stage == Stage::Open && self.has_lapsed(held.asked).await?;
        let (_, desk, fate) = self.lend(process);
        let came: Came<Handed> = fate.run(desk.start(id, held.fence.clone())).await;
        self.note(format!("process {process} starts to deliver {}: {}", held.asked, words(&came)));
        ensure!(!has_lapsed || !matches!(came, Some(Ok(_))), "{} was handed to an expired lease", held.asked);
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        match came {
            Ok(handed) => self.send(process, place, &held, &handed).await,
            Err(Error::State { status, .. }) if status.is_finished() => {
                self.processes[process].held.remove(place);
                Ok(())
            }
            Err(Error::State { .. }) => Ok(()),
            Err(Error::Conflict { .. }) => self.renew(process, place, &held).await,
            Err(other) => Err(format!("{} cannot be delivered: {other}", held.asked)),
        }
    }

    /// What came of waiting for the answer of what is held.
    pub async fn received(&mut self, process: usize, place: usize, held: &Held, came: Came<Received>) -> Checked {
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        match came {
            Ok(Received::Handed(handed)) => self.send(process, place, held, &handed).await,
            Ok(Received::Failed(round)) => {
                ensure!(round.failure.is_some(), "{} has ended without a reason", held.asked);
                self.processes[process].held.remove(place);
                Ok(())
            }
            Err(Error::State { status, .. }) if status.is_finished() => {
                self.processes[process].held.remove(place);
                Ok(())
            }
            Err(Error::Timeout | Error::State { .. }) => Ok(()),
            Err(Error::Conflict { .. }) => self.renew(process, place, held).await,
            Err(other) => Err(format!("{} cannot be received: {other}", held.asked)),
        }
    }

    async fn send(&mut self, process: usize, place: usize, held: &Held, handed: &Handed) -> Checked {
        let number = held.asked;
        let row = self.row(number).await?.ok_or("a round is gone")?;
        ensure!(row.fence.as_ref() == Some(&held.fence), "{number} was handed to somebody who does not hold it");
        let state = Some(format!("state of {number}"));
        ensure!(handed.request_state == state, "{number} was handed over with another's state");
        let value = value_of(&handed.responses).ok_or("an answer has a value")?;
        if held.stage != Stage::Open {
            return Ok(());
        }
        let arrived = !self.rng.one_in(4);
        self.note(format!("{number}: {value:?} is sent and {}", if arrived { "arrives" } else { "is lost" }));
        self.asked[number].sent.push(value);
        self.asked[number].arrived |= arrived;
        self.processes[process].held[place].stage = Stage::Started { arrived };
        Ok(())
    }

    /// No receipt came.
    async fn give_up(&mut self, process: usize, place: usize, held: Held) -> Checked {
        let Some(id) = self.asked[held.asked].id else { return Ok(()) };
        let failure = Failure::new("no_receipt", "the agent did not say that it got the answer");
        self.report(process, place, &held, vec![Step::Failed(id, Some(held.fence.clone()), failure)]).await
    }

    async fn confirm(&mut self, process: usize, place: usize, held: Held) -> Checked {
        let asked = &self.asked[held.asked];
        let finishes = asked.live && !asked.is_orphaned;
        let (Some(id), Some(execution)) = (asked.id, asked.execution) else { return Ok(()) };
        let fence = || held.fence.clone();
        let mut steps = vec![Step::Delivered(id, fence())];
        let all_at_once = held.stage == Stage::Delivered || !self.rng.one_in(3);
        if all_at_once {
            steps.push(Step::Resolved(id, fence()));
        }
        if all_at_once && finishes {
            let result = Json::parse(r#"{"booked":true}"#).expect("JSON");
            steps.push(Step::Finished(execution, Outcome::Completed, Some(result)));
        }
        if held.stage == Stage::Delivered {
            steps.remove(0);
        }
        self.report(process, place, &held, steps).await
    }

    async fn report(&mut self, process: usize, place: usize, held: &Held, steps: Vec<Step>) -> Checked {
        let ends = !matches!(steps.as_slice(), [Step::Delivered(..)]);
        let has_lapsed = self.has_lapsed(held.asked).await?;
        let before = self.row(held.asked).await?;
        let (_, desk, fate) = self.lend(process);
        let mut came = fate.run(desk.settle(steps.clone())).await;
        ensure!(!has_lapsed || !matches!(came, Some(Ok(()))), "{} was settled under an expired lease", held.asked);
        if matches!(came, Some(Ok(()))) && self.rng.one_in(4) {
            // The acknowledgement was lost on the way: said again, it is heard again.
            came = fate.run(desk.settle(steps)).await;
            ensure!(!matches!(came, Some(Err(_))), "{} was settled, and again it was not", held.asked);
        }
        self.note(format!("process {process} settles {}: {}", held.asked, words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        let row = self.row(held.asked).await?.ok_or("a round is gone")?;
        let is_as_before = before.as_ref() == Some(&row);
        ensure!(came.is_ok() || is_as_before, "what was refused of {} was stored in part", held.asked);
        match came {
            Ok(()) => {
                ensure!(row.fence.as_ref() == Some(&held.fence), "{} was settled by one who lost it", held.asked);
                ensure!(row.status.is_finished() == ends, "{} was settled and is {:?}", held.asked, row.status);
                if ends {
                    self.processes[process].held.remove(place);
                } else {
                    self.processes[process].held[place].stage = Stage::Delivered;
                }
                Ok(())
            }
            // An execution that was cancelled is over without its worker's word; the round still goes its way.
            Err(Error::Conflict { .. }) if row.fence.as_ref() == Some(&held.fence) && !row.status.is_finished() => {
                let found = self.witness.execution(row.execution_id).await.map_err(|error| error.to_string())?;
                self.asked[held.asked].is_orphaned = found.is_some_and(|(row, _)| row.outcome.is_some());
                self.renew(process, place, held).await
            }
            Err(_) => {
                self.processes[process].held.remove(place);
                Ok(())
            }
        }
    }

    /// Whether the holder of a live question has not renewed in time, as the store sees it.
    async fn has_lapsed(&self, number: usize) -> Result<bool, String> {
        match self.row(number).await? {
            Some(row) if self.asked[number].live => self.is_abandoned(&row).await,
            _ => Ok(false),
        }
    }

    /// What a claimer can prove of a delivery that another started.
    fn evidence(&mut self, number: usize) -> Option<Evidence> {
        if self.rng.one_in(3) {
            return None;
        }
        if self.asked[number].arrived {
            return Some(Evidence::Delivered);
        }
        Some(Evidence::NotDelivered { idempotent: !self.rng.one_in(4) })
    }

    pub async fn claim_something(&mut self, process: usize) -> Checked {
        let Some(number) = self.some_asked(&ANSWERED, |asked| !asked.live) else { return Ok(()) };
        if self.rng.one_in(3) {
            return self.race_to_claim(number).await;
        }
        self.claim(process, number).await
    }

    pub async fn claim(&mut self, process: usize, number: usize) -> Checked {
        let claim = ClaimOf { expected: None, evidence: self.evidence(number) };
        let id = self.asked[number].id.ok_or("it is in the store")?;
        let before = self.row(number).await?.ok_or("a round is gone")?.status;
        let (_, desk, fate) = self.lend(process);
        let came = fate.run(desk.claim(id, claim, None)).await;
        self.note(format!("process {process} claims {number} with {:?}: {}", claim.evidence, words(&came)));
        self.claimed(process, number, (before, claim.evidence), came).await.map(drop)
    }

    /// Two workers at once: one of them holds it, or neither.
    async fn race_to_claim(&mut self, number: usize) -> Checked {
        let claim = ClaimOf { expected: None, evidence: self.evidence(number) };
        let id = self.asked[number].id.ok_or("it is in the store")?;
        let before = self.row(number).await?.ok_or("a round is gone")?.status;
        let ((_, one, one_fate), (_, two, two_fate)) = (self.lend(1), self.lend(2));
        let (first, second) =
            tokio::join!(one_fate.run(one.claim(id, claim, None)), two_fate.run(two.claim(id, claim, None)));
        self.note(format!("two workers claim {number}: {}; {}", words(&first), words(&second)));
        let both = matches!((&first, &second), (Some(Ok(_)), Some(Ok(_))));
        ensure!(!both, "two workers hold {number}");
        self.claimed(1, number, (before, claim.evidence), first).await?;
        // What was proven counts once.
        self.claimed(2, number, (Status::ResponseValidated, claim.evidence), second).await
    }

    async fn claimed(
        &mut self,
        process: usize,
        number: usize,
        (before, evidence): (Status, Option<Evidence>),
        came: Came<Claimed>,
    ) -> Checked {
        let after = self.row(number).await?.ok_or("a round is gone")?;
        if before == Status::DeliveryStarted && after.status == Status::ResponseValidated {
            let proves = evidence == Some(Evidence::NotDelivered { idempotent: true });
            ensure!(proves, "a started delivery of {number} begins again on {evidence:?}");
            self.asked[number].proven_lost += 1;
        }
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        let Ok(claimed) = came else { return Ok(()) };
        ensure!(after.fence.as_ref() == Some(&claimed.fence), "{number} was claimed and is another's");
        let stage = if after.status == Status::Delivered { Stage::Delivered } else { Stage::Open };
        self.processes[process].held.push(Held { asked: number, fence: claimed.fence, stage });
        Ok(())
    }

    /// An agent takes an answer at once; two do so at the same time, now and then.
    pub async fn collect_something(&mut self, process: usize) -> Checked {
        let Some(number) = self.some_asked(&ANSWERED, |asked| !asked.live) else { return Ok(()) };
        self.collect(process, number).await
    }

    pub async fn collect(&mut self, process: usize, number: usize) -> Checked {
        let id = self.asked[number].id.ok_or("it is in the store")?;
        let races = self.rng.one_in(4);
        let mut key = || format!("take {number}.{}", self.rng.below(3));
        let (mine, theirs) = (key(), key());
        let (_, desk, fate) = self.lend(process);
        let came = if races {
            let other = (process + 1) % crate::world::PROCESSES;
            let (_, other_desk, other_fate) = self.lend(other);
            let (came, others) = tokio::join!(
                fate.run(desk.collect(id, &mine, Duration::ZERO)),
                other_fate.run(other_desk.collect(id, &theirs, Duration::ZERO)),
            );
            self.note(format!("another collects {number} as {theirs:?}: {}", words(&others)));
            self.collected(number, theirs, others)?;
            came
        } else {
            fate.run(desk.collect(id, &mine, Duration::ZERO)).await
        };
        self.note(format!("process {process} collects {number} as {mine:?}: {}", words(&came)));
        self.collected(number, mine, came)
    }

    /// Checks what a collector was told, and remembers it.
    pub fn collected(&mut self, number: usize, key: String, came: Came<sayso::wire::Collected>) -> Checked {
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        let Ok(collected) = came else { return Ok(()) };
        let value = value_of(&collected.responses).ok_or("an answer has a value")?;
        let asked = &mut self.asked[number];
        ensure!(asked.accepted.as_ref().is_none_or(|(_, won)| *won == value), "{number} answered something else");
        ensure!(asked.sent.len() <= asked.proven_lost, "{number} was sent and is collected as well");
        ensure!(!asked.arrived, "{number} had arrived and is collected as well");
        ensure!(asked.collected.iter().all(|taken| *taken == key), "{number} was collected under two keys");
        asked.collected.push(key);
        Ok(())
    }
}
