//! Files of earlier versions: each migration keeps all that they said.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use sayso_core::command::Command;
use sayso_core::error::ErrorCode;
use sayso_core::event::{Event, EventBody, NewEvent};
use sayso_core::id::ExecutionId;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Fence, FenceToken, Status};
use sayso_core::time::UnixMs;
use sayso_store::conformance::START;
use sayso_store::{RoundFilter, Store};
use support::{asking, count, file_in, open, reviewing, round_id, sql};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder with a file that these migrations have made.
fn folder_of(migrations: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()));
    std::fs::remove_file(file_in(folder.path())).expect("removed");
    migrations.iter().for_each(|migration| sql(folder.path(), migration));
    folder
}

/// The schema before rounds were split into facts and states.
const SCHEMA_4: [&str; 4] = [
    include_str!("../migrations/sqlite/0001_rounds.sql"),
    include_str!("../migrations/sqlite/0002_quiet_hops.sql"),
    include_str!("../migrations/sqlite/0003_round_details.sql"),
    include_str!("../migrations/sqlite/0004_grants.sql"),
];

#[tokio::test]
async fn a_file_of_schema_4_keeps_all_that_it_said() {
    let folder = folder_of(&SCHEMA_4);
    // One round that is answered and was withdrawn, and a gated call that waits.
    let (first, second) = (hex(&round_id(1).to_bytes()), hex(&round_id(2).to_bytes()));
    let digest = "11".repeat(32);
    for (id, operation, rest) in [
        (
            &first,
            "main",
            "'failed', 3, NULL, NULL, 0, 'k', x'22', 'person ada', 'inbox', 5, 'accept', NULL, NULL, NULL, 9, NULL, 'withdrawn', 'gone'",
        ),
        (
            &second,
            "gate:x",
            "'pending', 1, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        ),
    ] {
        let rest = rest.replace("x'22'", &format!("x'{}'", "22".repeat(32)));
        sql(folder.path(), &format!(
            "INSERT INTO rounds VALUES (x'{id}', x'{id}', '{operation}', 'files', 'tool', 'read', 'agent a', 'resumable', 0, 10, 1,
                 NULL, x'{digest}', 0, {rest});
             INSERT INTO round_requests VALUES (x'{id}', '{{}}', '[]', NULL);
             INSERT INTO executions VALUES (x'{id}', 'agent', 'agent a', NULL, 0, 0, 0, 1, NULL, NULL, NULL, NULL, NULL);"
        ));
    }
    sql(
        folder.path(),
        &format!("INSERT INTO answers VALUES (x'{first}', '{{\"a\":1}}', '{{\"a\":2}}'); PRAGMA user_version = 4"),
    );
    let mut previous_hash = [0; 32];
    for (seq, body) in (1..).zip([EventBody::RoundCreated, EventBody::Answered]) {
        let (by, channel) = (Some(Principal::person("ada")), Some(Channel::Inbox));
        let round_id = Some(round_id(1));
        let new = NewEvent { at: UnixMs(7), execution_id: None, round_id, principal: by, channel, body };
        let event = Event::chained(new, seq, previous_hash);
        let (body, hash) = (serde_json::to_string(&event.event.body).expect("written"), hex(&event.hash));
        sql(
            folder.path(),
            &format!(
                "INSERT INTO events VALUES ({seq}, 7, NULL, x'{first}', 'person ada', 'inbox', '{body}', x'{}', x'{hash}')",
                hex(&previous_hash)
            ),
        );
        previous_hash = event.hash;
    }

    let store = open(folder.path());
    let row = store.round(round_id(1)).await.expect("is read").expect("is there").row;
    assert_eq!((row.status, row.rev, row.finished_at), (Status::Failed, 3, Some(UnixMs(9))));
    assert_eq!(row.answered.map(|answered| answered.principal), Some(Principal::person("ada")));
    let answer = store.answer(round_id(1)).await.expect("is read").expect("is there");
    assert_eq!((answer.submitted.as_str(), answer.effective.as_str()), (r#"{"a":1}"#, r#"{"a":2}"#));
    assert_eq!(store.last_wait_ms("files").await, Ok(Some(8)), "from being created until it was withdrawn");
    let gated = RoundFilter { unfinished_gated: Some("gate:x".to_owned()), limit: 10, ..RoundFilter::default() };
    let found = store.rounds(gated).await.expect("are read");
    assert_eq!(found.iter().map(|round| round.row.id).collect::<Vec<_>>(), [round_id(2)]);
    let pending = RoundFilter { status: Some(Status::Pending), limit: 10, ..RoundFilter::default() };
    assert_eq!(store.rounds(pending).await.expect("are read").len(), 1);
    let execution = ExecutionId::from_bytes(round_id(2).to_bytes());
    let (execution, waiting) = store.execution(execution).await.expect("is read").expect("is there");
    assert_eq!((execution.pending_inputs, waiting), (1, vec![round_id(2)]));
    let events = store.events_after(0, 10).await.expect("are read");
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(Event::is_intact) && events[1].previous_hash == events[0].hash);
    assert_eq!(
        (count(folder.path(), "rounds"), count(folder.path(), "event_lists")),
        (2, 2),
        "one is a view now, the other lists"
    );
    store.commit(vec![reviewing("agent a", "files:read", "first")]).await.expect("stored");
}

/// What came between [`SCHEMA_4`] and events in their short form.
const SCHEMA_6: [&str; 2] = [
    include_str!("../migrations/sqlite/0005_narrow_states.sql"),
    include_str!("../migrations/sqlite/0006_reviewed.sql"),
];

#[tokio::test]
async fn a_file_of_schema_6_keeps_its_lists_of_events() {
    let folder = folder_of(&[SCHEMA_4.as_slice(), &SCHEMA_6].concat());
    let (mut previous_hash, mut stored) = ([0; 32], Vec::new());
    for (seq, body) in (1..).zip([EventBody::RoundCreated, EventBody::Answered, EventBody::Resolved]) {
        let (at, round_id) = (UnixMs(6 + i64::try_from(seq).expect("few")), Some(round_id(1)));
        let new = NewEvent { at, execution_id: None, round_id, principal: None, channel: Some(Channel::Inbox), body };
        let event = Event::chained(new, seq, previous_hash);
        previous_hash = event.hash;
        stored.push(event);
    }
    let listed = |event: &Event| {
        let body = serde_json::to_string(&event.event.body).expect("written");
        let (at, round) = (event.event.at.0, hex(&round_id(1).to_bytes()));
        format!(r#"{{"at":{at},"round":"{round}","channel":"inbox","body":{body},"hash":"{}"}}"#, hex(&event.hash))
    };
    let list = |last: usize, previous: [u8; 32], events: String| {
        let previous = hex(&previous);
        sql(folder.path(), &format!("INSERT INTO event_groups VALUES ({last}, x'{previous}', '{events}')"));
    };
    list(2, [0; 32], format!("[{},{}]", listed(&stored[0]), listed(&stored[1])));
    list(3, stored[1].hash, format!("[{}]", listed(&stored[2])));
    // Somebody has changed these, so that nobody can read them.
    list(4, stored[2].hash, "[{".to_owned());
    list(5, [1; 32], r#"[{"at":"now","body":{"event":"none"},"hash":"none"}]"#.to_owned());
    sql(folder.path(), "PRAGMA user_version = 6");

    let store = open(folder.path());
    assert_eq!(store.events_after(0, 3).await, Ok(stored));
    assert_eq!(count(folder.path(), "event_lists WHERE last_seq = 2 AND at = 8 OR last_seq = 3 AND at = 9"), 2);
    for after in [3, 4] {
        let unread = store.events_after(after, 1).await.expect_err("is not read");
        assert_eq!(unread.code(), ErrorCode::CorruptSuspendedState);
    }
    assert_eq!(count(folder.path(), "event_lists WHERE CAST(events AS TEXT) LIKE '[{%'"), 2, "they are as they were");
    store.commit(vec![asking(1, 1)]).await.expect("stored");
}

/// What came between [`SCHEMA_6`] and workers that have numbers.
const SCHEMA_7: &str = include_str!("../migrations/sqlite/0007_short_events.sql");

#[tokio::test]
async fn a_file_of_schema_7_keeps_who_holds_what_and_what_takes_effect() {
    // The migration before asks for a function, and there is nothing for it to read here.
    let without_function = SCHEMA_7.replace("event_list(events)", "events");
    let folder = folder_of(&[SCHEMA_4.as_slice(), &SCHEMA_6, &[&without_function]].concat());
    let lives = START.0 + 60_000;
    sql(
        folder.path(),
        &format!(
            "INSERT INTO owners VALUES ('own_lapsed', {}), ('own_lives', {lives}), ('own_idle', {lives})",
            START.0 - 1
        ),
    );
    let rounds = [
        (1, "live", "own_lapsed", "'pending', 1", "NULL", None),
        (2, "resumable", "own_gone", "'delivery_started', 3", "4, NULL", Some(r#"{"a":1}"#)),
        (3, "live", "own_lives", "'resolved', 5", "4, 9", Some(r#"{"a":2}"#)),
    ];
    for (n, delivery, owner, state, times, effective) in rounds {
        let (id, digest, token) = (hex(&round_id(n).to_bytes()), "11".repeat(32), "22".repeat(16));
        let (answered, finished) = times.split_once(", ").unwrap_or(("NULL", "NULL"));
        sql(
            folder.path(),
            &format!(
                "INSERT INTO round_facts VALUES ({n}, x'{id}', x'{id}', 'main', 'files', 'tool', 'read', 'agent a', '{delivery}',
                     0, 10, 1, x'{digest}', 0, '{{}}', '[]', NULL);
                 INSERT INTO round_states VALUES ({n}, x'{id}', {state}, '{owner}', x'{token}', NULL, NULL, 0, {answered}, NULL,
                     NULL, NULL, {finished}, NULL, NULL, NULL, NULL);
                 INSERT INTO executions VALUES (x'{id}', 'agent', 'agent a', '{owner}', 0, 1, NULL, NULL, NULL, NULL, NULL)"
            ),
        );
        if let Some(effective) = effective {
            let key = format!("{n}, 'k', x'{digest}', 'person ada', 'inbox', 'accept'");
            sql(folder.path(), &format!("INSERT INTO round_answers VALUES ({key}, '{{\"a\":1}}', '{effective}')"));
        }
    }
    sql(folder.path(), "PRAGMA user_version = 7");

    let store = open(folder.path());
    for (n, _, owner, _, _, effective) in rounds {
        let row = store.round(round_id(n)).await.expect("is read").expect("is there").row;
        let token = FenceToken(u128::from_be_bytes([0x22; 16]));
        assert_eq!(row.fence, Some(Fence { owner: owner.to_owned(), token }));
        let execution = store.execution(row.execution_id).await.expect("is read").expect("is there").0;
        assert_eq!(execution.owner.as_deref(), Some(owner));
        let answer = store.answer(round_id(n)).await.expect("is read");
        let said = answer.map(|answer| (answer.submitted.as_str().to_owned(), answer.effective.as_str().to_owned()));
        assert_eq!(said, effective.map(|effective| (r#"{"a":1}"#.to_owned(), effective.to_owned())));
        let seen = format!(
            "rounds JOIN executions ON executions.id = execution_id WHERE rounds.owner = '{owner}' AND executions.owner = '{owner}'"
        );
        assert_eq!(count(folder.path(), &seen), 1);
    }
    assert_eq!(count(folder.path(), "round_answers WHERE instead IS NOT NULL"), 1, "the others are as submitted");
    for (owner, lease) in
        [("own_lapsed", Some(UnixMs(START.0 - 1))), ("own_gone", None), ("own_lives", Some(UnixMs(lives)))]
    {
        assert_eq!(store.lease_until(owner).await, Ok(lease), "{owner}");
    }
    // A finished round is nobody's to sweep, its execution that goes on is, as soon as its worker is gone.
    let abandoned = store.abandoned(START, 10).await.expect("are found");
    let found: Vec<_> =
        abandoned.iter().map(|found| (found.owner.as_str(), found.round.is_some(), found.expired_at)).collect();
    assert_eq!(found, [("own_lapsed", true, Some(UnixMs(START.0 - 1)))]);
    let released = Command::ReleaseOwner { owner: "own_lives".to_owned() };
    store.commit(vec![released]).await.expect("stored");
    assert_eq!(store.lease_until("own_lives").await, Ok(None));
    let abandoned = store.abandoned(START, 10).await.expect("are found");
    assert_eq!(
        abandoned.iter().map(|found| (found.owner.as_str(), found.round.is_some())).collect::<Vec<_>>(),
        [("own_lapsed", true), ("own_lives", false)]
    );
    let back = Command::RenewOwner { owner: "own_lives".to_owned() };
    store.commit(vec![back, asking(4, 1)]).await.expect("stored");
    assert_eq!(count(folder.path(), "owners"), 4, "each name once");
}
