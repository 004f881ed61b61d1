//! Reading rows by their ids, many at once: whoever asks while a look is under way shares the next one.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_core::round::Round;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::Config;

use super::connection::Pool;
use super::failure::Failure;
use super::rows;
use super::value::{Columns, Found, Key};

type Looked = Result<Option<Round>, Error>;

/// Row by row, so that a plan that was made while the table was small does not scan it when it has grown.
static ROWS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT r.* FROM unnest($1::uuid[]) AS k (id)
         CROSS JOIN LATERAL (SELECT {} FROM rounds WHERE rounds.id = k.id OFFSET 0) AS r",
        rows::ROUND_COLUMNS
    )
});

/// One row: as anybody waits for who looks alone.
static ROW: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM rounds WHERE id = $1", rows::ROUND_COLUMNS));

/// The looks of one store.
pub(super) struct Looks {
    pool: Pool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// A look is under way, after which somebody sees to those who wait.
    is_looking: bool,
    /// Each is one read of a caller who waits for it.
    waiting: Vec<(RoundId, oneshot::Sender<Looked>)>,
}

impl Looks {
    pub(super) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { pool: Pool::by_key(config), queue: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row as it is now. At once where no look is under way, without another task.
    pub(super) async fn row(self: &Arc<Self>, id: RoundId) -> Looked {
        let shared = {
            let mut queue = self.lock();
            if queue.is_looking {
                let (sender, receiver) = oneshot::channel();
                queue.waiting.push((id, sender));
                Some(receiver)
            } else {
                queue.is_looking = true;
                None
            }
        };
        if let Some(receiver) = shared {
            let closed = |_| Error::Unavailable("the store is closing; nothing was changed".to_owned());
            return receiver.await.map_err(closed)?;
        }
        let _turn = Turn(self);
        self.look(&[id]).await?.remove(&id).map_or(Ok(None), told)
    }

    async fn look(&self, ids: &[RoundId]) -> Result<HashMap<RoundId, Found<Round>>, Error> {
        self.look_up(ids).await.map_err(Failure::unchanged)
    }

    async fn look_up(&self, ids: &[RoundId]) -> Result<HashMap<RoundId, Found<Round>>, Failure> {
        let keys: Vec<Key> = ids.iter().map(|id| Key(id.to_bytes())).collect();
        let mut db = self.pool.take().await?;
        let found = match keys.as_slice() {
            [only] => db.query(&ROW, &[only]).await?,
            _ => db.query(&ROWS, &[&keys]).await?,
        };
        drop(db);
        let mut looked = HashMap::with_capacity(found.len());
        for row in &found {
            let id = Columns::of(row, "round").id(0, RoundId::from_bytes)?;
            looked.insert(id, rows::read_round(row).map(Some));
        }
        Ok(looked)
    }

    /// Looks for those who wait, until nobody does.
    async fn serve(self: Arc<Self>) {
        loop {
            let waiting = {
                let mut queue = self.lock();
                if queue.waiting.is_empty() {
                    queue.is_looking = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let ids: Vec<RoundId> = waiting.iter().map(|(id, _)| *id).collect();
            let looked = self.look(&ids).await;
            for (id, sender) in waiting {
                let answer = match &looked {
                    Ok(found) => found.get(&id).cloned().map_or(Ok(None), told),
                    Err(error) => Err(error.clone()),
                };
                // Whoever is gone needs none.
                let _ = sender.send(answer);
            }
        }
    }
}

fn told(found: Found<Round>) -> Looked {
    found.map_err(|corrupt| Failure::from(corrupt).unchanged())
}

/// Whoever looks for itself; when it is done, or was given up in the middle, those who came meanwhile have their turn.
struct Turn<'a>(&'a Arc<Looks>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        match Handle::try_current() {
            Ok(runtime) if !queue.waiting.is_empty() => drop(runtime.spawn(self.0.clone().serve())),
            // Without a runtime nobody can wait any more.
            _ => (queue.is_looking, queue.waiting) = (false, Vec::new()),
        }
    }
}
