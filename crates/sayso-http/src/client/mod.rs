//! The same rounds over HTTP: a worker's [`Desk`](sayso::Desk) whose store is a server's, so that an agent's machine
//! needs no data folder and the server may restart while somebody waits. [`PeopleClient`] is the person's side, [`GateClient`] the
//! gate.
//!
//! Only plain HTTP/1.1 is spoken, and by default only to this machine; to another one, let a tunnel or a proxy that
//! speaks TLS listen here.

mod beat;
mod call;
mod connections;
mod desk;
mod gate;
mod options;
mod people;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::http::HeaderValue;
use sayso::wire::Worker;
use sayso_core::error::Error;

pub use gate::GateClient;
pub use options::ClientOptions;
pub use people::PeopleClient;

use call::Call;
use connections::Connections;

/// A worker at a server. Cheap to clone; all clones are the same worker, which is taken to live as long as any of them
/// does.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    worker: Worker,
    renew_every: Duration,
    /// Whether the lease is being renewed.
    beating: AtomicBool,
}

/// A server, as one credential reaches it.
struct Link {
    connections: Connections,
    /// `Bearer …`, marked as sensitive.
    credential: HeaderValue,
    repeat_for: Duration,
}

impl Link {
    fn to(options: &ClientOptions) -> Result<Self, Error> {
        Ok(Self {
            connections: Connections::to(options.address()?),
            credential: options.credential()?,
            repeat_for: options.repeat_for,
        })
    }
}

impl Client {
    /// Reaches the server, checks that the token is an agent's, and gets a name to hold rounds under.
    pub async fn connect(options: ClientOptions) -> Result<Self, Error> {
        let link = Link::to(&options)?;
        let worker: Worker = link.call(Call::post("/v1/workers")).await?;
        // A server that names no time must not make this one spin.
        let every = Duration::from_millis(worker.renew_every_ms.max(1000));
        let renew_every = options.renew_every.unwrap_or(every).max(Duration::from_millis(1));
        Ok(Self { inner: Arc::new(Inner { link, worker, renew_every, beating: AtomicBool::new(false) }) })
    }

    /// The name under which this worker holds rounds.
    pub fn owner_id(&self) -> &str {
        &self.inner.worker.owner_id
    }
}
