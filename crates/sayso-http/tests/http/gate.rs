//! `POST /v1/gate`, session approvals and grants, from outside.

use axum::http::Method;
use sayso_http::ServeOptions;
use serde_json::{Value, json};

use crate::served::{Served, call, get, post};

const POLICY: &str = r#"
[[rule]]
id = "never"
deny = ["bank:close"]
reason = "Accounts stay open."
[[rule]]
id = "pay"
ask = ["bank:*"]
[[rule]]
id = "read"
allow = ["notes:read"]
"#;

struct Gated {
    served: Served,
    _policy: tempfile::TempDir,
}

impl Gated {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        std::fs::write(&file, POLICY).unwrap();
        let served = Served::with(ServeOptions { policy: vec![file], ..ServeOptions::default() }).await;
        Self { served, _policy: folder }
    }

    async fn gate(&self, tool: &str) -> Value {
        let body = json!({"session_id": "s", "tool": tool, "arguments": {"amount": 12}});
        post("/v1/gate").bearer(&self.served.agent).json(body).send(&self.served).await.ok()
    }

    async fn answer(&self, round: &Value, response: Value) {
        let path = format!("/v1/rounds/{}/responses", round["round_id"].as_str().unwrap());
        let body = json!({"digest": round["digest"], "responses": {"call": response}});
        post(&path).bearer(&self.served.person).key("k").json(body).send(&self.served).await.ok();
    }

    async fn person(&self, method: Method, path: &str, body: Option<Value>) -> crate::served::Reply {
        let request = call(method, path).bearer(&self.served.person);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        request.send(&self.served).await
    }
}

#[tokio::test]
async fn a_call_is_allowed_denied_or_asked_and_the_answer_is_taken_once() {
    let it = Gated::new().await;
    let allowed = it.gate("notes:read").await;
    assert_eq!((&allowed["verdict"], &allowed["rule"]), (&json!("allow"), &json!("operator read")));
    assert_eq!(allowed["arguments"], json!({"amount": 12}));
    let denied = it.gate("bank:close").await;
    assert_eq!((&denied["verdict"], &denied["reason"]), (&json!("deny"), &json!("Accounts stay open.")));

    let asked = it.gate("bank:transfer").await;
    assert_eq!((&asked["verdict"], &asked["rule"]), (&json!("ask"), &json!("operator pay")));
    let (round, paused) = (&asked["round"], &asked["paused"]);
    assert_eq!((&paused["execution_id"], &paused["args"]), (&round["execution_id"], &json!({"amount": 12})));
    assert_eq!(paused["tool_path"], "bank:transfer");
    assert_eq!(it.gate("bank:transfer").await["round"]["round_id"], round["round_id"], "the same question");
    it.answer(round, json!({"action": "accept"})).await;
    assert_eq!(it.gate("bank:transfer").await["verdict"], "allow");
    let next = it.gate("bank:transfer").await;
    assert_eq!(next["verdict"], "ask");
    it.answer(&next["round"], json!({"action": "decline", "reason": "no"})).await;
    let denied = it.gate("bank:transfer").await;
    assert_eq!((&denied["verdict"], &denied["reason"]), (&json!("deny"), &json!("no")));
    assert!(
        denied["message"]
            .as_str()
            .unwrap()
            .contains("A person refused this call. It was not run. Do not try another way. The reason: no")
    );
}

#[tokio::test]
async fn a_gate_that_waits_answers_once_a_person_has() {
    let it = Gated::new().await;
    let asked = it.gate("bank:transfer").await;
    let body = json!({"session_id": "s", "tool": "bank:transfer", "arguments": {"amount": 12}});
    let waiting = tokio::spawn({
        let served = it.served.clone();
        async move { post("/v1/gate?wait=45s").bearer(&served.agent).json(body).send(&served).await.ok() }
    });
    it.answer(&asked["round"], json!({"action": "accept"})).await;
    assert_eq!(waiting.await.unwrap()["verdict"], "allow");
}

#[tokio::test]
async fn that_nobody_decided_is_a_problem_and_no_denial() {
    let it = Gated::new().await;
    let asked = it.gate("bank:transfer").await;
    it.answer(&asked["round"], json!({"action": "cancel"})).await;
    let body = json!({"session_id": "s", "tool": "bank:transfer", "arguments": {"amount": 12}});
    let reply = post("/v1/gate").bearer(&it.served.agent).json(body).send(&it.served).await;
    let problem = reply.problem(409, "managed_input_state");
    assert!(problem["detail"].as_str().unwrap().contains("Nobody refused"), "{problem}");
}

#[tokio::test]
async fn persons_approve_for_a_session_list_and_take_back_and_agents_do_not() {
    let it = Gated::new().await;
    let asked = it.gate("bank:transfer").await;
    let approvals = "/v1/sessions/s/approvals";
    let drafted = json!({"round_id": asked["round"]["round_id"], "pinned": true, "uses_max": 2});
    let reply = it.person(Method::POST, approvals, Some(drafted)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let grant = reply.json();
    assert_eq!((&grant["kind"], &grant["arguments"]), (&json!("session"), &json!({"amount": 12})));
    assert_eq!((&grant["agent"], &grant["granted_by"]), (&json!("agent claude"), &json!("person grace")));
    let allowed = it.gate("bank:transfer").await;
    assert_eq!((&allowed["verdict"], &allowed["grant_id"]), (&json!("allow"), &grant["grant_id"]));

    let path = format!("/v1/grants/{}", grant["grant_id"].as_str().unwrap());
    assert_eq!(it.person(Method::GET, &path, None).await.ok()["uses"], 1);
    for (method, path) in
        [(Method::GET, approvals), (Method::DELETE, approvals), (Method::GET, "/v1/grants"), (Method::DELETE, &path)]
    {
        call(method, path).bearer(&it.served.agent).send(&it.served).await.problem(403, "forbidden");
    }
    let by_agent = post(approvals).bearer(&it.served.agent).json(json!({"tool": "bank:transfer"}));
    by_agent.send(&it.served).await.problem(403, "forbidden");

    assert!(it.person(Method::DELETE, &path, None).await.ok()["revoked_at"].is_string());
    assert_eq!(it.gate("bank:transfer").await["verdict"], "ask");
    let by_name = it.person(Method::POST, approvals, Some(json!({"tool": "bank:transfer"}))).await;
    assert_eq!(by_name.status, 201, "{}", by_name.text);
    assert_eq!(it.gate("bank:transfer").await["verdict"], "allow");
    let listed = it.person(Method::GET, approvals, None).await.ok();
    assert_eq!(listed["grants"].as_array().unwrap().len(), 2, "ended ones too");
    assert_eq!(it.person(Method::GET, "/v1/grants?limit=1", None).await.ok()["grants"].as_array().unwrap().len(), 1);
    assert_eq!(it.person(Method::DELETE, approvals, None).await.ok(), json!({"revoked": 1}));
    assert_eq!(it.gate("bank:transfer").await["verdict"], "ask");
    let never = it.person(Method::POST, approvals, Some(json!({"tool": "bank:close"}))).await;
    assert_eq!(never.status, 201);
    assert_eq!(it.gate("bank:close").await["verdict"], "deny", "no grant overrides a denial");
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let it = Gated::new().await;
    let approvals = "/v1/sessions/s/approvals";
    let pointer =
        |reply: &crate::served::Reply| reply.problem(422, "managed_input_invalid")["fields"][0]["pointer"].clone();
    assert_eq!(pointer(&it.person(Method::POST, approvals, Some(json!({}))).await), "/tool");
    assert_eq!(pointer(&it.person(Method::POST, approvals, Some(json!({"tool": "no colon"}))).await), "/tool");
    let asked = it.gate("bank:transfer").await;
    let both = json!({"round_id": asked["round"]["round_id"], "tool": "bank:transfer"});
    assert_eq!(pointer(&it.person(Method::POST, approvals, Some(both)).await), "/round_id");
    let elsewhere = json!({"round_id": asked["round"]["round_id"]});
    assert_eq!(pointer(&it.person(Method::POST, "/v1/sessions/t/approvals", Some(elsewhere)).await), "/round_id");
    let gate = |body: Value| post("/v1/gate").bearer(&it.served.agent).json(body).send(&it.served);
    let body = json!({"session_id": "", "tool": "a:b", "arguments": {}});
    assert_eq!(pointer(&gate(body).await), "/session_id");
    assert_eq!(pointer(&gate(json!({"session_id": "s", "tool": "a:b", "arguments": 1})).await), "/arguments");
    let by_person = post("/v1/gate").bearer(&it.served.person);
    let by_person = by_person.json(json!({"session_id": "s", "tool": "a:b", "arguments": {}}));
    by_person.send(&it.served).await.problem(403, "forbidden");
    let odd = get("/v1/grants/grt_1").bearer(&it.served.person).send(&it.served).await;
    assert_eq!(pointer(&odd), "/id");
}

#[tokio::test]
async fn a_grant_of_any_kind_is_drafted_or_written_out_by_a_person_and_used_by_a_worker() {
    let it = Gated::new().await;
    let asked = it.gate("bank:transfer").await;
    let round = &asked["round"]["round_id"];
    let drafted =
        json!({"kind": "rule", "round_id": round, "free": ["amount"], "uses_max": 1, "expires_in_seconds": 60});
    let grant = it.person(Method::POST, "/v1/grants", Some(drafted.clone())).await;
    assert_eq!(grant.status, 201, "{}", grant.text);
    let grant = grant.json();
    assert_eq!(
        (&grant["kind"], &grant["tool"], &grant["uses_max"]),
        (&json!("rule"), &json!("bank:transfer"), &json!(1))
    );
    post("/v1/grants").bearer(&it.served.agent).json(drafted).send(&it.served).await.problem(403, "forbidden");

    let wanted = json!({"session_id": "w", "tool": "bank:transfer", "arguments": {"amount": 7},
        "definition": format!("sha256:{}", "0".repeat(64)), "effects": asked["round"]["requests"]["call"]["effects"]});
    let using = |body: Value| post("/v1/grants/use").bearer(&it.served.agent).json(body).send(&it.served);
    let mut changed = wanted.clone();
    changed["changed_definition"] = json!(true);
    assert_eq!(using(changed).await.ok(), json!({"grant_id": null}), "a rule knows no definition");
    assert_eq!(using(wanted.clone()).await.ok(), json!({"grant_id": grant["grant_id"]}));
    assert_eq!(using(wanted.clone()).await.ok(), json!({"grant_id": null}), "it is used up");
    it.person(Method::POST, "/v1/grants/use", Some(wanted)).await.problem(403, "forbidden");

    let once = it.person(Method::POST, "/v1/grants", Some(json!({"kind": "once", "round_id": round}))).await;
    assert_eq!((once.status.as_str(), &once.json()["uses_max"]), ("201", &json!(1)));
    let written =
        json!({"kind": "rule", "tool": "bank:t*", "when": [{"at": "/amount", "max": 20}], "effects": ["read"]});
    assert_eq!(it.person(Method::POST, "/v1/grants", Some(written)).await.status, 201);
    for (wrong, at) in [
        (json!({"kind": "rule"}), "/tool"),
        (json!({"kind": "once"}), "/round_id"),
        (json!({"kind": "once", "round_id": round, "tool": "a:b"}), "/tool"),
        (json!({"kind": "session", "tool": "a:b"}), "/session"),
        (json!({"kind": "rule", "round_id": round, "pinned": true}), "/pinned"),
        (json!({"kind": "rule", "round_id": round, "free": ["colour"]}), "/free"),
        (json!({"kind": "rule", "tool": "a:b", "when": [{"at": "/x"}]}), "/when"),
        (json!({"kind": "rule", "tool": "a:b", "arguments": {}, "when": []}), "/when"),
    ] {
        let reply = it.person(Method::POST, "/v1/grants", Some(wrong)).await;
        assert_eq!(reply.problem(422, "managed_input_invalid")["fields"][0]["pointer"], at);
    }
}

#[tokio::test]
async fn an_agents_word_is_relayed_only_where_the_server_trusts_it() {
    let it = Gated::new().await;
    let asked = it.gate("bank:transfer").await;
    let path = format!("/v1/rounds/{}/relay", asked["round"]["round_id"].as_str().unwrap());
    let body = json!({"digest": asked["round"]["digest"], "responses": {"call": {"action": "accept"}}});
    let relay = |served: &Served| post(&path).bearer(&served.agent).key("k").json(&body);
    relay(&it.served).send(&it.served).await.problem(403, "forbidden");
    let options = sayso::Options::at(it.served.folder.path()).trusting_agent_relay();
    let sayso = sayso::Sayso::open(options).await.unwrap();
    let router = sayso_http::router(sayso.clone(), ServeOptions::default());
    let trusting = Served { sayso, router, ..it.served.clone() };
    let by_person = post(&path).bearer(&trusting.person).key("k").json(&body).send(&trusting).await;
    by_person.problem(403, "forbidden");
    let other = post(&path).bearer(&trusting.other_agent).key("k").json(&body).send(&trusting).await;
    other.problem(404, "not_found");
    post(&path).bearer(&trusting.agent).json(&body).send(&trusting).await.problem(422, "managed_input_invalid");
    let relayed = relay(&trusting).send(&trusting).await.ok();
    assert_eq!(
        (&relayed["answered"]["principal"], &relayed["answered"]["channel"]),
        (&json!("agent claude"), &json!("relay"))
    );
    assert_eq!(relay(&trusting).send(&trusting).await.ok()["rev"], relayed["rev"], "a repeat changes nothing");
}
