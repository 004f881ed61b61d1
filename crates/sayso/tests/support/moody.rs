//! A store that passes everything on, unless it is told not to.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sayso::{Error, ExecutionFilter, ExecutionId, GrantFilter, GrantId, Json, RoundFilter, RoundId, UnixMs};
use sayso_core::command::{Command, Reply, Token};
use sayso_core::event::Event;
use sayso_core::execution::Execution;
use sayso_core::policy::Grant;
use sayso_core::principal::Principal;
use sayso_core::round::{Digest, Round};
use sayso_store::{Abandoned, Observing, Store, StoredAnswer, StoredRound};

pub struct Moody {
    store: Arc<dyn Store>,
    refuses_writes: AtomicBool,
    refuses_reads_once_written: AtomicBool,
    has_written: AtomicBool,
    commits: AtomicUsize,
    unreadable: Mutex<Option<RoundId>>,
    known: Mutex<Option<Arc<Round>>>,
}

fn full() -> Error {
    Error::Unavailable("the disk is full; nothing was changed".to_owned())
}

impl Moody {
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            refuses_writes: AtomicBool::new(false),
            refuses_reads_once_written: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
            commits: AtomicUsize::new(0),
            unreadable: Mutex::new(None),
            known: Mutex::new(None),
        }
    }

    /// From now on (or no longer) nothing can be stored.
    pub fn refuse_writes(&self, refuses: bool) {
        self.refuses_writes.store(refuses, Ordering::SeqCst);
    }

    /// From the next commit on nothing can be read, until this is taken back.
    pub fn refuse_reads_after_the_next_write(&self, refuses: bool) {
        self.has_written.store(false, Ordering::SeqCst);
        self.refuses_reads_once_written.store(refuses, Ordering::SeqCst);
    }

    /// Commands on this round find a row that cannot be read.
    pub fn make_unreadable(&self, round: RoundId) {
        *self.unreadable.lock().expect("the lock") = Some(round);
    }

    /// Takes this row for what is stored, whatever becomes of it.
    pub fn remember(&self, row: Round) {
        *self.known.lock().expect("the lock") = Some(Arc::new(row));
    }

    /// How many units came so far that it passed on.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    fn reads(&self) -> Result<&dyn Store, Error> {
        let refuses = self.refuses_reads_once_written.load(Ordering::SeqCst) && self.has_written.load(Ordering::SeqCst);
        if refuses { Err(full()) } else { Ok(self.store.as_ref()) }
    }
}

#[async_trait]
impl Store for Moody {
    async fn commit(&self, unit: Vec<Command>) -> Result<Vec<Reply>, Error> {
        if self.refuses_writes.load(Ordering::SeqCst) {
            return Err(full());
        }
        let unreadable = *self.unreadable.lock().expect("the lock");
        let meets = |command: &Command| matches!(command, Command::Expire { round } if Some(*round) == unreadable);
        if unit.iter().any(meets) {
            return Err(Error::Corrupt("round"));
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        let replies = self.store.commit(unit).await;
        self.has_written.store(true, Ordering::SeqCst);
        replies
    }
    async fn now(&self) -> Result<UnixMs, Error> {
        self.store.now().await
    }
    async fn round(&self, id: RoundId) -> Result<Option<StoredRound>, Error> {
        self.reads()?.round(id).await
    }
    async fn row(&self, id: RoundId) -> Result<Option<Round>, Error> {
        self.reads()?.row(id).await
    }
    fn known_row(&self, id: RoundId) -> Option<Arc<Round>> {
        self.known.lock().expect("the lock").clone().filter(|row| row.id == id)
    }
    async fn rounds(&self, filter: RoundFilter) -> Result<Vec<StoredRound>, Error> {
        self.reads()?.rounds(filter).await
    }
    async fn details(&self, id: RoundId) -> Result<Option<Json>, Error> {
        self.reads()?.details(id).await
    }
    async fn request_state(&self, id: RoundId) -> Result<Option<String>, Error> {
        self.reads()?.request_state(id).await
    }
    async fn lease_until(&self, owner: &str) -> Result<Option<UnixMs>, Error> {
        self.reads()?.lease_until(owner).await
    }
    async fn answer(&self, id: RoundId) -> Result<Option<StoredAnswer>, Error> {
        self.reads()?.answer(id).await
    }
    async fn execution(&self, id: ExecutionId) -> Result<Option<(Execution, Vec<RoundId>)>, Error> {
        self.reads()?.execution(id).await
    }
    async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<(Execution, Vec<RoundId>)>, Error> {
        self.reads()?.executions(filter).await
    }
    async fn result(&self, id: ExecutionId) -> Result<Option<Json>, Error> {
        self.reads()?.result(id).await
    }
    async fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.reads()?.events_after(seq, limit).await
    }
    async fn last_event(&self) -> Result<u64, Error> {
        self.reads()?.last_event().await
    }
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>, Error> {
        self.reads()?.token_by_hash(hash).await
    }
    async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.reads()?.tokens().await
    }
    async fn grant(&self, id: GrantId) -> Result<Option<Grant>, Error> {
        self.reads()?.grant(id).await
    }
    async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, Error> {
        self.reads()?.grants(filter).await
    }
    async fn reviewed(&self, by: &Principal, tool: &str) -> Result<Option<Digest>, Error> {
        self.reads()?.reviewed(by, tool).await
    }
    async fn overdue(&self, now: UnixMs, limit: usize) -> Result<Vec<RoundId>, Error> {
        self.reads()?.overdue(now, limit).await
    }
    async fn next_deadline(&self) -> Result<Option<UnixMs>, Error> {
        self.reads()?.next_deadline().await
    }
    async fn abandoned(&self, now: UnixMs, limit: usize) -> Result<Vec<Abandoned>, Error> {
        self.reads()?.abandoned(now, limit).await
    }
    async fn last_wait_ms(&self, server: &str) -> Result<Option<i64>, Error> {
        self.reads()?.last_wait_ms(server).await
    }
    fn observe(&self) -> Observing {
        self.store.observe()
    }
}
