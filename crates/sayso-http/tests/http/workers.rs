//! The worker's routes as anybody may write them, with `curl` for one.

use serde_json::{Value, json};

use crate::served::{ADDRESS, Call, Reply, Served, get, post, street};

fn live() -> Value {
    let schema: Value = serde_json::from_str(ADDRESS).unwrap();
    json!({"delivery": "live", "request_state": "0paque",
        "requests": {"address": {"kind": "form", "message": "Where to?", "schema": schema}}})
}

async fn by_agent(served: &Served, path: &str, body: Value) -> Reply {
    post(path).bearer(&served.agent).json(body).send(served).await
}

async fn answer(served: &Served, path: &str) {
    let round = serde_json::from_value(get(path).bearer(&served.person).send(served).await.ok()).unwrap();
    let call = post(&format!("{path}/responses")).bearer(&served.person).key("a").json(street(&round, "s3cret"));
    call.send(served).await.ok();
}

#[tokio::test]
async fn a_live_round_is_asked_held_and_delivered() {
    let served = Served::new().await;
    let asked = by_agent(&served, "/v1/rounds", live()).await;
    assert_eq!(asked.status, 201, "{}", asked.text);
    let (round, lease) = (asked.json()["round"].clone(), asked.json()["lease"].clone());
    let path = format!("/v1/rounds/{}", round["round_id"].as_str().unwrap());
    assert_eq!(asked.header("location"), path);
    let holding = json!({"owner_id": lease["owner_id"], "lease_token": lease["lease_token"]});
    let renewed = by_agent(&served, &format!("{path}/renew"), holding.clone()).await.ok();
    assert_eq!(renewed["owner_id"], lease["owner_id"]);
    answer(&served, &path).await;

    let started = by_agent(&served, &format!("{path}/start_delivery"), holding.clone()).await.ok();
    assert_eq!(started["responses"]["address"]["content"]["street"], "s3cret");
    assert_eq!(started["request_state"], "0paque");
    let secret = [lease["lease_token"].as_str().unwrap(), "0paque", "s3cret"];
    for (verb, status) in [("delivered", "delivered"), ("resolve", "resolved")] {
        let moved = by_agent(&served, &format!("{path}/{verb}"), holding.clone()).await;
        assert_eq!(moved.ok()["status"], status);
        assert!(!secret.iter().any(|secret| moved.text.contains(secret)), "{}", moved.text);
    }
    for path in [path.clone(), format!("{path}/responses"), "/v1/rounds".to_owned(), "/v1/executions".to_owned()] {
        let read = get(&path).bearer(&served.agent).send(&served).await;
        assert!(read.status.is_success());
        assert!(!secret[..2].iter().any(|secret| read.text.contains(secret)), "{}", read.text);
    }
    let late = by_agent(&served, &format!("{path}/fail"), json!({"code": "c", "message": "m"})).await;
    assert_eq!(late.problem(409, "managed_input_state")["round_status"], "resolved");
}

#[tokio::test]
async fn one_worker_holds_several_rounds_under_one_lease_and_leaves() {
    let served = Served::new().await;
    let worker = post("/v1/workers").bearer(&served.agent).send(&served).await;
    assert_eq!(worker.status, 201);
    let owner = worker.json()["owner_id"].clone();
    assert_eq!(
        (worker.json()["lease_ms"].as_i64(), worker.json()["renew_every_ms"].as_i64()),
        (Some(30_000), Some(10_000))
    );
    let mut ask = live();
    ask["owner_id"] = owner.clone();
    let key = |call: Call| call.bearer(&served.agent).key("k").json(ask.clone());
    let first = key(post("/v1/rounds")).send(&served).await.ok();
    assert_eq!(first["lease"]["owner_id"], owner);
    let again = key(post("/v1/rounds")).send(&served).await.ok();
    assert_eq!(again["lease"]["lease_token"], first["lease"]["lease_token"], "a repeat finds the lease");
    let begun = by_agent(&served, "/v1/executions", json!({"owner_id": owner})).await;
    assert_eq!(begun.status, 201);
    let renew = format!("/v1/workers/{}/renew", owner.as_str().unwrap());
    assert!(post(&renew).bearer(&served.agent).send(&served).await.ok()["expires_at"].is_string());

    let id = &first["round"]["round_id"];
    let token = &first["lease"]["lease_token"];
    let digest = format!("sha256:{}", "0".repeat(64));
    let steps = json!({"steps": [
        {"step": "failed", "round_id": id, "owner_id": owner, "lease_token": token,
            "failure": {"code": "withdrawn", "message": "taken back"}},
        {"step": "finished", "execution_id": begun.json()["execution_id"], "outcome": {"status": "completed"},
            "result": {"n": 1.50}},
        {"step": "collected", "execution_id": begun.json()["execution_id"]},
        {"step": "ruled", "tool": "x:burn", "approved": false, "rule": "operator never"},
        {"step": "reviewed", "tool": "x:burn", "definition": digest}]});
    assert_eq!(by_agent(&served, "/v1/settle", steps).await.ok(), json!({"steps": 5}));
    let reviewed = "/v1/reviewed?tool=x:burn";
    assert_eq!(get(reviewed).bearer(&served.agent).send(&served).await.ok(), json!({"definition": digest}));
    assert_eq!(get(reviewed).bearer(&served.other_agent).send(&served).await.ok(), json!({"definition": null}));
    get(reviewed).bearer(&served.person).send(&served).await.problem(403, "forbidden");
    let result = format!("/v1/executions/{}/result", begun.json()["execution_id"].as_str().unwrap());
    assert!(get(&result).bearer(&served.agent).send(&served).await.text.contains(r#""result":{"n":1.5"#));
    let release = renew.replace("/renew", "/release");
    assert_eq!(post(&release).bearer(&served.agent).send(&served).await.status, 204);
}

#[tokio::test]
async fn a_worker_belongs_to_its_credential_and_persons_have_none() {
    let served = Served::new().await;
    let worker = post("/v1/workers").bearer(&served.agent).send(&served).await.ok();
    let owner = worker["owner_id"].as_str().unwrap();
    let mut ask = live();
    ask["owner_id"] = owner.into();
    for (path, body) in [
        ("/v1/rounds".to_owned(), ask.clone()),
        ("/v1/executions".to_owned(), json!({"owner_id": owner})),
        (format!("/v1/workers/{owner}/renew"), json!({})),
        (format!("/v1/workers/{owner}/release"), json!({})),
    ] {
        let stranger = post(&path).bearer(&served.other_agent).json(&body).send(&served).await;
        stranger.problem(409, "managed_input_conflict");
    }
    let garbled = post("/v1/workers/%FF/renew").bearer(&served.agent).send(&served).await;
    assert_eq!(garbled.problem(422, "managed_input_invalid")["fields"][0]["pointer"], "/owner");
    let asked = by_agent(&served, "/v1/rounds", ask.clone()).await.ok();
    let round = format!("/v1/rounds/{}", asked["round"]["round_id"].as_str().unwrap());
    let holding = json!({"owner_id": owner, "lease_token": asked["lease"]["lease_token"]});
    for (path, body) in [
        ("/v1/workers".to_owned(), json!({})),
        ("/v1/rounds".to_owned(), live()),
        (format!("{round}/claim"), json!({})),
        (format!("{round}/renew"), holding.clone()),
        (format!("{round}/start_delivery"), holding.clone()),
        (format!("{round}/delivered"), holding.clone()),
        (format!("{round}/resolve"), holding.clone()),
        (format!("{round}/fail"), json!({"code": "withdrawn", "message": "m"})),
        (format!("{round}/fail_recovery"), json!({"expected_token": holding["lease_token"]})),
        ("/v1/settle".to_owned(), json!({"steps": []})),
    ] {
        post(&path).bearer(&served.person).json(&body).send(&served).await.problem(403, "forbidden");
        post(&path).session(&served.session).json(&body).send(&served).await.problem(403, "forbidden");
        post(&path).json(&body).send(&served).await.problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn what_a_worker_sends_is_read_strictly() {
    let served = Served::new().await;
    let round = format!("/v1/rounds/{}", served.ask_address().await.round_id);
    let token = "0".repeat(32);
    for (path, body, pointer) in [
        ("/start_delivery", json!({}), "/owner_id"),
        ("/start_delivery", json!({"lease_token": "x", "owner_id": "o"}), "/lease_token"),
        ("/renew", json!({"owner_id": "o", "lease_token": token, "more": 1}), "/more"),
        ("/claim", json!({"evidence": {"delivery": "maybe"}}), "/evidence/delivery"),
        ("/fail", json!({"owner_id": "o", "code": "c", "message": "m"}), "/lease_token"),
        ("/fail", json!({"lease_token": token, "code": "c", "message": "m"}), "/owner_id"),
        ("/fail_recovery", json!({}), "/expected_token"),
    ] {
        let problem = by_agent(&served, &format!("{round}{path}"), body).await.problem(422, "managed_input_invalid");
        assert_eq!(problem["fields"][0]["pointer"], pointer, "{path}: {problem}");
    }
    let id = round.rsplit('/').next().unwrap();
    for (step, pointer) in [
        (json!({"step": "undone"}), "/steps"),
        (json!({"step": "reviewed", "tool": "x:burn"}), "/steps/0/definition"),
        (
            json!({"step": "ruled", "tool": "x:burn", "definition": format!("sha256:{token}{token}")}),
            "/steps/0/definition",
        ),
        (json!({"step": "delivered", "round_id": id}), "/steps/0/lease_token"),
        (json!({"step": "delivered"}), "/steps/0/round_id"),
        (json!({"step": "collected", "round_id": id}), "/steps/0/round_id"),
        (json!({"step": "failed", "round_id": id}), "/steps/0/failure"),
        (json!({"execution_id": "exe_1", "step": "finished"}), "/steps"),
        (json!({"step": "finished", "execution_id": id.replace("rnd", "exe")}), "/steps/0/outcome"),
        (
            json!({"step": "finished", "execution_id": id.replace("rnd", "exe"), "outcome": {"status": "odd"}}),
            "/steps/0/outcome/status",
        ),
    ] {
        let problem = by_agent(&served, "/v1/settle", json!({"steps": [step]})).await;
        let problem = problem.problem(422, "managed_input_invalid");
        assert_eq!(problem["fields"][0]["pointer"], pointer, "{problem}");
    }
    for query in ["", "?tool=burn", "?tool=x:burn&tool=x:burn", "?tools=x:burn"] {
        let wrong = get(&format!("/v1/reviewed{query}")).bearer(&served.agent).send(&served).await;
        wrong.problem(422, "managed_input_invalid");
    }
    let many: Vec<_> = (0..257).map(|_| json!({"step": "url_completed", "round_id": id})).collect();
    by_agent(&served, "/v1/settle", json!({"steps": many})).await.problem(413, "limit_exceeded");
}

#[tokio::test]
async fn a_resumable_round_is_claimed_once_and_again_under_its_key() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let path = format!("/v1/rounds/{}", round.round_id);
    by_agent(&served, &format!("{path}/claim"), json!({})).await.problem(409, "managed_input_state");
    answer(&served, &path).await;
    let worker = post("/v1/workers").bearer(&served.agent).send(&served).await.ok();
    let claim = |key: &str| {
        let body = json!({"owner_id": worker["owner_id"]});
        post(&format!("{path}/claim")).bearer(&served.agent).key(key).json(body)
    };
    let first = claim("k").send(&served).await.ok();
    assert_eq!(claim("k").send(&served).await.ok()["lease"]["lease_token"], first["lease"]["lease_token"]);
    claim("other").send(&served).await.problem(409, "managed_input_conflict");
    let holding = json!({"owner_id": worker["owner_id"], "lease_token": first["lease"]["lease_token"]});
    by_agent(&served, &format!("{path}/start_delivery"), holding).await.ok();
    let recover = json!({"expected_token": first["lease"]["lease_token"]});
    by_agent(&served, &format!("{path}/fail_recovery"), recover).await.problem(409, "managed_input_conflict");
}
