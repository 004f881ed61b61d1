//! A client of our own MCP server, without the network between them, over a real store.

// Each test file uses its own part of this.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::Body as _;
use hyper::{Method, Request, Response, StatusCode};
use sayso::{Answer, Options, People, Principal, RoundFilter, Sayso, wire};
use sayso_agents::mcp::{Hold, McpBody, McpOptions, McpServer};
use serde_json::{Value, json};
use tower::Service as _;

/// Far beyond anything that is waited for; a test that reaches it has hung.
pub const HANG: Duration = Duration::from_secs(30);

pub struct Rig {
    pub sayso: Sayso,
    pub server: McpServer,
    pub agent: Principal,
    pub folder: tempfile::TempDir,
}

/// One message of a client's, as it is sent.
pub struct Sent<'a> {
    pub method: Method,
    pub session: Option<&'a str>,
    pub accept: &'a str,
    pub version: Option<&'a str>,
    pub content_type: &'a str,
    pub body: String,
}

impl Default for Sent<'_> {
    fn default() -> Self {
        Self {
            method: Method::POST,
            session: None,
            accept: "application/json, text/event-stream",
            version: Some("2025-11-25"),
            content_type: "application/json; charset=utf-8",
            body: String::new(),
        }
    }
}

pub fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub fn call(id: u64, name: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
}

pub fn questions(text: &str) -> Value {
    let options = json!([{"label": "staging"}, {"label": "live"}]);
    json!({"questions": [{"question": text, "header": "Target", "options": options}, {"question": "Anything else?"}]})
}

pub async fn text_of(response: Response<McpBody>) -> String {
    let mut body = response.into_body();
    let mut text = Vec::new();
    let read = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    };
    tokio::time::timeout(HANG, read).await.expect("the answer did not end");
    String::from_utf8(text).unwrap()
}

/// The one message in an answer, whether it came as an event or as it is.
pub async fn message_of(response: Response<McpBody>) -> Value {
    assert_eq!(response.status(), StatusCode::OK);
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    let text = text_of(response).await;
    if !is_stream {
        return serde_json::from_str(&text).unwrap();
    }
    let data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.len(), 1, "{text}");
    serde_json::from_str(data[0]).unwrap()
}

impl Rig {
    pub async fn new(hold: Duration) -> Self {
        Self::relaying(hold, false).await
    }

    /// One at which an agent's word counts as the person's, where it is trusted with that.
    pub async fn relaying(hold: Duration, trust_agent_relay: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Options::at(folder.path());
        let place = if trust_agent_relay { place.trusting_agent_relay() } else { place };
        let sayso = Sayso::open(place).await.unwrap();
        let server = McpServer::new(&sayso, McpOptions { trust_agent_relay, ..options(hold) });
        Self { sayso, server, agent: Principal::agent("claude"), folder }
    }

    pub async fn send_as(&self, caller: &Principal, sent: Sent<'_>) -> Response<McpBody> {
        let mut request = Request::new(sent.body);
        *request.method_mut() = sent.method;
        request.extensions_mut().insert(caller.clone());
        let headers = request.headers_mut();
        headers.insert("content-type", sent.content_type.parse().unwrap());
        headers.insert("accept", sent.accept.parse().unwrap());
        if let Some(session) = sent.session {
            headers.insert("mcp-session-id", session.parse().unwrap());
        }
        if let Some(version) = sent.version {
            headers.insert("mcp-protocol-version", version.parse().unwrap());
        }
        self.server.clone().call(request).await.unwrap()
    }

    pub async fn send(&self, session: &str, body: String) -> Response<McpBody> {
        self.send_as(&self.agent, Sent { session: Some(session), body, ..Sent::default() }).await
    }

    pub async fn hello_as(&self, caller: &Principal, version: &str) -> (String, Value) {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let sent = Sent { body: request(0, "initialize", &params), version: None, ..Sent::default() };
        let response = self.send_as(caller, sent).await;
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        (session, message_of(response).await)
    }

    pub async fn hello(&self) -> String {
        self.hello_as(&self.agent, "2025-11-25").await.0
    }

    pub async fn rounds(&self) -> Vec<wire::Round> {
        self.sayso.people().list(RoundFilter::default()).await.unwrap().rounds
    }

    pub async fn new_round(&self, known: usize) -> wire::Round {
        let mut feed = self.sayso.event_feed();
        loop {
            let rounds = self.rounds().await;
            if rounds.len() > known {
                return rounds.into_iter().next().unwrap();
            }
            tokio::time::timeout(HANG, feed.maybe_more()).await.expect("no round was stored");
        }
    }

    pub async fn answer(&self, round: &wire::Round) {
        let answer = json!({"responses": {
            "q0": {"action": "accept", "content": {"answer": ["staging"]}},
            "q1": {"action": "decline", "reason": "no"}
        }});
        let answer: Answer = serde_json::from_value(answer).unwrap();
        self.sayso.people().answer(round.round_id, answer, "key").await.unwrap();
    }
}

pub fn options(hold: Duration) -> McpOptions {
    let inbox = Some("http://127.0.0.1:7717".to_owned());
    McpOptions { hold: Hold::Fixed(hold), inbox, ..McpOptions::default() }
}

pub fn answers(message: &Value) -> &Value {
    &message["result"]["structuredContent"]["answers"]
}
