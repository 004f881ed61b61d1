//! The server goes and comes back while somebody waits.

use std::time::Duration;

use sayso::{Desk, Error, Outcome, Status, Step};
use sayso_core::round::Delivery;
use sayso_http::client::Client;

use crate::proxy::Proxy;
use crate::rig::{Rig, ask};

const LONG: Duration = Duration::from_secs(45);

#[tokio::test]
async fn whoever_waits_goes_on_when_the_server_was_killed_and_is_back() {
    let mut rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();
    let opened = client.open(ask(Delivery::Live), None).await.unwrap();
    let (round, fence) = (opened.round.round_id, opened.fence.unwrap());
    let taken = client.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    let begun = client.begin().await.unwrap();
    let (one, two, three) = (client.clone(), client.clone(), client.clone());
    let waiting = tokio::spawn(async move { one.wait(round, 1, LONG).await });
    let collecting = tokio::spawn(async move { two.collect(taken, "once", LONG).await });
    let awaiting = tokio::spawn(async move { three.result(begun, LONG).await });
    for part in ["after=1", "/collect", "/result"] {
        proxy.until_asked(part).await;
    }

    rig.kill();
    // Nobody is there: a call that can be repeated is, until there is somebody.
    let starting = tokio::spawn({
        let client = client.clone();
        async move { client.renew(round, fence.clone()).await.map(|_| fence) }
    });
    rig.serve().await;
    let fence = starting.await.unwrap().unwrap();
    rig.answer(round).await;
    rig.answer(taken).await;
    assert_eq!(waiting.await.unwrap().unwrap().status, Status::ResponseValidated);
    assert_eq!(collecting.await.unwrap().unwrap().round.status, Status::Resolved);
    client.start(round, fence).await.unwrap();
    client.settle(vec![Step::Finished(begun, Outcome::Completed, None)]).await.unwrap();
    assert_eq!(awaiting.await.unwrap().unwrap().execution.execution_id, begun);
}

#[tokio::test]
async fn a_poll_that_a_stopping_server_ended_is_begun_again() {
    let mut rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();
    let round = client.open(ask(Delivery::Live), None).await.unwrap().round.round_id;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.wait(round, 1, LONG).await }
    });
    proxy.until_asked("after=1").await;
    rig.stop().await;
    rig.serve().await;
    rig.answer(round).await;
    assert_eq!(waiting.await.unwrap().unwrap().status, Status::ResponseValidated);
}

#[tokio::test]
async fn connections_are_kept_for_the_next_call() {
    let rig = Rig::new().await;
    let proxy = Proxy::before(rig.address).await;
    let client = Client::connect(rig.options(proxy.address)).await.unwrap();
    let round = client.open(ask(Delivery::Resumable), None).await.unwrap().round;
    for _ in 0..20 {
        client.execution(round.execution_id).await.unwrap();
    }
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn without_a_server_calls_end_as_unavailable() {
    let mut rig = Rig::new().await;
    let options = || rig.options(rig.address).repeat_for(Duration::from_millis(100));
    let (client, later) = (Client::connect(options()).await.unwrap(), options());
    let round = client.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
    rig.kill();
    let waited = client.wait(round, 1, Duration::from_millis(300)).await;
    assert!(matches!(waited, Err(Error::Unavailable(_))), "{waited:?}");
    let refused = client.open(ask(Delivery::Live), None).await;
    assert!(matches!(&refused, Err(Error::Unavailable(words)) if words.contains("127.0.0.1")), "{refused:?}");
    assert!(matches!(Client::connect(later).await, Err(Error::Unavailable(_))));
}
