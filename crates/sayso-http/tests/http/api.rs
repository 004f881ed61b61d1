use axum::body::Body;
use axum::http::Method;
use serde_json::json;

use crate::served::{ADDRESS, Served, call, get, post, street};

fn asked() -> serde_json::Value {
    let schema: serde_json::Value = serde_json::from_str(ADDRESS).unwrap();
    json!({"requests": {"address": {"kind": "form", "message": "Where to?", "schema": schema}}})
}

#[tokio::test]
async fn a_round_is_asked_read_listed_answered_and_collected() {
    let served = Served::new().await;
    let asked = post("/v1/rounds").bearer(&served.agent).key("booking-17").json(asked()).send(&served).await;
    assert_eq!(asked.status, 201, "{}", asked.text);
    let round = asked.json();
    let id = round["round_id"].as_str().unwrap().to_owned();
    assert_eq!(asked.header("location"), format!("/v1/rounds/{id}"));
    assert_eq!((round["status"].as_str(), round["server"].as_str()), (Some("pending"), Some("claude")));
    assert_eq!(round["requests"]["address"]["schema"]["required"], json!(["street"]));

    let path = format!("/v1/rounds/{id}");
    assert_eq!(get(&path).bearer(&served.person).send(&served).await.ok()["round_id"], round["round_id"]);
    let list = get("/v1/rounds?status=pending&limit=1").bearer(&served.person).send(&served).await.ok();
    assert_eq!((list["rounds"][0]["round_id"].as_str(), &list["next_cursor"]), (Some(id.as_str()), &json!(null)));
    let nothing = get(&format!("{path}/responses")).bearer(&served.person).send(&served).await;
    assert_eq!(nothing.ok(), json!(null));

    let answer = json!({"digest": round["digest"], "responses": {"address": {"action": "accept", "content": {"street": "1 Main Street"}}}});
    let answered =
        post(&format!("{path}/responses")).bearer(&served.person).key("a").json(&answer).send(&served).await.ok();
    assert_eq!(answered["status"], "response_validated");
    assert_eq!(
        (answered["answered"]["principal"].as_str(), answered["answered"]["channel"].as_str()),
        (Some("person grace"), Some("http"))
    );

    let values = get(&format!("{path}/responses")).bearer(&served.person).send(&served).await.ok();
    assert_eq!(
        (values["redacted"].as_bool(), values["effective"]["address"]["content"]["street"].as_str()),
        (Some(false), Some("1 Main Street"))
    );
    assert_eq!(get(&format!("{path}/responses")).bearer(&served.agent).send(&served).await.ok()["redacted"], true);

    for key in ["once", "once"] {
        let collected =
            post(&format!("{path}/collect?wait=5s")).bearer(&served.agent).key(key).send(&served).await.ok();
        assert_eq!(collected["round"]["status"], "resolved");
        assert_eq!(collected["responses"]["address"]["content"]["street"], "1 Main Street");
    }
    post(&format!("{path}/collect"))
        .bearer(&served.agent)
        .key("twice")
        .send(&served)
        .await
        .problem(409, "managed_input_state");

    let execution = format!("/v1/executions/{}", round["execution_id"].as_str().unwrap());
    let result = get(&format!("{execution}/result?wait=1s")).bearer(&served.agent).send(&served).await.ok();
    assert_eq!(result["execution"]["outcome"]["status"], "completed");
    assert_eq!(
        get("/v1/executions?limit=5").bearer(&served.agent).send(&served).await.ok()["executions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_collection_without_a_key_reads_the_same_answer_again() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let path = format!("/v1/rounds/{}", round.round_id);
    post(&format!("{path}/responses"))
        .bearer(&served.person)
        .key("a")
        .json(street(&round, "x"))
        .send(&served)
        .await
        .ok();
    for _ in 0..2 {
        let collected = post(&format!("{path}/collect")).bearer(&served.agent).send(&served).await.ok();
        assert_eq!(collected["responses"]["address"]["content"]["street"], "x");
    }
}

#[tokio::test]
async fn a_creation_under_a_key_is_repeated_and_another_one_is_a_conflict() {
    let served = Served::new().await;
    let ask = |body: serde_json::Value| post("/v1/rounds").bearer(&served.agent).key("k").json(body);
    let first = ask(asked()).send(&served).await.ok();
    assert_eq!(ask(asked()).send(&served).await.ok()["round_id"], first["round_id"]);
    let other = json!({"requests": {"note": {"kind": "text", "question": "?"}}});
    ask(other.clone()).send(&served).await.problem(409, "managed_input_conflict");
    let theirs = post("/v1/rounds").bearer(&served.other_agent).key("k").json(other).send(&served).await.ok();
    assert_ne!(theirs["round_id"], first["round_id"]);
}

#[tokio::test]
async fn bodies_are_read_strictly_and_what_is_wrong_is_named() {
    let served = Served::new().await;
    let send = |body: &str| post("/v1/rounds").bearer(&served.agent).json(body);
    for (body, pointer) in [
        ("{}", "/requests"),
        (r#"{"requests":{},"requests":{}}"#, ""),
        (r#"{"requests":{"a":{"kind":"text","question":"?"}},"frist":1}"#, "/frist"),
        (r#"{"requests":{"a":{"kind":"text","question":"?","url":"https://x"}}}"#, "/requests/a/url"),
        (r#"{"requests":{"a":{"kind":"form","message":"m","schema":{"type":"string"}}}}"#, "/requests/a/schema/type"),
        (r#"{"owner_id":"own_a","requests":{"a":{"kind":"text","question":"?"}}}"#, "/owner_id"),
        ("{", ""),
        ("\u{feff}{}", ""),
    ] {
        let problem = send(body).send(&served).await.problem(422, "managed_input_invalid");
        assert_eq!(problem["fields"][0]["pointer"], pointer, "{body}: {problem}");
    }
    let text = post("/v1/rounds").bearer(&served.agent).header("content-type", "text/plain").body(Body::from("{}"));
    text.send(&served).await.problem(415, "managed_input_invalid");
    post("/v1/rounds")
        .bearer(&served.agent)
        .body(Body::from("{}"))
        .send(&served)
        .await
        .problem(415, "managed_input_invalid");
    let latin = post("/v1/rounds").bearer(&served.agent).header("content-type", "application/json; charset=utf-8");
    latin.body(Body::from(&b"{\"\xff\":1}"[..])).send(&served).await.problem(422, "managed_input_invalid");

    let large = format!(r#"{{"requests":{{"a":{{"kind":"text","question":"{}"}}}}}}"#, "x".repeat(2 << 20));
    send(&large).send(&served).await.problem(413, "limit_exceeded");
    let round = served.ask_address().await;
    let answer = street(&round, &"x".repeat(300 * 1024));
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    post(&path).bearer(&served.person).key("k").json(answer).send(&served).await.problem(413, "limit_exceeded");
}

#[tokio::test]
async fn queries_and_ids_are_read_strictly() {
    let served = Served::new().await;
    let round = served.ask_address().await.round_id;
    for (path, pointer) in [
        ("/v1/rounds?stauts=pending".to_owned(), "/stauts"),
        ("/v1/rounds?status=open".to_owned(), "/status"),
        ("/v1/rounds?status=failed&status=failed".to_owned(), "/status"),
        ("/v1/rounds?cursor=exe_1".to_owned(), "/cursor"),
        ("/v1/rounds?limit=0".to_owned(), "/limit"),
        ("/v1/rounds?limit=201".to_owned(), "/limit"),
        ("/v1/rounds?execution=".to_owned(), "/execution"),
        (format!("/v1/rounds/{round}?wait=45"), "/wait"),
        (format!("/v1/rounds/{round}?wait=-1s"), "/wait"),
        (format!("/v1/rounds/{round}?after=x"), "/after"),
        ("/v1/rounds/rnd_1".to_owned(), "/id"),
        ("/v1/executions/rnd_1".to_owned(), "/id"),
        ("/v1/executions?kind=agent".to_owned(), "/kind"),
        ("/v1/events?after=1".to_owned(), "/after"),
    ] {
        let problem = get(&path).bearer(&served.person).send(&served).await.problem(422, "managed_input_invalid");
        assert_eq!(problem["fields"][0]["pointer"], pointer, "{path}: {problem}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let served = Served::new().await;
    let round = served.ask_address().await.round_id.to_string();
    let unknown = round.replace("rnd_0", "rnd_1");
    get(&format!("/v1/rounds/{unknown}")).bearer(&served.person).send(&served).await.problem(404, "not_found");
    get("/v1/nothing").bearer(&served.person).send(&served).await.problem(404, "not_found");
    call(Method::PUT, "/v1/rounds").send(&served).await.problem(405, "not_found");
    call(Method::OPTIONS, "/v1/rounds").send(&served).await.problem(405, "not_found");
    call(Method::DELETE, &format!("/v1/rounds/{round}")).send(&served).await.problem(405, "not_found");
}

#[tokio::test]
async fn pages_of_a_list_follow_each_other_without_gaps() {
    let served = Served::new().await;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(served.ask_address().await.round_id.to_string());
    }
    // Newest first; within a millisecond, by chance.
    asked.sort();
    asked.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("/v1/rounds?limit=2{cursor}")).bearer(&served.agent).send(&served).await.ok();
        seen.extend(
            page["rounds"].as_array().unwrap().iter().map(|round| round["round_id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, asked);
}

#[tokio::test]
async fn a_cancelled_execution_ends_its_rounds_and_a_result_that_is_not_there_is_a_timeout() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let execution = format!("/v1/executions/{}", round.execution_id);
    get(&format!("{execution}/result")).bearer(&served.agent).send(&served).await.problem(408, "operation_timeout");
    get(&format!("{execution}/result?wait=1ms"))
        .bearer(&served.agent)
        .send(&served)
        .await
        .problem(408, "operation_timeout");
    let collect = format!("/v1/rounds/{}/collect?wait=1ms", round.round_id);
    post(&collect).bearer(&served.agent).key("k").send(&served).await.problem(408, "operation_timeout");
    for _ in 0..2 {
        let cancelled = post(&format!("{execution}/cancel")).bearer(&served.agent).send(&served).await.ok();
        assert_eq!(cancelled["outcome"]["status"], "cancelled");
    }
    let late = format!("/v1/rounds/{}/responses", round.round_id);
    let late = post(&late).bearer(&served.person).key("k").json(street(&round, "x")).send(&served).await;
    let problem = late.problem(409, "managed_input_state");
    assert!(problem["detail"].as_str().unwrap().contains("cancelled"), "{problem}");
    assert_eq!(problem["round"], round.round_id.to_string());
}

#[tokio::test]
async fn long_polls_wake_when_the_round_changes() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let path = format!("/v1/rounds/{}", round.round_id);
    let (poll, collect, result) = {
        let (poll, collect) = (format!("{path}?wait=45s&after={}", round.rev), format!("{path}/collect?wait=45s"));
        let result = format!("/v1/executions/{}/result?wait=45s", round.execution_id);
        let (one, two, three) = (served.clone(), served.clone(), served.clone());
        (
            tokio::spawn(async move { get(&poll).bearer(&one.person).send(&one).await }),
            tokio::spawn(async move { post(&collect).bearer(&two.agent).key("k").send(&two).await }),
            tokio::spawn(async move { get(&result).bearer(&three.agent).send(&three).await }),
        )
    };
    tokio::task::yield_now().await;
    post(&format!("{path}/responses"))
        .bearer(&served.person)
        .key("a")
        .json(street(&round, "x"))
        .send(&served)
        .await
        .ok();
    assert!(poll.await.unwrap().ok()["rev"].as_u64().unwrap() > u64::from(round.rev));
    assert_eq!(collect.await.unwrap().ok()["responses"]["address"]["content"]["street"], "x");
    assert_eq!(result.await.unwrap().ok()["execution"]["lifecycle"], "finished");
}

#[tokio::test]
async fn health_needs_no_credential() {
    let served = Served::new().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(path).send(&served).await.ok(), json!({"status": "ok"}));
    }
}

#[tokio::test]
async fn numbers_and_order_come_back_as_they_were_asked() {
    let served = Served::new().await;
    let body = r#"{"requests":{"z":{"kind":"form","message":"m","schema":{"type":"object","properties":{"b":{"type":"number","default":0.10},"a":{"type":"integer","x-limit":123456789012345678901234567890}}}},"a":{"kind":"text","question":"?"}}}"#;
    let asked = post("/v1/rounds").bearer(&served.agent).json(body).send(&served).await;
    let schema = r#""properties":{"b":{"type":"number","default":0.10},"a":{"type":"integer","x-limit":123456789012345678901234567890}}"#;
    assert!(asked.text.contains(schema), "{}", asked.text);
    assert!(asked.text.find(r#""z":{"#) < asked.text.find(r#""a":{"kind":"text""#));
}
