//! What is said of a database that is well, left alone, upgraded by others, or changed by hand; and that saying it changes
//! nothing. Its own clock says what is over.

use std::sync::Arc;
use std::time::Duration;

use sayso::doctor::{self, Finding, Severity};
use sayso::{ClaimOf, Desk, Options, People};
use sayso_store::clock::ManualClock;

use crate::cluster::{Cluster, sql};
use crate::support::{address, agent, live, street};
use crate::{LONG_AGO, open};

async fn examined(url: &str) -> Vec<Finding> {
    doctor::examine(&Options::database(url), 0).await.expect("is looked at")
}

fn finding<'a>(found: &'a [Finding], check: &str) -> &'a Finding {
    found.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("{check}: {found:#?}"))
}

/// A database with a collected round, whose events all have their place: two for each of its three changes, apart.
async fn used() -> String {
    let url = Cluster::shared().fresh().await;
    let (_, sayso) = open(&url, &Arc::new(ManualClock::at(LONG_AGO))).await;
    let desk = sayso.desk(agent());
    let round = desk.ask(address(), None).await.expect("stored").round_id;
    assert_eq!(sayso.last_event().await, Ok(2), "both are in the chain");
    sayso.people().answer(round, street("x"), "k").await.expect("accepted");
    assert_eq!(sayso.last_event().await, Ok(4));
    desk.collect(round, "once", Duration::ZERO).await.expect("collected");
    assert_eq!(sayso.last_event().await, Ok(6));
    url
}

/// Every row of every table but the sequencer's, whose holder goes on saying that it lives; and by whom each was written.
async fn all_of(url: &str) -> Vec<String> {
    let (client, session) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connects");
    let session = tokio::spawn(session);
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()
        AND tablename <> 'sequencer' ORDER BY 1";
    let mut all = Vec::new();
    for table in client.query(tables, &[]).await.expect("tables") {
        let table: String = table.get(0);
        let rows = format!("SELECT xmin::text || t::text FROM {table} t ORDER BY 1");
        let rows = client.query(&rows, &[]).await.expect("rows");
        all.extend(rows.iter().map(|row| format!("{table} {}", row.get::<_, String>(0))));
    }
    drop(client);
    session.await.expect("ends").expect("ends well");
    all
}

#[tokio::test]
async fn a_database_that_is_well_is_said_to_be_and_looking_changes_nothing() {
    let url = used().await;
    let before = all_of(&url).await;
    assert!(before.iter().any(|row| row.starts_with("round_states ")), "{before:?}");
    let found = examined(&url).await;
    // The server of the tests keeps nothing on the disk, which is said; all else is well.
    let wrong: Vec<_> = found.iter().filter(|one| one.severity != Severity::Ok && one.check != "durability").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(finding(&found, "chain").detail.starts_with("6 events"), "{found:#?}");
    assert_eq!(finding(&found, "rounds").detail, "1: 1 resolved");
    assert_eq!(all_of(&url).await, before);
}

#[tokio::test]
async fn what_was_left_alone_is_explained_with_what_becomes_of_it_and_is_left_as_it_was() {
    let url = Cluster::shared().fresh().await;
    let clock = Arc::new(ManualClock::at(LONG_AGO));
    let (_, sayso) = open(&url, &clock).await;
    let desk = sayso.desk(agent());
    desk.open(live(address()), None).await.expect("stored");
    let deadline = Some(LONG_AGO.plus_ms(10));
    desk.ask(sayso::Ask { deadline, ..address() }, None).await.expect("stored");
    let sent = desk.ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(sent, street("x"), "k").await.expect("accepted");
    let claimed = desk.claim(sent, ClaimOf::default(), None).await.expect("claimed");
    desk.start(sent, claimed.fence).await.expect("started");
    let waiting = desk.ask(address(), None).await.expect("stored").round_id;
    sayso.people().answer(waiting, street("hunter2"), "k").await.expect("accepted");
    sayso.last_event().await.expect("all are in the chain");
    drop((desk, sayso));
    let before = all_of(&url).await;
    let found = examined(&url).await;
    for (check, severity, says) in [
        ("overdue", Severity::Warning, "1 pending rounds"),
        ("abandoned", Severity::Warning, "1 live rounds"),
        ("interrupted", Severity::Warning, "nobody can tell"),
        ("uncollected", Severity::Ok, "1 answers"),
    ] {
        let one = finding(&found, check);
        assert!(one.severity == severity && one.detail.contains(says), "{one:#?}");
    }
    assert!(finding(&found, "interrupted").detail.contains(&sent.to_string()));
    assert_eq!(finding(&found, "rounds").detail, "4: 1 delivery_started, 2 pending, 1 response_validated");
    assert!(!format!("{found:?}").contains("hunter2"));
    assert_eq!(all_of(&url).await, before, "nothing is swept or repaired by being looked at");
}

#[tokio::test]
async fn another_schema_is_named_and_not_read() {
    let url = used().await;
    for (version, severity, says) in [(99, Severity::Problem, "newer"), (6, Severity::Warning, "makes it")] {
        sql(&url, &format!("UPDATE sayso_schema SET version = {version}")).await;
        let found = examined(&url).await;
        let schema = finding(&found, "schema");
        assert_eq!(schema.severity, severity);
        assert!(schema.detail.contains(&version.to_string()) && schema.detail.contains(says), "{}", schema.detail);
        assert!(!found.iter().any(|finding| ["chain", "rounds", "reading"].contains(&finding.check)), "{found:#?}");
    }
}

#[tokio::test]
async fn a_chain_that_somebody_changed_is_found_at_the_event() {
    for (change, says) in [
        // The asker in the event is not who asked.
        ("UPDATE event_groups SET principal[2] = 'agent bookinG' WHERE last_seq = 2", "event 2"),
        // An event that cannot be read, on a page with all the others.
        ("UPDATE event_groups SET body[1] = '{\"event\":\"answerex\"}' WHERE last_seq > 2", "events after 0 "),
        // Events that are gone, from the middle and from the end.
        ("DELETE FROM event_groups WHERE last_seq = 2", ""),
        ("DELETE FROM event_groups WHERE last_seq = (SELECT max(last_seq) FROM event_groups)", ""),
    ] {
        let url = used().await;
        sql(&url, change).await;
        let found = examined(&url).await;
        let chain = finding(&found, "chain");
        assert_eq!(chain.severity, Severity::Problem, "{change}: {chain:?}");
        assert!(chain.detail.contains(says), "{}", chain.detail);
        assert_eq!(finding(&found, "rounds").detail, "1: 1 resolved", "the rest is still told");
    }
}

#[tokio::test]
async fn rows_that_lack_what_belongs_to_them_and_stamps_from_the_future_are_named() {
    let url = used().await;
    sql(&url, "DELETE FROM round_answers; UPDATE round_states SET finished_at = 99999999999999").await;
    let found = examined(&url).await;
    let rows = finding(&found, "rows");
    assert_eq!(rows.severity, Severity::Problem);
    assert!(rows.detail.contains("1 answered rounds without their answer"), "{}", rows.detail);
    assert_eq!(finding(&found, "clock").severity, Severity::Warning, "{found:#?}");
}
