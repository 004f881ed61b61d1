//! The figures with a million rounds pending.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sayso::measure::pending::{self, Deadlines};
use sayso::measure::{Effort, Many, Measured, Name, Progress, Stopwatch, median, millis};
use sayso::{Error, Sayso};
use sayso_store::clock::{Clock as _, ManualClock, SystemClock};
use sayso_store::{SqliteOptions, SqliteStore, Store as _};

use super::http::answer_text;
use super::serving::{self, Credentials, Server};

const DAY_MS: i64 = 24 * 3600 * 1000;
/// Rounds read, answers given before a kill.
const SAMPLES: usize = 400;
/// Whoever has not enforced a deadline by then is not measured any longer.
const PATIENCE: Duration = Duration::from_secs(180);

const FIGURES: [Name; 7] = [
    Name::WaiterBytes,
    Name::ListLatency,
    Name::PendingBytes,
    Name::IdleCpu,
    Name::FirstAnswerAfterKill,
    Name::DeadlinesAfterKill,
    Name::RandomAnswers,
];

/// The wanted ones of the figures that need many pending rounds.
pub async fn measure(
    folder: &Path,
    wanted: &[Name],
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    if !FIGURES.iter().any(|name| wanted.contains(name)) {
        return Ok(measured);
    }
    let wants = |name| wanted.contains(&name);
    let data = folder.join("many");
    let mut served = Served::make(&data, effort, progress).await?;
    if wants(Name::ListLatency) {
        progress("listing pages");
        served.many.list(&served.sayso, &mut measured).await?;
    }
    if wants(Name::WaiterBytes) {
        progress("parking a waiter on each pending round");
        served.many.park(&served.sayso, &mut measured, progress).await?;
    }
    if wants(Name::PendingBytes) || wants(Name::IdleCpu) {
        progress("sayso serve beside them");
        served.serve(&folder.join("empty"), effort, &mut measured).await?;
    }
    if wants(Name::FirstAnswerAfterKill) {
        progress("sayso serve is killed, and answers again");
        let first = served.first_answer(effort).await?;
        measured.figure(Name::FirstAnswerAfterKill, first);
    }
    if wants(Name::DeadlinesAfterKill) {
        progress("deadlines pass while sayso serve is killed");
        let enforced = served.deadlines(effort, progress).await?;
        measured.figure(Name::DeadlinesAfterKill, enforced);
    }
    if wants(Name::RandomAnswers) {
        progress("answers in random order, 64 at a time");
        served.many.answer(&served.sayso, effort, &mut measured).await?;
    }
    drop(served);
    // What stays behind is removed with the folder that it is in.
    let _ = std::fs::remove_dir_all(&data);
    measured.figures.retain(|name, _| wanted.contains(name));
    Ok(measured)
}

/// A store with many pending rounds, and who may use it over HTTP.
struct Served<'a> {
    data: &'a Path,
    sayso: Sayso,
    credentials: Credentials,
    many: Many,
}

impl<'a> Served<'a> {
    async fn make(data: &'a Path, effort: Effort, progress: Progress<'_>) -> Result<Self, Error> {
        let sayso = Sayso::open(serving::options(data)).await?;
        let credentials = Credentials::make(&sayso).await?;
        let many = Many::make(&sayso, effort, progress).await?;
        Ok(Self { data, sayso, credentials, many })
    }

    /// Memory of a server beside all these rounds, against one beside none; and the CPU it takes when nothing happens.
    async fn serve(&self, empty: &Path, effort: Effort, measured: &mut Measured) -> Result<(), Error> {
        let alone = Server::start(empty).await?;
        settle().await;
        let base = alone.resident_bytes()?;
        alone.kill().await?;
        let server = Server::start(self.data).await?;
        let mut person = server.person(&self.credentials).await?;
        person.get("/v1/rounds").await?;
        for round in self.many.rounds.iter().take(SAMPLES) {
            person.get(&format!("/v1/rounds/{round}")).await?;
        }
        settle().await;
        let (cpu, watch) = (server.cpu_time()?, Stopwatch::start());
        tokio::time::sleep(effort.time * 4).await;
        let idle = server.cpu_time()?.saturating_sub(cpu).as_secs_f64() / watch.elapsed().as_secs_f64();
        let resident = server.resident_bytes()?.saturating_sub(base);
        server.kill().await?;
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory and rows stay far below 2^52")]
        measured.figure(Name::PendingBytes, resident as f64 / self.many.rounds.len() as f64);
        measured.figure(Name::IdleCpu, idle * 100.0);
        Ok(())
    }

    /// From starting a killed server again to its first accepted answer, in milliseconds.
    async fn first_answer(&mut self, effort: Effort) -> Result<f64, Error> {
        let answer = answer_text()?;
        let mut all = Vec::new();
        for _ in 0..effort.runs {
            let server = Server::start(self.data).await?;
            let mut person = server.person(&self.credentials).await?;
            for round in self.many.take(SAMPLES) {
                person.post(&format!("/v1/rounds/{round}/responses"), Some("answer-1"), &answer).await?;
            }
            server.kill().await?;
            let one = self.many.take(1);
            let watch = Stopwatch::start();
            let server = Server::start(self.data).await?;
            let mut person = server.person(&self.credentials).await?;
            for round in one {
                person.post(&format!("/v1/rounds/{round}/responses"), Some("answer-1"), &answer).await?;
            }
            all.push(millis(watch.elapsed()));
            server.kill().await?;
        }
        Ok(median(all))
    }

    /// From starting a server to the end of every round whose deadline passed before, in milliseconds.
    async fn deadlines(&self, effort: Effort, progress: Progress<'_>) -> Result<f64, Error> {
        let now = SystemClock.now();
        // Asked two hours ago, until an hour ago.
        let then = Arc::new(ManualClock::at(now.plus_ms(-2 * DAY_MS / 24)));
        let past = Sayso::open(serving::options(self.data).clock(then)).await?;
        let overdue = Deadlines::All(now.plus_ms(-DAY_MS / 24));
        pending::make(&past, effort.overdue, overdue, &|_| {}).await?;
        drop(past);
        let file = self.data.join("sayso.sqlite");
        let looking = SqliteStore::open(&file, SqliteOptions::default())?;
        let watch = Stopwatch::start();
        let server = Server::start(self.data).await?;
        while !looking.overdue(now, 1).await?.is_empty() {
            if watch.elapsed() > PATIENCE {
                progress("some deadlines are not enforced yet; no longer waited for");
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let enforced = millis(watch.elapsed());
        server.kill().await?;
        Ok(enforced)
    }
}

/// What a process does after its start is over by then.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}
