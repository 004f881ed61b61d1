//! The cycle that is measured: open a live round, receive what it is answered, settle; the worker's real path.

use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::principal::Principal;
use sayso_core::round::Delivery;
use sayso_store::limit::{RowBytes, Samples, Stopwatch};
use tokio::sync::mpsc;

use super::process;
use crate::{Answer, Ask, Desk, Fence, LocalDesk, People, Received, Request, Response, RoundId, Sayso, Step};

const SCHEMA: &str = r#"{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}"#;
const CONTENT: &str = r#"{"street":"1 Main Street"}"#;
/// Longer than any run.
const WAIT: Duration = Duration::from_secs(45);

/// What the round of a cycle asks.
pub fn ask() -> Result<Ask, Error> {
    let schema = Json::parse(SCHEMA).map_err(|_| Error::Corrupt("request"))?;
    Ok(Ask::one("address", Request::form("Where to?", schema)))
}

/// What it is answered with.
pub fn answer() -> Result<Answer, Error> {
    let content = Json::parse(CONTENT).map_err(|_| Error::Corrupt("answer"))?;
    Ok(Answer::one("address", Response::accept(content)))
}

/// Who asks in measurements.
pub(super) fn agent() -> Principal {
    Principal::agent("bench")
}

/// What a round of a cycle stores beside what its transitions change.
pub(super) fn row_bytes() -> Result<RowBytes, Error> {
    let written = |text: Result<String, serde_json::Error>| text.map_err(|_| Error::Corrupt("request"));
    let requests = written(serde_json::to_string(&ask()?.requests))?;
    let responses = written(serde_json::to_string(&answer()?.responses))?;
    // The ids, the digest, the names of operation, server, kind and asker, the limits and the time of creation.
    let identity = 16 + 32 + "mainbenchtoolbenchagent:benchlive".len() + 3 * 8;
    // The key and the hash, who answered where and when.
    let answered = 32 + "answer-1person:local:userlibraryaccept".len() + 3 * 8;
    // SQLite has an answer that takes effect as submitted once, and a worker by number; PostgreSQL stores some bytes more.
    Ok(RowBytes { request: identity + requests.len(), answer: answered + responses.len() })
}

/// What a run reached.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Whole cycles.
    pub cycles: usize,
    /// How long the run took.
    pub elapsed: Duration,
    /// The CPU time of this process, of all who take part.
    pub cpu: Duration,
    /// From opening a round to its end.
    pub cycle: Samples,
    /// From sending an answer until the waiter runs.
    pub wake: Samples,
}

impl Run {
    /// Cycles a second.
    pub fn per_second(&self) -> f64 {
        count(self.cycles) / self.elapsed.as_secs_f64()
    }
    /// CPU time of one cycle, in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count(self.cycles)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of measurements stay far below 2^52")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}

/// Runs cycles for `time`, `waiters` at once. `waiting` is the store of those who ask, `answering` of those who answer:
/// the same one, or two on one database.
pub(super) async fn run(waiting: &Sayso, answering: &Sayso, waiters: usize, time: Duration) -> Result<Run, Error> {
    let desk = Arc::new(waiting.desk(agent()));
    // Who answers has seen what is asked. In the process that asked, that costs nothing.
    let looks = !Arc::ptr_eq(&waiting.inner, &answering.inner);
    let me = std::process::id();
    let cpu_before = process::cpu_time(me).unwrap_or_default();
    let watch = Stopwatch::start();
    let ask = Ask { delivery: Some(Delivery::Live), ..ask()? };
    let answer = answer()?;
    let slots: Vec<_> = (0..waiters)
        .map(|_| {
            let (asked, asks) = mpsc::channel(1);
            let (sent, sends) = mpsc::channel(1);
            tokio::spawn(answer_all(answering.clone(), answer.clone(), looks, asks, sent));
            let (desk, ask) = (desk.clone(), ask.clone());
            tokio::spawn(Slot { desk, ask, asked, sends, is_answered_elsewhere: looks }.run(watch, time))
        })
        .collect();
    let mut whole = Run::default();
    for slot in slots {
        let run = slot.await.map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))??;
        whole.cycles += run.cycles;
        whole.cycle.append(run.cycle);
        whole.wake.append(run.wake);
    }
    whole.elapsed = watch.elapsed();
    whole.cpu = process::cpu_time(me).unwrap_or_default().saturating_sub(cpu_before);
    desk.leave().await?;
    Ok(whole)
}

/// A worker with one question at a time.
struct Slot {
    desk: Arc<LocalDesk>,
    ask: Ask,
    asked: mpsc::Sender<RoundId>,
    sends: mpsc::Receiver<Stopwatch>,
    is_answered_elsewhere: bool,
}

impl Slot {
    async fn run(mut self, watch: Stopwatch, time: Duration) -> Result<Run, Error> {
        let mut done = Run::default();
        while watch.elapsed() < time {
            let cycle = Stopwatch::start();
            self.cycle(&mut done.wake).await?;
            done.cycle.add(cycle.elapsed());
            done.cycles += 1;
        }
        Ok(done)
    }

    /// Waits for the answer. One that is given elsewhere is taken afterwards.
    async fn come(&self, round: RoundId, seen: u32, fence: &Fence) -> Result<(), Error> {
        if self.is_answered_elsewhere {
            return self.desk.wait(round, seen, WAIT).await.map(drop);
        }
        match self.desk.receive(round, fence.clone(), WAIT).await? {
            Received::Handed(_) => Ok(()),
            Received::Failed(_) => Err(Error::Corrupt("round")),
        }
    }

    async fn cycle(&mut self, wake: &mut Samples) -> Result<(), Error> {
        let gone = || Error::Unavailable("whoever answers has stopped".to_owned());
        let opened = self.desk.open(self.ask.clone(), None).await?;
        let (round, fence) = (opened.round.round_id, opened.fence.ok_or(Error::Corrupt("round"))?);
        // The wait is registered by its first poll, before whoever answers hears of the round.
        let waiting = self.come(round, opened.round.rev, &fence);
        let (came, told) = tokio::join!(biased; waiting, self.asked.send(round));
        told.map_err(|_| gone())?;
        let sent = self.sends.recv().await.ok_or_else(gone)?;
        wake.add(sent.elapsed());
        came?;
        if self.is_answered_elsewhere {
            self.desk.start(round, fence.clone()).await?;
        }
        self.desk.settle(vec![Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)]).await
    }
}

/// A person who answers whatever is asked, and says when.
async fn answer_all(
    sayso: Sayso,
    answer: Answer,
    looks: bool,
    mut asks: mpsc::Receiver<RoundId>,
    sent: mpsc::Sender<Stopwatch>,
) -> Result<(), Error> {
    let people = sayso.people();
    while let Some(round) = asks.recv().await {
        if looks {
            people.show(round).await?;
        }
        if sent.send(Stopwatch::start()).await.is_err() {
            break;
        }
        people.answer(round, answer.clone(), "answer-1").await?;
    }
    Ok(())
}
