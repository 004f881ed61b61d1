//! Two servers and two gateways on one PostgreSQL, under the load of 64 clients, each of them killed in turn as by
//! `kill -9`, and the database restarted in the middle as by a crash. At the end every question has been answered and its
//! answer taken exactly once, or it has failed and says why.
//!
//! `SAYSO_PROCESSES_ROUNDS=1000 cargo nextest run -p sayso-cli --test processes` runs so many rounds.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

mod asking;
#[path = "../../../sayso-store/tests/support/cluster.rs"]
mod cluster;
mod ending;
mod gateway;
mod http;
mod scene;
mod serve;

use std::sync::Arc;

use asking::{answer_gateways, ask_and_collect, call_gateway};
use cluster::Cluster;
use scene::{Scene, Works};

/// Rounds of a usual run; the whole of it takes about a minute on two cores.
const ROUNDS: usize = 10_000;
/// Clients over HTTP, each with one round at a time.
const CLIENTS: usize = 56;
/// Callers of each of the two gateways, each with one call at a time.
const CALLERS: usize = 4;
/// One of so many rounds goes through a gateway.
const GATEWAY_SHARE: usize = 10;

#[expect(clippy::disallowed_methods, reason = "how many rounds are run is for whoever runs the test")]
fn rounds() -> usize {
    std::env::var("SAYSO_PROCESSES_ROUNDS").map_or(ROUNDS, |text| text.parse().expect("a number of rounds"))
}

/// What happens to whom once so many percent of the rounds are done.
#[derive(Clone, Copy)]
enum Blow {
    Serve(usize),
    Gateway(usize),
    Database,
}

const BLOWS: [(usize, Blow); 7] = [
    (10, Blow::Serve(0)),
    (20, Blow::Gateway(0)),
    (30, Blow::Serve(1)),
    (40, Blow::Gateway(1)),
    (50, Blow::Database),
    (65, Blow::Serve(0)),
    (80, Blow::Gateway(0)),
];

/// How many of these kill a gateway.
const GATEWAY_KILLS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_every_answer_arrives_once_or_the_round_says_why() {
    let cluster = Arc::new(Cluster::private());
    let scene = Scene::open(&cluster.fresh().await, rounds(), GATEWAY_SHARE).await;
    let mut serves = [scene.serve(0).await, scene.serve(1).await];
    let mut gateways = [scene.gateway(0, Works::OnTheDatabase).await, scene.gateway(1, Works::AtTheServer).await];

    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(ask_and_collect(scene.clone(), client));
    }
    for gateway in 0..gateways.len() {
        for _ in 0..CALLERS {
            clients.spawn(call_gateway(scene.clone(), gateway));
        }
    }
    clients.spawn(answer_gateways(scene.clone()));

    for (percent, blow) in BLOWS {
        let mut enough = std::pin::pin!(scene.done(percent));
        loop {
            tokio::select! {
                () = &mut enough => break,
                // A client that found something wrong ends the test at once.
                Some(ended) = clients.join_next() => ended.expect("a client found something wrong"),
            }
        }
        match blow {
            Blow::Serve(n) => {
                serves[n].kill().await;
                serves[n] = scene.serve(n).await;
            }
            Blow::Gateway(n) => {
                gateways[n].kill().await;
                // From then on both are on the database.
                gateways[n] = scene.gateway(n, Works::OnTheDatabase).await;
            }
            Blow::Database => {
                let cluster = cluster.clone();
                tokio::task::spawn_blocking(move || cluster.restart("immediate")).await.expect("restarted");
            }
        }
        scene.changed();
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client found something wrong");
    }
    for serve in &mut serves {
        serve.kill().await;
    }
    for gateway in &mut gateways {
        gateway.kill().await;
    }
    ending::check(&scene).await;
}
