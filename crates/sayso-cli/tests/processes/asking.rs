//! The load: agents that ask over HTTP and collect, callers of gateways, and the people who answer them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Http, Request};
use crate::scene::Scene;

fn value_in(body: &Value) -> String {
    body.pointer("/responses/note/content/answer/0").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One client: one round at a time, until all are asked.
pub async fn ask_and_collect(scene: Arc<Scene>, client: usize) {
    let (mut agent, mut person) = (Http::new(&scene, client), Http::new(&scene, client / 2));
    let mut rival = Http::new(&scene, client / 2 + 1);
    while let Some(n) = scene.next() {
        let question = format!("question {n}");
        let body = json!({"requests": {"note": {"kind": "text", "question": question}}});
        let key = format!("ask {n}");
        let ask = Request { method: "POST", path: "/v1/rounds", token: &scene.agent, key: &key, body: &body };
        let (status, round) = agent.ask(&ask).await;
        assert!(status == 200 || status == 201, "{status} {round}");
        let collect = collect(&scene, &mut agent, &question, &round);
        if n % 8 == 0 {
            // Two answers and a collector, all at once.
            let (mine, theirs) = (format!("value {n}"), format!("other value {n}"));
            let (first, second, ()) = tokio::join!(
                answer(&scene, &mut person, &question, &round, &mine),
                answer(&scene, &mut rival, &question, &round, &theirs),
                collect,
            );
            assert!(first != second, "of two answers of {question} one wins: {first} {second}");
        } else if n % 2 == 0 {
            let value = format!("value {n}");
            let (won, ()) = tokio::join!(answer(&scene, &mut person, &question, &round, &value), collect);
            assert!(won, "nobody else answers {question}");
        } else {
            assert!(answer(&scene, &mut person, &question, &round, &format!("value {n}")).await);
            collect.await;
        }
        scene.one_is_done();
    }
}

/// Answers, and says whether this answer won.
async fn answer(scene: &Scene, http: &mut Http<'_>, question: &str, round: &Value, value: &str) -> bool {
    let path = format!("/v1/rounds/{}/responses", round["round_id"].as_str().unwrap());
    let responses = json!({"note": {"action": "accept", "content": {"answer": [value]}}});
    let body = json!({"digest": round["digest"], "responses": responses});
    let request = Request { method: "POST", path: &path, token: &scene.person, key: value, body: &body };
    let (status, answered) = http.ask(&request).await;
    if status == 200 {
        scene.note_accepted(question, value);
        return true;
    }
    assert!(status == 409 && answered["winner"].is_object(), "{question}: {status} {answered}");
    false
}

/// Waits for the answer and takes it; now and then takes it again, and under another key, which is refused.
async fn collect(scene: &Scene, http: &mut Http<'_>, question: &str, round: &Value) {
    let path = format!("/v1/rounds/{}/collect?wait=20s", round["round_id"].as_str().unwrap());
    let key = format!("take {question}");
    let request = Request { method: "POST", path: &path, token: &scene.agent, key: &key, body: &Value::Null };
    let times = if question.ends_with('7') { 2 } else { 1 };
    for _ in 0..times {
        let (mut status, mut collected) = http.ask(&request).await;
        while status == 408 {
            (status, collected) = http.ask(&request).await;
        }
        assert_eq!(status, 200, "{question}: {collected}");
        scene.note_received(question, &value_in(&collected));
    }
    if times > 1 {
        let (status, refused) = http.ask(&Request { key: "another", ..request }).await;
        assert!(status == 409 || status == 410, "{question} is handed out under another key: {status} {refused}");
    }
}

/// One caller of a gateway: one call at a time. A call whose gateway is killed is not made again.
pub async fn call_gateway(scene: Arc<Scene>, gateway: usize) {
    let mut shown = scene.calls[gateway].subscribe();
    while let Some(n) = scene.next_call() {
        let calls = shown.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        let item = format!("item-{n}");
        let params = json!({"name": "book_shipment", "arguments": {"item": item}});
        match calls.request("tools/call", params).await {
            None => drop(scene.lost.fetch_add(1, Ordering::SeqCst)),
            Some(answer) => {
                let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
                let text =
                    text.or_else(|| answer.pointer("/error/message").and_then(Value::as_str)).unwrap_or_default();
                match text.strip_prefix(&format!("Booked: one {item} to ")).and_then(|rest| rest.split_once(',')) {
                    Some((street, _)) => scene.note_received(&item, street),
                    None => {
                        assert!(!text.is_empty() && !text.contains("Booked"), "{item}: {answer}");
                        scene.refused.lock().unwrap().push(text.to_owned());
                    }
                }
            }
        }
        scene.one_is_done();
    }
}

/// The people who answer what comes through gateways: they look at what is pending, again and again.
pub async fn answer_gateways(scene: Arc<Scene>) {
    let mut http = Http::new(&scene, 0);
    let mut answered = HashSet::new();
    let nothing = Value::Null;
    while !scene.is_over() {
        let path = "/v1/rounds?status=pending";
        let list = Request { method: "GET", path, token: &scene.person, key: "-", body: &nothing };
        let (status, page) = http.ask(&list).await;
        assert_eq!(status, 200, "{page}");
        let rounds = page["rounds"].as_array().cloned().unwrap_or_default();
        for round in rounds.iter().filter(|round| round["server"] == "shipping") {
            let id = round["round_id"].as_str().unwrap().to_owned();
            let (key, request) = round["requests"].as_object().unwrap().iter().next().unwrap();
            let message = request["message"].as_str().unwrap();
            let item = message.split(' ').find(|word| word.starts_with("item-")).unwrap();
            if !answered.insert(id.clone()) {
                continue;
            }
            let street = format!("street of {item}");
            let content = json!({"street": street, "city": "Pune"});
            let body = json!({"digest": round["digest"], "responses": {key: {"action": "accept", "content": content}}});
            let path = format!("/v1/rounds/{id}/responses");
            let request = Request { method: "POST", path: &path, token: &scene.person, key: &id, body: &body };
            let (status, told) = http.ask(&request).await;
            match status {
                200 => scene.note_accepted(item, &street),
                // Its gateway has ended meanwhile, and the answer was refused with the reason.
                409 => assert!(told["detail"].is_string(), "{told}"),
                _ => panic!("{item}: {status} {told}"),
            }
        }
        if rounds.iter().all(|round| round["server"] != "shipping") {
            tokio::time::timeout(Duration::from_millis(20), scene.done(100)).await.ok();
        }
    }
}
