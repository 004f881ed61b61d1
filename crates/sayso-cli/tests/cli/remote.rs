//! `sayso gateway --server`: the rounds are at a `sayso serve`, and the gateway has no data folder.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sayso::wire::NewTokenKind;
use sayso::{Desk as _, Digest, Principal, Step};
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::{Server, send};

const TOOL: &str = "shipping:book_shipment";

/// A gateway in front of the sample server, with the client that speaks to it.
struct Gateway {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Gateway {
    fn start(folder: &Folder, server: &Server, token: &str) -> Self {
        Self::start_with(folder, server, token, &[])
    }

    fn start_with(folder: &Folder, server: &Server, token: &str, more: &[&str]) -> Self {
        let url = format!("http://{}", server.address);
        let sayso = env!("CARGO_BIN_EXE_sayso");
        let args = ["gateway", "--name", "shipping", "--server", &url, "--token-file", token];
        let mut command = folder.command(&[&args, more, &["--", sayso, "demo"]].concat());
        // With no place for data and no home to find one in: it would fail if it looked for either.
        command.arg("--as-server").env_remove("SAYSO_DATA").env_remove("XDG_DATA_HOME").env("HOME", "/nonexistent");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The answer to the request of this id; what else is said meanwhile does not count.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the gateway has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn hello(&mut self) {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        self.answer(1);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn book(&mut self, id: u64) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "book_shipment", "arguments": {"item": "anvil"}}}));
    }

    fn leave(mut self) {
        self.input = None;
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Of a test that failed; one that left is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A person with a token, who hears what is asked and answers over HTTP.
struct Person {
    bearer: String,
}

impl Person {
    fn new(folder: &Folder) -> Self {
        let token = std::fs::read_to_string(folder.token_file(NewTokenKind::Person, "ada")).unwrap();
        Self { bearer: format!("Authorization: Bearer {token}\r\n") }
    }

    /// Listens to the server's events from now on.
    fn listen(&self, server: &Server) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (address, bearer) = (&server.address, &self.bearer);
        write!(stream, "GET /v1/events HTTP/1.1\r\nHost: {address}\r\n{bearer}\r\n").unwrap();
        let mut events = BufReader::new(stream);
        until(&mut events, "snapshot");
        events
    }

    /// The round that the next `round_created` tells of.
    fn asked(&self, server: &Server, events: &mut BufReader<TcpStream>) -> Value {
        until(events, "event: round_created");
        let data = until(events, "data:");
        let event: Value = serde_json::from_str(data.trim_start_matches("data:").trim()).unwrap();
        let id = event["round_id"].as_str().unwrap();
        let (bearer, path) = (&self.bearer, format!("/v1/rounds/{id}"));
        body(&send(&server.address, &format!("GET {path} HTTP/1.1\r\n{bearer}"), ""))
    }

    fn answer(&self, server: &Server, round: &Value) -> Value {
        let content = json!({"street": "1 Main Street", "city": "Pune"});
        self.respond(server, round, &json!({"action": "accept", "content": content}))
    }

    fn respond(&self, server: &Server, round: &Value, response: &Value) -> Value {
        let key = round["requests"].as_object().unwrap().keys().next().unwrap();
        let answer = json!({"digest": round["digest"], "responses": {key: response}});
        let (bearer, id) = (&self.bearer, round["round_id"].as_str().unwrap());
        let head = format!(
            "POST /v1/rounds/{id}/responses HTTP/1.1\r\n{bearer}Idempotency-Key: a\r\nContent-Type: application/json\r\n"
        );
        body(&send(&server.address, &head, &answer.to_string()))
    }
}

/// The first line with `part` in it.
fn until(lines: &mut impl BufRead, part: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the stream has ended before {part}");
        if line.contains(part) {
            return line;
        }
    }
}

fn body(answer: &str) -> Value {
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[track_caller]
fn booked(answer: &Value) {
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
    assert!(text.contains("1 Main Street"), "{answer}");
}

#[test]
fn a_call_waits_at_the_server_for_its_answer_and_goes_through() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let agent = folder.token_file(NewTokenKind::Agent, "shipping-agent");
    let person = Person::new(&folder);
    let mut events = person.listen(&server);
    let mut gateway = Gateway::start(&folder, &server, &agent);
    gateway.hello();
    gateway.book(2);
    let round = person.asked(&server, &mut events);
    assert_eq!((round["server"].as_str(), round["delivery"].as_str()), (Some("shipping"), Some("live")));
    assert_eq!(round["asked_by"], "agent shipping-agent");
    assert_eq!(person.answer(&server, &round)["status"], "response_validated");
    booked(&gateway.answer(2));
    gateway.leave();
    let id = round["round_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(folder.round(id).status, sayso::Status::Resolved);
}

#[test]
fn a_tool_that_is_another_than_the_server_knows_asks_until_a_call_of_it_is_approved() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let agent = folder.token_file(NewTokenKind::Agent, "shipping-agent");
    let policy = folder.file("policy.toml", "[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n", 0o600);
    let person = Person::new(&folder);
    let mut events = person.listen(&server);
    let desk = folder.sayso.desk(Principal::agent("shipping-agent"));
    let reviewed = || folder.runtime.block_on(desk.reviewed(TOOL)).unwrap();
    // The call, as a person sees it: with an approval before it where that is needed.
    let mut call = |needs_approval: bool| {
        let mut gateway = Gateway::start_with(&folder, &server, &agent, &["--policy", policy.to_str().unwrap()]);
        gateway.hello();
        gateway.book(2);
        let mut round = person.asked(&server, &mut events);
        if needs_approval {
            assert_eq!(round["requests"]["call"]["rule"], "operator definition", "{round}");
            person.respond(&server, &round, &json!({"action": "accept"}));
            round = person.asked(&server, &mut events);
        }
        assert_eq!(round["requests"]["call"], Value::Null, "{round}");
        person.answer(&server, &round);
        booked(&gateway.answer(2));
        gateway.leave();
    };
    call(false);
    let first = reviewed().unwrap();
    // As if the server had been another one until now.
    let step = Step::Reviewed { tool: TOOL.to_owned(), definition: Digest::of_text("before") };
    folder.runtime.block_on(desk.settle(vec![step])).unwrap();
    call(true);
    assert_eq!(reviewed(), Some(first));
    call(false);
}

#[test]
fn the_gateway_goes_on_when_the_server_was_killed_and_is_back() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let agent = folder.token_file(NewTokenKind::Agent, "shipping-agent");
    let person = Person::new(&folder);
    let mut events = person.listen(&server);
    let mut gateway = Gateway::start(&folder, &server, &agent);
    gateway.hello();
    gateway.book(2);
    let round = person.asked(&server, &mut events);
    let address = server.address.clone();
    server.kill();
    let server = Server::start_at(&folder, &address);
    person.answer(&server, &round);
    booked(&gateway.answer(2));
    gateway.leave();
    let id = round["round_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(folder.round(id).status, sayso::Status::Resolved);
}

#[test]
fn a_gateway_that_is_told_to_stop_does_not_wait_for_a_server_that_is_away() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let agent = folder.token_file(NewTokenKind::Agent, "shipping-agent");
    let person = Person::new(&folder);
    let mut events = person.listen(&server);
    let mut gateway = Gateway::start(&folder, &server, &agent);
    gateway.hello();
    gateway.book(2);
    person.asked(&server, &mut events);
    server.kill();
    let told = Instant::now();
    kill_process(Pid::from_child(&gateway.child), Signal::TERM).unwrap();
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    // Official clients kill it after two seconds; a busy machine gets one more.
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
}

#[test]
fn a_server_that_cannot_be_used_is_told_before_anything_starts() {
    let folder = Folder::new();
    let gateway = |args: &[&str]| {
        let all = [&["gateway", "--name", "shipping"], args, &["--", "/nonexistent/server"]].concat();
        let mut command = folder.command(&all);
        let output = command.env_remove("SAYSO_DATA").stdin(Stdio::null()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let server = Server::start(&folder);
    let url = format!("http://{}", server.address);
    let person = folder.token_file(NewTokenKind::Person, "ada");
    let agent = folder.token_file(NewTokenKind::Agent, "booking");
    for (args, code, words) in [
        (vec!["--server", &url], 2, "--token-file"),
        (vec!["--server", &url, "--token-file", &person], 6, "an agent's token"),
        (vec!["--server", "https://127.0.0.1:1", "--token-file", &agent], 3, "tunnel"),
        (vec!["--server", "http://10.0.0.7:1", "--token-file", &agent], 3, "--server-anywhere"),
        (vec!["--server-anywhere"], 2, "--server"),
    ] {
        let (found, stderr) = gateway(&args);
        assert!(found == code && stderr.contains(words), "{args:?}: {found} {stderr}");
    }
}
