//! Gives events their place in the chain. One process at a time does it, under a lease that is a row; the row's lock is
//! what keeps two apart in the moment when the lease changes hands. The lease is measured by the database's clock, also
//! where a test moves the clock that decides rounds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sayso_core::error::Error;
use sayso_core::event::{Event, NewEvent};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Config, Row, Statement};

use super::columns::{Column, of_events};
use super::connection::{Connection, PATIENCE, Parameter, Taken, ask};
use super::failure::Failure;
use super::open;
use super::rows;
use super::value::{Columns, Corrupt};

/// How long the lease is. Whoever lost the process that held it waits this long for their events.
const LEASE_MS: i64 = 3_000;
/// How often the holder looks for what others have written.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How often the others look whether the holder lives, and how often at most where they have something to do.
const STAND_BY_LOOK_EVERY: Duration = Duration::from_secs(1);
const STAND_BY_LOOK_AFTER: Duration = Duration::from_millis(50);
/// Under load a step is worth its commit only if it takes several batches' events. Whoever reads events does not wait for it.
const STEP_EVERY: Duration = Duration::from_millis(10);
/// How often a reader who waits for a step looks whether another process has done it.
const CATCH_UP_EVERY: Duration = Duration::from_millis(5);
/// Transactions whose events are taken in one step.
const STEP_LISTS: i64 = 64;
/// Events of a part of the chain that is stored as one list. So many fit on a page of the database, mostly.
const EVENTS_A_LIST: usize = 40;
/// How long a reader waits for events that were there before it asked: longer than it takes to replace a holder that died.
const CATCH_UP_MAX: Duration = Duration::from_secs(5);

/// The task's other end.
pub(super) struct Sequencer {
    /// Wakes the task: there is something to do.
    pub(super) wake: Arc<Notify>,
    /// Somebody waits for it: no pause.
    hurry: Arc<Notify>,
    /// Moves with every step that gave events their place.
    steps: watch::Receiver<u64>,
    _open: watch::Sender<()>,
}

impl Sequencer {
    pub(super) fn start(config: Config) -> Result<Self, Error> {
        let name =
            getrandom::u64().map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
        let (wake, hurry) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (stepped, steps) = watch::channel(0);
        let (open, closed) = watch::channel(());
        let task = Task {
            config,
            name: format!("{name:016x}"),
            db: None,
            holds: false,
            wake: wake.clone(),
            hurry: hurry.clone(),
            stepped,
            closed,
        };
        tokio::spawn(task.run());
        Ok(Self { wake, hurry, steps, _open: open })
    }

    /// Waits until what was committed before this call has its place in the chain: whoever has been answered finds the
    /// events of it. Where the process that does it has died, not for long.
    pub(super) async fn catch_up(&self, db: &mut Taken<'_>) -> Result<(), Failure> {
        let Some(last) = rows::unsequenced(db).await? else { return Ok(()) };
        let until = Instant::now() + CATCH_UP_MAX;
        let mut steps = self.steps.clone();
        while Instant::now() < until {
            self.hurry.notify_one();
            // The step may be another process's: then nobody tells.
            let _ = tokio::time::timeout(CATCH_UP_EVERY, steps.changed()).await;
            if !rows::unsequenced_up_to(db, last).await? {
                return Ok(());
            }
        }
        Ok(())
    }
}

struct Task {
    config: Config,
    name: String,
    db: Option<Connection>,
    holds: bool,
    wake: Arc<Notify>,
    hurry: Arc<Notify>,
    stepped: watch::Sender<u64>,
    closed: watch::Receiver<()>,
}

/// What a step came to.
enum Step {
    /// Another process holds the lease.
    Held,
    /// This one holds it, and gave so many events their place.
    Done(usize),
}

impl Task {
    async fn run(mut self) {
        let mut moved = 0;
        // A process that is only here for a moment takes no lease.
        while self.pause(moved > 0).await.is_ok() {
            moved = match tokio::time::timeout(PATIENCE, self.step()).await {
                Ok(Ok(Step::Done(moved))) => {
                    self.holds = true;
                    moved
                }
                Ok(Ok(Step::Held)) => {
                    self.holds = false;
                    0
                }
                // Not now; at the next look, over a new connection where this one is lost.
                Ok(Err(_)) | Err(_) => {
                    (self.db, self.holds) = (None, false);
                    0
                }
            };
            if moved > 0 {
                self.stepped.send_modify(|steps| *steps += 1);
            }
        }
        self.release().await;
    }

    /// Returns when it is time to look again; an error when the store is closed.
    async fn pause(&mut self, moved: bool) -> Result<(), ()> {
        let (look_after, look_every) = match (self.holds, moved) {
            (true, _) => (STEP_EVERY, LOOK_EVERY),
            (false, _) => (STAND_BY_LOOK_AFTER, STAND_BY_LOOK_EVERY),
        };
        let pause = async {
            tokio::time::sleep(look_after).await;
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(look_every) => {}
            }
        };
        tokio::select! {
            () = self.hurry.notified() => Ok(()),
            () = pause => Ok(()),
            // Nothing is ever sent: it ends with the store.
            _ = self.closed.changed() => Err(()),
        }
    }

    async fn step(&mut self) -> Result<Step, Failure> {
        let mut db = match self.db.take().filter(|db| !db.is_lost()) {
            Some(db) => db,
            None => Connection::open_for_keys(&self.config).await?,
        };
        let step = step(&mut db, &self.name).await?;
        self.db = Some(db);
        Ok(step)
    }

    /// Leaves the lease to whoever is next, without their waiting for its end.
    async fn release(mut self) {
        if let Some(db) = self.db.as_mut().filter(|_| self.holds) {
            let sql = "UPDATE sequencer SET expires_at = 0 WHERE owner = $1";
            // Where it cannot be released it runs out.
            let _ = tokio::time::timeout(PATIENCE, db.query(sql, &[&self.name])).await;
        }
    }
}

/// The end of the chain and who may lengthen it.
struct End {
    seq: u64,
    hash: [u8; 32],
    owner: Option<String>,
    expires_at: i64,
    now: i64,
    has_events: bool,
    version: i64,
}

const END: &str =
    "SELECT last_seq, last_hash, owner, expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    EXISTS (SELECT 1 FROM new_events), (SELECT version FROM sayso_schema) FROM sequencer";

impl End {
    fn read(rows: &[Row]) -> Result<Self, Failure> {
        let columns = Columns::of(rows.first().ok_or(Corrupt("event"))?, "event");
        let end = Self {
            seq: u64::try_from(columns.get::<i64>(0)?).map_err(|_| columns.corrupt())?,
            hash: columns.hash(1)?,
            owner: columns.get(2)?,
            expires_at: columns.get(3)?,
            now: columns.get(4)?,
            has_events: columns.get(5)?,
            version: columns.get(6)?,
        };
        if end.version == open::SCHEMA_VERSION { Ok(end) } else { Err(Failure::Newer) }
    }

    fn is_open_to(&self, name: &str) -> bool {
        self.owner.as_deref() == Some(name) || self.expires_at <= self.now
    }

    /// Whether the holder may rest: nothing to do, and the lease is young.
    fn may_rest(&self, name: &str) -> bool {
        self.owner.as_deref() == Some(name) && !self.has_events && self.expires_at - self.now > LEASE_MS / 2
    }
}

async fn step(db: &mut Connection, name: &str) -> Result<Step, Failure> {
    let end = End::read(&db.query(END, &[]).await?)?;
    if !end.is_open_to(name) {
        return Ok(Step::Held);
    }
    if end.may_rest(name) {
        return Ok(Step::Done(0));
    }
    let done = locked_step(db, name).await;
    if done.is_err() {
        // Where this fails too, the connection is given up with the failure.
        db.client.batch_execute("ROLLBACK").await?;
    }
    done
}

async fn locked_step(db: &mut Connection, name: &str) -> Result<Step, Failure> {
    let lock = db.statement(&format!("{END} FOR UPDATE")).await?;
    let take = db
        .statement(
            "SELECT position, at, execution_id, round_id, principal, channel, body FROM new_events
             ORDER BY position LIMIT $1",
        )
        .await?;
    let (begun, end, taken) = tokio::join!(
        biased;
        db.client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
        db.client.query(&lock, &[]),
        db.client.query(&take, &[&STEP_LISTS]),
    );
    begun?;
    let end = End::read(&end?)?;
    if !end.is_open_to(name) {
        db.client.batch_execute("ROLLBACK").await?;
        return Ok(Step::Held);
    }
    let taken: Vec<(i64, Vec<NewEvent>)> = taken?.iter().map(rows::read_new_events).collect::<Result<_, _>>()?;
    let positions: Vec<i64> = taken.iter().map(|(position, _)| *position).collect();
    let mut chain = Vec::new();
    let (mut seq, mut hash) = (end.seq, end.hash);
    for event in taken.into_iter().flat_map(|(_, events)| events) {
        let event = Event::chained(event, seq.saturating_add(1), hash);
        (seq, hash) = (event.seq, event.hash);
        chain.push(event);
    }
    write_chain(db, name, &chain, &positions, (seq, hash), end.now.saturating_add(LEASE_MS)).await?;
    Ok(Step::Done(chain.len()))
}

async fn write_chain(
    db: &mut Connection,
    name: &str,
    chain: &[Event],
    positions: &[i64],
    (seq, hash): (u64, [u8; 32]),
    expires_at: i64,
) -> Result<(), Failure> {
    let insert = db
        .statement(
            "INSERT INTO event_groups (last_seq, previous_hash, at, execution_id, round_id, principal, channel, body, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .await?;
    let delete = db.statement("DELETE FROM new_events WHERE position = ANY ($1::bigint[])").await?;
    let extend =
        db.statement("UPDATE sequencer SET last_seq = $1, last_hash = $2, owner = $3, expires_at = $4").await?;
    let lists: Vec<List<'_>> = chain.chunks(EVENTS_A_LIST).map(List::of).collect::<Result<_, _>>()?;
    let hash = hash.as_slice();
    let last_seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let (inserted, deleted, extended, committed) = tokio::join!(
        biased;
        try_join_all(lists.iter().map(|list| list.insert(&db.client, &insert))),
        ask(&db.client, Some(delete), [&positions]),
        ask(&db.client, Some(extend), [&last_seq, &hash, &name, &expires_at]),
        db.client.batch_execute("COMMIT"),
    );
    inserted?;
    deleted?;
    extended?;
    committed?;
    Ok(())
}

/// A part of the chain as it is stored.
struct List<'a> {
    last_seq: i64,
    previous_hash: &'a [u8],
    columns: Vec<Column<'a>>,
    hashes: Vec<&'a [u8]>,
}

impl<'a> List<'a> {
    fn of(events: &'a [Event]) -> Result<Self, Corrupt> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Err(Corrupt("event")) };
        let bodies: Vec<&NewEvent> = events.iter().map(|event| &event.event).collect();
        Ok(Self {
            last_seq: i64::try_from(last.seq).unwrap_or(i64::MAX),
            previous_hash: &first.previous_hash,
            columns: of_events(&bodies)?,
            hashes: events.iter().map(|event| event.hash.as_slice()).collect(),
        })
    }

    async fn insert(&self, client: &Client, statement: &Statement) -> Result<(), tokio_postgres::Error> {
        let mut parameters: Vec<Parameter<'_>> = vec![&self.last_seq, &self.previous_hash];
        parameters.extend(self.columns.iter().map(|column| column.array()));
        parameters.push(&self.hashes);
        client.query(statement, &parameters).await.map(drop)
    }
}
