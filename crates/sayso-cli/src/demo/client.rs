//! A scripted MCP client, in the place of an agent.

use sayso_agents::jsonrpc::{self, Kind, Line, LineReader, Message, Outgoing};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

/// A client that makes one request at a time.
pub struct Client<R> {
    lines: LineReader<R>,
    out: Outgoing,
    next: u64,
}

impl<R: AsyncRead + Unpin> Client<R> {
    /// Says hello to the server behind the pipes, as an MCP session begins. `None` where it does not answer.
    pub async fn connect(input: R, output: impl AsyncWrite + Unpin + Send + 'static) -> Option<Self> {
        let mut client = Self { lines: LineReader::new(input), out: Outgoing::start(output), next: 1 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "sayso-demo", "version": env!("CARGO_PKG_VERSION")}});
        client.request("initialize", &hello).await?;
        client.out.send(jsonrpc::notification("notifications/initialized", "{}")).await;
        Some(client)
    }

    /// The names of the server's tools.
    pub async fn tools(&mut self) -> Option<Vec<String>> {
        let result = self.request("tools/list", &json!({})).await?;
        let name = |tool: &Value| Some(tool.get("name")?.as_str()?.to_owned());
        result.get("tools")?.as_array()?.iter().map(name).collect()
    }

    /// What a tool answers, as text. A paused call is waited for with the tool that its answer names.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Option<String> {
        let mut result = self.request("tools/call", &json!({"name": tool, "arguments": arguments})).await?;
        while let Some(handle) = result.pointer("/structuredContent/paused/execution_id").cloned() {
            let wait = json!({"name": "sayso_wait", "arguments": {"execution_id": handle}});
            result = self.request("tools/call", &wait).await?;
        }
        Some(result.pointer("/content/0/text")?.as_str()?.to_owned())
    }

    /// Leaves.
    pub async fn close(self) {
        self.out.finish().await;
    }

    async fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        let wanted = self.next.to_string();
        self.next += 1;
        self.out.send(jsonrpc::request(&wanted, method, &params.to_string())).await;
        while let Line::Text(line) = self.lines.next().await {
            let Ok(message) = Message::parse(&line) else { continue };
            if matches!(&message.kind, Kind::Response { id } if *id == wanted) {
                return serde_json::from_str(message.member("result")?).ok();
            }
        }
        None
    }
}
