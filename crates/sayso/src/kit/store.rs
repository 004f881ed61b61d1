use std::sync::Arc;

use sayso_core::principal::{Channel, Principal};

use crate::Sayso;
use crate::desk::Desk;
use crate::people::People;
use crate::storage::{PostgresExecutionStore, SqliteExecutionStore};

/// Where a kit keeps its executions: the agent's side and the person's side of the same rounds, in a file, a database, or
/// at a server elsewhere.
#[derive(Clone)]
pub struct KitStore {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) people: Arc<dyn People>,
}

impl KitStore {
    /// The two sides of the same rounds. The desk's caller must be somebody who asks, the people's one who answers.
    pub fn of(desk: Arc<dyn Desk>, people: Arc<dyn People>) -> Self {
        Self { desk, people }
    }

    fn embedded((sayso, asker): (&Sayso, &Principal)) -> Self {
        let people = sayso.people_as(sayso.person().clone(), Channel::Library);
        Self::of(Arc::new(sayso.desk(asker.clone())), Arc::new(people))
    }
}

impl From<&SqliteExecutionStore> for KitStore {
    fn from(store: &SqliteExecutionStore) -> Self {
        Self::embedded(store.opened())
    }
}

impl From<SqliteExecutionStore> for KitStore {
    fn from(store: SqliteExecutionStore) -> Self {
        Self::from(&store)
    }
}

impl From<&PostgresExecutionStore> for KitStore {
    fn from(store: &PostgresExecutionStore) -> Self {
        Self::embedded(store.opened())
    }
}

impl From<PostgresExecutionStore> for KitStore {
    fn from(store: PostgresExecutionStore) -> Self {
        Self::from(&store)
    }
}
