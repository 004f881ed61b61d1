use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::principal::{Channel, Principal};
use sayso_store::clock::{Clock, SystemClock};
use sayso_store::{Hints, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};

use crate::believed::Believed;
use crate::local_desk::LocalDesk;
use crate::owner::{Owner, Owners};
use crate::people::LocalPeople;
use crate::question::Questions;
use crate::sweeper::Sweeper;
use crate::waiters::Hub;

/// The store's file inside a data folder.
const DATABASE: &str = "sayso.sqlite";

/// How a store is opened.
pub struct Options {
    pub(crate) place: Place,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    person: Principal,
    sweep: bool,
    trusts_relay: bool,
}

/// Where the rounds are.
pub(crate) enum Place {
    Folder(PathBuf),
    Database { url: String, polls: bool },
}

impl Options {
    /// The embedded store in the folder `data`, which is created (0700) where it is missing.
    pub fn at(data: impl Into<PathBuf>) -> Self {
        Self::of(Place::Folder(data.into()))
    }
    /// The PostgreSQL database at `url`, which processes on several machines share; its tables are created where they are
    /// missing. Whoever knows the URL's password owns what is stored there.
    pub fn database(url: impl Into<String>) -> Self {
        Self::of(Place::Database { url: url.into(), polls: false })
    }
    fn of(place: Place) -> Self {
        Self { place, clock: None, person: default_person(None), sweep: false, trusts_relay: false }
    }
    /// Finds what other processes changed by looking, for databases that have no `LISTEN`. Changes nothing in a folder.
    pub fn polling(mut self) -> Self {
        if let Place::Database { polls, .. } = &mut self.place {
            *polls = true;
        }
        self
    }
    /// Decides leases and deadlines by `clock`; by default this machine's clock does, and for a database its own.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }
    /// Answers given in this process are `person`'s; by default `person local:<user>`.
    pub fn person(self, person: Principal) -> Self {
        Self { person, ..self }
    }
    /// Lets agents pass on what a person told them, as an answer that is recorded as relayed by that agent
    /// ([`crate::Desk::relay`]). Whoever turns this on trusts every agent that asks here not to make answers up.
    pub fn trusting_agent_relay(self) -> Self {
        Self { trusts_relay: true, ..self }
    }
    /// Also ends, in the background, what has expired or been abandoned. For processes that stay.
    pub fn sweeping(self) -> Self {
        Self { sweep: true, ..self }
    }
}

/// `person local:<user>`: whoever owns this process. `user` is the account's name where the caller knows it.
pub fn default_person(user: Option<&str>) -> Principal {
    Principal::person(format!("local:{}", user.filter(|user| !user.is_empty()).unwrap_or("user")))
}

/// The rounds of one store. Cheap to clone; the last clone that goes closes the store.
#[derive(Clone)]
pub struct Sayso {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Hub,
    pub(crate) owners: Owners,
    pub(crate) questions: Questions,
    pub(crate) believed: Believed,
    pub(crate) person: Principal,
    pub(crate) trusts_relay: bool,
}

impl Sayso {
    /// Opens the store. Needs a tokio runtime. Opening changes nothing that is stored.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let hub = Hub::default();
        let store = match options.place {
            Place::Folder(data) => open_folder(data, options.clock, &hub).await?,
            Place::Database { url, polls } => {
                let hints: Option<Arc<dyn Hints>> = Some(Arc::new(hub.clone()));
                let defaults = PostgresOptions::default();
                let postgres = PostgresOptions { clock: options.clock, hints, poll_only: polls, ..defaults };
                Arc::new(PostgresStore::open(&url, postgres).await?)
            }
        };
        Self::assemble(store, hub, (options.person, options.trusts_relay), options.sweep)
    }

    /// The rounds of an opened store. `hub` should hear the store's hints; without them everything is slower and still
    /// right.
    pub fn over(store: Arc<dyn Store>, hub: Hub, person: Principal, sweep: bool) -> Result<Self, Error> {
        Self::assemble(store, hub, (person, false), sweep)
    }

    fn assemble(
        store: Arc<dyn Store>,
        hub: Hub,
        (person, trusts_relay): (Principal, bool),
        sweep: bool,
    ) -> Result<Self, Error> {
        let (owners, questions, believed) = (Owners::new()?, Questions::default(), Believed::default());
        let sayso = Self { inner: Arc::new(Inner { store, hub, owners, questions, believed, person, trusts_relay }) };
        sayso.inner.hub.watch_store(&sayso.inner);
        if sweep {
            Sweeper::spawn(&sayso);
        }
        Ok(sayso)
    }

    /// The agent's side, for an authenticated caller: one worker, with a lease of its own for what it holds.
    pub fn desk(&self, caller: Principal) -> LocalDesk {
        LocalDesk { owner: Arc::new(self.inner.owners.another()), sayso: self.clone(), caller }
    }

    /// A new worker that `caller` runs elsewhere. It renews its lease itself: [`LocalDesk::renew_all`].
    pub fn new_worker(&self, caller: Principal) -> Result<LocalDesk, Error> {
        let owner = Owner::new_remote(&caller)?;
        let worker = LocalDesk { owner: Arc::new(owner), sayso: self.clone(), caller };
        worker.check_may_collect().map(|()| worker)
    }

    /// The worker that `caller` runs elsewhere under this name; a conflict where the name is another caller's.
    pub fn worker(&self, caller: Principal, owner_id: &str) -> Result<LocalDesk, Error> {
        let owner = Owner::remote(&caller, owner_id)?;
        let worker = LocalDesk { owner: Arc::new(owner), sayso: self.clone(), caller };
        worker.check_may_collect().map(|()| worker)
    }

    /// One sweep at `monotonic` (see [`Sweeper::step`]), for whoever keeps a schedule of their own.
    pub async fn sweep(&self, sweeper: &mut Sweeper, monotonic: Duration) -> Result<(), Error> {
        sweeper.step(self.store(), monotonic).await
    }

    /// The person's side, as the person this process answers for.
    pub fn people(&self) -> LocalPeople {
        self.people_as(self.inner.person.clone(), Channel::Library)
    }

    /// The person's side, for an authenticated caller on some surface.
    pub fn people_as(&self, caller: Principal, channel: Channel) -> LocalPeople {
        LocalPeople { sayso: self.clone(), caller, channel }
    }

    /// The person this process answers for.
    pub fn person(&self) -> &Principal {
        &self.inner.person
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.inner.store.as_ref()
    }
}

async fn open_folder(data: PathBuf, clock: Option<Arc<dyn Clock>>, hub: &Hub) -> Result<Arc<dyn Store>, Error> {
    create_private_folder(&data)?;
    let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
    let options = SqliteOptions { clock, hints: Some(Arc::new(hub.clone())) };
    let store = tokio::task::spawn_blocking(move || SqliteStore::open(&database_in(&data), options))
        .await
        .map_err(|_| Error::Unavailable("the store could not be opened".to_owned()))??;
    Ok(Arc::new(store))
}

/// The store's file in the data folder `data`.
pub(crate) fn database_in(data: &Path) -> PathBuf {
    data.join(DATABASE)
}

/// Creates `folder` for its owner only; one that is there already is used as it is.
fn create_private_folder(folder: &Path) -> Result<(), Error> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| Error::Unavailable(format!("{} cannot be created: {}", folder.display(), error.kind())))
}
