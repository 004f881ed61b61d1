//! Waiting without polling. A hint wakes whoever waits for that row. It brings the row where this process has just
//! committed it, or where another one that did says so under seal; otherwise the row is read again before anything is
//! believed.

use std::future::poll_fn;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::Round;
use sayso_store::{ChangedRound, Hints, Observing, Store};
use tokio::sync::{Notify, watch};

use crate::bell::{Bell, Taker};
use crate::heard::Heard;
use crate::open::Inner;

/// How often a process with somebody waiting compares the store's last event with the one before: the bound on how late
/// a wake-up is when every hint was lost.
pub(crate) const CATCH_UP_EVERY: Duration = Duration::from_secs(1);

/// Hears the store's hints and wakes who waits. Cheap to clone.
#[derive(Clone, Default)]
pub struct Hub {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    rounds: Waiters<RoundId>,
    executions: Waiters<ExecutionId>,
    heard: Heard,
    events: watch::Sender<u64>,
    waiting: AtomicU64,
    began: Notify,
    /// One guard for all who wait. It outlives the last of them by a moment: the next one often comes at once.
    observing: Mutex<Option<Observing>>,
}

struct Waiters<K>(Mutex<HashMap<K, Bells>>);

/// Those who wait for one row: nearly always one.
enum Bells {
    One(Arc<Bell>),
    Several(Box<[Arc<Bell>]>),
}

impl Deref for Bells {
    type Target = [Arc<Bell>];
    fn deref(&self) -> &[Arc<Bell>] {
        match self {
            Self::One(bell) => std::slice::from_ref(bell),
            Self::Several(bells) => bells,
        }
    }
}

impl FromIterator<Arc<Bell>> for Bells {
    fn from_iter<I: IntoIterator<Item = Arc<Bell>>>(bells: I) -> Self {
        Self::Several(bells.into_iter().collect())
    }
}

impl<K> Default for Waiters<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Copy + Eq + Hash> Waiters<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Bells>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, key: K) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        let mut waiters = self.lock();
        let others = waiters.remove(&key);
        let bells = match others {
            None => Bells::One(bell.clone()),
            Some(others) => others.iter().cloned().chain([bell.clone()]).collect(),
        };
        waiters.insert(key, bells);
        bell
    }

    fn remove(&self, key: K, bell: &Arc<Bell>) {
        let mut waiters = self.lock();
        let Some(bells) = waiters.remove(&key) else { return };
        let others: Bells = bells.iter().filter(|known| !Arc::ptr_eq(known, bell)).cloned().collect();
        if !others.is_empty() {
            waiters.insert(key, others);
        }
    }

    fn wake<'r>(&self, changed: impl Iterator<Item = (K, Option<&'r Arc<Round>>)>) {
        let waiters = self.lock();
        for (key, row) in changed {
            waiters.get(&key).into_iter().flat_map(Deref::deref).for_each(|bell| bell.tell(row));
        }
    }

    fn wake_all(&self) {
        self.lock().values().flat_map(Deref::deref).for_each(|bell| bell.tell(None));
    }
}

/// What somebody waits for.
#[derive(Clone, Copy)]
pub(crate) enum Awaited {
    Round(RoundId),
    Execution(ExecutionId),
}

/// Registered before the row is read, so that no change falls between reading and waiting.
pub(crate) struct Listener {
    shared: Arc<Shared>,
    awaited: Awaited,
    bell: Arc<Bell>,
}

impl Listener {
    /// Returns when the row may have changed; with the row, if it is a round's and whoever committed it says so.
    pub(crate) async fn maybe_changed(&self) -> Option<Arc<Round>> {
        poll_fn(|context| self.bell.poll_rung(context)).await
    }

    /// What the waiter is told by.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        match self.awaited {
            Awaited::Round(id) => self.shared.rounds.remove(id, &self.bell),
            Awaited::Execution(id) => self.shared.executions.remove(id, &self.bell),
        }
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Says when there may be new events.
pub struct EventFeed {
    shared: Arc<Shared>,
    receiver: watch::Receiver<u64>,
}

impl EventFeed {
    /// Returns when there may be events that were not there at the last call.
    pub async fn maybe_more(&mut self) {
        // The sender lives in what this feed keeps alive, so this only ever returns on a change.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for EventFeed {
    fn drop(&mut self) {
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn observing(&self) -> MutexGuard<'_, Option<Observing>> {
        self.observing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    fn begin(&self, store: &dyn Store) {
        if self.shared.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            self.shared.observing().get_or_insert_with(|| store.observe());
            self.shared.began.notify_one();
        }
    }

    pub(crate) fn listen(&self, awaited: Awaited, store: &dyn Store) -> Listener {
        self.begin(store);
        let bell = match awaited {
            Awaited::Round(id) => self.shared.rounds.add(id),
            Awaited::Execution(id) => self.shared.executions.add(id),
        };
        Listener { shared: self.shared.clone(), awaited, bell }
    }

    pub(crate) fn feed(&self, store: &dyn Store) -> EventFeed {
        self.begin(store);
        EventFeed { shared: self.shared.clone(), receiver: self.shared.events.subscribe() }
    }

    /// Takes up the offer of somebody who waits for the answer of this round.
    pub(crate) fn take_up(&self, round: RoundId) -> Option<Taker> {
        self.shared.rounds.lock().get(&round)?.iter().find_map(Bell::take_up)
    }

    /// Whether nobody waits. Then nothing is looked for, either, until somebody does.
    fn rests(&self) -> bool {
        // Whoever begins to wait counts before they look for the guard: either they find it gone or are counted here.
        let mut observing = self.shared.observing();
        let rests = self.shared.waiting.load(Ordering::SeqCst) == 0;
        if rests {
            *observing = None;
        }
        rests
    }

    /// What this process has heard of the rounds that it stored.
    pub(crate) fn heard(&self) -> &Heard {
        &self.shared.heard
    }

    fn wake_all(&self) {
        self.shared.heard.forget_all();
        self.shared.rounds.wake_all();
        self.shared.executions.wake_all();
        self.shared.events.send_modify(|generation| *generation += 1);
    }

    /// While somebody waits, catches up with the store once a second: hints may be lost, the row is the truth.
    pub(crate) fn watch_store(&self, inner: &Arc<Inner>) {
        let (hub, inner) = (self.clone(), Arc::downgrade(inner));
        tokio::spawn(async move {
            // What hints have told does not count: one about a later event may have come, and one about an earlier not.
            let mut seen_event = None;
            loop {
                if hub.rests() {
                    tokio::select! {
                        () = hub.shared.began.notified() => {}
                        () = tokio::time::sleep(CATCH_UP_EVERY * 60) => {}
                    }
                }
                tokio::time::sleep(CATCH_UP_EVERY).await;
                let Some(inner) = inner.upgrade() else { return };
                let Ok(last) = inner.store.last_event().await else { continue };
                if seen_event.replace(last) != Some(last) {
                    hub.wake_all();
                }
            }
        });
    }
}

impl Hints for Hub {
    fn changed(&self, rounds: &[ChangedRound], executions: &[ExecutionId], _last_event: u64) {
        self.shared.heard.changed(rounds);
        self.shared.rounds.wake(rounds.iter().map(|changed| (changed.id, changed.row.as_ref())));
        self.shared.executions.wake(executions.iter().map(|id| (*id, None)));
        self.shared.events.send_modify(|generation| *generation += 1);
    }

    fn changed_elsewhere(&self) {
        self.wake_all();
    }
}
