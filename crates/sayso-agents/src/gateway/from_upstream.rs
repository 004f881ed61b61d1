//! What the upstream says.

use sayso_core::limits;

use super::call::{Asker, Pending, Stage};
use super::handles::is_error;
use super::lists::{OwnTools, Reading};
use super::session::Session;
use super::{handshake, passage};
use crate::jsonrpc::{self, Kind, METHOD_NOT_FOUND, Message};

impl Session {
    pub(super) async fn upstream_said(&mut self, line: &str) {
        // Servers print banners and debug output where only messages belong; such a line is skipped and counted.
        let Ok(message) = Message::parse(line) else {
            self.skipped_lines += 1;
            return;
        };
        match message.kind.clone() {
            Kind::Response { id } => self.upstream_answered(&message, &id).await,
            Kind::Request { id, method } => self.upstream_asked(&message, &id, &method).await,
            Kind::Notification { method } => self.upstream_notified(&message, &method).await,
        }
    }

    async fn upstream_answered(&mut self, message: &Message, id: &str) {
        let Ok(number) = id.parse::<u64>() else { return };
        // Nobody has asked the upstream about a call that it was not sent.
        if self.call(number).is_some_and(|call| call.stage == Stage::Held) {
            return;
        }
        if self.call(number).is_some() {
            self.end_own_asks(number, is_error(message)).await;
        }
        let Some(pending) = self.requests.remove(&number) else { return };
        match pending {
            Pending::Initialize { client_id } => self.initialized(message, client_id).await,
            Pending::ListTools => self.tools_page(message).await,
            Pending::Plain { client_id, is_first_tools_page, .. } => {
                self.open.remove(&client_id);
                let line = message.with_id(&client_id);
                let own = OwnTools { ask_user: self.options.ask_user, relays: self.options.trust_agent_relay };
                let line = if is_first_tools_page { self.lists.with_own_tools(&line, own) } else { line };
                self.client.send(line).await;
            }
            Pending::Call(call) => self.call_answered(number, *call, message).await,
            Pending::Receipt { ask } => self.receipt(ask).await,
        }
    }

    async fn initialized(&mut self, message: &Message, client_id: Option<String>) {
        let went_well = message.member("result").is_some();
        match client_id {
            Some(client_id) => {
                self.open.remove(&client_id);
                self.client.send(handshake::answer_for_client(message, &client_id)).await;
                self.is_initialized = went_well;
                if !went_well {
                    // The client may try again with other words.
                    self.handshake = None;
                    self.upstream.close().await;
                }
            }
            None if went_well => {
                self.is_initialized = true;
                self.upstream.send(jsonrpc::notification("notifications/initialized", "{}")).await;
            }
            None => {
                self.upstream.close().await;
                self.upstream_ended("refused to start again").await;
                return;
            }
        }
        if self.is_initialized {
            let is_first = self.lists.state == Reading::Unread;
            while let Some(line) = self.queued.pop_front() {
                self.upstream.send(line).await;
            }
            if !is_first {
                self.read_tools().await;
                self.client.send(jsonrpc::notification("notifications/tools/list_changed", "{}")).await;
            }
        }
    }

    /// Reads all pages of the tools again.
    pub(super) async fn read_tools(&mut self) {
        match self.lists.state {
            Reading::Underway | Reading::Outdated => self.lists.state = Reading::Outdated,
            Reading::Unread | Reading::Read | Reading::Stale => {
                self.lists.begin();
                self.ask_for_page("{}").await;
            }
        }
    }

    async fn ask_for_page(&mut self, params: &str) {
        let number = self.number();
        self.requests.insert(number, Pending::ListTools);
        let line = jsonrpc::request(&number.to_string(), "tools/list", params);
        if self.send_upstream(line).await.is_err() {
            self.requests.remove(&number);
            self.tools_read().await;
        }
    }

    async fn tools_page(&mut self, message: &Message) {
        match self.lists.take_page(message) {
            Some(cursor) => self.ask_for_page(&format!(r#"{{"cursor":{cursor}}}"#)).await,
            None => self.tools_read().await,
        }
    }

    /// The reading is over; the client's own lists that waited for it go on.
    pub(super) async fn tools_read(&mut self) {
        let is_outdated = self.lists.state == Reading::Outdated;
        self.lists.done();
        // Another process may have reviewed what is listed now.
        self.reviewed.clear();
        for message in std::mem::take(&mut self.lists.waiting) {
            if let Kind::Request { id, .. } = message.kind.clone()
                && self.open.remove(&id).is_some()
            {
                self.forward_list(&message, &id).await;
            }
        }
        if is_outdated {
            Box::pin(self.read_tools()).await;
            return;
        }
        self.held_calls_go_on().await;
    }

    async fn upstream_asked(&mut self, message: &Message, id: &str, method: &str) {
        let handshake = self.handshake.as_ref();
        let client_can = match method {
            "sampling/createMessage" => handshake.is_some_and(|handshake| handshake.has_sampling),
            "roots/list" => handshake.is_some_and(|handshake| handshake.has_roots),
            _ => false,
        };
        match method {
            "ping" => self.upstream.send(jsonrpc::result(id, "{}")).await,
            "elicitation/create" => self.asked(message, id).await,
            _ if client_can && !self.client_has_left && self.passed_to_client.len() < limits::OPEN_REQUESTS_MAX => {
                let number = self.number();
                self.passed_to_client.insert(number, id.to_owned());
                self.client.send(message.with_id(&number.to_string())).await;
            }
            _ => {
                let words = "the client does not take this request";
                self.upstream.send(jsonrpc::error(id, METHOD_NOT_FOUND, words, None)).await;
            }
        }
    }

    async fn upstream_notified(&mut self, message: &Message, method: &str) {
        match method {
            "notifications/progress" => self.progressed(message).await,
            "notifications/cancelled" => self.upstream_cancelled(message).await,
            "notifications/elicitation/complete" => self.url_completed(message).await,
            "notifications/tools/list_changed" => {
                self.read_tools().await;
                self.client.send(message.text().to_owned()).await;
            }
            _ => self.client.send(message.text().to_owned()).await,
        }
    }

    /// Progress under our token: of a call that has paused it proves that the answer was taken.
    async fn progressed(&mut self, message: &Message) {
        let Some(number) = message.param("progressToken").and_then(|token| token.parse::<u64>().ok()) else { return };
        self.went_on(number).await;
        let value = message.param("progress").and_then(|value| value.parse::<f64>().ok());
        let token = match self.requests.get_mut(&number) {
            Some(Pending::Plain { progress_token, .. }) => progress_token.clone(),
            Some(Pending::Call(call)) if call.stage == Stage::Sent => match value {
                // Values only rise, and a heartbeat may have gone a little ahead.
                Some(value) if value > call.progress => {
                    call.progress = value;
                    call.waiter.as_ref().and_then(|waiter| waiter.progress_token.clone())
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(token) = token {
            self.client.send(passage::with_param(message, "progressToken", &token)).await;
        }
    }

    async fn upstream_cancelled(&mut self, message: &Message) {
        let Some(upstream_id) = message.param("requestId") else { return };
        let is_it = |asker: &Asker| matches!(asker, Asker::Upstream(id) if id == upstream_id);
        if let Some(ask) = self.asks.iter().find(|(_, ask)| is_it(&ask.asker)).map(|(ask, _)| *ask) {
            self.withdrawn(ask).await;
            return;
        }
        let passed = self.passed_to_client.iter().find(|(_, id)| *id == upstream_id).map(|(number, _)| *number);
        if let Some(number) = passed {
            self.passed_to_client.remove(&number);
            self.client.send(passage::with_param(message, "requestId", &number.to_string())).await;
        }
    }
}
