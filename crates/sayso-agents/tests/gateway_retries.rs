//! Until when an identical call is a retry that reads a stored result, and what it gets after a person's edit.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use std::time::Duration;

use rig::approving::{ASKING, asked, heard_call, setup, short_hold, upstream_heard_nothing};
use rig::{Gated, text_of};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);
/// Longer than a client may take to say that it had given a request up.
const COLLECTED: Duration = Duration::from_secs(6);

/// The timers' clock moves on, and what is due by then is done. The store has threads of its own, which go by real time:
/// the clock stands still only while it is moved.
async fn advance(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
}

#[tokio::test]
async fn an_identical_call_reads_the_result_for_ten_minutes_from_when_it_was_first_collected_and_is_then_asked_anew() {
    let mut rig = Gated::start(ASKING, short_hold()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil"})).await;
    assert!(text_of(&rig.client.hear().await).contains("still waiting"));
    rig.approve(&round, None).await;
    rig.call_tool(2, "book", json!({"item": "anvil"})).await;
    let number = heard_call(&mut rig, json!({"item": "anvil"})).await;
    rig.result(&number, "booked").await;
    assert_eq!(text_of(&rig.client.hear().await), "booked");
    advance(COLLECTED).await;

    for id in [3, 4] {
        advance(4 * MINUTE).await;
        rig.call_tool(id, "book", json!({"item": "anvil"})).await;
        let again = rig.client.hear().await;
        assert_eq!((again["id"].as_u64(), text_of(&again)), (Some(id), "booked"), "within ten minutes");
        advance(COLLECTED).await;
    }
    advance(2 * MINUTE).await;
    let anew = asked(&mut rig, 5, json!({"item": "anvil"})).await;
    assert_ne!((anew.round_id, anew.execution_id), (round.round_id, round.execution_id));
    assert!(text_of(&rig.client.hear().await).contains("still waiting"), "it is a new call");
    upstream_heard_nothing(&mut rig).await;
}

#[tokio::test]
async fn an_agent_that_makes_its_own_call_again_after_a_person_edited_it_never_runs_its_own_arguments() {
    let mut rig = Gated::start(ASKING, setup()).await;
    let round = asked(&mut rig, 1, json!({"item": "anvil", "n": 5})).await;
    rig.approve(&round, Some(r#"{"item":"anvil","n":1}"#)).await;
    let number = heard_call(&mut rig, json!({"item": "anvil", "n": 1})).await;
    rig.result(&number, "booked").await;
    let told = rig.client.hear().await;
    let words = told["result"]["content"][1]["text"].as_str().unwrap();
    assert!(words.contains("A person changed the arguments") && words.contains(r#"{"item":"anvil","n":1}"#), "{told}");

    // Before its result counts as collected it is a retry: it reads what ran, and with what.
    rig.call_tool(2, "book", json!({"item": "anvil", "n": 5})).await;
    let retried = rig.client.hear().await;
    assert_eq!(retried["result"], told["result"]);
    upstream_heard_nothing(&mut rig).await;

    // Afterwards it is a call of its own, and so is the one that the person made of it.
    advance(COLLECTED).await;
    for (id, n) in [(3, 5), (4, 1)] {
        let anew = asked(&mut rig, id, json!({"item": "anvil", "n": n})).await;
        assert_ne!(anew.round_id, round.round_id, "the approval is spent");
    }
    upstream_heard_nothing(&mut rig).await;
}
