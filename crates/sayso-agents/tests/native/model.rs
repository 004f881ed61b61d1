//! A model that says what a test wants, over real HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What comes of the next request.
#[derive(Clone)]
pub enum Turn {
    Says(&'static str),
    /// Id, function, arguments as the model writes them.
    Calls(Vec<(&'static str, &'static str, &'static str)>),
    /// A status that is no success.
    Status(u16),
    /// The same, once there is a permit.
    Held(Arc<Semaphore>, Box<Turn>),
    /// A body as it is.
    Raw(&'static str),
}

pub struct Model {
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(turns.into_iter().collect()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (turns, record) = (script, asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, turns.clone(), record.clone()));
            }
        });
        Self { url, asked }
    }

    /// The bodies that came.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// What the model read last of a call.
    pub fn told(&self, id: &str) -> String {
        let asked = self.asked();
        let messages = asked.last().unwrap()["messages"].as_array().unwrap().clone();
        let of: Vec<_> = messages.iter().filter(|message| message["tool_call_id"] == id).collect();
        assert_eq!(of.len(), 1, "one result of {id}: {messages:?}");
        of[0]["content"].as_str().unwrap().to_owned()
    }

    /// The names that were offered last.
    pub fn offered(&self) -> Vec<String> {
        let asked = self.asked();
        let tools = asked.last().unwrap()["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn answer(turn: Option<Turn>) -> (u16, String) {
    let message = match turn {
        None | Some(Turn::Held(..)) => return (500, String::new()),
        Some(Turn::Status(status)) => return (status, String::new()),
        Some(Turn::Raw(text)) => return (200, text.to_owned()),
        Some(Turn::Says(text)) => json!({"role": "assistant", "content": text}),
        Some(Turn::Calls(calls)) => {
            let call = |(id, name, arguments): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            json!({"role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>()})
        }
    };
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2});
    (200, json!({"choices": [{"index": 0, "message": message}], "usage": usage}).to_string())
}

async fn serve(stream: TcpStream, script: Arc<Mutex<VecDeque<Turn>>>, asked: Arc<Mutex<Vec<Value>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while stream.read_line(&mut head).await.unwrap_or(0) > 2 {}
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body["authorization"] =
        head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default().into();
    asked.lock().unwrap().push(body);
    let turn = script.lock().unwrap().pop_front();
    let turn = match turn {
        Some(Turn::Held(held, turn)) => {
            drop(held.acquire().await);
            Some(*turn)
        }
        turn => turn,
    };
    let (status, text) = answer(turn);
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
    drop(stream.write_all(format!("{head}{text}").as_bytes()).await);
    drop(stream.shutdown().await);
}
