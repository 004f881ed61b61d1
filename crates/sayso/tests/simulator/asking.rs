//! Agents that ask, ask again after an acknowledgement was lost, take questions back, and leave.

use std::time::Duration;

use sayso::{Ask, Desk, Error, Failure, People, RoundId, Status, Step, wire};
use sayso_core::round::Delivery;

use crate::process::{Held, Stage};
use crate::world::{Asked, Came, Checked, World, check_not_broken, ensure};

const OPEN: [Status; 4] = [Status::Pending, Status::ResponseValidated, Status::DeliveryStarted, Status::Delivered];
/// More questions than these at a time, and hardly any gets far.
const OPEN_AT_ONCE: usize = 6;

fn ask(number: usize, asked: &Asked) -> Ask {
    let question = Some(question_of(number));
    let request = wire::Request { question, ..wire::Request::empty(wire::RequestKind::Text) };
    Ask {
        delivery: Some(if asked.live { Delivery::Live } else { Delivery::Resumable }),
        deadline: asked.deadline,
        execution_id: asked.within,
        request_state: Some(format!("state of {number}")),
        ..Ask::one("note", request)
    }
}

fn question_of(number: usize) -> String {
    format!("question {number}?")
}

/// Which question a stored round is, by its text.
pub fn number_of(requests: &str) -> Option<usize> {
    let (_, rest) = requests.split_once("question ")?;
    rest.split_once('?')?.0.parse().ok()
}

impl World {
    pub async fn ask_something(&mut self, process: usize) -> Checked {
        if self.rows.values().filter(|row| !row.status.is_finished()).count() >= OPEN_AT_ONCE {
            return self.answer_something(process).await;
        }
        let number = self.asked.len();
        let live = self.rng.one_in(2);
        let deadline = self.rng.one_in(4).then(|| self.now().plus_ms(1000 + 1000 * self.rng.below(90) as i64));
        // A resumable question may be one more in an execution that somebody waits in.
        let goes_on = !live && self.rng.one_in(5);
        let earlier = if goes_on { self.some_asked(&OPEN, |asked| asked.acknowledged && !asked.live) } else { None };
        let within = earlier.and_then(|asked| self.asked[asked].execution);
        let key = (!live && self.rng.one_in(2)).then(|| format!("ask {number}"));
        self.asked.push(Asked { key, live, deadline, within, ..Asked::default() });
        self.ask_again(process, number).await
    }

    /// Asks a question, perhaps once more: under its key the same round comes back.
    pub async fn ask_again(&mut self, process: usize, number: usize) -> Checked {
        self.take_a_millisecond();
        let (ask, key) = (ask(number, &self.asked[number]), self.asked[number].key.clone());
        let (_, desk, fate) = self.lend(process);
        let came: Came<_> = fate.run(desk.open(ask, key)).await;
        self.note(format!("process {process} asks {number}: {}", words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        let Ok(opened) = came else { return Ok(()) };
        let asked = &mut self.asked[number];
        let id = opened.round.round_id;
        ensure!(asked.id.is_none_or(|known| known == id), "question {number} was stored twice");
        (asked.id, asked.acknowledged) = (Some(id), true);
        asked.execution = Some(opened.round.execution_id);
        if let Some(fence) = opened.fence {
            asked.holder = Some(process);
            self.processes[process].held.push(Held { asked: number, fence, stage: Stage::Open });
        }
        Ok(())
    }

    /// Asks again what was asked under a key, whether or not the first asking was acknowledged.
    pub async fn repeat_an_asking(&mut self, process: usize) -> Checked {
        let keyed: Vec<usize> = (0..self.asked.len()).filter(|n| self.asked[*n].key.is_some()).collect();
        if keyed.is_empty() {
            return Ok(());
        }
        let number = self.rng.pick(&keyed);
        self.ask_again(process, number).await
    }

    /// A person cancels an execution.
    pub async fn cancel(&mut self, process: usize) -> Checked {
        // Mostly while something is on its way: then the worker's last word comes too late.
        let under_way = if self.rng.one_in(2) { &OPEN[1..] } else { &OPEN[..] };
        let Some(number) = self.some_asked(under_way, |_| true) else { return Ok(()) };
        let Some(row) = self.row(number).await? else { return Ok(()) };
        let (sayso, _, fate) = self.lend(process);
        let came = fate.run(async move { sayso.people().cancel(row.execution_id).await }).await;
        self.note(format!("somebody cancels the execution of {number}: {}", words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        if let Ok(execution) = came {
            let outcome = execution.outcome.map(|outcome| outcome.status);
            ensure!(outcome.as_deref() == Some("cancelled"), "a cancelled execution ended as {outcome:?}");
            ensure!(execution.pending.is_empty(), "a cancelled execution still waits");
        }
        Ok(())
    }

    /// The asker takes a question back that nobody answered; a holder may also put another in its place.
    pub async fn take_back(&mut self, process: usize) -> Checked {
        let held = self.processes[process].held.clone();
        let live = held.into_iter().find(|held| held.stage == Stage::Open && self.asked[held.asked].live);
        match live {
            Some(held) if self.rng.one_in(2) => self.withdraw(process, held).await,
            Some(held) => {
                let step = |id| Step::Failed(id, Some(held.fence), Failure::new(Failure::WITHDRAWN, "given up"));
                self.fail(process, held.asked, step).await
            }
            None => {
                let Some(number) = self.some_asked(&[Status::Pending], |asked| !asked.live) else { return Ok(()) };
                let code = self.rng.pick(&[Failure::WITHDRAWN, Failure::SUPERSEDED, "no_code_of_ours"]);
                let step = |id| Step::Failed(id, None, Failure::new(code, "taken back"));
                self.fail(process, number, step).await
            }
        }
    }

    async fn fail(&mut self, process: usize, number: usize, step: impl FnOnce(RoundId) -> Step) -> Checked {
        let Some(id) = self.asked[number].id else { return Ok(()) };
        let step = step(id);
        let (_, desk, fate) = self.lend(process);
        let came = fate.run(desk.settle(vec![step.clone()])).await;
        self.note(format!("process {process} fails {number}: {}", words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        if let (Ok(()), Step::Failed(_, _, failure)) = (&came, &step) {
            let row = self.row(number).await?.ok_or("a round is gone")?;
            ensure!(row.failure.as_ref() == Some(failure), "question {number} failed as {:?}", row.failure);
        }
        Ok(())
    }

    /// Somebody who knows its token says that the holder of a live question is gone. Believed only where its lease is.
    pub async fn accuse(&mut self, process: usize) -> Checked {
        let Some(number) = self.some_asked(&OPEN, |asked| asked.live) else { return Ok(()) };
        let Some(row) = self.row(number).await?.filter(|row| !row.status.is_finished()) else { return Ok(()) };
        let Some(fence) = &row.fence else { return Ok(()) };
        let has_lapsed = self.is_abandoned(&row).await?;
        if has_lapsed {
            self.asked[number].holder = None;
        }
        let (_, desk, fate) = self.lend(process);
        let came = fate.run(desk.fail_recovery(row.id, fence.token)).await;
        self.note(format!("process {process} says that the worker of {number} is gone: {}", words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        ensure!(came.is_err() || has_lapsed, "{number} was taken from a worker whose lease is good");
        Ok(())
    }

    async fn withdraw(&mut self, process: usize, held: Held) -> Checked {
        let Some(id) = self.asked[held.asked].id else { return Ok(()) };
        let number = self.asked.len();
        self.take_a_millisecond();
        let successor = Asked::default();
        let operation = Some(format!("late:{}", held.asked));
        let ask = Ask { logical_operation_id: operation, suggestion_of: Some(id), ..ask(number, &successor) };
        self.asked.push(successor);
        let (_, desk, fate) = self.lend(process);
        let came = fate.run(desk.withdraw(id, held.fence.clone(), ask)).await;
        self.note(format!("process {process} puts {number} in the place of {}: {}", held.asked, words(&came)));
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        if let Ok(round) = came {
            let asked = &mut self.asked[number];
            (asked.id, asked.acknowledged, asked.execution) = (Some(round.round_id), true, Some(round.execution_id));
            let row = self.row(held.asked).await?.ok_or("a round is gone")?;
            let code = row.failure.map(|failure| failure.code);
            ensure!(code.as_deref() == Some(Failure::WITHDRAWN), "{} was withdrawn and is {code:?}", held.asked);
        }
        Ok(())
    }

    /// A worker says that it has settled all it held. Whatever it still holds has nobody any more.
    pub async fn leave(&mut self, process: usize) -> Checked {
        let (sayso, desk, fate) = self.lend(process);
        let came = fate.run(desk.leave()).await;
        self.note(format!("the worker of process {process} leaves: {}", words(&came)));
        self.forget_holder(process);
        self.processes[process].held.clear();
        self.processes[process].desk = sayso.desk(crate::process::agent());
        came.as_ref().map_or(Ok(()), check_not_broken)
    }

    /// Somebody waits for an answer, in the background, for up to 45 s.
    pub async fn wait_in_the_background(&mut self, process: usize) -> Checked {
        let Some(number) = self.some_asked(&[Status::Pending], |asked| !asked.live) else { return Ok(()) };
        let Some(id) = self.asked[number].id else { return Ok(()) };
        let key = format!("wait {}", self.number());
        let (desk, fate) = (self.processes[process].desk.clone(), self.processes[process].fate.clone());
        self.note(format!("process {process} waits for {number} as {key:?}"));
        let ended = self.ended.clone();
        let task = tokio::spawn(async move {
            let wait = Duration::from_secs(45);
            if let Some(outcome) = fate.run(desk.collect(id, &key, wait)).await {
                ended.lock().expect("the lock").push(crate::world::Ended { asked: number, key, outcome });
            }
        });
        self.waiting.push(crate::world::Waiting { asked: number, task });
        Ok(())
    }
}

/// What a verb came to, without a value.
pub fn words<T>(came: &Came<T>) -> String {
    match came {
        None => "died".to_owned(),
        Some(Ok(_)) => "done".to_owned(),
        Some(Err(Error::Conflict { detail, .. } | Error::State { detail, .. })) => detail.clone(),
        Some(Err(error)) => error.to_string(),
    }
}
