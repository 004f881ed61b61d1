//! `shipping`, a sample MCP server: `quote_shipment` answers at once, `book_shipment` asks for a delivery address first.

use std::collections::HashMap;

use sayso_agents::jsonrpc::{self, Kind, Line, LineReader, Message, Outgoing};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

/// The version of MCP it speaks.
const VERSION: &str = "2025-11-25";

/// Serves one client until it leaves.
pub async fn serve(input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin + Send + 'static) {
    let mut lines = LineReader::new(input);
    let mut server = Server { out: Outgoing::start(output), asked: HashMap::new(), next: 1 };
    while let Line::Text(line) = lines.next().await {
        if let Ok(message) = Message::parse(&line) {
            server.take(&message).await;
        }
    }
    server.out.finish().await;
}

struct Server {
    out: Outgoing,
    /// Our open questions: the id of the call that waits, and what is to be shipped.
    asked: HashMap<String, (String, String)>,
    next: u64,
}

impl Server {
    async fn take(&mut self, message: &Message) {
        match &message.kind {
            Kind::Request { id, method } => match method.as_str() {
                "initialize" => self.reply(id, initialized(message)).await,
                "ping" => self.reply(id, json!({})).await,
                "tools/list" => self.reply(id, json!({"tools": tools()})).await,
                "tools/call" => self.call(id, message).await,
                _ => {
                    let line = jsonrpc::error(id, jsonrpc::METHOD_NOT_FOUND, "there is no such method", None);
                    self.out.send(line).await;
                }
            },
            Kind::Response { id } => self.answered(id, message).await,
            Kind::Notification { .. } => {}
        }
    }

    async fn reply(&self, id: &str, result: Value) {
        self.out.send(jsonrpc::result(id, &result.to_string())).await;
    }

    async fn say(&self, id: &str, text: String, is_error: bool) {
        self.reply(id, json!({"content": [{"type": "text", "text": text}], "isError": is_error})).await;
    }

    async fn call(&mut self, id: &str, message: &Message) {
        let arguments: Value =
            message.param("arguments").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let item = arguments.get("item").and_then(Value::as_str).unwrap_or("parcel").to_owned();
        match message.string_param("name").as_deref() {
            Some("quote_shipment") => self.say(id, format!("Shipping one {item} costs 12.50 EUR."), false).await,
            Some("book_shipment") => {
                let question = format!("ask-{}", self.next);
                self.next += 1;
                let params = json!({"mode": "form", "message": format!("Where should the {item} be delivered?"),
                    "requestedSchema": address_schema()});
                let question = Value::from(question).to_string();
                self.out.send(jsonrpc::request(&question, "elicitation/create", &params.to_string())).await;
                self.asked.insert(question, (id.to_owned(), item));
            }
            _ => self.say(id, "There is no such tool.".to_owned(), true).await,
        }
    }

    async fn answered(&mut self, question: &str, message: &Message) {
        let Some((id, item)) = self.asked.remove(question) else { return };
        let read = |member: &str| message.member(member).and_then(|text| serde_json::from_str::<Value>(text).ok());
        let result = read("result").unwrap_or_default();
        match result.get("action").and_then(Value::as_str) {
            Some("accept") => {
                let content = result.get("content").cloned().unwrap_or_default();
                let field = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
                let text =
                    format!("Booked: one {item} to {}, {}. Tracking number SHP-4711.", field("street"), field("city"));
                self.say(&id, text, false).await;
            }
            Some("decline") => self.say(&id, format!("Not booked: the {item} was declined."), false).await,
            Some("cancel") => self.say(&id, "Not booked: the question was dismissed.".to_owned(), false).await,
            _ => {
                let error = read("error").unwrap_or_default();
                let words = error.get("message").and_then(Value::as_str).unwrap_or("nobody could be asked").to_owned();
                self.say(&id, words, true).await;
            }
        }
    }
}

fn initialized(message: &Message) -> Value {
    let wanted = message.string_param("protocolVersion").unwrap_or_default();
    let version = if wanted.as_str() < VERSION { wanted } else { VERSION.to_owned() };
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "shipping", "title": "Shipping (sample)", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tools() -> Value {
    let input = json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]});
    json!([
        {"name": "quote_shipment", "title": "Quote a shipment", "description": "What shipping an item costs.",
         "inputSchema": input, "annotations": {"readOnlyHint": true}},
        {"name": "book_shipment", "title": "Book a shipment", "inputSchema": input,
         "description": "Books a shipment. Asks a person where the item goes.",
         "annotations": {"readOnlyHint": false, "destructiveHint": false}},
    ])
}

fn address_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "street": {"type": "string", "title": "Street and number", "minLength": 3, "maxLength": 120},
            "city": {"type": "string", "title": "City", "minLength": 1},
            "postal_code": {"type": "string", "title": "Postal code", "description": "Five or six digits",
                            "pattern": "^[0-9]{5,6}$"},
            "service": {"type": "string", "title": "Service", "default": "standard",
                        "oneOf": [{"const": "standard", "title": "Standard, 3 days"},
                                  {"const": "express", "title": "Express, tomorrow"}]},
            "not_before": {"type": "string", "title": "Not before", "format": "date"},
            "insured": {"type": "boolean", "title": "Insure it", "default": false}
        },
        "required": ["street", "city"]
    })
}
