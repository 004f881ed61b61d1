//! What the client says.

use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::round::OperationKind;
use tokio::time::Instant;

use super::call::{Call, CallKey, Open, Pending, Stage, Waiter, WaitsBy};
use super::handshake::Handshake;
use super::lists::Reading;
use super::session::Session;
use super::timers::Due;
use super::{options::GatewayOptions, passage};
use crate::jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, Kind, METHOD_NOT_FOUND, Malformed, Message, PARSE_ERROR};

impl Session {
    pub(super) async fn client_said(&mut self, line: &str) {
        let message = match Message::parse(line) {
            Ok(message) => message,
            Err(malformed) => {
                let code = if malformed == Malformed::NotJson { PARSE_ERROR } else { INVALID_REQUEST };
                self.client.send(jsonrpc::error("null", code, &malformed.to_string(), None)).await;
                return;
            }
        };
        match message.kind.clone() {
            Kind::Request { id, method } => self.client_asked(message, &id, &method).await,
            Kind::Notification { method } => self.client_notified(&message, &method).await,
            Kind::Response { id } => self.client_answered(&message, &id).await,
        }
    }

    async fn refuse(&self, client_id: &str, code: i64, message: &str) {
        self.client.send(jsonrpc::error(client_id, code, message, None)).await;
    }

    async fn client_asked(&mut self, message: Message, id: &str, method: &str) {
        if self.open.contains_key(id) {
            self.refuse("null", INVALID_REQUEST, "a request with this id is still open").await;
            return;
        }
        if self.open.len() >= limits::OPEN_REQUESTS_MAX {
            self.refuse(id, INVALID_REQUEST, "too many requests are open at once").await;
            return;
        }
        match method {
            "ping" => self.client.send(jsonrpc::result(id, "{}")).await,
            "initialize" => self.initialize(&message, id).await,
            "server/discover" => self.refuse(id, METHOD_NOT_FOUND, "the server speaks MCP up to 2025-11-25").await,
            _ if self.handshake.is_none() => self.refuse(id, INVALID_REQUEST, "initialize comes first").await,
            "tools/list" => self.list_tools(message, id).await,
            "tools/call" => self.call_tool(&message, id).await,
            "prompts/get" => self.operate(&message, id, OperationKind::Prompt, "name").await,
            "resources/read" => self.operate(&message, id, OperationKind::Resource, "uri").await,
            _ => {
                let progress_token = message.progress_token().map(str::to_owned);
                self.forward(&message, id, |client_id| Pending::Plain {
                    client_id,
                    progress_token,
                    is_first_tools_page: false,
                })
                .await;
            }
        }
    }

    async fn initialize(&mut self, message: &Message, id: &str) {
        if self.handshake.is_some() {
            self.refuse(id, INVALID_REQUEST, "initialize was sent already").await;
            return;
        }
        let Some(handshake) = Handshake::read(message) else {
            self.refuse(id, INVALID_PARAMS, "initialize needs params with capabilities").await;
            return;
        };
        if let Err(words) = self.upstream.start(&self.options, &self.events) {
            self.refuse(id, jsonrpc::INTERNAL_ERROR, &words).await;
            return;
        }
        self.hold = self.options.hold.for_client(handshake.client_name.as_deref());
        let number = self.number();
        self.requests.insert(number, Pending::Initialize { client_id: Some(id.to_owned()) });
        self.open.insert(id.to_owned(), Open::Forwarded(number));
        self.upstream.send(jsonrpc::request(&number.to_string(), "initialize", &handshake.params)).await;
        self.handshake = Some(handshake);
    }

    /// Passes a request on under a number of ours. One with a progress token gets ours in its place.
    pub(super) async fn forward(&mut self, message: &Message, id: &str, pending: impl FnOnce(String) -> Pending) {
        let number = self.number();
        let pending = pending(id.to_owned());
        let wants_progress = matches!(pending, Pending::Call(_)) || message.progress_token().is_some();
        let token = wants_progress.then(|| number.to_string());
        let line = passage::forwarded(message, number, token.as_deref());
        self.requests.insert(number, pending);
        self.open.insert(id.to_owned(), Open::Forwarded(number));
        if let Err(words) = self.send_upstream(line).await {
            self.requests.remove(&number);
            self.open.remove(id);
            self.refuse(id, jsonrpc::INTERNAL_ERROR, &words).await;
        }
    }

    async fn list_tools(&mut self, message: Message, id: &str) {
        if self.lists.state == Reading::Unread || self.lists.state == Reading::Underway {
            self.open.insert(id.to_owned(), Open::Elsewhere);
            self.lists.waiting.push(message);
            return;
        }
        self.forward_list(&message, id).await;
    }

    /// Only the first page carries the wait tool.
    pub(super) async fn forward_list(&mut self, message: &Message, id: &str) {
        let is_first_page = message.param("cursor").is_none_or(|cursor| cursor == "null");
        let progress_token = message.progress_token().map(str::to_owned);
        self.forward(message, id, |client_id| Pending::Plain {
            client_id,
            progress_token,
            is_first_tools_page: is_first_page,
        })
        .await;
    }

    async fn call_tool(&mut self, message: &Message, id: &str) {
        match message.string_param("name") {
            Some(name) if name == self.lists.wait_tool() => self.wait_tool_called(message, id).await,
            Some(name) if name == self.lists.resume_tool() => self.resume_called(message, id).await,
            Some(name) if self.options.ask_user && name == self.lists.ask_tool() => {
                self.ask_user_called(message, id).await;
            }
            _ => self.operate(message, id, OperationKind::Tool, "name").await,
        }
    }

    /// An operation that may ask: an identical one that has paused is joined, any other is forwarded.
    async fn operate(&mut self, message: &Message, id: &str, kind: OperationKind, name_param: &str) {
        let Some(name) = message.string_param(name_param) else {
            self.refuse(id, INVALID_PARAMS, &format!("params.{name_param} must be a text")).await;
            return;
        };
        let arguments = message.param("arguments").and_then(|text| Json::parse(text).ok());
        let key = CallKey {
            method: message.member("method").unwrap_or_default().to_owned(),
            name: name.clone(),
            arguments: arguments.as_ref().map(Json::canonical).unwrap_or_default(),
        };
        let waiter = self.waiter(message, id, WaitsBy::Call);
        if self.join(&key, &waiter).await {
            return;
        }
        self.timers.at(waiter.hold_until, Due::HoldOver { client_id: id.to_owned() });
        let call = Call {
            kind,
            name,
            arguments,
            key,
            waiter: Some(waiter),
            execution: None,
            was_parked: false,
            goes_on_late: false,
            stage: if self.options.gate.is_some() { Stage::Held } else { Stage::Sent },
            ran_with: None,
            progress: f64::NEG_INFINITY,
            message: message.clone(),
        };
        if self.options.gate.is_some() {
            self.admit(call, id).await;
            return;
        }
        self.forward(message, id, |_| Pending::Call(Box::new(call))).await;
    }

    pub(super) fn waiter(&self, message: &Message, id: &str, by: WaitsBy) -> Waiter {
        Waiter {
            client_id: id.to_owned(),
            progress_token: message.progress_token().map(str::to_owned),
            hold_until: Instant::now() + self.hold,
            by,
        }
    }

    async fn client_notified(&mut self, message: &Message, method: &str) {
        match method {
            "notifications/cancelled" => self.client_cancelled(message).await,
            "notifications/initialized" => {
                // The stored handshake ends with ours; the upstream has not seen one from this start yet.
                let _ = self.send_upstream(message.text().to_owned()).await;
                self.read_tools().await;
            }
            _ if self.upstream.is_running() => {
                // A notification to an upstream that is gone concerns nobody.
                let _ = self.send_upstream(message.text().to_owned()).await;
            }
            _ => {}
        }
    }

    /// The client gives a request up. One that has paused goes on: a person may be answering it.
    async fn client_cancelled(&mut self, message: &Message) {
        let Some(id) = message.param("requestId").map(str::to_owned) else { return };
        let Some(open) = self.open.remove(&id) else {
            self.stored.gave_up(&id);
            return;
        };
        let Open::Forwarded(number) = open else {
            self.lists.waiting.retain(|waiting| waiting.member("id") != Some(id.as_str()));
            return;
        };
        if self.keep_going(number).await {
            return;
        }
        if matches!(self.requests.get(&number), Some(Pending::Initialize { .. })) {
            return;
        }
        if let Some(Pending::Call(call)) = self.requests.remove(&number)
            && call.stage == Stage::Held
        {
            return;
        }
        let line = passage::with_param(message, "requestId", &number.to_string());
        // An upstream that is gone has nothing to cancel.
        let _ = self.send_upstream(line).await;
    }

    /// Detaches whoever waits from a call that has paused, and says whether it has.
    pub(super) async fn keep_going(&mut self, number: u64) -> bool {
        let is_paused = self.is_paused(number);
        let Some(call) = self.call(number) else { return false };
        if call.execution.is_none() && !is_paused {
            return false;
        }
        call.waiter = None;
        call.was_parked = true;
        self.ensure_execution(number).await;
        true
    }

    /// An answer to a question of the upstream's that was passed to the client.
    async fn client_answered(&mut self, message: &Message, id: &str) {
        let upstream_id = id.parse().ok().and_then(|number: u64| self.passed_to_client.remove(&number));
        if let Some(upstream_id) = upstream_id {
            // An upstream that is gone no longer wants it.
            let _ = self.send_upstream(message.with_id(&upstream_id)).await;
        }
    }
}

impl GatewayOptions {
    /// The tool as people and agents read it: `server:name`.
    pub(super) fn tool_path(&self, name: &str) -> String {
        format!("{}:{name}", self.name)
    }
}
