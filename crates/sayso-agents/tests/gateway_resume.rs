//! `resume {execution_id, approved?, data?}`: a person's verdict is reported whatever the agent says, and its own word
//! counts only where that was configured.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Gated, Setup, text_of};
use sayso::{Channel, Json, Principal, Response, Status, wire};
use serde_json::{Value, json};

const ASKING: &str = "[[rule]]\nid = \"all\"\nask = [\"shipping:*\"]\n";

impl Gated {
    /// A call of the tool `book` that waits for a person, and that its client gave up: its round and its handle.
    async fn paused(&mut self, arguments: Value) -> (wire::Round, Value) {
        let known = self.rounds().await.len();
        self.call_tool(1, "book", arguments).await;
        let round = self.new_round(known).await;
        self.given_up().await;
        let execution = json!(round.execution_id.to_string());
        (round, execution)
    }

    async fn given_up(&mut self) {
        let params = json!({"requestId": 1});
        self.client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    }

    /// What `resume` says: its whole result.
    async fn resume(&mut self, id: u64, arguments: Value) -> Value {
        self.call_tool(id, "resume", arguments).await;
        let answer = self.client.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The call runs at the upstream, and ends well.
    async fn runs(&mut self) -> Value {
        let heard = self.upstream.hear().await;
        let number = heard["id"].clone();
        self.upstream
            .say_raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{number},"result":{{"content":[{{"type":"text","text":"booked"}}],"n":1.50}}}}"#
            ))
            .await;
        heard
    }
}

#[tokio::test]
async fn a_pending_call_is_reported_as_pending_whatever_the_agent_says_and_the_persons_word_runs_it() {
    let mut rig =
        Gated::start(ASKING, Setup { inbox: Some("http://127.0.0.1:7717/".to_owned()), ..Setup::default() }).await;
    let (round, execution) = rig.paused(json!({"n": 1})).await;
    let report =
        rig.resume(2, json!({"execution_id": execution, "approved": true, "data": {"arguments": {"n": 2}}})).await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["resolved"], &data["paused"]["tool_path"]), (&json!(false), &json!("shipping:book")));
    assert_eq!(data["paused"]["args"], json!({"n": 1}));
    assert_eq!(data["answer_at"], format!("http://127.0.0.1:7717/rounds/{}", round.round_id));
    assert_eq!(rig.round(&round).await.status, Status::Pending, "an agent's word approves nothing");

    rig.approve(&round, None).await;
    rig.until(&round, Status::ResponseValidated).await;
    rig.call_tool(3, "resume", json!({"execution_id": execution, "approved": false})).await;
    assert_eq!(rig.runs().await["params"]["arguments"], json!({"n": 1}));
    let line = rig.client.hear_line().await.unwrap();
    assert!(line.contains(r#""n":1.50"#), "numbers stay as they were written: {line}");
    let report: Value = serde_json::from_str(&line).unwrap();
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["resolved"], &data["approved"]), (&json!(true), &json!(true)));
    assert_eq!(data["result"]["content"][0]["text"], "booked");
    assert_eq!(report["result"]["content"][1]["text"], "booked");
    let again = rig.resume(4, json!({"execution_id": execution})).await;
    assert_eq!(again["result"]["structuredContent"]["approved"], json!(true), "it can be read again");
}

#[tokio::test]
async fn a_refusal_a_dismissal_and_what_nobody_decided_are_told_apart() {
    let mut rig = Gated::start(ASKING, Setup::default()).await;
    let (round, execution) = rig.paused(json!({"n": 1})).await;
    rig.decide(&round, Response::decline(Some("too early".to_owned()))).await.unwrap();
    rig.until(&round, Status::Resolved).await;
    let report = rig.resume(2, json!({"execution_id": execution, "approved": true})).await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["resolved"], &data["approved"]), (&json!(true), &json!(false)));
    assert!(data["message"].as_str().unwrap().contains("too early"), "{data}");

    let (round, execution) = rig.paused(json!({"n": 2})).await;
    rig.decide(&round, Response::cancel()).await.unwrap();
    rig.until(&round, Status::Resolved).await;
    let report = rig.resume(3, json!({"execution_id": execution})).await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["approved"], &data["dismissed"]), (&json!(false), &json!(true)));
    assert!(text_of(&report).contains("Nobody refused"), "{report}");

    let (round, execution) = rig.paused(json!({"n": 3})).await;
    use sayso::People as _;
    rig.sayso.people().cancel(round.execution_id).await.unwrap();
    rig.until(&round, Status::Failed).await;
    let report = rig.resume(4, json!({"execution_id": execution})).await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["resolved"], &data["code"]), (&json!(false), &json!("cancelled")));
    assert!(text_of(&report).contains("nobody refused"), "{report}");

    let unknown = json!({"execution_id": "exe_01JZ0000000000000000000000"});
    let report = rig.resume(5, unknown).await;
    assert_eq!(report["result"]["structuredContent"]["resolved"], json!(false));
    assert!(text_of(&report).contains("no call"), "{report}");
    let wrong = rig.resume(6, json!({"approved": true})).await;
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test]
async fn where_it_is_configured_the_agents_word_counts_and_is_recorded_as_relayed_by_it() {
    let mut rig = Gated::start(ASKING, Setup { trust_agent_relay: true, ..Setup::default() }).await;
    let (round, execution) = rig.paused(json!({"n": 1})).await;
    rig.call_tool(2, "resume", json!({"execution_id": execution, "approved": true})).await;
    assert_eq!(rig.runs().await["params"]["arguments"], json!({"n": 1}));
    let report = rig.client.hear().await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["approved"], &data["relayed_by"]), (&json!(true), &json!("agent gateway:shipping")));
    let answered = rig.round(&round).await.answered.unwrap();
    assert_eq!((answered.principal, answered.channel), (Principal::agent("gateway:shipping"), Channel::Relay));
    let events = rig.sayso.events_after(rig.sayso.person(), 0).await.unwrap();
    let approval = events.iter().find(|event| event.event.body.name() == "approval").unwrap();
    assert_eq!(approval.event.channel, Some(Channel::Relay));

    let (round, execution) = rig.paused(json!({"n": 2})).await;
    let refusal = json!({"execution_id": execution, "approved": false, "data": {"reason": "not today"}});
    let report = rig.resume(3, refusal).await;
    assert_eq!(report["result"]["structuredContent"]["approved"], json!(false), "{report}");
    assert!(text_of(&report).contains("not today"), "{report}");
    assert_eq!(rig.round(&round).await.status, Status::Resolved);

    let (round, execution) = rig.paused(json!({"n": 3})).await;
    rig.decide(&round, Response::decline(None)).await.unwrap();
    let report = rig.resume(4, json!({"execution_id": execution, "approved": true})).await;
    assert_eq!(report["result"]["structuredContent"]["approved"], json!(false), "the person was first");
}

#[tokio::test]
async fn a_relayed_word_is_nobodys_where_a_second_person_is_needed_or_the_store_does_not_trust_it() {
    let policy = "[[rule]]\nid = \"pay\"\nask = [\"shipping:*\"]\nrequire_second_person = true\n";
    let mut rig = Gated::start(policy, Setup { trust_agent_relay: true, ..Setup::default() }).await;
    let (round, execution) = rig.paused(json!({"n": 1})).await;
    let report = rig.resume(2, json!({"execution_id": execution, "approved": true})).await;
    let data = &report["result"]["structuredContent"];
    assert_eq!((&data["resolved"], &data["code"]), (&json!(false), &json!("forbidden")));
    assert_eq!(rig.round(&round).await.status, Status::Pending);

    // As a gateway on its own that has the flag, with rounds at a server that has not.
    let desk = rig::plain_desk().await;
    let asked = desk.0.ask(sayso::Ask::one("call", sayso::Request::form("?", Json::parse(rig::FORM).unwrap())), None);
    let asked = asked.await.unwrap();
    let answer = sayso::Answer::one("call", Response::decline(None));
    let refused = sayso::Desk::relay(&desk.0, asked.round_id, answer, "k").await;
    assert!(matches!(refused, Err(sayso::Error::Forbidden(_))), "{refused:?}");
}

#[tokio::test]
async fn values_of_a_form_that_the_server_asks_for_are_relayed_and_checked() {
    let policy = "[[rule]]\nid = \"all\"\nallow = [\"shipping:*\"]\n";
    let mut rig = Gated::start(policy, Setup { trust_agent_relay: true, ..Setup::default() }).await;
    rig.call_tool(1, "book", json!({})).await;
    let number = rig.upstream.hear().await["id"].clone();
    let schema: Value = serde_json::from_str(rig::FORM).unwrap();
    let params = json!({"message": "Where to?", "requestedSchema": schema});
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params})).await;
    let round = rig.new_round(0).await;
    rig.given_up().await;
    let execution = json!(round.execution_id.to_string());
    let wrong = json!({"execution_id": execution, "approved": true, "data": {"street": 5}});
    let report = rig.resume(2, wrong).await;
    assert_eq!(report["result"]["structuredContent"]["code"], json!("managed_input_invalid"), "{report}");
    assert_eq!(rig.round(&round).await.status, Status::Pending);
    let right = json!({"execution_id": execution, "approved": true, "data": {"street": "Elm"}});
    rig.call_tool(3, "resume", right).await;
    let answer = rig.upstream.hear().await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"street": "Elm"}}));
    rig.result(&number, "booked").await;
    let report = rig.client.hear().await;
    assert_eq!(report["result"]["structuredContent"]["result"]["content"][0]["text"], "booked");
}
