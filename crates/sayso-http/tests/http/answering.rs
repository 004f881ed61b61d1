//! One answer wins, whoever else tries and however often it is sent.

use serde_json::{Value, json};

use crate::served::{Served, approval, post, street};

async fn send(served: &Served, round: &sayso::wire::Round, key: &str, answer: &Value) -> crate::served::Reply {
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    post(&path).bearer(&served.person).key(key).json(answer).send(served).await
}

#[tokio::test]
async fn of_fifty_answers_at_once_one_wins_and_the_others_are_told_who() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let (served, round) = (served.clone(), round.clone());
            tokio::spawn(async move {
                send(&served, &round, &format!("key-{number}"), &street(&round, &format!("{number} Main Street"))).await
            })
        })
        .collect();
    let (mut won, mut lost) = (0, 0);
    for task in tasks {
        let reply = task.await.unwrap();
        if reply.status == 200 {
            won += 1;
            continue;
        }
        let problem = reply.problem(409, "managed_input_conflict");
        assert_eq!(problem["winner"]["principal"], "person grace", "{problem}");
        assert_eq!(
            (problem["winner"]["channel"].as_str(), problem["winner"]["action"].as_str()),
            (Some("http"), Some("accept"))
        );
        assert!(problem["winner"]["at"].is_string() && !problem.to_string().contains("Main Street"));
        lost += 1;
    }
    assert_eq!((won, lost), (1, 49));
}

#[tokio::test]
async fn the_same_key_with_the_same_answer_is_the_same_record() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let first = send(&served, &round, "k", &street(&round, "x")).await.ok();
    assert_eq!(send(&served, &round, "k", &street(&round, "x")).await.ok(), first);
    send(&served, &round, "k", &street(&round, "y")).await.problem(409, "managed_input_conflict");
    send(&served, &round, "other", &street(&round, "x")).await.problem(409, "managed_input_conflict");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_changes_nothing_and_says_where() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let responses = |responses: Value| json!({"digest": round.digest, "responses": responses});
    for (answer, pointer) in [
        (
            responses(json!({"address": {"action": "accept", "content": {"floor": -1}}})),
            "/responses/address/content/street",
        ),
        (responses(json!({"address": {"action": "accept"}})), "/responses/address/content"),
        (responses(json!({"address": {"action": "decline", "content": {}}})), "/responses/address/content"),
        (responses(json!({"adress": {"action": "cancel"}})), "/responses/adress"),
        (responses(json!({})), "/responses/address"),
        (responses(json!({"address": {"action": "agree"}})), "/responses/address/action"),
    ] {
        let problem = send(&served, &round, "k", &answer).await.problem(422, "managed_input_invalid");
        let pointers: Vec<_> =
            problem["fields"].as_array().unwrap().iter().map(|field| field["pointer"].clone()).collect();
        assert!(pointers.contains(&json!(pointer)), "{answer}: {problem}");
    }
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    let keyless = post(&path).bearer(&served.person).json(street(&round, "x")).send(&served).await;
    assert_eq!(keyless.problem(422, "managed_input_invalid")["fields"][0]["pointer"], "/idempotency_key");
    send(&served, &round, "k", &street(&round, "x")).await.ok();
}

#[tokio::test]
async fn what_was_not_shown_is_not_approved() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", approval())]).await;
    let digest = round.digest.to_string();
    let stale = format!("sha256:{}", "0".repeat(64));
    let approve = |digest: Option<&str>| json!({"digest": digest, "responses": {"call": {"action": "accept"}}});
    send(&served, &round, "k", &approve(Some(&stale))).await.problem(409, "managed_input_stale");
    let missing = send(&served, &round, "k", &approve(None)).await.problem(422, "managed_input_invalid");
    assert_eq!(missing["fields"][0]["pointer"], "/digest");
    assert_eq!(send(&served, &round, "k", &approve(Some(&digest))).await.ok()["answered"]["action"], "accept");
}
