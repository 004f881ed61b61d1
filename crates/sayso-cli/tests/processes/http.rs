//! Requests to whichever server answers, repeated until one does.

use std::io;
use std::sync::atomic::Ordering;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::scene::Scene;

/// More attempts than a killed process and a restarted database together account for.
const ATTEMPTS_MAX: usize = 1_000;

/// What is asked of a server.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub token: &'a str,
    pub key: &'a str,
    pub body: &'a Value,
}

/// A connection to each server, opened as it is needed.
pub struct Http<'a> {
    scene: &'a Scene,
    open: [Option<BufReader<TcpStream>>; 2],
    server: usize,
}

impl<'a> Http<'a> {
    /// One that begins with this server.
    pub fn new(scene: &'a Scene, server: usize) -> Self {
        Self { scene, open: [None, None], server: server % 2 }
    }

    /// The status and body of the first answer that is one: a server that is gone, or that cannot reach the database, is
    /// asked again, or the other one is.
    pub async fn ask(&mut self, request: &Request<'_>) -> (u16, Value) {
        for attempt in 0..ATTEMPTS_MAX {
            match self.attempt(request).await {
                Ok((status, body)) if status != 503 => return (status, body),
                _ => {
                    self.open[self.server] = None;
                    self.server = (self.server + 1) % 2;
                    self.scene.repeated.fetch_add(1, Ordering::SeqCst);
                }
            }
            if attempt % 2 == 1 {
                self.scene.pause().await;
            }
        }
        panic!("nobody answers {} {}", request.method, request.path);
    }

    async fn attempt(&mut self, request: &Request<'_>) -> io::Result<(u16, Value)> {
        let address = &self.scene.addresses[self.server];
        let stream = match &mut self.open[self.server] {
            Some(open) => open,
            none => none.insert(BufReader::new(TcpStream::connect(address).await?)),
        };
        let Request { method, path, token, key, body } = request;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        read_answer(stream).await
    }
}

async fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Value)> {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if line.starts_with("http/") {
            status = line.split(' ').nth(1).and_then(|digits| digits.parse().ok()).expect("a status");
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}
