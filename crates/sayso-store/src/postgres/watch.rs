//! Hearing of other processes: by `LISTEN` on a connection of its own, or by following the events where nobody may
//! listen. Both only hint.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso_core::id::{ExecutionId, RoundId};
use tokio::sync::{Notify, watch};
use tokio_postgres::{AsyncMessage, Config, NoTls};

use super::connection::Pool;
use super::failure::Failure;
use super::known::Known;
use super::notice::{Heard, Notices};
use super::value::{Columns, Key};
use crate::{ChangedRound, Hints, Observing};

/// How long to wait before connecting again: this, then twice as long each time.
const RECONNECT_AFTER: Duration = Duration::from_millis(100);
const RECONNECT_AFTER_MAX: Duration = Duration::from_secs(5);
/// How often a process that has somebody waiting looks for changes by other processes.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Lists of events looked at in one go.
const LOOK_LISTS: i64 = 200;

/// Listens until the store is closed.
pub(super) async fn listen(
    config: Config,
    notices: Notices,
    hints: Arc<dyn Hints>,
    known: Arc<Known>,
    mut closed: watch::Receiver<()>,
) {
    tokio::select! {
        _ = closed.changed() => {}
        () = listen_for_ever(&config, &notices, hints.as_ref(), &known) => {}
    }
}

async fn listen_for_ever(config: &Config, notices: &Notices, hints: &dyn Hints, known: &Known) {
    let mut pause = RECONNECT_AFTER;
    loop {
        if listen_once(config, notices, hints, known).await {
            pause = RECONNECT_AFTER;
        }
        let jitter = Duration::from_millis(u64::from(getrandom::u32().unwrap_or_default() % 100));
        tokio::time::sleep(pause + jitter).await;
        pause = (pause * 2).min(RECONNECT_AFTER_MAX);
    }
}

/// Listens on one connection until it is lost; whether it got as far as listening.
async fn listen_once(config: &Config, notices: &Notices, hints: &dyn Hints, known: &Known) -> bool {
    let Ok((client, mut session)) = config.connect(NoTls).await else { return false };
    let statement = notices.listen();
    let listening = async {
        let done = client.batch_execute(&statement).await;
        if done.is_ok() {
            // What was committed before this is not heard of any more.
            hints.changed_elsewhere();
        }
        // Kept for as long as the session is heard: dropping the client ends it.
        if done.is_ok() { std::future::pending().await } else { false }
    };
    let hearing = async {
        while let Some(Ok(message)) = poll_fn(|context| session.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && let Some(Heard { concerned, row }) = notices.read(notification.payload())
            {
                let executions: Vec<ExecutionId> = concerned.executions.into_iter().collect();
                known.changed_elsewhere(concerned.rounds.iter().copied(), &executions);
                let changed = |id| ChangedRound { id, row: row.clone().filter(|row| row.id == id) };
                let rounds: Vec<_> = concerned.rounds.into_iter().map(changed).collect();
                hints.changed(&rounds, &executions, 0);
            }
        }
        true
    };
    tokio::select! {
        listened = listening => listened,
        heard = hearing => heard,
    }
}

/// Whether anybody waits, and so whether the events are followed.
#[derive(Default)]
pub(super) struct Observers {
    count: AtomicUsize,
    began: Notify,
}

impl Observers {
    pub(super) fn observe(self: &Arc<Self>) -> Observing {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.began.notify_one();
        }
        let observers = self.clone();
        Observing::new(Arc::new(move || {
            observers.count.fetch_sub(1, Ordering::SeqCst);
        }))
    }
}

/// Follows the events while somebody waits, until the store is closed.
pub(super) async fn follow(
    pool: Arc<Pool>,
    observers: Arc<Observers>,
    hints: Arc<dyn Hints>,
    mut closed: watch::Receiver<()>,
) {
    tokio::select! {
        _ = closed.changed() => {}
        () = follow_for_ever(&pool, &observers, hints.as_ref()) => {}
    }
}

async fn follow_for_ever(pool: &Pool, observers: &Observers, hints: &dyn Hints) {
    // Which events have been told of; unknown where it was not looked for a while.
    let mut told = None;
    loop {
        if observers.count.load(Ordering::SeqCst) == 0 {
            observers.began.notified().await;
            told = None;
            continue;
        }
        // A look that fails is made up for by the next one that does not.
        if let Ok(last) = look(pool, told, hints).await {
            told = Some(last);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Tells of the events after `told`; the number of the last one that was told of.
async fn look(pool: &Pool, told: Option<i64>, hints: &dyn Hints) -> Result<i64, Failure> {
    let mut db = pool.take().await?;
    let Some(told) = told else {
        let found = db.first("SELECT last_seq FROM sequencer", &[]).await?;
        let last = found.as_ref().map_or(Ok(0), |row| Columns::of(row, "event").get(0))?;
        // Somebody may have begun to wait before this look and after the last change.
        hints.changed_elsewhere();
        return Ok(last);
    };
    let sql =
        "SELECT last_seq, round_id, execution_id FROM event_groups WHERE last_seq > $1 ORDER BY last_seq LIMIT $2";
    let found = db.query(sql, &[&told, &LOOK_LISTS]).await?;
    let (mut rounds, mut executions, mut last) = (Vec::new(), Vec::new(), told);
    for row in &found {
        let columns = Columns::of(row, "event");
        last = columns.get(0)?;
        let (about_rounds, about_executions): (Vec<Option<Key>>, Vec<Option<Key>>) = (columns.get(1)?, columns.get(2)?);
        rounds.extend(about_rounds.iter().flatten().map(|key| ChangedRound::from(RoundId::from_bytes(key.0))));
        executions.extend(about_executions.iter().flatten().map(|key| ExecutionId::from_bytes(key.0)));
    }
    if !found.is_empty() {
        hints.changed(&rounds, &executions, u64::try_from(last).unwrap_or_default());
    }
    Ok(last)
}
