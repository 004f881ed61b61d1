//! What goes wrong between a process and its store: it is killed before or after a call, calls of several processes
//! interleave, wake-ups are lost.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sayso::{Error, ExecutionFilter, ExecutionId, GrantFilter, GrantId, Hub, Json, RoundFilter, RoundId, UnixMs};
use sayso_core::command::{Command, Reply, Token};
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::Digest;
use sayso_store::{Abandoned, ChangedRound, Hints, Observing, Store, StoredAnswer, StoredRound};
use tokio::sync::Notify;

use crate::rng::Rng;

/// How many calls are under way in the whole world.
#[derive(Clone, Default)]
pub struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    pub fn is_none(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Where a process is killed.
#[derive(Debug, Clone, Copy)]
pub enum Kill {
    /// The call never reaches the store.
    Before,
    /// The call has its effect, and nobody is told.
    After,
}

/// The one call of the world, counted over all its processes, at which whoever makes it dies.
#[derive(Default)]
pub struct Gap {
    calls: AtomicUsize,
    at: Option<(usize, Kill)>,
    closed: AtomicBool,
}

impl Gap {
    /// The `call`th call from the beginning.
    pub fn at(call: usize, kill: Kill) -> Arc<Self> {
        Arc::new(Self { at: Some((call, kill)), ..Self::default() })
    }

    /// From now on calls are not counted.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether the call has come.
    pub fn was_reached(&self) -> bool {
        self.at.is_some_and(|(call, _)| self.calls.load(Ordering::SeqCst) >= call)
    }

    fn count(&self) -> Option<Kill> {
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.at.filter(|(call, _)| *call == calls).map(|(_, kill)| kill)
    }
}

/// Whether and when one process dies.
pub struct Fate {
    fuse: Mutex<Option<(usize, Kill)>>,
    dead: AtomicBool,
    died: Notify,
    chance: Mutex<Rng>,
    gap: Arc<Gap>,
}

impl Fate {
    pub fn new(chance: Rng, gap: Arc<Gap>) -> Arc<Self> {
        let fuse = Mutex::new(None);
        Arc::new(Self { fuse, dead: AtomicBool::new(false), died: Notify::new(), chance: Mutex::new(chance), gap })
    }

    /// The process dies at its `calls`th call from now.
    pub fn arm(&self, calls: usize, kill: Kill) {
        *self.fuse.lock().expect("the lock") = Some((calls, kill));
    }

    pub fn disarm(&self) {
        *self.fuse.lock().expect("the lock") = None;
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    pub fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_waiters();
        self.died.notify_one();
    }

    /// What the process was doing, to its end; `None` if it died on the way.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let died = self.died.notified();
        if self.is_dead() {
            return None;
        }
        tokio::select! {
            biased;
            () = died => None,
            done = work => (!self.is_dead()).then_some(done),
        }
    }

    /// Counts a call; says how the process dies at it, if it does.
    fn count(&self) -> Option<Kill> {
        if let Some(kill) = self.gap.count() {
            return Some(kill);
        }
        let mut fuse = self.fuse.lock().expect("the lock");
        let (left, kill) = (*fuse)?;
        *fuse = (left > 1).then(|| (left - 1, kill));
        (left <= 1).then_some(kill)
    }
}

/// A store as one process has it.
pub struct Faulty {
    pub store: Arc<dyn Store>,
    pub fate: Arc<Fate>,
    pub in_flight: InFlight,
    /// One call of the world at a time, so that the seed and not the machine decides their order.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

impl Faulty {
    async fn call<T>(&self, work: impl Future<Output = T>) -> T {
        let counted = Counted(self.in_flight.0.clone());
        counted.0.fetch_add(1, Ordering::SeqCst);
        let pauses = self.fate.chance.lock().expect("the lock").below(3);
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        let turn = self.turn.lock().await;
        let kill = if self.fate.is_dead() { Some(Kill::Before) } else { self.fate.count() };
        if !matches!(kill, Some(Kill::Before)) {
            let done = work.await;
            if kill.is_none() {
                return done;
            }
        }
        drop((turn, counted));
        self.fate.die();
        pending().await
    }
}

#[async_trait]
impl Store for Faulty {
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error> {
        self.call(self.store.commit(unit)).await
    }
    async fn now(&self) -> Result<UnixMs, Error> {
        self.call(self.store.now()).await
    }
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error> {
        self.call(self.store.round(id)).await
    }
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error> {
        self.call(self.store.rounds(filter)).await
    }
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error> {
        self.call(self.store.details(id)).await
    }
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error> {
        self.call(self.store.request_state(id)).await
    }
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error> {
        self.call(self.store.lease_until(owner)).await
    }
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error> {
        self.call(self.store.answer(id)).await
    }
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error> {
        self.call(self.store.execution(id)).await
    }
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error> {
        self.call(self.store.executions(filter)).await
    }
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error> {
        self.call(self.store.result(id)).await
    }
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.call(self.store.events_after(seq, limit)).await
    }
    async fn last_event(&self) -> Result<u64, Error> {
        self.call(self.store.last_event()).await
    }
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error> {
        self.call(self.store.token_by_hash(hash)).await
    }
    async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.call(self.store.tokens()).await
    }
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error> {
        self.call(self.store.grant(id)).await
    }
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error> {
        self.call(self.store.grants(filter)).await
    }
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error> {
        self.call(self.store.reviewed(by, tool)).await
    }
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error> {
        self.call(self.store.overdue(now, limit)).await
    }
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error> {
        self.call(self.store.next_deadline()).await
    }
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error> {
        self.call(self.store.abandoned(now, limit)).await
    }
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error> {
        self.call(self.store.last_wait_ms(server)).await
    }
    fn observe(&self) -> Observing {
        self.store.observe()
    }
}

/// How much of what changes a process hears of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    Good,
    Half,
    None,
}

/// Loses wake-ups. Those of other processes come when the machine likes, so all of them are lost.
pub struct HardOfHearing {
    pub hub: Hub,
    pub hearing: Hearing,
    pub chance: Mutex<Rng>,
}

impl Hints for HardOfHearing {
    fn changed(&self, rounds: &[ChangedRound], executions: &[ExecutionId], last_event: u64) {
        let hears = match self.hearing {
            Hearing::Good => true,
            Hearing::Half => self.chance.lock().expect("the lock").one_in(2),
            Hearing::None => false,
        };
        if hears {
            self.hub.changed(rounds, executions, last_event);
        }
    }
    fn changed_elsewhere(&self) {}
}
