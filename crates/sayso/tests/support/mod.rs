//! A place to keep rounds in, under a clock that tests move, and a store whose moods they choose.

#![allow(dead_code, reason = "each test file uses a part of it")]

mod moody;

pub use moody::Moody;

use std::sync::Arc;
use std::time::Duration;

use sayso::{Answer, Ask, Error, ErrorCode, Hub, Json, Options, Principal, Request, Response, Sayso, UnixMs};
use sayso_store::clock::ManualClock;
use sayso_store::{SqliteOptions, SqliteStore, Store};

pub const START: UnixMs = UnixMs(1_796_000_000_000);
/// Long enough that a test that waits in vain is ended by its harness.
pub const LONG: Duration = Duration::from_secs(45);

pub struct Place {
    pub clock: Arc<ManualClock>,
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { clock: Arc::new(ManualClock::at(START)), folder: tempfile::tempdir().expect("a folder") }
    }

    /// The whole thing, as a process opens it.
    pub async fn open(&self) -> Sayso {
        let options = Options::at(self.folder.path()).clock(self.clock.clone()).person(ada());
        Sayso::open(options).await.expect("opens")
    }

    /// One in which no wake-up ever arrives.
    pub fn open_deaf(&self) -> Sayso {
        Sayso::over(self.store(), Hub::default(), ada(), false).expect("opens")
    }

    /// One whose store has moods.
    pub fn open_moody(&self) -> (Sayso, Arc<Moody>) {
        let moody = Arc::new(Moody::over(self.store()));
        (Sayso::over(moody.clone(), Hub::default(), ada(), false).expect("opens"), moody)
    }

    /// The store alone, as a sweeper uses it.
    pub fn store(&self) -> Arc<dyn Store> {
        let options = SqliteOptions { clock: self.clock.clone(), hints: None };
        Arc::new(SqliteStore::open(&self.file(), options).expect("opens"))
    }

    pub fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("sayso.sqlite")
    }
}

pub fn ada() -> Principal {
    Principal::person("local:ada")
}

pub fn agent() -> Principal {
    Principal::agent("booking")
}

pub fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

/// A form with a required street.
pub fn address() -> Ask {
    let schema = r#"{"type":"object","properties":{"street":{"type":"string"},"pin":{"type":"string","format":"password"},
        "floor":{"type":"integer","default":0}},"required":["street"]}"#;
    Ask::one("address", Request::form("Where to?", json(schema)))
}

pub fn live(ask: Ask) -> Ask {
    Ask { delivery: Some(sayso_core::round::Delivery::Live), ..ask }
}

pub fn street(street: &str) -> Answer {
    Answer::one("address", Response::accept(json(&format!(r#"{{"street":"{street}"}}"#))))
}

pub fn code<T>(result: Result<T, Error>) -> ErrorCode {
    result.err().expect("is refused").code()
}

/// Pointers of the fields that a refusal names.
pub fn fields<T>(result: Result<T, Error>) -> Vec<String> {
    match result.err().expect("is refused") {
        Error::Validation { fields, .. } => fields.into_iter().map(|field| field.pointer).collect(),
        other => panic!("{other:?}"),
    }
}
