//! What is served is what `/openapi.json` says: the bodies of a whole flow against their schemas.

use axum::http::Method;
use serde_json::{Value, json};

use crate::served::{Reply, Served, call, get, street};

struct Documented {
    document: Value,
    served: Served,
}

impl Documented {
    async fn new() -> Self {
        let served = Served::new().await;
        let document = get("/openapi.json").send(&served).await;
        assert_eq!(document.text, sayso_http::openapi());
        Self { document: document.ok(), served }
    }

    /// Sends `method path` and checks request and answer against the operation of `template`.
    async fn send(
        &self,
        method: Method,
        template: &str,
        id: &str,
        query: &str,
        token: &str,
        body: Option<Value>,
    ) -> Reply {
        let operation = &self.document["paths"][template][method.as_str().to_ascii_lowercase()];
        assert!(operation.is_object(), "{method} {template}");
        let path = template.replace("{id}", id).replace("{owner}", id).replace("{session}", id);
        let mut request = call(method.clone(), &format!("{path}{query}")).bearer(token).key("documented");
        if let Some(body) = body {
            self.check(&operation["requestBody"]["content"]["application/json"]["schema"], &body, template);
            request = request.json(body);
        }
        let reply = request.send(&self.served).await;
        let response = &operation["responses"][reply.status.as_str()];
        assert!(response.is_object(), "{method} {template} answers {}: {}", reply.status, reply.text);
        match reply.header("content-type") {
            "" => assert!(response.get("content").is_none()),
            media_type => self.check(&response["content"][media_type]["schema"], &reply.json(), template),
        }
        reply
    }

    fn check(&self, schema: &Value, body: &Value, template: &str) {
        assert!(!schema.is_null(), "{template} has no schema for {body}");
        let whole = json!({"allOf": [schema], "components": self.document["components"]});
        let validator = jsonschema::options().should_validate_formats(true).build(&whole).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(body).map(|error| format!("{} {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{template}: {errors:?}\n{body}");
    }
}

#[tokio::test]
async fn every_body_of_a_flow_fits_its_schema() {
    let it = Documented::new().await;
    let (agent, person) = (it.served.agent.clone(), it.served.person.clone());
    let requests = json!({"address": {"kind": "form", "message": "m", "schema": {"type": "object", "properties":
        {"street": {"type": "string"}}}}});
    let owner = it.send(Method::POST, "/v1/workers", "", "", &agent, None).await.json()["owner_id"].clone();
    let live = json!({"delivery": "live", "owner_id": owner, "requests": requests, "deadline": "2100-01-01T00:00:00Z",
        "calls": [{"name": "book", "arguments": {"n": 1}}]});
    let asked = it.send(Method::POST, "/v1/rounds", "", "", &agent, Some(live)).await.json();
    let id = asked["round"]["round_id"].as_str().unwrap().to_owned();
    let round: sayso::wire::Round = serde_json::from_value(asked["round"].clone()).unwrap();
    let holding = json!({"owner_id": owner, "lease_token": asked["lease"]["lease_token"]});
    let one = "/v1/rounds/{id}";
    let verb = |verb: &str| format!("{one}/{verb}");
    it.send(Method::GET, "/v1/rounds", "", "?status=pending&limit=1", &person, None).await;
    it.send(Method::GET, one, &id, "?wait=1ms&after=1", &agent, None).await;
    it.send(Method::GET, &verb("responses"), &id, "", &person, None).await;
    it.send(Method::POST, &verb("renew"), &id, "", &agent, Some(holding.clone())).await;
    it.send(Method::POST, &verb("responses"), &id, "", &agent, Some(street(&round, "x")))
        .await
        .problem(403, "forbidden");
    it.send(Method::POST, &verb("responses"), &id, "", &person, Some(street(&round, "x"))).await.ok();
    it.send(Method::GET, &verb("responses"), &id, "", &agent, None).await;
    it.send(Method::POST, &verb("start_delivery"), &id, "", &agent, Some(holding.clone())).await.ok();
    it.send(Method::POST, &verb("delivered"), &id, "", &agent, Some(holding.clone())).await.ok();
    it.send(Method::POST, &verb("resolve"), &id, "", &agent, Some(holding.clone())).await.ok();
    it.send(Method::POST, &verb("renew"), &id, "", &agent, Some(holding.clone()))
        .await
        .problem(409, "managed_input_state");
    let failure = json!({"owner_id": owner, "lease_token": holding["lease_token"], "code": "c", "message": "m"});
    it.send(Method::POST, &verb("fail"), &id, "", &agent, Some(failure)).await.problem(409, "managed_input_state");
    let expected = json!({"expected_token": holding["lease_token"]});
    it.send(Method::POST, &verb("fail_recovery"), &id, "", &agent, Some(expected)).await;
    let claim = json!({"evidence": {"delivery": "not_delivered", "idempotent": true}});
    it.send(Method::POST, &verb("claim"), &id, "", &agent, Some(claim)).await.problem(409, "managed_input_state");

    let begun = it.send(Method::POST, "/v1/executions", "", "", &agent, Some(json!({"owner_id": owner}))).await.json();
    let execution = begun["execution_id"].as_str().unwrap().to_owned();
    it.send(Method::GET, "/v1/executions/{id}/result", &execution, "?wait=1ms", &agent, None).await;
    let steps = json!({"steps": [{"step": "finished", "execution_id": execution, "result": {"any": [1]},
        "outcome": {"status": "failed", "code": "c", "message": "m"}}]});
    it.send(Method::POST, "/v1/settle", "", "", &agent, Some(steps)).await.ok();
    it.send(Method::GET, "/v1/executions/{id}/result", &execution, "", &agent, None).await.ok();
    it.send(Method::POST, "/v1/executions/{id}/cancel", &execution, "", &agent, None).await;
    it.send(Method::GET, "/v1/executions", "", "", &person, None).await;
    it.send(Method::GET, "/v1/executions/{id}", &execution, "", &agent, None).await;
    let owner = owner.as_str().unwrap();
    it.send(Method::POST, "/v1/workers/{owner}/renew", owner, "", &agent, None).await.ok();
    it.send(Method::POST, "/v1/workers/{owner}/release", owner, "", &agent, None).await;

    let asked = json!({"requests": requests, "server": "other"});
    it.send(Method::POST, "/v1/rounds", "", "", &agent, Some(asked.clone()))
        .await
        .problem(409, "managed_input_conflict");
    let second = it.send(Method::POST, "/v1/rounds", "", "", &it.served.other_agent, Some(asked)).await.json();
    let second = second["round_id"].as_str().unwrap();
    let other = it.served.other_agent.clone();
    it.send(Method::POST, &verb("collect"), second, "?wait=1ms", &other, None).await.problem(408, "operation_timeout");
    it.send(Method::GET, one, &id.replace("rnd_0", "rnd_1"), "", &agent, None).await.problem(404, "not_found");
    it.send(Method::GET, "/v1/tokens", "", "", &person, None).await.problem(403, "forbidden");
    for health in ["/healthz", "/readyz"] {
        it.send(Method::GET, health, "", "", &person, None).await;
    }
    let events = it.served.sayso.events_after(&crate::served::admin(), 0).await.unwrap();
    for event in &events {
        let body = serde_json::to_value(sayso::wire::StoredEvent::from(event)).unwrap();
        it.check(&json!({"$ref": "#/components/schemas/StoredEvent"}), &body, "/v1/events");
    }
}

#[tokio::test]
async fn every_body_of_the_gate_and_of_grants_fits_its_schema() {
    let it = Documented::new().await;
    let (other, person) = (it.served.other_agent.clone(), it.served.person.clone());
    let call =
        json!({"session_id": "s", "tool": "shop:book", "arguments": {"n": 1}, "annotations": {"readOnlyHint": true}});
    it.send(Method::POST, "/v1/gate", "", "?wait=1ms", &other, Some(call.clone())).await.ok();
    let approvals = "/v1/sessions/{session}/approvals";
    let new = json!({"tool": "shop:book", "annotations": {"readOnlyHint": true}, "expires_in_seconds": 60});
    let grant = it.send(Method::POST, approvals, "s", "", &person, Some(new)).await.json();
    assert_eq!(it.send(Method::POST, "/v1/gate", "", "", &other, Some(call)).await.json()["verdict"], "allow");
    let grant = grant["grant_id"].as_str().unwrap();
    it.send(Method::GET, "/v1/grants/{id}", grant, "", &person, None).await.ok();
    it.send(Method::DELETE, "/v1/grants/{id}", grant, "", &person, None).await.ok();
    it.send(Method::GET, "/v1/grants", "", "?limit=1", &person, None).await.ok();
    let rule = json!({"kind": "rule", "tool": "shop:*", "when": [{"at": "/n", "max": 2}], "effects": ["read"]});
    it.send(Method::POST, "/v1/grants", "", "", &person, Some(rule)).await;
    let wanted = json!({"session_id": "s", "tool": "shop:pay", "arguments": {"n": 1}, "effects": ["read"],
        "definition": format!("sha256:{}", "0".repeat(64))});
    it.send(Method::POST, "/v1/grants/use", "", "", &other, Some(wanted)).await.ok();
    let steps = json!({"steps": [{"step": "reviewed", "tool": "shop:pay", "definition": format!("sha256:{}", "0".repeat(64))}]});
    for tool in ["shop:other", "shop:pay"] {
        it.send(Method::POST, "/v1/settle", "", "", &other, Some(steps.clone())).await.ok();
        it.send(Method::GET, "/v1/reviewed", "", &format!("?tool={tool}"), &other, None).await.ok();
    }
    it.send(Method::GET, approvals, "s", "", &person, None).await.ok();
    it.send(Method::DELETE, approvals, "s", "", &person, None).await.ok();
}
