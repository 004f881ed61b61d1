//! What the tests of SQLite's own promises share.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod cluster;
pub mod mount;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sayso_core::command::{Command, NewRound, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Delivery, Digest, OperationKind, Submission};
use sayso_store::clock::ManualClock;
use sayso_store::conformance::START;
use sayso_store::{Hints, SqliteOptions, SqliteStore, Store};

pub fn file_in(folder: &Path) -> PathBuf {
    folder.join("sayso.sqlite")
}

pub fn open(folder: &Path) -> SqliteStore {
    try_open(folder).expect("opens")
}

pub fn try_open(folder: &Path) -> Result<SqliteStore, sayso_core::error::Error> {
    let options = SqliteOptions { clock: Arc::new(ManualClock::at(START)), hints: None };
    SqliteStore::open(&file_in(folder), options)
}

pub fn open_hinting(folder: &Path, hints: Arc<dyn Hints>) -> SqliteStore {
    let options = SqliteOptions { clock: Arc::new(ManualClock::at(START)), hints: Some(hints) };
    SqliteStore::open(&file_in(folder), options).expect("opens")
}

/// Runs SQL on the file, as a tool of the operator's would.
pub fn sql(folder: &Path, statements: &str) {
    let db = rusqlite::Connection::open(file_in(folder)).expect("opens");
    db.execute_batch(statements).expect("runs");
}

/// The rows of a table or view of the file.
pub fn count(folder: &Path, table: &str) -> i64 {
    let db = rusqlite::Connection::open(file_in(folder)).expect("opens");
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("is counted")
}

pub fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

pub fn round_id(n: u128) -> RoundId {
    RoundId::from_parts(START.0, n)
}

/// A resumable question numbered `n`, whose text has `bytes` bytes.
pub fn asking(n: u128, bytes: usize) -> Command {
    let requests = json(&format!(r#"{{"note":{{"kind":"text","question":"{}"}}}}"#, "?".repeat(bytes)));
    Command::CreateRound(Box::new(NewRound {
        id: round_id(n),
        execution: RoundExecution::New {
            id: ExecutionId::from_parts(START.0, n),
            kind: ExecutionKind::Operation,
            ends_with_round: true,
        },
        logical_operation_id: "main".to_owned(),
        server: "shipping".to_owned(),
        operation_kind: OperationKind::Tool,
        operation_name: "book".to_owned(),
        asked_by: Principal::agent("booking"),
        delivery: Delivery::Resumable,
        fence: None,
        deadline: None,
        limit: 10,
        digest: Digest::of_requests(&requests),
        has_approval: false,
        requests,
        calls: json("[]"),
        suggestion_of: None,
        request_state: Some("sealed".to_owned()),
        creation: None,
    }))
}

pub fn answering(n: u128) -> Command {
    Command::Submit {
        round: round_id(n),
        submission: Box::new(Submission {
            key: "key".to_owned(),
            answer_hash: [1; 32],
            principal: Principal::person("local:ada"),
            channel: Channel::Library,
            digest: None,
            action: None,
            approves: false,
            needs_second_person: false,
        }),
        verdicts: Vec::new(),
        submitted: json(r#"{"note":{"action":"accept","content":{"answer":["yes"]}}}"#),
        effective: json(r#"{"note":{"action":"accept","content":{"answer":["yes"]}}}"#),
    }
}

/// Takes this definition of an agent's tool as reviewed.
pub fn reviewing(agent: &str, tool: &str, definition: &str) -> Command {
    let by = Principal::parse(agent).expect("a principal");
    Command::RecordReview { by, tool: tool.to_owned(), definition: Digest::of_text(definition) }
}

/// Where `agent a` has as many tools as may be: none more, but what is known goes on being reviewed, and so do others' tools.
pub async fn check_tools_limit(store: &dyn Store) {
    let record = async |agent, tool| store.commit(vec![reviewing(agent, tool, "new")]).await.map(drop);
    assert!(matches!(record("agent a", "files:new").await, Err(Error::Limit(_))));
    assert_eq!(store.reviewed(&Principal::agent("a"), "files:new").await, Ok(None));
    assert_eq!(record("agent a", "files:1").await, Ok(()));
    assert_eq!(store.reviewed(&Principal::agent("a"), "files:1").await, Ok(Some(Digest::of_text("new"))));
    assert_eq!(record("agent b", "files:new").await, Ok(()));
}
