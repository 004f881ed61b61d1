//! `sayso gateway` in front of the sample server, with the client that calls through it, as processes that are killed.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{oneshot, watch};

use crate::serve::command;

/// The client's end of a gateway that lives.
#[derive(Clone)]
pub struct Calls {
    input: Arc<tokio::sync::Mutex<ChildStdin>>,
    open: Arc<Mutex<Open>>,
}

/// Who waits for which answer; `None` once the gateway has ended.
#[derive(Default)]
struct Open {
    next: u64,
    waiting: Option<HashMap<u64, oneshot::Sender<Value>>>,
}

impl Calls {
    /// What a request is answered with; nothing if the gateway ends first.
    pub async fn request(&self, method: &str, params: Value) -> Option<Value> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut open = self.open.lock().unwrap();
            open.next += 1;
            let id = open.next;
            open.waiting.as_mut()?.insert(id, answer);
            id
        };
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        answered.await.ok()
    }

    async fn say(&self, message: &Value) -> Option<()> {
        let line = format!("{message}\n");
        self.input.lock().await.write_all(line.as_bytes()).await.ok()
    }

    fn answered(&self, message: Value) {
        let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) else { return };
        let waiting = self.open.lock().unwrap().waiting.as_mut().and_then(|waiting| waiting.remove(&id));
        let waiting = waiting.unwrap_or_else(|| panic!("call {id} is answered twice: {message}"));
        // Whoever called may have given up.
        let _ = waiting.send(message);
    }
}

pub struct Gateway {
    child: Child,
    shown: watch::Sender<Option<Calls>>,
}

impl Gateway {
    pub async fn start(store: &str, server: Option<&str>, token: &str, shown: watch::Sender<Option<Calls>>) -> Self {
        let mut command = command(store);
        command.args(["gateway", "--name", "shipping"]);
        if let Some(server) = server {
            command.env_remove("SAYSO_STORE").args(["--server", server]).args(["--token-file", token]);
        }
        command.args(["--", env!("CARGO_BIN_EXE_sayso"), "demo", "--as-server"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let open = Open { next: 0, waiting: Some(HashMap::new()) };
        let input = Arc::new(tokio::sync::Mutex::new(child.stdin.take().unwrap()));
        let calls = Calls { input, open: Arc::new(Mutex::new(open)) };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let heard = calls.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.answered(serde_json::from_str(&line).unwrap());
            }
            // Dropped, they tell who waits that nothing will come.
            heard.open.lock().unwrap().waiting = None;
        });
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        calls.request("initialize", hello).await.expect("the gateway starts");
        calls.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await.unwrap();
        shown.send_replace(Some(calls));
        Self { child, shown }
    }

    /// As `kill -9` does.
    pub async fn kill(&mut self) {
        self.shown.send_replace(None);
        self.child.kill().await.unwrap();
    }
}
