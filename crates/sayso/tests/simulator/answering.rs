//! People who answer: once, twice, with something else, too late.

use std::time::Duration;

use sayso::{Answer, Desk, Error, Json, People, Response, Status, wire};
use sayso_core::round::Round;

use crate::asking::words;
use crate::process::{Held, Stage};
use crate::world::{Came, Checked, World, check_not_broken, ensure};

pub fn answer_of(value: &str) -> Answer {
    let content = Json::parse(&format!(r#"{{"answer":["{value}"]}}"#)).expect("JSON");
    Answer::one("note", Response::accept(content))
}

/// The text that was answered.
pub fn value_of(responses: &wire::Keyed<Response>) -> Option<String> {
    let content = responses.get("note")?.content.as_ref()?;
    let (_, rest) = content.as_str().split_once("[\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl World {
    /// A key and value to answer `number` with: new ones, or what was tried before, or half of it.
    fn something_to_say(&mut self, number: usize) -> (String, String) {
        let new = (format!("key {}", self.number()), format!("value {}", self.number()));
        let tried = &self.asked[number].tried;
        if tried.is_empty() {
            return new;
        }
        let (key, value) = tried[self.rng.below(tried.len())].clone();
        match self.rng.below(4) {
            0 => (key, value),
            1 => (key, new.1),
            _ => new,
        }
    }

    pub async fn answer_something(&mut self, process: usize) -> Checked {
        let Some(number) = self.some_asked(&[Status::Pending], |_| true) else { return Ok(()) };
        if self.rng.one_in(4) {
            return self.race_to_answer(number).await;
        }
        let (key, value) = self.something_to_say(number);
        let waits = |held: &Held| held.asked == number && held.stage == Stage::Open;
        if let Some(place) = self.processes[process].held.iter().position(waits)
            && self.rng.one_in(2)
        {
            return self.answer_what_is_waited_for(process, place, key, value).await;
        }
        self.answer(process, number, key, value).await
    }

    /// Somebody answers by the process whose worker waits for it: accepted and begun to be handed over at once, or not.
    async fn answer_what_is_waited_for(&mut self, process: usize, place: usize, key: String, value: String) -> Checked {
        let held = self.processes[process].held[place].clone();
        let number = held.asked;
        let before = self.row(number).await?.ok_or("a round is gone")?;
        self.asked[number].tried.push((key.clone(), value.clone()));
        let is_lost = before.status == Status::Pending && self.is_abandoned(&before).await?;
        let (sayso, desk, fate) = self.lend(process);
        let (id, given) = (before.id, answer_of(&value));
        let (received, came) = tokio::join!(
            fate.run(desk.receive(id, held.fence.clone(), Duration::ZERO)),
            fate.run(async { sayso.people().answer(id, given, &key).await }),
        );
        self.note(format!("{number} is answered {value:?} under {key:?}: {}; {}", words(&came), words(&received)));
        ensure!(!is_lost || !matches!(came, Some(Ok(_))), "{number} was answered and nobody is there to take it");
        self.answered(number, &key, &value, came).await?;
        self.received(process, place, &held, received).await
    }

    pub async fn answer(&mut self, process: usize, number: usize, key: String, value: String) -> Checked {
        let before = self.row(number).await?.ok_or("a round is gone")?;
        self.asked[number].tried.push((key.clone(), value.clone()));
        let has_died = before.fence.is_some() && self.is_abandoned(&before).await?;
        let (sayso, _, fate) = self.lend(process);
        let (id, given) = (before.id, answer_of(&value));
        let came = fate.run(async { sayso.people().answer(id, given, &key).await }).await;
        self.note(format!("{number} is answered {value:?} under {key:?}: {}", words(&came)));
        if has_died && before.status == Status::Pending {
            ensure!(!matches!(came, Some(Ok(_))), "{number} was answered and nobody is there to take it");
        }
        self.answered(number, &key, &value, came).await
    }

    /// Two people at once, in two processes.
    async fn race_to_answer(&mut self, number: usize) -> Checked {
        let id = self.asked[number].id.ok_or("it is in the store")?;
        let [a, b] = [(); 2].map(|()| (format!("key {}", self.number()), format!("value {}", self.number())));
        self.asked[number].tried.extend([a.clone(), b.clone()]);
        let ((one, _, one_fate), (two, _, two_fate)) = (self.lend(0), self.lend(1));
        let (first, second) = tokio::join!(
            one_fate.run(async { one.people().answer(id, answer_of(&a.1), &a.0).await }),
            two_fate.run(async { two.people().answer(id, answer_of(&b.1), &b.0).await }),
        );
        self.note(format!("{number} is answered twice at once: {}; {}", words(&first), words(&second)));
        let both = matches!((&first, &second), (Some(Ok(_)), Some(Ok(_))));
        ensure!(!both, "two answers of {number} were accepted");
        self.answered(number, &a.0, &a.1, first).await?;
        self.answered(number, &b.0, &b.1, second).await
    }

    /// Whether the store says that the holder of this live round has not renewed.
    pub async fn is_abandoned(&self, round: &Round) -> Result<bool, String> {
        let found = self.witness.abandoned(self.now(), crate::world::ALL).await.map_err(|error| error.to_string())?;
        Ok(found.iter().any(|one| one.round.as_ref().is_some_and(|(id, _)| *id == round.id)))
    }

    /// Checks what somebody was told who answered.
    async fn answered(&mut self, number: usize, key: &str, value: &str, came: Came<wire::Round>) -> Checked {
        let Some(came) = came else { return Ok(()) };
        check_not_broken(&came)?;
        let row = self.row(number).await?.ok_or("a round is gone")?;
        match came {
            Ok(_) => {
                let said = (key.to_owned(), value.to_owned());
                let accepted = self.asked[number].accepted.get_or_insert_with(|| said.clone());
                ensure!(*accepted == said, "{number} accepted {accepted:?} and {said:?}");
                let stored = row.answer_key.as_ref().map(|(key, _)| key.as_str());
                ensure!(stored == Some(key), "{number} was accepted under {key:?} and stored under {stored:?}");
            }
            Err(Error::State { failure, .. }) => {
                ensure!(failure.is_some(), "a late answer of {number} was refused without a reason");
                ensure!(
                    row.failure == failure,
                    "a late answer of {number} was told {failure:?}, not {:?}",
                    row.failure
                );
            }
            Err(Error::Conflict { winner: Some(winner), .. }) => {
                ensure!(row.answered == Some(winner), "who lost the race for {number} was told of somebody else");
            }
            Err(Error::Conflict { winner: None, detail }) => {
                let unconnected = self.asked[number].live && row.status == Status::Pending;
                ensure!(unconnected, "an answer of {number} was refused for no reason: {detail}");
            }
            Err(other) => return Err(format!("an answer of {number} was refused: {other}")),
        }
        Ok(())
    }
}
