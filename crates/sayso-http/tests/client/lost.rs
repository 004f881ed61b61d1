//! The server has done it, and its answer is lost.

use std::time::Duration;

use sayso::{ClaimOf, Desk, Error, Outcome, Status, Step};
use sayso_core::round::Delivery;
use sayso_http::client::Client;

use crate::proxy::Proxy;
use crate::rig::{Rig, ask};

#[tokio::test]
async fn a_lost_answer_neither_asks_twice_nor_loses_a_lease() {
    let rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();

    proxy.lose("/v1/rounds");
    let live = client.open(ask(Delivery::Live), None).await.unwrap();
    let fence = live.fence.expect("the repeat finds the lease of the first");
    proxy.lose("/v1/rounds");
    let resumable = client.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    assert_eq!(rig.rounds().await, 2);

    let round = live.round.round_id;
    rig.answer(round).await;
    rig.answer(resumable).await;
    proxy.lose("/claim");
    let claimed = client.claim(resumable, ClaimOf::default(), None).await.unwrap().fence.unwrap();
    for (round, fence) in [(round, fence), (resumable, claimed)] {
        proxy.lose("/start_delivery");
        client.start(round, fence.clone()).await.unwrap();
        proxy.lose("/settle");
        let mut steps = vec![Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)];
        if round == live.round.round_id {
            steps.push(Step::Finished(live.round.execution_id, Outcome::Completed, None));
        }
        client.settle(steps).await.unwrap();
        assert_eq!(rig.round(round).await.status, Status::Resolved);
    }
    let events = rig.sayso.events_after(rig.sayso.person(), 0).await.unwrap();
    let resolved = events.iter().filter(|event| event.event.body.name() == "resolved");
    assert_eq!(resolved.count(), 2, "each delivery was stored once");
}

#[tokio::test]
async fn a_lost_collection_is_read_again() {
    let rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();
    let round = client.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    rig.answer(round).await;
    proxy.lose("/collect");
    let collected = client.collect(round, "once", Duration::from_secs(45)).await.unwrap();
    assert!(collected.responses.get("address").is_some());
}

#[tokio::test]
async fn a_record_is_not_started_twice_for_one_call() {
    let rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();
    proxy.lose("/v1/executions");
    assert!(matches!(client.begin().await, Err(Error::Unavailable(_))));
    let all = rig.sayso.executions(rig.sayso.person(), sayso::ExecutionFilter::default()).await.unwrap();
    assert_eq!(all.executions.len(), 1);
}
