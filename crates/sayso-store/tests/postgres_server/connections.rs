//! What connections are spent on: no more of them than was said, and statements that are prepared once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::{ExecutionFilter, GrantFilter, PostgresOptions, PostgresStore, RoundFilter, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::support::cluster::Cluster;
use crate::support::{answering, asking, round_id};
use crate::{Heard, check_chain, open_with};

/// How many sessions of this name there are.
async fn sessions(cluster: &Cluster, name: &str) -> i64 {
    let (client, session) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.expect("connects");
    let session = tokio::spawn(session);
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    let count = client.query_one(count, &[&name]).await.expect("is counted").get(0);
    drop(client);
    session.await.expect("ends").expect("ends well");
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_opens_no_more_connections_than_it_may_however_much_it_is_asked() {
    let cluster = Cluster::shared();
    // Fewer than six are six: one for each purpose.
    for (connections_max, bound) in [(0, 6), (12, 12)] {
        let name = format!("bounded_{}_{connections_max}", std::process::id());
        let url = format!("{}&application_name={name}", cluster.fresh().await);
        let heard = Arc::new(Heard::default());
        let options = PostgresOptions { connections_max, hints: Some(heard.clone()), ..PostgresOptions::default() };
        let store = open_with(&url, options).await;
        heard.elsewhere.notified().await;
        let mut asking_much = JoinSet::new();
        for n in 0..100 {
            let store = store.clone();
            asking_much.spawn(async move {
                store.commit(vec![asking(n, 1)]).await.expect("stored");
                store.row(round_id(n)).await.expect("is read").expect("is stored");
                store.rounds(RoundFilter { limit: 3, ..RoundFilter::default() }).await.expect("rounds");
                store.commit(vec![answering(n)]).await.expect("accepted");
                store.events_after(0, 3).await.expect("events");
            });
        }
        asking_much.join_all().await;
        let open = sessions(&cluster, &name).await;
        assert!((4..=bound).contains(&open), "{open} of {bound}");
        check_chain(store.as_ref(), 300).await;
    }
}

/// Statements that come up seldom, such as the one that renews a lease: they are prepared when they do.
const RARE_MAX: usize = 5;

/// Stands between a process and the server, and counts the statements that are prepared.
struct Between {
    folder: tempfile::TempDir,
    prepared: Arc<AtomicUsize>,
}

impl Between {
    fn new(server: PathBuf) -> Self {
        const SOCKET: &str = ".s.PGSQL.5432";
        let between = Self { folder: tempfile::tempdir().expect("a folder"), prepared: Arc::default() };
        let listener = UnixListener::bind(between.folder.path().join(SOCKET)).expect("listens");
        let prepared = between.prepared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(server.join(SOCKET)).await.expect("connects");
                let ((from, mut to), (mut from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(count(from, to_server, prepared.clone()));
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to).await });
            }
        });
        between
    }

    /// The URL with this in the server's place.
    fn url(&self, url: &str) -> String {
        let (before, rest) = url.split_once('@').expect("a host");
        let (_, rest) = rest.split_once('/').expect("a database");
        format!("{before}@{}/{rest}", self.folder.path().display().to_string().replace('/', "%2F"))
    }

    fn prepared(&self) -> usize {
        self.prepared.load(Ordering::SeqCst)
    }
}

/// Passes messages on, and counts those that prepare a statement; until one of the two ends.
async fn count(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, prepared: Arc<AtomicUsize>) -> std::io::Result<()> {
    const PARSE: u8 = b'P';
    // The first message has no kind, and its length counts itself, as every length does.
    let mut kind = None;
    loop {
        let length = from.read_u32().await?;
        let mut rest = vec![0; usize::try_from(length.saturating_sub(4)).expect("small")];
        from.read_exact(&mut rest).await?;
        if kind == Some(PARSE) {
            prepared.fetch_add(1, Ordering::SeqCst);
        }
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend(length.to_be_bytes());
        message.extend(rest);
        to.write_all(&message).await?;
        kind = Some(from.read_u8().await?);
    }
}

/// Everything that a quiet process does again and again, for one round.
async fn one_after_another(store: &PostgresStore, n: u128) {
    store.commit(vec![asking(n, 1)]).await.expect("stored");
    store.row(round_id(n)).await.expect("is read").expect("is stored");
    store.round(round_id(n)).await.expect("is read").expect("is stored");
    store.commit(vec![answering(n)]).await.expect("accepted");
    store.answer(round_id(n)).await.expect("is read").expect("is stored");
    store.rounds(RoundFilter { limit: 5, ..RoundFilter::default() }).await.expect("rounds");
    store.executions(ExecutionFilter { limit: 5, ..ExecutionFilter::default() }).await.expect("executions");
    store.grants(GrantFilter { limit: 5, ..GrantFilter::default() }).await.expect("grants");
    let now = store.now().await.expect("the time");
    store.overdue(now, 5).await.expect("overdue");
    store.abandoned(now, 5).await.expect("abandoned");
    store.next_deadline().await.expect("is read");
    store.events_after(0, 5).await.expect("events");
    store.last_event().await.expect("is read");
}

#[tokio::test]
async fn statements_are_prepared_once_and_kept_across_use() {
    let cluster = Cluster::shared();
    let between = Between::new(cluster.folder());
    let url = between.url(&cluster.fresh().await);
    let options = PostgresOptions { clock: Some(Arc::new(ManualClock::at(START))), ..PostgresOptions::default() };
    let store = PostgresStore::open(&url, options).await.expect("opens");
    for n in 0..5 {
        one_after_another(&store, n).await;
    }
    let warm = between.prepared();
    assert!(warm > 10, "{warm} are counted");
    for n in 5..25 {
        one_after_another(&store, n).await;
    }
    let later = between.prepared() - warm;
    assert!(later <= RARE_MAX, "{later} more are prepared: what was prepared is used again");
}
