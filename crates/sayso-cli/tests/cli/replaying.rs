//! `sayso gateway --replay`: when a call is made again for an answer that came after its server gave up.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use sayso::{Answer, Json, People as _, Response};
use sayso::{RoundFilter, Status, wire};
use serde_json::{Value, json};

use crate::folder::Folder;

/// An MCP server whose tool asks, gives up at once, and asks the same when it is called again. It writes down its calls.
const IMPATIENT: &str = r#"
say() { printf '%s\n' "$1"; }
reply() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
calls=0
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) reply "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
  *'"tools/list"'*) reply "$id" '{"tools":[{"name":"book","inputSchema":{"type":"object"},"annotations":HINTS}]}' ;;
  *'"tools/call"'*)
    calls=$((calls + 1))
    echo "$id" >>"$CALLS"
    say "{\"jsonrpc\":\"2.0\",\"id\":\"q$calls\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Where to?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}"
    if [ $calls -eq 1 ]; then
      say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}'
      reply "$id" '{"content":[{"type":"text","text":"timed out"}],"isError":true}'
    fi
    call=$id
    ;;
  *'"action"'*) reply "$call" '{"content":[{"type":"text","text":"booked"}]}' ;;
  esac
done
"#;

struct Gateway {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Gateway {
    fn start(folder: &Folder, hints: &str, more: &[&str]) -> Self {
        let server = folder.file("impatient.sh", &IMPATIENT.replace("HINTS", hints), 0o600);
        let args = [&["gateway", "--name", "shipping"], more, &["--", "sh", server.to_str().unwrap()]].concat();
        let mut command = folder.command(&args);
        command.env("CALLS", folder.data().with_file_name("calls"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut gateway = Self { child, input, output };
        gateway.request(
            1,
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}),
        );
        gateway.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        gateway
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the gateway has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    /// What the call says, as text.
    fn book(&mut self, id: u64) -> Value {
        self.request(id, "tools/call", json!({"name": "book", "arguments": {}}))["content"][0]["text"].clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The question that goes on without its call, answered.
fn answered_late(folder: &Folder) -> wire::Round {
    folder.runtime.block_on(async {
        let people = folder.sayso.people();
        let pending = RoundFilter { status: Some(Status::Pending), ..RoundFilter::default() };
        let late = people.list(pending).await.unwrap().rounds.remove(0);
        let answer = Answer::one("elicitation", Response::accept(Json::parse("{}").unwrap()));
        people.answer(late.round_id, answer, "k").await.unwrap()
    })
}

/// Waits until the round is over.
fn resolved(folder: &Folder, round: &wire::Round) {
    folder.runtime.block_on(async {
        let mut feed = folder.sayso.event_feed();
        while folder.sayso.people().show(round.round_id).await.unwrap().status != Status::Resolved {
            feed.maybe_more().await;
        }
    });
}

fn calls(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.data().with_file_name("calls")).unwrap().lines().count()
}

#[test]
fn with_always_a_call_is_made_again_by_itself_whatever_its_tool_says() {
    let folder = Folder::new();
    let mut gateway = Gateway::start(&folder, r#"{"destructiveHint":true}"#, &["--replay", "always"]);
    assert_eq!(gateway.book(2), "timed out");
    resolved(&folder, &answered_late(&folder));
    assert_eq!(gateway.book(3), "booked");
    assert_eq!(calls(&folder), 2, "the agent reads the result of the call that was made again");
}

#[test]
fn by_default_a_call_is_made_again_where_its_tool_says_that_it_reads_and_with_never_not_even_then() {
    let folder = Folder::new();
    let mut gateway = Gateway::start(&folder, r#"{"readOnlyHint":true}"#, &[]);
    assert_eq!(gateway.book(2), "timed out");
    resolved(&folder, &answered_late(&folder));
    assert_eq!(calls(&folder), 2);

    for (hints, more) in [(r#"{"readOnlyHint":true}"#, &["--replay", "never"][..]), ("{}", &[])] {
        let folder = Folder::new();
        let mut gateway = Gateway::start(&folder, hints, more);
        assert_eq!(gateway.book(2), "timed out");
        let late = answered_late(&folder);
        assert_eq!(gateway.book(3), "booked", "with the answer that was given meanwhile");
        resolved(&folder, &late);
        assert_eq!(calls(&folder), 2, "{more:?}");
    }
    let wrong = Folder::new().script(&["gateway", "--name", "x", "--replay", "often", "--", "true"]).expect_code(2);
    assert!(wrong.stderr.contains("declared") && wrong.stderr.contains("always"), "{}", wrong.stderr);
}
