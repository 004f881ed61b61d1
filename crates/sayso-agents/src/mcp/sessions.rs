//! The sessions of clients, and what was asked in them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayso::{ExecutionId, LocalDesk, Principal, RoundId, Sayso};
use sayso_core::limits::{MCP_OPEN_REQUESTS_MAX, MCP_SESSIONS_MAX, MCP_SESSIONS_OF_ONE_MAX, OPEN_QUESTIONS_MAX};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long an identical call is taken for a retry of one whose answer was taken, from when it first was.
const RETRY_WITHIN: Duration = Duration::from_secs(10 * 60);

/// All sessions, by their ids. A session belongs to the credential it was begun with: its id is no capability.
#[derive(Default)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<String, Arc<Session>>>,
    uses: AtomicU64,
}

/// One client's connection.
pub(super) struct Session {
    pub caller: Principal,
    pub desk: LocalDesk,
    /// How long a tool call is held.
    pub hold: Duration,
    last_used: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests that are being answered, by their id as written, with the way to cancel each.
    open: HashMap<String, Arc<Notify>>,
    asked: Vec<Asked>,
    /// How many calls have put questions.
    calls: u64,
}

/// Questions that the agent puts. They are noted before they are stored: a client that goes away in between finds the
/// same round by its retry.
struct Asked {
    /// Which they are among the session's own.
    number: u64,
    /// The tool's arguments in canonical form: equal ones are the same call.
    text: String,
    /// Where they are stored, once that is known.
    stored: Option<(RoundId, ExecutionId)>,
    /// Whether a request waits for the answer now.
    is_held: bool,
    /// Whether such a request has ended without it.
    was_parked: bool,
    taken_at: Option<Instant>,
}

impl Sessions {
    /// Keeps a new session; its id. Where there are too many, the one that was used longest ago goes, sooner one of the
    /// same agent's.
    pub(super) fn begin(&self, session: Arc<Session>) -> String {
        let id = session.desk.owner_id().to_owned();
        session.last_used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_id.values().filter(|other| other.caller == session.caller).count();
        let is_full = by_id.len() >= MCP_SESSIONS_MAX;
        if own >= MCP_SESSIONS_OF_ONE_MAX || is_full {
            let is_candidate = |other: &Session| own < MCP_SESSIONS_OF_ONE_MAX || other.caller == session.caller;
            let candidates = by_id.iter().filter(|(_, other)| is_candidate(other));
            let oldest = candidates.min_by_key(|(_, other)| other.last_used.load(Ordering::Relaxed));
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| by_id.remove(&id));
        }
        by_id.insert(id.clone(), session);
        id
    }

    /// The caller's session of this id.
    pub(super) fn find(&self, caller: &Principal, id: &str) -> Option<Arc<Session>> {
        let by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        let session = by_id.get(id).filter(|session| session.caller == *caller)?.clone();
        session.last_used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(session)
    }

    /// Ends the caller's session of this id; whether there was one. What was asked in it goes on being asked.
    pub(super) fn end(&self, caller: &Principal, id: &str) -> bool {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = by_id.get(id).is_some_and(|session| session.caller == *caller);
        is_own && by_id.remove(id).is_some()
    }
}

impl Session {
    /// A session of `caller`'s.
    pub(super) fn new(sayso: &Sayso, caller: Principal, hold: Duration) -> Self {
        let desk = sayso.desk(caller.clone());
        Self { caller, desk, hold, last_used: AtomicU64::new(0), state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of this id is being answered from now on. The error says why it is not.
    pub(super) fn open(self: &Arc<Self>, id: &str) -> Result<OpenRequest, &'static str> {
        let mut state = self.state();
        if state.open.contains_key(id) {
            return Err("a request with this id is still open");
        }
        if state.open.len() >= MCP_OPEN_REQUESTS_MAX {
            return Err("too many requests are open at once");
        }
        let cancelled = Arc::new(Notify::new());
        state.open.insert(id.to_owned(), cancelled.clone());
        Ok(OpenRequest { session: self.clone(), id: id.to_owned(), cancelled })
    }

    /// The client gives a request up.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.state().open.get(id) {
            cancelled.notify_one();
        }
    }

    /// The questions that an identical call has put, where this is a retry of it: one that no request waits for, and
    /// whose answer nobody has taken, or took so recently after a request for it had ended.
    pub(super) fn retried(self: &Arc<Self>, text: &str) -> Option<Held> {
        let mut state = self.state();
        let is_retry = |asked: &Asked| {
            let is_fresh = asked.taken_at.is_none_or(|at| asked.was_parked && at.elapsed() < RETRY_WITHIN);
            asked.text == text && !asked.is_held && is_fresh
        };
        let asked = state.asked.iter_mut().find(|asked| is_retry(asked))?;
        Some(self.hold(asked))
    }

    /// Takes note of questions that are put now and will be waited for.
    pub(super) fn noted(self: &Arc<Self>, text: String) -> Held {
        let mut state = self.state();
        if state.asked.len() >= OPEN_QUESTIONS_MAX {
            // Of a question that is forgotten here only a retry knows nothing; its round goes on.
            let oldest = state.asked.iter().position(|asked| !asked.is_held).unwrap_or_default();
            state.asked.remove(oldest);
        }
        state.calls += 1;
        let (number, stored, is_held, was_parked, taken_at) = (state.calls, None, false, false, None);
        let mut asked = Asked { number, text, stored, is_held, was_parked, taken_at };
        let held = self.hold(&mut asked);
        state.asked.push(asked);
        held
    }

    /// Holds the questions of a round, where they were put in this session.
    pub(super) fn hold_again(self: &Arc<Self>, round: RoundId) -> Option<Held> {
        let mut state = self.state();
        let is_it = |asked: &Asked| asked.stored.is_some_and(|(stored, _)| stored == round) && !asked.is_held;
        let asked = state.asked.iter_mut().find(|asked| is_it(asked))?;
        Some(self.hold(asked))
    }

    fn hold(self: &Arc<Self>, asked: &mut Asked) -> Held {
        asked.is_held = true;
        Held { session: self.clone(), number: asked.number, is_taken: false }
    }
}

/// A request that is being answered, until this is dropped.
pub(super) struct OpenRequest {
    session: Arc<Session>,
    id: String,
    cancelled: Arc<Notify>,
}

impl OpenRequest {
    /// Returns once the client has given it up.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.session.state().open.remove(&self.id);
    }
}

/// A request that waits for the answer to questions. Dropped before the answer was taken, it leaves them for a retry.
pub(super) struct Held {
    session: Arc<Session>,
    number: u64,
    is_taken: bool,
}

impl Held {
    /// The idempotency key under which the questions are stored.
    pub(super) fn key(&self) -> String {
        format!("{}:{}", self.session.desk.owner_id(), self.number)
    }

    /// Where the questions are stored, as far as that is known.
    pub(super) fn asked(&self) -> Option<(RoundId, ExecutionId)> {
        self.session.state().asked.iter().find(|asked| asked.number == self.number)?.stored
    }

    /// The questions are stored there.
    pub(super) fn put(&self, stored: (RoundId, ExecutionId)) -> (RoundId, ExecutionId) {
        let mut state = self.session.state();
        if let Some(asked) = state.asked.iter_mut().find(|asked| asked.number == self.number) {
            asked.stored = Some(stored);
        }
        stored
    }

    /// The client has the answer, where there was one.
    pub(super) fn collect(held: Option<Self>) {
        if let Some(mut held) = held {
            held.is_taken = true;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let Some(asked) = state.asked.iter_mut().find(|asked| asked.number == self.number) else { return };
        asked.is_held = false;
        if self.is_taken {
            // A retry that reads it again does not begin the time anew.
            asked.taken_at.get_or_insert_with(Instant::now);
        } else {
            asked.was_parked = true;
        }
    }
}
