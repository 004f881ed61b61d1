//! The world of one seed: a disk, a clock that steps, three processes, and what people and agents remember.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso::{Error, ErrorCode, ExecutionId, LocalDesk, RoundId, Sayso, Status, UnixMs, wire};
use sayso_core::execution::Execution;
use sayso_core::round::Round;
use sayso_store::clock::ManualClock;
use sayso_store::{ExecutionFilter, RoundFilter, Store};

use crate::faults::{Fate, Gap, Hearing, Kill};
use crate::process::{Disk, Kept, Process, Shared};
use crate::rng::Rng;

/// What broke an invariant, for a person.
pub type Checked = Result<(), String>;

/// What a verb came to: `None` if its process died on the way.
pub type Came<T> = Option<Result<T, Error>>;

pub const START: UnixMs = UnixMs(1_796_000_000_000);
pub const PROCESSES: usize = 3;
/// Long enough that no page of a list is ever full.
pub const ALL: usize = 1000;
const STEP_OF_TIME: Duration = Duration::from_secs(5);

macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use ensure;

/// A question, and what everybody outside the processes knows of it.
#[derive(Default)]
pub struct Asked {
    /// Under which key it was asked, if under one.
    pub key: Option<String>,
    pub live: bool,
    pub deadline: Option<UnixMs>,
    /// The execution that it was asked in, if its asker named one.
    pub within: Option<ExecutionId>,
    pub execution: Option<ExecutionId>,
    /// Whether its execution is known to have ended without its worker.
    pub is_orphaned: bool,
    /// As seen in the store.
    pub id: Option<RoundId>,
    /// Whether the asker was told that it is stored.
    pub acknowledged: bool,
    /// For a live one: the process that opened it, while it lives and has not left.
    pub holder: Option<usize>,
    /// Every key and value that somebody tried to answer with.
    pub tried: Vec<(String, String)>,
    /// The key and value whose acceptance somebody was told of.
    pub accepted: Option<(String, String)>,
    /// The values that left for the agent under a delivery that was started.
    pub sent: Vec<String>,
    /// Whether the agent has what was sent last.
    pub arrived: bool,
    /// How often somebody proved that a delivery had not arrived.
    pub proven_lost: usize,
    /// The keys under which somebody was told the answer at once.
    pub collected: Vec<String>,
}

/// A background wait for an answer that has ended.
pub struct Ended {
    pub asked: usize,
    pub key: String,
    pub outcome: Result<wire::Collected, Error>,
}

/// A background wait, for one process.
pub struct Waiting {
    pub asked: usize,
    pub task: tokio::task::JoinHandle<()>,
}

pub struct World {
    pub rng: Rng,
    pub clock: Arc<ManualClock>,
    /// Time as no clock steps it.
    pub monotonic: Duration,
    pub disk: Disk,
    pub witness: Arc<dyn Store>,
    pub processes: Vec<Process>,
    pub asked: Vec<Asked>,
    pub rows: BTreeMap<RoundId, Round>,
    pub executions: BTreeMap<ExecutionId, Execution>,
    pub last_event: (u64, [u8; 32]),
    pub ended: Arc<Mutex<Vec<Ended>>>,
    pub waiting: Vec<Waiting>,
    pub log: Vec<String>,
    pub numbers: usize,
    pub dies_at_times: bool,
    hearing: Hearing,
    pub shared: Shared,
    times: std::collections::BTreeSet<i64>,
}

impl World {
    pub fn new(seed: u64, kept: Kept, gap: Arc<Gap>) -> Self {
        let mut rng = Rng::new(seed);
        let (clock, disk) = (Arc::new(ManualClock::at(START)), Disk::new(kept));
        let hearing = rng.pick(&[Hearing::Good, Hearing::Half, Hearing::None]);
        let shared = Shared { gap, ..Shared::default() };
        let witness = disk.open(&clock, None);
        let mut start = || Process::start(&disk, &clock, hearing, &mut rng, &shared);
        let processes = (0..PROCESSES).map(|_| start()).collect();
        Self {
            witness,
            processes,
            rng,
            clock,
            disk,
            hearing,
            shared,
            monotonic: Duration::ZERO,
            asked: Vec::new(),
            rows: BTreeMap::new(),
            executions: BTreeMap::new(),
            last_event: (0, [0; 32]),
            ended: Arc::default(),
            waiting: Vec::new(),
            log: Vec::new(),
            numbers: 0,
            dies_at_times: true,
            times: std::collections::BTreeSet::new(),
        }
    }

    /// Adds to the story; ids are chance, and no part of it.
    pub fn note(&mut self, words: String) {
        let mut parts = words.split("rnd_");
        let mut line = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            line.push_str("a round");
            line.push_str(part.trim_start_matches(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()));
        }
        self.log.push(line);
    }

    /// A number that was not given before.
    pub fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    pub fn now(&self) -> UnixMs {
        sayso_store::clock::Clock::now(self.clock.as_ref())
    }

    /// Ids hold the millisecond they were made in and chance: no two are made in the same one, so that their order is
    /// the seed's.
    pub fn take_a_millisecond(&mut self) {
        while !self.times.insert(self.now().0) {
            self.clock.advance_ms(1);
        }
    }

    /// Lends a process out for one verb, in which it may die.
    pub fn lend(&mut self, process: usize) -> (Sayso, LocalDesk, Arc<Fate>) {
        let dies = self.dies_at_times && self.rng.one_in(9);
        let (calls, kill) = (1 + self.rng.below(5), self.rng.pick(&[Kill::Before, Kill::After]));
        let lent = &self.processes[process];
        if dies {
            lent.fate.arm(calls, kill);
        } else {
            lent.fate.disarm();
        }
        (lent.sayso.clone(), lent.desk.clone(), lent.fate.clone())
    }

    /// Buries the process and starts another in its place.
    pub fn restart(&mut self, process: usize) {
        self.note(format!("process {process} dies and is started again"));
        self.processes[process].fate.die();
        let fresh = Process::start(&self.disk, &self.clock, self.hearing, &mut self.rng, &self.shared);
        self.processes[process] = fresh;
        self.forget_holder(process);
    }

    /// The live questions of this process have nobody any more who could deliver them.
    pub fn forget_holder(&mut self, process: usize) {
        for asked in self.asked.iter_mut().filter(|asked| asked.holder == Some(process)) {
            asked.holder = None;
        }
    }

    /// Whoever died is started again; calls under way come to their end.
    pub async fn settle(&mut self) {
        for process in 0..PROCESSES {
            self.processes[process].fate.disarm();
        }
        let mut quiet = 0;
        while quiet < 8 {
            tokio::task::yield_now().await;
            quiet = if self.shared.in_flight.is_none() { quiet + 1 } else { 0 };
        }
        for process in 0..PROCESSES {
            if self.processes[process].fate.is_dead() {
                self.restart(process);
            }
        }
    }

    /// Time passes, for every clock.
    pub async fn pass(&mut self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP_OF_TIME);
            left -= step;
            self.clock.advance_ms(i64::try_from(step.as_millis()).expect("small"));
            self.monotonic += step;
            tokio::time::advance(step).await;
            self.settle().await;
        }
    }

    /// The row of a question, as the store has it.
    pub async fn row(&self, asked: usize) -> Result<Option<Round>, String> {
        let Some(id) = self.asked[asked].id else { return Ok(None) };
        let found = self.witness.round(id).await.map_err(|error| format!("a round cannot be read: {error}"))?;
        Ok(found.map(|found| found.row))
    }

    pub async fn all_rounds(&self) -> Result<Vec<sayso_store::StoredRound>, String> {
        let all = RoundFilter { limit: ALL, ..RoundFilter::default() };
        self.witness.rounds(all).await.map_err(|error| format!("rounds cannot be listed: {error}"))
    }

    pub async fn all_executions(&self) -> Result<Vec<(Execution, Vec<RoundId>)>, String> {
        let all = ExecutionFilter { limit: ALL, ..ExecutionFilter::default() };
        self.witness.executions(all).await.map_err(|error| format!("executions cannot be listed: {error}"))
    }

    /// A question that is in the store and that `suits`; most of the time one in these states.
    pub fn some_asked(&mut self, mostly: &[Status], suits: impl Fn(&Asked) -> bool) -> Option<usize> {
        let suiting = |asked: &Asked| asked.id.filter(|_| suits(asked)).and_then(|id| self.rows.get(&id));
        let all: Vec<(usize, Status)> =
            self.asked.iter().enumerate().filter_map(|(n, asked)| Some((n, suiting(asked)?.status))).collect();
        let likely: Vec<usize> = all.iter().filter(|(_, status)| mostly.contains(status)).map(|(n, _)| *n).collect();
        if !likely.is_empty() && !self.rng.one_in(6) {
            return Some(self.rng.pick(&likely));
        }
        (!all.is_empty()).then(|| self.rng.pick(&all).0)
    }

    /// A process whose worker holds something, most of the time.
    pub fn some_worker(&mut self) -> usize {
        let holds = |process: &usize| !self.processes[*process].held.is_empty();
        let likely: Vec<usize> = (0..PROCESSES).filter(holds).collect();
        if likely.is_empty() || self.rng.one_in(6) { self.rng.below(PROCESSES) } else { self.rng.pick(&likely) }
    }
}

/// No fault that is injected here makes a store unusable: these words would be a fault.
pub fn check_not_broken<T>(outcome: &Result<T, Error>) -> Checked {
    match outcome {
        Err(error) if matches!(error.code(), ErrorCode::Unavailable | ErrorCode::CorruptSuspendedState) => {
            Err(format!("the store is well, and somebody was told: {error}"))
        }
        _ => Ok(()),
    }
}
