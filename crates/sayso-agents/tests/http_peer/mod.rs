//! A scripted MCP server over HTTP: it says exactly the bytes that a test wants, when the test wants them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sayso::kit::HttpServer;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Far beyond anything that is waited for; a test that reaches it has hung.
pub const HANG: Duration = Duration::from_secs(60);
pub const SESSION: &str = "session-1";

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Seen {
    /// The JSON-RPC method, or `answer` for an answer; nothing for what is no POST.
    pub fn rpc(&self) -> String {
        let Ok(message) = serde_json::from_str::<Value>(&self.body) else { return String::new() };
        message.get("method").and_then(Value::as_str).unwrap_or("answer").to_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What is said next.
#[derive(Clone)]
pub enum Part {
    Bytes(Vec<u8>),
    /// Says nothing until a request came whose body contains this.
    Await(&'static str),
    /// Says nothing more, and holds the connection.
    Hang,
}

pub fn bytes(text: impl Into<String>) -> Part {
    Part::Bytes(text.into().into_bytes())
}

/// A whole answer.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<Part> {
    vec![bytes(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))]
}

pub fn json(body: &str) -> Vec<Part> {
    answer("200 OK", "content-type: application/json; charset=utf-8\r\n", body)
}

pub fn accepted() -> Vec<Part> {
    answer("202 Accepted", "", "")
}

/// A stream of events, ended by the end of the connection.
pub fn stream(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let head = bytes("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    std::iter::once(head).chain(parts).collect()
}

pub fn event(message: &str) -> Part {
    bytes(format!("event: message\ndata: {message}\n\n"))
}

/// The result of a tool call.
pub fn says(id: u32, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

pub fn asks(id: &str, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{{"message":"{message}","requestedSchema":{{"type":"object","properties":{{"city":{{"type":"string"}}}},"required":["city"]}}}}}}"#
    )
}

type Script = Arc<dyn Fn(&Seen) -> Option<Vec<Part>> + Send + Sync>;

pub struct HttpPeer {
    pub address: String,
    seen: watch::Receiver<Vec<Seen>>,
}

impl HttpPeer {
    /// A server with a session and the tool `book`. What `script` says to a request is said; otherwise it behaves.
    pub async fn start(script: impl Fn(&Seen) -> Option<Vec<Part>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (record, seen) = watch::channel(Vec::new());
        let script: Script = Arc::new(script);
        tokio::spawn(async move {
            let record = Arc::new(record);
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, script.clone(), record.clone()));
            }
        });
        Self { address, seen }
    }

    pub fn server(&self) -> HttpServer {
        HttpServer::new("shipping", format!("http://{}/mcp", self.address))
    }

    /// Everything that came so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// What came so far, a word each: the method of the message, or of HTTP.
    pub fn words(&self) -> Vec<String> {
        let word = |seen: Seen| if seen.method == "POST" { seen.rpc() } else { seen.method };
        self.seen().into_iter().map(word).collect()
    }

    /// The first request that is so; waits for it.
    pub async fn request(&self, is: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = self.seen.clone();
        let came = seen.wait_for(|seen| seen.iter().any(&is));
        let all = tokio::time::timeout(HANG, came).await.expect("comes in time").unwrap().clone();
        all.into_iter().find(is).unwrap()
    }
}

async fn serve(stream: TcpStream, script: Script, record: Arc<watch::Sender<Vec<Seen>>>) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream).await else { return };
    record.send_modify(|seen| seen.push(request.clone()));
    for part in script(&request).unwrap_or_else(|| behave(&request)) {
        match part {
            Part::Bytes(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                drop(stream.flush().await);
            }
            Part::Await(needle) => {
                let mut seen = record.subscribe();
                drop(seen.wait_for(|seen| seen.iter().any(|seen| seen.body.contains(needle))).await);
            }
            Part::Hang => std::future::pending().await,
        }
    }
    drop(stream.shutdown().await);
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let method = lines.first()?.split(' ').next()?.to_owned();
    let header =
        |line: &String| Some((line.split_once(':')?.0.to_lowercase(), line.split_once(':')?.1.trim().to_owned()));
    let headers: BTreeMap<_, _> = lines.iter().skip(1).filter_map(header).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { method, headers, body: String::from_utf8(body).ok()? })
}

/// What a server does that has nothing else to do: a session, one tool, no stream of its own.
fn behave(request: &Seen) -> Vec<Part> {
    match request.rpc().as_str() {
        "initialize" => {
            let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
            answer("200 OK", &format!("Mcp-Session-Id: {SESSION}\r\ncontent-type: application/json\r\n"), result)
        }
        "tools/list" => {
            json(r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"book","inputSchema":{"type":"object"}}]}}"#)
        }
        "tools/call" => json(&says(3, "Booked.")),
        "" => answer("405 Method Not Allowed", "", ""),
        _ => accepted(),
    }
}
