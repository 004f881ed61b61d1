//! A request of a client's, from its headers to its answer.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use sayso::Principal;
use serde_json::json;
use tokio::time::{Instant, interval_at};

use super::McpServer;
use super::call::Reply;
use super::http::{self, EventSender, McpBody};
use super::sessions::{Held, OpenRequest, Session};
use crate::jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, Kind, METHOD_NOT_FOUND, Malformed, Message, PARSE_ERROR};

/// The versions that are spoken, newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const SESSION_ID: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// The code of a version that is not spoken, as MCP has it from 2026-07-28 on; such a client then tries an older one.
const UNSUPPORTED_VERSION: i64 = -32022;
/// How often whoever waits gets a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// What the model is told of the server.
const INSTRUCTIONS: &str = "Ask a person with ask_user where only a person can know or decide. A call may return before there is an answer; \
     then go on waiting with sayso_wait.";

fn refuse(status: StatusCode, code: i64, message: &str) -> Response<McpBody> {
    http::json(status, jsonrpc::error("null", code, message, None))
}

impl McpServer {
    /// Answers a request. Who is calling is among its extensions.
    pub(super) async fn answer<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Response<McpBody> {
        let (head, body) = request.into_parts();
        let Some(caller) = head.extensions.get::<Principal>().cloned() else {
            return refuse(StatusCode::UNAUTHORIZED, INVALID_REQUEST, "a credential is needed");
        };
        if !caller.may_collect() {
            let words = "an agent's or a service's credential asks here; a person answers in the inbox";
            return refuse(StatusCode::FORBIDDEN, INVALID_REQUEST, words);
        }
        match head.method {
            Method::POST => self.posted(caller, &head.headers, body).await,
            Method::DELETE => {
                let id = http::text(&head.headers, SESSION_ID).unwrap_or_default();
                let is_ended = self.inner.sessions.end(&caller, id);
                http::empty(if is_ended { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
            }
            // Nothing is said to a client that has not asked for it, so there is no stream to get.
            _ => {
                let mut response = http::empty(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
                response
            }
        }
    }

    async fn posted<B: Body<Data = Bytes>>(
        &self,
        caller: Principal,
        headers: &HeaderMap,
        body: B,
    ) -> Response<McpBody> {
        if !http::names(headers, "content-type", &["application/json"]) {
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                INVALID_REQUEST,
                "Content-Type must be application/json",
            );
        }
        let takes_events = http::names(headers, "accept", &["text/event-stream"]);
        if !takes_events && !http::names(headers, "accept", &["application/json", "application/*", "*/*"]) {
            let words = "Accept must name application/json and text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, words);
        }
        let version = http::text(headers, VERSION);
        if let Some(requested) = version.filter(|version| !VERSIONS.contains(version)) {
            let data = json!({"supported": VERSIONS, "requested": requested}).to_string();
            let words = "this version of the protocol is not spoken here";
            let line = jsonrpc::error("null", UNSUPPORTED_VERSION, words, Some(&data));
            return http::json(StatusCode::BAD_REQUEST, line);
        }
        let Some(text) = http::read(body).await else {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, "the message is too long or no text");
        };
        let message = match Message::parse(&text) {
            Ok(message) => message,
            Err(malformed) => {
                let code = if malformed == Malformed::NotJson { PARSE_ERROR } else { INVALID_REQUEST };
                return refuse(StatusCode::BAD_REQUEST, code, &malformed.to_string());
            }
        };
        if let Kind::Request { id, method } = &message.kind
            && method == "initialize"
        {
            return self.initialized(caller, &message, id);
        }
        let Some(id) = http::text(headers, SESSION_ID) else {
            let words = "initialize comes first; send the Mcp-Session-Id that it answers with";
            return refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
        };
        let Some(session) = self.inner.sessions.find(&caller, id) else {
            return refuse(StatusCode::NOT_FOUND, INVALID_REQUEST, "there is no such session; initialize anew");
        };
        match message.kind.clone() {
            Kind::Request { id, method } => self.requested(session, &message, &id, &method, takes_events).await,
            Kind::Notification { method } => {
                if method == "notifications/cancelled"
                    && let Some(id) = message.param("requestId")
                {
                    session.cancel(id);
                }
                http::empty(StatusCode::ACCEPTED)
            }
            // Nothing is asked of clients, so an answer of theirs is to nothing.
            Kind::Response { .. } => http::empty(StatusCode::ACCEPTED),
        }
    }

    fn initialized(&self, caller: Principal, message: &Message, id: &str) -> Response<McpBody> {
        let Some(requested) = message.string_param("protocolVersion") else {
            let line = jsonrpc::error(id, INVALID_PARAMS, "params.protocolVersion must be a text", None);
            return http::json(StatusCode::OK, line);
        };
        let [newest, ..] = VERSIONS;
        let version = VERSIONS.into_iter().find(|known| *known == requested).unwrap_or(newest);
        let info = message.param("clientInfo").and_then(sayso_core::json::ObjectView::read);
        let name: Option<String> = info.and_then(|info| serde_json::from_str(info.get("name")?).ok());
        let hold = self.inner.options.hold.for_client(name.as_deref());
        let session = self.inner.sessions.begin(Arc::new(Session::new(&self.inner.sayso, caller, hold)));
        let result = json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "sayso", "title": "Sayso", "version": env!("CARGO_PKG_VERSION")},
            "instructions": INSTRUCTIONS
        });
        let mut response = http::json(StatusCode::OK, jsonrpc::result(id, &result.to_string()));
        if let Ok(session) = HeaderValue::try_from(session) {
            response.headers_mut().insert(HeaderName::from_static(SESSION_ID), session);
        }
        response
    }

    async fn requested(
        &self,
        session: Arc<Session>,
        message: &Message,
        id: &str,
        method: &str,
        takes_events: bool,
    ) -> Response<McpBody> {
        let line = match method {
            "ping" => jsonrpc::result(id, "{}"),
            "tools/list" => jsonrpc::result(id, &self.tools()),
            "tools/call" => return self.tool_called(session, message, id, takes_events).await,
            _ => jsonrpc::error(id, METHOD_NOT_FOUND, "there is no such method here", None),
        };
        http::json(StatusCode::OK, line)
    }

    async fn tool_called(
        &self,
        session: Arc<Session>,
        message: &Message,
        id: &str,
        takes_events: bool,
    ) -> Response<McpBody> {
        let open = match session.open(id) {
            Ok(open) => open,
            Err(why) => return http::json(StatusCode::OK, jsonrpc::error(id, INVALID_REQUEST, why, None)),
        };
        let (server, id, message) = (self.clone(), id.to_owned(), message.clone());
        let token = message.progress_token().map(str::to_owned);
        let work = async move {
            let name = message.string_param("name").unwrap_or_default();
            let (reply, held) = server.call(&session, &name, message.param("arguments")).await;
            let line = match reply {
                Reply::Result(result) => jsonrpc::result(&id, &result),
                Reply::Error(code, words) => jsonrpc::error(&id, code, &words, None),
            };
            (line, held)
        };
        if takes_events {
            let (response, sender) = http::events();
            tokio::spawn(streamed(open, work, sender, token));
            return response;
        }
        tokio::select! {
            (line, held) = work => {
                Held::collect(held);
                http::json(StatusCode::OK, line)
            }
            () = open.cancelled() => http::empty(StatusCode::ACCEPTED),
        }
    }
}

/// Does the work while the client listens, with signs of life. What it was not told is left for a retry.
async fn streamed(
    open: OpenRequest,
    work: impl Future<Output = (String, Option<Held>)>,
    sender: EventSender,
    progress_token: Option<String>,
) {
    let EventSender { events, taken } = sender;
    let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    let mut beats = 0_u64;
    tokio::pin!(work);
    let (line, held) = loop {
        tokio::select! {
            told = &mut work => break told,
            () = open.cancelled() => return,
            () = events.closed() => return,
            _ = beat.tick() => {
                beats += 1;
                // A client that does not read what was sent before needs no further sign.
                let _ = events.try_send(sign_of_life(progress_token.as_deref(), beats));
            }
        }
    };
    let is_sent = events.send(http::event(&line)).await.is_ok();
    drop((events, open));
    if is_sent && taken.await.is_ok() {
        Held::collect(held);
    }
}

/// Progress where the client wants to hear of it, else a comment that it skips.
fn sign_of_life(progress_token: Option<&str>, beats: u64) -> Bytes {
    let Some(token) = progress_token else { return Bytes::from_static(b": waiting for a person\n\n") };
    let params = format!(r#"{{"progressToken":{token},"progress":{beats},"message":"waiting for a person"}}"#);
    http::event(&jsonrpc::notification("notifications/progress", &params))
}
