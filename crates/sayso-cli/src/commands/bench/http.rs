//! The figures over HTTP: real tokens, kept-alive connections, long polls, and the load on the same cores.

use std::path::Path;
use std::time::Duration;

use sayso::Error;
use sayso::measure::{self, Effort, Measured, Name, Pairs, Progress, Run, Samples, Stopwatch, commit_millis, millis};
use sayso::{RoundId, Sayso};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::connection::Connection;
use super::serving::{self, Credentials, Server};

/// The wanted ones of `sequential_http`, `wake_http`, `http_64` and `cpu_http`.
pub async fn measure(
    folder: &Path,
    wanted: &[Name],
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let wants = |names: &[Name]| names.iter().any(|name| wanted.contains(name));
    let mut measured = Measured::default();
    if wants(&[Name::SequentialHttp, Name::WakeHttp]) {
        progress("over HTTP, SQLite, 1 waiter at a time, beside S1 and single commits");
        let pairs = pairs(folder, 1, effort).await?;
        let commit = commit_millis(folder, effort).await?;
        let s1 = pairs.limit(|raw| millis(raw.took.percentile(50)));
        measured.limit("S1_p50 (HTTP)", s1, "ms");
        measured.limit("commit_p50 (HTTP)", commit, "ms");
        measured.against(Name::SequentialHttp, pairs.reached(|run| millis(run.cycle.percentile(50))), s1);
        measured.against(Name::WakeHttp, pairs.reached(|run| millis(run.wake.percentile(50))), commit);
        measured.also("http_1", pairs.reached(Run::per_second), "cycles/s");
        measured.also("wake_http_p99", pairs.reached(|run| millis(run.wake.percentile(99))), "ms");
    }
    if wants(&[Name::Http64, Name::CpuHttp]) {
        progress("over HTTP, SQLite, 64 waiters, beside S64");
        let pairs = pairs(folder, 64, effort).await?;
        let s64 = pairs.limit(|raw| raw.per_second);
        measured.limit("S64 (HTTP)", s64, "cycles/s");
        measured.against(Name::Http64, pairs.reached(Run::per_second), s64);
        measured.figure(Name::CpuHttp, pairs.reached(Run::cpu_micros));
    }
    measured.figures.retain(|name, _| wanted.contains(name));
    Ok(measured)
}

async fn pairs(folder: &Path, waiters: usize, effort: Effort) -> Result<Pairs, Error> {
    Pairs::measure(folder, waiters, effort, async |data| {
        let sayso = Sayso::open(serving::options(data)).await?;
        let credentials = Credentials::make(&sayso).await?;
        drop(sayso);
        let server = Server::start(data).await?;
        let (server, run) = on_one_thread(server, credentials, waiters, effort.time).await?;
        server.kill().await?;
        run
    })
    .await
}

/// Cycles on one thread, which carries the whole load: what needs not be handed from thread to thread takes less of the
/// cores that the load shares with the server.
async fn on_one_thread(
    server: Server,
    credentials: Credentials,
    waiters: usize,
    time: Duration,
) -> Result<(Server, Result<Run, Error>), Error> {
    let interrupted = |_| Error::Unavailable("a measurement was interrupted".to_owned());
    let load = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let run = match runtime {
            Ok(runtime) => runtime.block_on(cycles(&server, &credentials, waiters, time)),
            Err(_) => Err(Error::Unavailable("no load could be made".to_owned())),
        };
        (server, run)
    };
    tokio::task::spawn_blocking(load).await.map_err(interrupted)
}

/// Cycles for `time`, `waiters` at once; each has a connection that asks and one that answers.
async fn cycles(server: &Server, credentials: &Credentials, waiters: usize, time: Duration) -> Result<Run, Error> {
    let texts = Texts::new()?;
    let mut slots = Vec::with_capacity(waiters);
    for _ in 0..waiters {
        slots.push((server.agent(credentials).await?, server.person(credentials).await?));
    }
    let cpu_before = server.cpu_time().unwrap_or_default();
    let watch = Stopwatch::start();
    let running: Vec<_> = slots
        .into_iter()
        .map(|(agent, person)| {
            let (asked, asks) = mpsc::channel(1);
            let (sent, sends) = mpsc::channel(1);
            tokio::spawn(answer_all(person, texts.answer.clone(), asks, sent));
            tokio::spawn(Slot { agent, ask: texts.ask.clone(), asked, sends }.run(watch, time))
        })
        .collect();
    let mut whole = Run::default();
    for slot in running {
        let run = slot.await.map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))??;
        whole.cycles += run.cycles;
        whole.cycle.append(run.cycle);
        whole.wake.append(run.wake);
    }
    whole.elapsed = watch.elapsed();
    whole.cpu = server.cpu_time().unwrap_or_default().saturating_sub(cpu_before);
    Ok(whole)
}

/// The bodies that are sent.
struct Texts {
    ask: String,
    answer: String,
}

impl Texts {
    fn new() -> Result<Self, Error> {
        let unwritable = |_| Error::Corrupt("request");
        let ask = serde_json::to_string(&measure::ask()?).map_err(unwritable)?;
        Ok(Self { ask, answer: answer_text()? })
    }
}

/// The body of an answer to any round of a measurement.
pub fn answer_text() -> Result<String, Error> {
    serde_json::to_string(&measure::answer()?).map_err(|_| Error::Corrupt("answer"))
}

#[derive(Deserialize)]
struct Asked {
    round_id: RoundId,
}

/// An agent with one question at a time.
struct Slot {
    agent: Connection,
    ask: String,
    asked: mpsc::Sender<RoundId>,
    sends: mpsc::Receiver<Stopwatch>,
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

    async fn cycle(&mut self, wake: &mut Samples) -> Result<(), Error> {
        let gone = || Error::Unavailable("whoever answers has stopped".to_owned());
        let text = self.agent.post("/v1/rounds", None, &self.ask).await?;
        let Asked { round_id: round } = serde_json::from_slice(text).map_err(|_| Error::Corrupt("round"))?;
        let path = format!("/v1/rounds/{round}/collect?wait=45s");
        // The long poll is sent by its first poll, before whoever answers hears of the round.
        let (collected, told) =
            tokio::join!(biased; self.agent.post(&path, Some("collect-1"), ""), self.asked.send(round));
        told.map_err(|_| gone())?;
        let sent = self.sends.recv().await.ok_or_else(gone)?;
        wake.add(sent.elapsed());
        collected.map(drop)
    }
}

/// A person who answers whatever is asked, and says when.
async fn answer_all(
    mut person: Connection,
    answer: String,
    mut asks: mpsc::Receiver<RoundId>,
    sent: mpsc::Sender<Stopwatch>,
) -> Result<(), Error> {
    while let Some(round) = asks.recv().await {
        if sent.send(Stopwatch::start()).await.is_err() {
            break;
        }
        person.post(&format!("/v1/rounds/{round}/responses"), Some("answer-1"), &answer).await?;
    }
    Ok(())
}
