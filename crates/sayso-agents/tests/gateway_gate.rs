//! Every call is judged before it reaches the upstream: what passes, what is denied, what cannot be judged.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Gated, Setup, Trouble, text_of};
use sayso::policy::Mode;
use sayso_core::event::EventBody;
use serde_json::{Value, json};

const TRUSTING: &str = "[[server]]\nname = \"shipping\"\ntrusted = true\n";

fn tools() -> Value {
    json!([
        {"name": "book", "description": "Books a shipment.", "inputSchema": {"type": "object"}},
        {"name": "track", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "burn", "inputSchema": {"type": "object"}},
        {"name": "prompt:greet", "inputSchema": {"type": "object"}},
        {"name": "twice", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "twice", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}
    ])
}

async fn gated(policy: &str) -> Gated {
    Gated::start(policy, Setup { tools: tools(), ..Setup::default() }).await
}

#[tokio::test]
async fn what_the_policy_allows_passes_byte_for_byte_and_nothing_is_stored() {
    let mut rig = gated("[[rule]]\nid = \"all\"\nallow = [\"shipping:*\"]\n").await;
    let line = r#"{ "jsonrpc":"2.0" , "id":"a","method":"tools/call","params":{"name":"book","arguments":{"n": 1.0, "z":[1e2,"\u00e9"],"a":0.10},"_meta":{"progressToken":"p","v":1}}}"#;
    rig.client.say_raw(line).await;
    let heard = rig.upstream.hear_line().await.unwrap();
    let number = serde_json::from_str::<Value>(&heard).unwrap()["id"].clone();
    let expected = line.replace(r#""id":"a""#, &format!(r#""id":{number}"#));
    assert_eq!(heard, expected.replace(r#""progressToken":"p""#, &format!(r#""progressToken":{number}"#)));
    rig.upstream.say_raw(&format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{ "content":[],"n":2.50 }}}}"#)).await;
    let answer = rig.client.hear_line().await.unwrap();
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"a","result":{ "content":[],"n":2.50 }}"#);
    assert!(rig.rounds().await.is_empty());
}

#[tokio::test]
async fn what_the_policy_denies_never_reaches_the_upstream_and_the_agent_reads_why() {
    let mut rig = gated(
        "[[rule]]\nid = \"never\"\ndeny = [\"shipping:burn\"]\nreason = \"These have cost us a day.\"\n\
         [[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n",
    )
    .await;
    rig.call_tool(1, "burn", json!({"all": true})).await;
    let denied = rig.client.hear().await;
    assert_eq!((denied["id"].as_u64(), denied["result"]["isError"].as_bool()), (Some(1), Some(true)));
    let text = text_of(&denied);
    assert!(text.contains("denies") && text.contains("operator never") && text.contains("not run"), "{text}");
    assert!(text.contains("These have cost us a day."), "{text}");
    rig.call_tool(2, "track", json!({})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "track", "nothing of the denied call came before it");
    assert!(rig.rounds().await.is_empty());
}

#[tokio::test]
async fn hints_count_as_the_gateway_read_them_and_only_of_a_trusted_server() {
    let mut rig = gated(TRUSTING).await;
    rig.call_tool(1, "track", json!({})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "track", "reading passes");
    rig.call_tool(2, "book", json!({})).await;
    assert_eq!(rig.new_round(0).await.operation_name, "book", "writing asks");
    let mut untrusted = gated("").await;
    untrusted.call_tool(1, "track", json!({})).await;
    assert_eq!(untrusted.new_round(0).await.operation_name, "track", "its word is not believed");
}

#[tokio::test]
async fn a_tool_that_is_listed_twice_or_not_at_all_has_no_good_hints() {
    let mut rig = gated(TRUSTING).await;
    rig.call_tool(1, "twice", json!({})).await;
    let twice = rig.new_round(0).await;
    rig.call_tool(2, "hidden", json!({})).await;
    let hidden = rig.new_round(1).await;
    assert_eq!((twice.operation_name.as_str(), hidden.operation_name.as_str()), ("twice", "hidden"));
    assert_eq!(hidden.requests.get("call").unwrap().definition, None);
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_denies_and_says_so_until_it_is_put_right() {
    let mut rig = gated("[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\nwen = 1\n").await;
    rig.call_tool(1, "track", json!({})).await;
    let denied = rig.client.hear().await;
    assert!(text_of(&denied).contains("could not be applied") && text_of(&denied).contains("line"), "{denied}");
    rig.write_policy("[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n");
    rig.call_tool(2, "track", json!({})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "track", "no restart was needed");
    rig.remove_policy();
    rig.call_tool(3, "track", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("cannot be read"));
}

#[tokio::test]
async fn what_cannot_be_judged_is_denied() {
    let mut rig = gated("[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n").await;
    rig.call_tool(1, "book", json!([1])).await;
    assert!(text_of(&rig.client.hear().await).contains("no JSON object"));
    rig.call_tool(2, "prompt:greet", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("prompts and resources"), "its name is a prompt's");
    rig.client.say(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "book"}})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "book", "no arguments are an empty object");
}

#[tokio::test]
async fn a_call_before_the_tools_are_read_waits_for_that() {
    let mut rig = gated(TRUSTING).await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    assert_eq!(rig.client.hear().await["method"], "notifications/tools/list_changed");
    rig.call_tool(1, "track", json!({})).await;
    let list = rig.upstream.hear().await;
    assert_eq!(list["method"], "tools/list");
    let tools = json!([{"name": "track", "annotations": {"readOnlyHint": false}}]);
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": list["id"], "result": {"tools": tools}})).await;
    assert_eq!(rig.new_round(0).await.operation_name, "track", "it was judged by what the tool says now");
}

#[tokio::test]
async fn prompts_and_resources_are_judged_where_a_rule_names_them() {
    let mut rig = gated(
        "[[rule]]\nid = \"secret\"\ndeny = [\"shipping:resource:file:///etc/*\"]\n\
         [[rule]]\nid = \"greet\"\nask = [\"shipping:prompt:greet\"]\n",
    )
    .await;
    let request =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    rig.client.say(request(1, "resources/read", json!({"uri": "file:///etc/passwd"}))).await;
    let denied = rig.client.hear().await;
    assert!(denied["error"]["message"].as_str().unwrap().contains("operator secret"), "{denied}");
    rig.client.say(request(2, "resources/read", json!({"uri": "file:///home/a"}))).await;
    assert_eq!(rig.upstream.hear().await["params"]["uri"], "file:///home/a");
    rig.client.say(request(3, "prompts/get", json!({"name": "other"}))).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "other");
    rig.client.say(request(4, "prompts/get", json!({"name": "greet", "arguments": {"who": "Ada"}}))).await;
    let round = rig.new_round(0).await;
    assert_eq!(round.requests.get("call").unwrap().tool.as_deref(), Some("shipping:prompt:greet"));
    rig.approve(&round, None).await;
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["params"]["arguments"], json!({"who": "Ada"}));
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"messages": []}})).await;
    assert_eq!(rig.client.hear().await["result"], json!({"messages": []}));
}

#[tokio::test]
async fn an_approved_resource_passes_as_it_came() {
    let mut rig = gated("[[rule]]\nid = \"r\"\nask = [\"shipping:resource:*\"]\n").await;
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","_meta":{"progressToken":1}}}"#;
    rig.client.say_raw(line).await;
    let round = rig.new_round(0).await;
    rig.approve(&round, None).await;
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["params"], json!({"uri": "file:///a", "_meta": {"progressToken": heard["id"]}}));
}

#[tokio::test]
async fn the_mode_decides_what_no_rule_is_about() {
    let setup = |mode| Setup { tools: tools(), mode: Some(mode), ..Setup::default() };
    let mut free = Gated::start("[[rule]]\nid = \"never\"\ndeny = [\"*:burn\"]\n", setup(Mode::Autonomous)).await;
    free.call_tool(1, "burn", json!({})).await;
    assert!(text_of(&free.client.hear().await).contains("operator never"), "what is denied stays denied");
    free.call_tool(2, "book", json!({})).await;
    assert_eq!(free.upstream.hear().await["params"]["name"], "book");
    let mut guarded = Gated::start("[[rule]]\nid = \"t\"\nallow = [\"*:track\"]\n", setup(Mode::Guarded)).await;
    guarded.call_tool(1, "book", json!({})).await;
    assert!(text_of(&guarded.client.hear().await).contains("operator default"));
    guarded.call_tool(2, "track", json!({})).await;
    assert_eq!(guarded.upstream.hear().await["params"]["name"], "track");
}

#[tokio::test]
async fn cancelling_a_call_that_was_not_sent_tells_the_upstream_nothing() {
    let mut rig = gated(TRUSTING).await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    let list = rig.upstream.hear().await;
    rig.client.hear().await;
    rig.call_tool(1, "book", json!({})).await;
    rig.client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(rig.client.hear().await["id"], 2);
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": list["id"], "result": {"tools": tools()}})).await;
    rig.call_tool(3, "track", json!({})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "track");
    assert!(rig.rounds().await.is_empty());
}

/// What the policy decided in a person's place, as events say it: whether it let the call run, the tool, the rule.
async fn rulings(rig: &Gated) -> Vec<(bool, String, String)> {
    let events = rig.sayso.events_after(rig.sayso.person(), 0).await.unwrap();
    let ruling = |event: sayso_core::event::Event| match event.event.body {
        EventBody::Approval { approved, decided_by, tool: Some(tool), .. } => {
            assert_eq!(event.event.principal, Some(sayso::Principal::agent("gateway:shipping")));
            Some((approved, tool, decided_by.to_string()))
        }
        _ => None,
    };
    events.into_iter().filter_map(ruling).collect()
}

#[tokio::test]
async fn what_the_policy_decides_in_a_persons_place_is_recorded_without_values() {
    let policy = "[[rule]]\nid = \"never\"\ndeny = [\"*:burn\", \"*:resource:*\"]\n\
                  [[rule]]\nid = \"reads\"\nallow = [\"*:track\"]\n";
    let setup = Setup { tools: tools(), mode: Some(Mode::Autonomous), ..Setup::default() };
    let mut rig = Gated::start(policy, setup).await;
    rig.call_tool(1, "burn", json!({"pin": "s3cret"})).await;
    rig.client.hear().await;
    let uri = json!({"uri": "https://files.example/a?key=s3cret"});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": uri})).await;
    assert!(rig.client.hear().await["error"].is_object());
    rig.call_tool(3, "track", json!({})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "track");
    rig.call_tool(4, "book", json!({"pin": "s3cret"})).await;
    assert_eq!(rig.upstream.hear().await["params"]["name"], "book");
    let told = |approved, tool: &str, rule: &str| (approved, tool.to_owned(), format!("policy operator {rule}"));
    let expected = [
        told(false, "shipping:burn", "never"),
        told(false, "shipping:resource", "never"),
        told(true, "shipping:book", "default"),
    ];
    assert_eq!(rulings(&rig).await, expected, "what a rule allows is nobody's ruling");
    let events = rig.sayso.events_after(rig.sayso.person(), 0).await.unwrap();
    assert!(!format!("{events:?}").contains("s3cret"));
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_run_without_a_person() {
    let trouble = Some(Trouble::StoreIsAway);
    let setup = Setup { tools: tools(), mode: Some(Mode::Autonomous), trouble, ..Setup::default() };
    let mut rig = Gated::start("[[rule]]\nid = \"never\"\ndeny = [\"*:burn\"]\n", setup).await;
    rig.call_tool(1, "book", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("Approval unavailable"));
    rig.call_tool(2, "burn", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("operator never"), "a denial needs no record");
    assert!(rulings(&rig).await.is_empty());
}

#[tokio::test]
async fn a_second_person_is_asked_in_every_mode() {
    let policy = "[[rule]]\nid = \"pay\"\nask = [\"*:burn\"]\nrequire_second_person = true\n";
    let setup = Setup { tools: tools(), mode: Some(Mode::Autonomous), ..Setup::default() };
    let mut rig = Gated::start(policy, setup).await;
    rig.call_tool(1, "burn", json!({})).await;
    let round = rig.new_round(0).await;
    assert_eq!(round.requests.get("call").unwrap().require_second_person, Some(true));
    assert!(rulings(&rig).await.is_empty());
}
