//! Calls that wait for approval: the policy that asks about them, and how a test follows one.

use std::time::Duration;

use sayso::{UnixMs, wire};
use serde_json::{Value, json};

use super::{Rig, Setup};

pub const ASKING: &str = "[[rule]]\nid = \"writes\"\nask = [\"shipping:*\"]\nreason = \"It costs money.\"\n";

pub const START: UnixMs = UnixMs(1_800_000_000_000);

pub fn tools() -> Value {
    json!([{"name": "book", "description": "Books a shipment.", "inputSchema": {
        "type": "object", "properties": {"item": {"type": "string"}, "n": {"type": "integer", "maximum": 5}},
        "required": ["item"]}}])
}

pub fn setup() -> Setup {
    Setup { tools: tools(), ..Setup::default() }
}

pub fn short_hold() -> Setup {
    Setup { hold: Duration::from_millis(30), ..setup() }
}

/// The client calls `book`, and a person is asked.
pub async fn asked(rig: &mut Rig, id: u64, arguments: Value) -> wire::Round {
    let known = rig.rounds().await.len();
    rig.call_tool(id, "book", arguments).await;
    rig.new_round(known).await
}

pub fn request(round: &wire::Round) -> wire::Request {
    round.requests.get("call").unwrap().clone()
}

/// The upstream's number of the call that it hears.
pub async fn heard_call(rig: &mut Rig, arguments: Value) -> Value {
    let heard = rig.upstream.hear().await;
    assert_eq!((&heard["method"], &heard["params"]["arguments"]), (&json!("tools/call"), &arguments));
    heard["id"].clone()
}

/// Nothing was written to the upstream before this.
pub async fn upstream_heard_nothing(rig: &mut Rig) {
    rig.client.say(json!({"jsonrpc": "2.0", "id": "probe", "method": "resources/list"})).await;
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["method"], "resources/list", "the upstream heard {heard}");
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": heard["id"], "result": {}})).await;
    assert_eq!(rig.client.hear_but("notifications/progress").await["id"], "probe");
}
