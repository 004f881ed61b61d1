//! The suite of every store, on the one in memory.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::Arc;

use sayso_store::Store;
use sayso_store::clock::ManualClock;
use sayso_store::conformance::{START, Subject};
use sayso_store::memory::{MemoryData, MemoryStore};

struct Memory {
    data: MemoryData,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl Subject for Memory {
    async fn fresh() -> Self {
        let (data, clock) = (MemoryData::default(), Arc::new(ManualClock::at(START)));
        let store = Arc::new(MemoryStore::open(&data, clock.clone(), None));
        Self { data, clock, store }
    }
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
    fn clock(&self) -> &ManualClock {
        &self.clock
    }
    async fn reopen(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::open(&self.data, self.clock.clone(), None))
    }
}

sayso_store::conformance!(Memory);
