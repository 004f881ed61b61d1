//! Who may do what: agents ask and collect what is their own, persons answer, the folder's owner makes tokens.

use axum::http::Method;
use serde_json::json;

use crate::served::{Served, call, form, get, post, street};

/// The status of every route for nobody, the asker, another agent, a person's token and a session.
#[tokio::test]
async fn every_route_knows_who_may_call_it() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let (r, e) = (format!("/v1/rounds/{}", round.round_id), format!("/v1/executions/{}", round.execution_id));
    let ask = json!({"requests": {"note": {"kind": "text", "question": "?"}}}).to_string();
    let wrong = json!({"responses": {"nothing": {"action": "cancel"}}}).to_string();
    let token = json!({"kind": "agent", "name": "new"}).to_string();
    let matrix = [
        (Method::GET, "/v1/rounds".to_owned(), "", [401, 200, 200, 200, 200]),
        (Method::POST, "/v1/rounds".to_owned(), &*ask, [401, 201, 201, 403, 403]),
        (Method::GET, r.clone(), "", [401, 200, 404, 200, 200]),
        (Method::GET, format!("{r}/responses"), "", [401, 200, 404, 200, 200]),
        (Method::POST, format!("{r}/responses"), &*wrong, [401, 403, 403, 422, 422]),
        (Method::POST, format!("{r}/collect"), "", [401, 408, 404, 403, 403]),
        (Method::GET, "/v1/executions".to_owned(), "", [401, 200, 200, 200, 200]),
        (Method::GET, e.clone(), "", [401, 200, 404, 200, 200]),
        (Method::GET, format!("{e}/result"), "", [401, 408, 404, 408, 408]),
        (Method::POST, format!("{e}/cancel"), "", [401, 200, 404, 200, 200]),
        (Method::GET, "/v1/tokens".to_owned(), "", [401, 403, 403, 403, 200]),
        (Method::POST, "/v1/tokens".to_owned(), &*token, [401, 403, 403, 403, 201]),
    ];
    for (method, path, body, expected) in matrix {
        for (caller, expected) in expected.into_iter().enumerate() {
            let mut call = call(method.clone(), &path).key("k");
            call = match caller {
                0 => call,
                1 => call.bearer(&served.agent),
                2 => call.bearer(&served.other_agent),
                3 => call.bearer(&served.person),
                _ => call.session(&served.session),
            };
            if !body.is_empty() {
                call = call.json(body);
            }
            let reply = call.send(&served).await;
            assert_eq!(reply.status, expected, "{method} {path} by caller {caller}: {}", reply.text);
            if reply.status == 401 {
                reply.problem(401, "unauthenticated");
                assert_eq!(reply.header("www-authenticate"), "Bearer");
            }
            assert_eq!(reply.header("cache-control"), "no-store", "{path}");
        }
    }
}

#[tokio::test]
async fn a_credential_that_is_unknown_revoked_or_of_another_kind_is_none() {
    let served = Served::new().await;
    for token in ["", "nonsense", &served.session] {
        get("/v1/rounds").bearer(token).send(&served).await.problem(401, "unauthenticated");
    }
    for secret in [&served.person, "nonsense", ""] {
        get("/v1/rounds").session(secret).send(&served).await.problem(401, "unauthenticated");
    }
    let basic = get("/v1/rounds").header("authorization", "Basic YWRhOmFkYQ==").session(&served.session);
    basic.send(&served).await.problem(401, "unauthenticated");

    let made = json!({"kind": "agent", "name": "short-lived"});
    let made = post("/v1/tokens").session(&served.session).json(made).send(&served).await.ok();
    let secret = made["secret"].as_str().unwrap();
    get("/v1/rounds").bearer(secret).send(&served).await.ok();
    let listed = get("/v1/tokens").session(&served.session).send(&served).await;
    assert!(listed.text.contains(made["token_id"].as_str().unwrap()) && !listed.text.contains(secret));
    let path = format!("/v1/tokens/{}", made["token_id"].as_str().unwrap());
    call(Method::DELETE, &path).bearer(secret).send(&served).await.problem(403, "forbidden");
    let revoked = call(Method::DELETE, &path).session(&served.session).send(&served).await.ok();
    assert!(revoked["revoked_at"].is_string());
    get("/v1/rounds").bearer(secret).send(&served).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn an_agents_list_holds_its_own_rounds_only() {
    let served = Served::new().await;
    served.ask_address().await;
    let theirs = get("/v1/rounds").bearer(&served.other_agent).send(&served).await.ok();
    assert_eq!(theirs["rounds"], json!([]));
    let theirs = get("/v1/executions").bearer(&served.other_agent).send(&served).await.ok();
    assert_eq!(theirs["executions"], json!([]));
}

#[tokio::test]
async fn an_agent_reads_no_value_before_it_collects_and_a_page_of_nobodys_is_the_login() {
    let served = Served::new().await;
    let secret = r#"{"type":"object","properties":{"password":{"type":"string"},"city":{"type":"string"}}}"#;
    let round = served.ask(vec![("address", form("?", secret))]).await;
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    let answer =
        json!({"responses": {"address": {"action": "accept", "content": {"password": "hunter2", "city": "Pune"}}}});
    let answered = post(&path).bearer(&served.person).key("k").json(answer).send(&served).await;
    assert!(answered.status.is_success() && !answered.text.contains("hunter2"));
    let redacted = get(&path).bearer(&served.agent).send(&served).await;
    assert!(redacted.status.is_success(), "{}", redacted.text);
    assert!(!redacted.text.contains("hunter2") && !redacted.text.contains("Pune"), "{}", redacted.text);
    assert!(get(&path).session(&served.session).send(&served).await.text.contains("hunter2"));

    for path in
        ["/", "/history", &format!("/rounds/{}", round.round_id), &format!("/executions/{}", round.execution_id)]
    {
        for call in [get(path), get(path).bearer(&served.person), get(path).session(&served.agent)] {
            let reply = call.send(&served).await;
            assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "/login"), "{path}");
        }
    }
}

#[tokio::test]
async fn an_answer_by_a_session_came_through_the_inbox() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    let answered = post(&path).session(&served.session).key("k").json(street(&round, "x")).send(&served).await.ok();
    assert_eq!(
        (answered["answered"]["channel"].as_str(), answered["answered"]["principal"].as_str()),
        (Some("inbox"), Some("person local:ada"))
    );
}
