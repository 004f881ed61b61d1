//! The places rounds are kept in, and processes that come and go over them.

use std::sync::{Arc, Mutex};

use sayso::{Fence, Hub, LocalDesk, Principal, Sayso, Sweeper};
use sayso_store::clock::ManualClock;
use sayso_store::memory::{MemoryData, MemoryStore};
use sayso_store::{Hints, SqliteOptions, SqliteStore, Store};

use crate::faults::{Fate, Faulty, Gap, HardOfHearing, Hearing, InFlight};
use crate::rng::Rng;

/// Which store a seed is tried on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Memory,
    Sqlite,
}

/// What outlives every process.
pub enum Disk {
    Memory(MemoryData),
    Sqlite(tempfile::TempDir),
}

impl Disk {
    pub fn new(kept: Kept) -> Self {
        match kept {
            Kept::Memory => Self::Memory(MemoryData::default()),
            Kept::Sqlite => Self::Sqlite(memory_folder()),
        }
    }

    pub fn open(&self, clock: &Arc<ManualClock>, hints: Option<Arc<dyn Hints>>) -> Arc<dyn Store> {
        match self {
            Self::Memory(data) => Arc::new(MemoryStore::open(data, clock.clone(), hints)),
            Self::Sqlite(folder) => {
                let options = SqliteOptions { clock: clock.clone(), hints };
                Arc::new(SqliteStore::open(&folder.path().join("sayso.sqlite"), options).expect("opens"))
            }
        }
    }
}

/// A folder whose disk is memory, where there is one: what is tried is who dies when, not the disk.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// How far a worker has got with a round it holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has been handed over.
    Open,
    /// The answer has left; whether it arrived.
    Started { arrived: bool },
    /// The receipt is stored.
    Delivered,
}

/// A round that a worker holds. It dies with the process.
#[derive(Clone)]
pub struct Held {
    /// The number of the question.
    pub asked: usize,
    pub fence: Fence,
    pub stage: Stage,
}

pub fn agent() -> Principal {
    Principal::agent("booking")
}

pub fn ada() -> Principal {
    Principal::person("local:ada")
}

/// What all processes of a world share, beside its disk.
#[derive(Clone, Default)]
pub struct Shared {
    pub in_flight: InFlight,
    /// One call of the world at a time.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    pub gap: Arc<Gap>,
}

/// One process: what is in here is lost when it dies.
pub struct Process {
    pub sayso: Sayso,
    pub desk: LocalDesk,
    pub sweeper: Sweeper,
    pub fate: Arc<Fate>,
    pub held: Vec<Held>,
}

impl Process {
    pub fn start(
        disk: &Disk,
        clock: &Arc<ManualClock>,
        hearing: Hearing,
        rng: &mut Rng,
        Shared { in_flight, turn, gap }: &Shared,
    ) -> Self {
        let hub = Hub::default();
        let chance = Mutex::new(rng.fork());
        let hints = Arc::new(HardOfHearing { hub: hub.clone(), hearing, chance });
        let fate = Fate::new(rng.fork(), gap.clone());
        let (in_flight, turn) = (in_flight.clone(), turn.clone());
        let store = Arc::new(Faulty { store: disk.open(clock, Some(hints)), fate: fate.clone(), in_flight, turn });
        let sayso = Sayso::over(store, hub, ada(), false).expect("opens");
        Self { desk: sayso.desk(agent()), sayso, sweeper: Sweeper::default(), fate, held: Vec::new() }
    }
}
