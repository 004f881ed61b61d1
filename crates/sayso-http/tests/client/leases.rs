//! The worker's lease, by the server's clock.

use std::time::Duration;

use sayso::{Desk, Failure, Status, Sweeper};
use sayso_core::round::Delivery;
use sayso_http::client::Client;

use crate::proxy::Proxy;
use crate::rig::{Rig, ask};

/// Two sweeps, a lease length apart.
async fn sweep(rig: &Rig) {
    let mut sweeper = Sweeper::default();
    for seconds in [0, 30] {
        rig.sayso.sweep(&mut sweeper, Duration::from_secs(seconds)).await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_that_renews_keeps_its_round_and_one_that_is_gone_loses_it() {
    let rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let options = rig.options(proxy.address).renew_every(Duration::from_millis(5));
    let client = Client::connect(options).await.unwrap();
    let opened = client.open(ask(Delivery::Live), None).await.unwrap();
    let round = opened.round.round_id;
    for _ in 0..3 {
        rig.clock.advance_ms(29_999);
        // The first of two may have been under way before.
        proxy.until_answered("/renew", proxy.answered("/renew") + 2).await;
    }
    sweep(&rig).await;
    assert_eq!(rig.round(round).await.status, Status::Pending);

    drop(client);
    proxy.until_left().await;
    rig.clock.advance_ms(30_000);
    sweep(&rig).await;
    let failed = rig.round(round).await;
    assert_eq!(failed.failure.unwrap().code, Failure::RECOVERY_UNAVAILABLE);
    let execution = rig.sayso.execution(rig.sayso.person(), failed.execution_id).await.unwrap();
    assert_eq!(execution.outcome.unwrap().status, "failed");
}

#[tokio::test]
async fn a_worker_that_left_renews_nothing_more() {
    let rig = Rig::new().await;
    let client = rig.client().await;
    let round = client.open(ask(Delivery::Live), None).await.unwrap().round.round_id;
    client.leave().await.unwrap();
    sweep(&rig).await;
    assert_eq!(rig.round(round).await.status, Status::Failed);
}

#[tokio::test]
async fn a_late_renewal_counts_as_long_as_nobody_took_over() {
    let rig = Rig::new().await;
    let client = rig.client().await;
    let opened = client.open(ask(Delivery::Live), None).await.unwrap();
    let (round, fence) = (opened.round.round_id, opened.fence.unwrap());
    rig.answer(round).await;
    rig.clock.advance_ms(120_000);
    assert!(client.start(round, fence.clone()).await.is_err(), "the lease has run out");
    client.renew(round, fence.clone()).await.unwrap();
    client.start(round, fence).await.unwrap();
}
