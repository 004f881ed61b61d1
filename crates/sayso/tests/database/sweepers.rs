//! Several sweepers on the same rows at the same moment: each thing ends once, and every event of it is there once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sayso::{Ask, Desk, Failure, Outcome, RoundId, Status, Sweeper, limits};
use sayso_core::event::EventBody;
use sayso_store::clock::ManualClock;
use sayso_store::{ExecutionFilter, PostgresStore, RoundFilter, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::support::{address, agent, live};
use crate::{LONG_AGO, open};

const SWEEPERS: usize = 3;
const LEASE: Duration = Duration::from_millis(limits::LEASE_MS.unsigned_abs());
const OVERDUE: usize = 30;
/// Workers that are gone.
const GONE: usize = 3;
/// The live questions of each.
const HELD: usize = 8;

/// Each sweeper looks once, all of them at the same moment.
async fn sweep(sweepers: &mut Vec<(Arc<PostgresStore>, Sweeper)>, monotonic: Duration) {
    let start = Arc::new(Barrier::new(sweepers.len()));
    let mut sweeping = JoinSet::new();
    for (store, mut sweeper) in sweepers.drain(..) {
        let start = start.clone();
        sweeping.spawn(async move {
            start.wait().await;
            sweeper.step(store.as_ref(), monotonic).await.expect("sweeps");
            (store, sweeper)
        });
    }
    *sweepers = sweeping.join_all().await;
}

/// How each round ended, by its event; nothing may have two.
async fn ends_told(store: &dyn Store) -> BTreeMap<RoundId, String> {
    let (mut previous, mut ends) = ([0; 32], BTreeMap::new());
    for (event, seq) in store.events_after(0, usize::MAX).await.expect("events").into_iter().zip(1..) {
        assert!(event.seq == seq && event.previous_hash == previous && event.is_intact(), "{event:?}");
        previous = event.hash;
        if let (EventBody::Failed { code }, Some(round)) = (event.event.body, event.event.round_id) {
            assert_eq!(ends.insert(round, code), None, "told twice");
        }
    }
    ends
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_that_meet_on_the_same_rows_end_each_once() {
    let url = Cluster::shared().fresh().await;
    let clock = Arc::new(ManualClock::at(LONG_AGO));
    let (store, sayso) = open(&url, &clock).await;
    let mut expected = BTreeMap::new();
    for n in 0..OVERDUE {
        let deadline = Some(LONG_AGO.plus_ms(1 + i64::try_from(n % 3).unwrap()));
        let asked = sayso.desk(agent()).ask(Ask { deadline, ..address() }, None).await.expect("stored");
        expected.insert(asked.round_id, Failure::EXPIRED.to_owned());
    }
    for _ in 0..GONE {
        let (_, gone) = open(&url, &clock).await;
        let desk = gone.desk(agent());
        desk.begin().await.expect("started, and it will ask nothing");
        for _ in 0..HELD {
            let asked = desk.open(live(address()), None).await.expect("stored").round;
            expected.insert(asked.round_id, Failure::RECOVERY_UNAVAILABLE.to_owned());
        }
    }
    let mut sweepers = Vec::new();
    for _ in 0..SWEEPERS {
        sweepers.push((open(&url, &clock).await.0, Sweeper::default()));
    }
    clock.advance_ms(limits::LEASE_MS);
    sweep(&mut sweepers, Duration::ZERO).await;
    let overdue: Vec<_> = expected.iter().filter(|(_, code)| *code == Failure::EXPIRED).collect();
    assert_eq!(ends_told(store.as_ref()).await.iter().collect::<Vec<_>>(), overdue, "the living are seen dead once");
    sweep(&mut sweepers, LEASE).await;
    assert_eq!(ends_told(store.as_ref()).await, expected);
    let before = store.last_event().await.expect("is read");
    sweep(&mut sweepers, 2 * LEASE).await;
    assert_eq!(store.last_event().await, Ok(before), "there is nothing left to end");

    let all = RoundFilter { limit: 1000, ..RoundFilter::default() };
    for found in store.rounds(all).await.expect("rounds") {
        let code = found.row.failure.as_ref().map(|failure| failure.code.clone());
        assert_eq!((found.row.status, code.as_ref()), (Status::Failed, expected.get(&found.row.id)));
    }
    let all = ExecutionFilter { limit: 1000, ..ExecutionFilter::default() };
    let executions = store.executions(all).await.expect("executions");
    assert!(executions.iter().all(|(execution, pending)| execution.outcome.is_some() && pending.is_empty()));
    let lost = executions.iter().filter(|(row, _)| row.outcome.as_ref().is_some_and(|it| *it == Outcome::Lost));
    assert_eq!(lost.count(), GONE);
}
