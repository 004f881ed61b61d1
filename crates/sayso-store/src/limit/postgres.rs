//! Raw PostgreSQL: prepared statements, each its own transaction.

use std::future::poll_fn;
use std::time::Duration;

use sayso_core::error::Error;
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, NoTls, Statement};

use super::{Cycles, RowBytes, Samples, Stopwatch, TRANSITIONS, filling, key};

const TABLES: &str = "
    DROP TABLE IF EXISTS limit_state, limit_request, limit_answer;
    CREATE TABLE limit_state (id bytea NOT NULL PRIMARY KEY, status bigint NOT NULL, token bytea NOT NULL, at bigint NOT NULL);
    CREATE INDEX limit_pending ON limit_state (id) WHERE status = 1;
    CREATE TABLE limit_request (id bytea NOT NULL PRIMARY KEY, body bytea NOT NULL);
    CREATE TABLE limit_answer (id bytea NOT NULL PRIMARY KEY, body bytea NOT NULL);";

/// A plan made while a table was small must not scan it when it has grown.
const INDEX_PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan; SET jit = off";

const CREATE: &str = "WITH made AS (
        INSERT INTO limit_state (id, status, token, at) SELECT id, 1, id, 0 FROM unnest($1::bytea[]) AS id)
    INSERT INTO limit_request (id, body) SELECT id, $2::bytea FROM unnest($1::bytea[]) AS id";
const SUBMIT: &str = "WITH said AS (
        INSERT INTO limit_answer (id, body) SELECT id, $2::bytea FROM unnest($1::bytea[]) AS id)
    UPDATE limit_state s SET status = 2, at = 2 FROM unnest($1::bytea[]) AS u (id) WHERE s.id = u.id AND s.status = 1";
const MOVE: &str = "UPDATE limit_state s SET status = $2::bigint, at = $2::bigint FROM unnest($1::bytea[]) AS u (id)
    WHERE s.id = u.id AND s.status = $2::bigint - 1";

const CREATE_ONE: &str = "WITH made AS (INSERT INTO limit_state (id, status, token, at) VALUES ($1, 1, $1, 0))
    INSERT INTO limit_request (id, body) VALUES ($1, $2)";
const SUBMIT_ONE: &str = "WITH said AS (INSERT INTO limit_answer (id, body) VALUES ($1, $2))
    UPDATE limit_state SET status = 2, at = 2 WHERE id = $1 AND status = 1";
const MOVE_ONE: &str = "UPDATE limit_state SET status = $2::bigint, at = $2::bigint
    WHERE id = $1 AND status = $2::bigint - 1";

/// An empty schema of its own in a database, for measurements.
pub struct ScratchSchema {
    database: String,
    name: String,
}

impl ScratchSchema {
    /// Makes one in the database at `url`.
    pub async fn create(url: &str) -> Result<Self, Error> {
        if url.contains("options=") {
            return Err(Error::field("/store", "must not have options of its own: a schema is chosen by them"));
        }
        let number =
            getrandom::u64().map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
        let name = format!("sayso_bench_{number:016x}");
        let db = connect(url).await?;
        db.batch_execute(&format!("CREATE SCHEMA {name}")).await.map_err(failed)?;
        Ok(Self { database: url.to_owned(), name })
    }

    /// The URL of the database with this schema chosen.
    pub fn url(&self) -> String {
        let separator = if self.database.contains('?') { '&' } else { '?' };
        format!("{}{separator}options=-c%20search_path%3D{}", self.database, self.name)
    }

    /// Empties it.
    pub async fn clear(&self) -> Result<(), Error> {
        let again = format!("DROP SCHEMA {0} CASCADE; CREATE SCHEMA {0}", self.name);
        connect(&self.database).await?.batch_execute(&again).await.map_err(failed)
    }

    /// Removes it, with everything in it.
    pub async fn remove(self) -> Result<(), Error> {
        let drop = format!("DROP SCHEMA {} CASCADE", self.name);
        connect(&self.database).await?.batch_execute(&drop).await.map_err(failed)
    }
}

/// Never the URL, which may hold a password.
fn failed(_: tokio_postgres::Error) -> Error {
    Error::Unavailable("the database cannot be measured".to_owned())
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, session) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    // What ends the session is told to whoever waits for an answer on it.
    tokio::spawn(async move { drop(session.await) });
    Ok(client)
}

/// Cycles of `clients` connections at once, one round and one transition a commit, for `time`.
pub async fn postgres_cycles(url: &str, bytes: RowBytes, clients: usize, time: Duration) -> Result<Cycles, Error> {
    cycles(url, bytes, Shape { connections: clients, rounds: 1 }, time).await
}

/// Cycles of `connections` at once, `rounds` of each in one statement a transition, with index plans, for `time`.
pub async fn postgres_cycles_grouped(
    url: &str,
    bytes: RowBytes,
    connections: usize,
    rounds: usize,
    time: Duration,
) -> Result<Cycles, Error> {
    cycles(url, bytes, Shape { connections, rounds }, time).await
}

#[derive(Clone, Copy)]
struct Shape {
    connections: usize,
    rounds: usize,
}

async fn cycles(url: &str, bytes: RowBytes, shape: Shape, time: Duration) -> Result<Cycles, Error> {
    connect(url).await?.batch_execute(TABLES).await.map_err(failed)?;
    let mut clients = Vec::new();
    for number in 0..shape.connections {
        clients.push(Worker::prepare(url, number, bytes, shape.rounds).await?);
    }
    let watch = Stopwatch::start();
    let running: Vec<_> = clients.into_iter().map(|client| tokio::spawn(client.run(watch, time))).collect();
    let (mut total, mut took) = (0, Samples::default());
    for worker in running {
        let (rounds, samples) = worker
            .await
            .map_err(|_| Error::Unavailable("a measurement was interrupted".to_owned()))?
            .map_err(failed)?;
        total += rounds;
        took.append(samples);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 rounds")]
    let per_second = total as f64 / watch.elapsed().as_secs_f64();
    Ok(Cycles { per_second, took })
}

/// One connection with its statements.
struct Worker {
    db: Client,
    create: Statement,
    submit: Statement,
    advance: Statement,
    first: u64,
    rounds: usize,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Worker {
    async fn prepare(url: &str, number: usize, bytes: RowBytes, rounds: usize) -> Result<Self, Error> {
        let db = connect(url).await?;
        let (create, submit, advance) =
            if rounds == 1 { (CREATE_ONE, SUBMIT_ONE, MOVE_ONE) } else { (CREATE, SUBMIT, MOVE) };
        let statements = async {
            if rounds > 1 {
                db.batch_execute(INDEX_PLANS).await?;
            }
            Ok((db.prepare(create).await?, db.prepare(submit).await?, db.prepare(advance).await?))
        };
        let (create, submit, advance) = statements.await.map_err(failed)?;
        let first = u64::try_from(number).unwrap_or_default() << 32;
        let (request, answer) = (filling(bytes.request), filling(bytes.answer));
        Ok(Self { db, create, submit, advance, first, rounds, request, answer })
    }

    async fn run(self, watch: Stopwatch, time: Duration) -> Result<(u64, Samples), tokio_postgres::Error> {
        let (mut next, mut took) = (self.first, Samples::default());
        while watch.elapsed() < time {
            let group = Stopwatch::start();
            let keys: Vec<_> = (next..).take(self.rounds).map(|number| key(number).to_vec()).collect();
            next += u64::try_from(self.rounds).unwrap_or_default();
            for transition in 1..=TRANSITIONS {
                self.step(&keys, transition).await?;
            }
            took.add(group.elapsed());
        }
        Ok((next - self.first, took))
    }

    async fn step(&self, keys: &[Vec<u8>], transition: i64) -> Result<(), tokio_postgres::Error> {
        let keys: &(dyn ToSql + Sync) = match keys {
            [only] if self.rounds == 1 => only,
            _ => &keys,
        };
        let done = match transition {
            1 => self.db.execute(&self.create, &[keys, &self.request]).await,
            2 => self.db.execute(&self.submit, &[keys, &self.answer]).await,
            _ => self.db.execute(&self.advance, &[keys, &transition]).await,
        };
        done.map(drop)
    }
}

/// How long it takes from sending an insert with its `NOTIFY`, in one transaction, until another connection hears of it.
pub async fn postgres_notify(url: &str, time: Duration) -> Result<Samples, Error> {
    connect(url).await?.batch_execute(TABLES).await.map_err(failed)?;
    let (hearing, mut session) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    let (heard, mut hears) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| session.poll_message(context)).await {
            if matches!(message, AsyncMessage::Notification(_)) && heard.send(()).await.is_err() {
                return;
            }
        }
    });
    hearing.batch_execute("LISTEN limit_heard").await.map_err(failed)?;
    let db = connect(url).await?;
    let sql = "WITH made AS (INSERT INTO limit_request (id, body) VALUES ($1, $2)) SELECT pg_notify('limit_heard', '')";
    let statement = db.prepare(sql).await.map_err(failed)?;
    let (watch, body) = (Stopwatch::start(), filling(100));
    let mut took = Samples::default();
    for number in 0.. {
        if watch.elapsed() >= time {
            break;
        }
        let sent = Stopwatch::start();
        let key = key(number).to_vec();
        let parameters: [&(dyn ToSql + Sync); 2] = [&key, &body];
        let (inserted, told) =
            tokio::join!(db.query(&statement, &parameters), async { hears.recv().await.map(|()| sent.elapsed()) });
        inserted.map_err(failed)?;
        took.add(told.ok_or_else(|| Error::Unavailable("the database went away".to_owned()))?);
    }
    Ok(took)
}
