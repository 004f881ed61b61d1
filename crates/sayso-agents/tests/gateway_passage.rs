//! Everything the gateway does not need to touch passes as the bytes it came in.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Rig, Setup, text_of};
use serde_json::json;

/// Members that a typed model would drop, reorder or round.
const CORPUS: [&str; 6] = [
    r#"{"z":1,"a":2,"vendor":{"x-y":[]}}"#,
    r#"{"zero":0,"zero_point":0.0,"ten":0.10,"exp":1E+2,"big":123456789012345678901234567890}"#,
    r#"{"schema":{"type":"object","properties":{"b":{"type":"string","pattern":"^a\\d+$","enum":[1,2.0]},"a":{}}}}"#,
    r#"{"text":"é\u00e9\ud83d\ude00\/","empty":"","nul":null}"#,
    r#"{ "spaced" : [ 1 , 2 ] , "t":true }"#,
    r#"{"action":"accept","$serde_json::private::RawValue":"1"}"#,
];

#[tokio::test]
async fn a_corpus_of_messages_passes_byte_for_byte_in_both_directions() {
    let mut rig = Rig::start(Setup::default()).await;
    for (id, payload) in CORPUS.iter().enumerate() {
        let request =
            format!(r#"{{"id":"c{id}","params":{payload},"jsonrpc":"2.0","method":"vendor/do","more":[0.10]}}"#);
        rig.client.say_raw(&request).await;
        let heard = rig.upstream.hear_line().await.unwrap();
        let number = serde_json::from_str::<serde_json::Value>(&heard).unwrap()["id"].clone();
        assert_eq!(heard, request.replace(&format!("\"c{id}\""), &number.to_string()));

        let answer = format!(r#"{{"result":{payload},"id":{number},"jsonrpc":"2.0","extra":0.0}}"#);
        rig.upstream.say_raw(&answer).await;
        let expected = answer.replace(&format!(r#""id":{number}"#), &format!(r#""id":"c{id}""#));
        assert_eq!(rig.client.hear_line().await.unwrap(), expected);

        let notification = format!(r#"{{"jsonrpc":"2.0","method":"vendor/note","params":{payload}}}"#);
        rig.client.say_raw(&notification).await;
        assert_eq!(rig.upstream.hear_line().await.unwrap(), notification);
        rig.upstream.say_raw(&notification).await;
        assert_eq!(rig.client.hear_line().await.unwrap(), notification);
    }
}

#[tokio::test]
async fn a_tool_call_and_its_result_pass_with_only_id_and_progress_token_changed() {
    let mut rig = Rig::start(Setup::default()).await;
    for payload in CORPUS {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"k","method":"tools/call","params":{{"name":"book","task":{{"ttl":60000}},"arguments":{payload},"_meta":{{"v/x":0.10,"progressToken":"p-1"}}}}}}"#
        );
        rig.client.say_raw(&call).await;
        let heard = rig.upstream.hear_line().await.unwrap();
        let number = serde_json::from_str::<serde_json::Value>(&heard).unwrap()["id"].to_string();
        assert_eq!(heard, call.replace("\"k\"", &number).replace("\"p-1\"", &number));
        let progress = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":0.10,"progressToken":{token},"total":1.0}}}}"#
            )
        };
        rig.upstream.say_raw(&progress(&number)).await;
        assert_eq!(rig.client.hear_line().await.unwrap(), progress("\"p-1\""));
        let result = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{payload}}}"#);
        rig.upstream.say_raw(&result).await;
        assert_eq!(rig.client.hear_line().await.unwrap(), result.replace(&format!(r#""id":{number}"#), r#""id":"k""#));
        rig.upstream.say_raw(&progress(&number)).await;
    }
    rig.client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(rig.client.hear().await["id"], 1, "no progress came after a reply");
}

#[tokio::test]
async fn a_form_schema_is_stored_and_shown_as_it_was_written() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.call(1, json!({})).await;
    let schema = r#"{"properties":{"zip":{"type":"string","pattern":"^[0-9]{5}$"},"n":{"type":"number","minimum":0.0,"x-hint":0.10},"e":{"enum":[1,2.50]}},"type":"object"}"#;
    let ask = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"message":"?","requestedSchema":{schema}}}}}"#
    );
    rig.upstream.say_raw(&ask).await;
    let round = rig.new_round(0).await;
    assert_eq!(round.requests.get("elicitation").unwrap().schema.as_ref().unwrap().as_str(), schema);
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_changes_nothing() {
    let mut rig = Rig::start(Setup::default()).await;
    for (line, code) in [
        (r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":1,"a":2}}"#, -32700),
        ("hello", -32700),
        (r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
    ] {
        rig.client.say_raw(line).await;
        let refused = rig.client.hear().await;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(code), &json!(null)), "{line}");
    }
    rig.client.say(json!({"jsonrpc": "2.0", "id": 5, "method": "server/discover"})).await;
    assert_eq!(rig.client.hear().await["error"]["code"], -32601);
    rig.call(7, json!({})).await;
    rig.client.say(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})).await;
    assert_eq!(rig.client.hear().await["error"]["code"], -32600, "a duplicate open id is refused");
    rig.client.say(json!({"jsonrpc": "2.0", "id": "7", "method": "vendor/x"})).await;
    assert_eq!(rig.upstream.hear().await["method"], "vendor/x", "7 is not \"7\"");
}

#[tokio::test]
async fn pings_are_answered_on_both_sides_and_noise_of_the_upstream_is_skipped() {
    let mut rig = Rig::start(Setup::default()).await;
    rig.client.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(rig.client.hear().await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    rig.upstream.say_raw("Server listening…").await;
    rig.upstream.say_raw("{\"half\":").await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(rig.upstream.hear().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[tokio::test]
async fn sampling_goes_to_a_client_that_declared_it_and_to_nobody_else() {
    let mut rig = Rig::start(Setup::default()).await;
    let sampling = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {}});
    rig.upstream.say(sampling("s1")).await;
    assert_eq!(rig.upstream.hear().await["error"]["code"], -32601);
    let mut rig = Rig::start(Setup { capabilities: json!({"sampling": {}}), ..Setup::default() }).await;
    rig.upstream.say(sampling("s1")).await;
    let asked = rig.client.hear().await;
    assert_eq!(asked["method"], "sampling/createMessage");
    rig.client.say_raw(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"n":0.10}}}}"#, asked["id"])).await;
    assert_eq!(rig.upstream.hear_line().await.unwrap(), r#"{"jsonrpc":"2.0","id":"s1","result":{"n":0.10}}"#);
    assert!(rig.rounds().await.is_empty(), "sampling is never put to a person");
}

#[tokio::test]
async fn the_wait_tool_stands_on_the_first_page_under_a_name_that_is_free() {
    let tools = json!([{"name": "sayso_wait", "inputSchema": {"type": "object"}}]);
    let mut rig = Rig::start(Setup { tools: tools.clone(), ..Setup::default() }).await;
    rig.client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let list = rig.upstream.hear().await;
    let page = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[{{"name":"sayso_wait","n":0.10}}],"nextCursor":"2"}}}}"#,
        list["id"]
    );
    rig.upstream.say_raw(&page).await;
    let heard = rig.client.hear_line().await.unwrap();
    assert!(heard.contains(r#"{"name":"sayso_wait","n":0.10},{"#), "{heard}");
    let heard: serde_json::Value = serde_json::from_str(&heard).unwrap();
    assert_eq!(heard["result"]["tools"][1]["name"], "sayso_wait_2");
    rig.client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": "2"}})).await;
    let list = rig.upstream.hear().await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": list["id"], "result": {"tools": []}})).await;
    assert_eq!(rig.client.hear().await["result"]["tools"], json!([]), "later pages are left alone");
}

#[tokio::test]
async fn progress_values_only_rise() {
    let mut rig = Rig::start(Setup::default()).await;
    let params = json!({"name": "book", "arguments": {}, "_meta": {"progressToken": 5}});
    rig.client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    let number = rig.upstream.hear().await["id"].clone();
    for value in [1.0, 0.5, 2.0] {
        let params = json!({"progressToken": number, "progress": value});
        rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})).await;
    }
    rig.result(&number, "done").await;
    let heard = [rig.client.hear().await, rig.client.hear().await, rig.client.hear().await];
    let values: Vec<_> = heard.iter().map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!(values, [Some(1.0), Some(2.0), None]);
    assert_eq!(text_of(&heard[2]), "done");
}
