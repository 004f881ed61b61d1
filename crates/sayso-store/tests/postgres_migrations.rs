//! A database of an earlier version keeps all that it said.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod support;

use std::fmt::Write as _;

use sayso_core::event::{Event, EventBody, NewEvent};
use sayso_core::id::ExecutionId;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::Status;
use sayso_core::time::UnixMs;
use sayso_store::conformance::START;
use sayso_store::{PostgresOptions, PostgresStore, Store};
use support::cluster::{Cluster, sql};
use support::{answering, json, round_id};

const SCHEMA_4: [&str; 4] = [
    include_str!("../migrations/postgres/0001_rounds.sql"),
    include_str!("../migrations/postgres/0002_quiet_hops.sql"),
    include_str!("../migrations/postgres/0003_round_details.sql"),
    include_str!("../migrations/postgres/0004_grants.sql"),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What happened to round `n`, as schema 4 stored it.
fn event(n: u128, body: EventBody) -> NewEvent {
    NewEvent {
        at: UnixMs(START.0 + 1),
        execution_id: Some(ExecutionId::from_parts(START.0, n)),
        round_id: Some(round_id(n)),
        principal: Some(Principal::agent("it's ada")),
        channel: Some(Channel::Service),
        body,
    }
}

fn values(event: &NewEvent) -> String {
    let body = serde_json::to_string(&event.body).expect("is written").replace('\'', "''");
    let principal = event.principal.as_ref().expect("somebody").to_string().replace('\'', "''");
    format!(
        "{}, '{}', '{}', '{principal}', '{}', '{body}'",
        event.at.0,
        hex(&event.execution_id.expect("one").to_bytes()),
        hex(&event.round_id.expect("one").to_bytes()),
        event.channel.expect("one").as_str()
    )
}

#[tokio::test]
async fn a_database_of_schema_4_keeps_all_that_it_said() {
    let url = Cluster::shared().fresh().await;
    let mut old = SCHEMA_4.concat();
    old.push_str("CREATE TABLE sayso_schema (id smallint NOT NULL PRIMARY KEY, version bigint NOT NULL);");
    old.push_str("INSERT INTO sayso_schema VALUES (1, 4);");
    let requests = json(r#"{"note":{"kind":"text","question":"?"}}"#);
    let digest = hex(&sayso_core::round::Digest::of_requests(&requests).to_bytes());
    let (round, execution) = (hex(&round_id(1).to_bytes()), hex(&ExecutionId::from_parts(START.0, 1).to_bytes()));
    let (at, agent) = (START.0, Principal::agent("booking").to_string());
    let _ = write!(
        old,
        "INSERT INTO executions VALUES ('{execution}', 'operation', '{agent}', NULL, true, 1, 0, {at}, NULL, NULL,
             NULL, NULL, NULL);
         INSERT INTO rounds (id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery,
             round_index, round_limit, created_at, digest, has_approval, status, rev, delivery_attempts)
             VALUES ('{round}', '{execution}', 'main', 'shipping', 'tool', 'book', '{agent}', 'resumable', 0, 10,
             {at}, '\\x{digest}', false, 'pending', 1, 0);
         INSERT INTO round_requests VALUES ('{round}', '{}', '[]', NULL);
         INSERT INTO request_states VALUES ('{round}', 'sealed');",
        requests.as_str()
    );
    let first = Event::chained(event(1, EventBody::ExecutionCreated), 1, [0; 32]);
    let second = Event::chained(event(1, EventBody::RoundCreated), 2, first.hash);
    for Event { seq, event, previous_hash, hash } in [&first, &second] {
        let (previous, hash) = (hex(previous_hash), hex(hash));
        let _ = write!(old, "INSERT INTO events VALUES ({seq}, {}, '\\x{previous}', '\\x{hash}');", values(event));
    }
    let _ = write!(old, "UPDATE sequencer SET last_seq = 2, last_hash = '\\x{}';", hex(&second.hash));
    // Two that wait for their place.
    for body in [EventBody::ResponseRefused { code: "late".to_owned() }, EventBody::Answered] {
        let columns = "at, execution_id, round_id, principal, channel, body";
        let _ = write!(old, "INSERT INTO new_events ({columns}) VALUES ({});", values(&event(1, body)));
    }
    sql(&url, &old).await;

    let store = PostgresStore::open(&url, PostgresOptions::default()).await.expect("opens");
    let events = store.events_after(0, 100).await.expect("events");
    assert_eq!(events.get(..2), Some(&[first, second][..]), "as they were");
    let bodies: Vec<_> = events.iter().skip(2).map(|event| event.event.body.clone()).collect();
    assert_eq!(bodies, [EventBody::ResponseRefused { code: "late".to_owned() }, EventBody::Answered], "in their order");
    assert!(events.iter().all(Event::is_intact) && events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
    let stored = store.round(round_id(1)).await.expect("is read").expect("is there");
    assert_eq!((stored.row.status, stored.requests), (Status::Pending, requests));
    store.commit(vec![answering(1)]).await.expect("accepted");
    assert_eq!(store.request_state(round_id(1)).await.expect("is read").as_deref(), Some("sealed"));
    sql(&url, "SELECT seq, at, execution_id, round_id, principal, channel, body, hash FROM events ORDER BY seq").await;
}
