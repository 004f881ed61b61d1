//! One kept-alive connection to `sayso serve` that takes as little of the shared cores as it can.

use std::fmt::Write as _;

use sayso::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer is never longer here: a round and its answer take less than a kilobyte.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// A connection with a credential.
pub struct Connection {
    stream: TcpStream,
    /// The headers of every request.
    headers: String,
    request: String,
    received: Vec<u8>,
}

impl Connection {
    /// Connects to the server at `address` as whoever `secret` speaks for.
    pub async fn open(address: &str, secret: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await.map_err(|_| lost())?;
        stream.set_nodelay(true).map_err(|_| lost())?;
        let headers = format!("Host: {address}\r\nAuthorization: Bearer {secret}\r\n");
        Ok(Self { stream, headers, request: String::new(), received: Vec::with_capacity(4096) })
    }

    /// Posts `body` to `path`, under an idempotency key where one is given, and reads the whole answer, which must be of
    /// the kind 2xx.
    pub async fn post(&mut self, path: &str, key: Option<&str>, body: &str) -> Result<&[u8], Error> {
        self.begin("POST", path);
        if let Some(key) = key {
            self.add(format_args!("Idempotency-Key: {key}\r\n"));
        }
        let length = body.len();
        self.add(format_args!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"));
        self.exchange().await
    }

    /// Gets `path` and reads the whole answer, which must be of the kind 2xx.
    pub async fn get(&mut self, path: &str) -> Result<&[u8], Error> {
        self.begin("GET", path);
        self.add(format_args!("\r\n"));
        self.exchange().await
    }

    fn begin(&mut self, method: &str, path: &str) {
        self.request.clear();
        self.add(format_args!("{method} {path} HTTP/1.1\r\n"));
        self.request.push_str(&self.headers);
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = self.request.write_fmt(text);
    }

    async fn exchange(&mut self) -> Result<&[u8], Error> {
        self.stream.write_all(self.request.as_bytes()).await.map_err(|_| lost())?;
        self.received.clear();
        let head = loop {
            self.receive().await?;
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
        };
        let head_text = self.received.get(..head).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(lost)?;
        let (status, length) = read_head(head_text).ok_or_else(lost)?;
        let whole = (head + 4).saturating_add(length);
        if whole > ANSWER_BYTES_MAX {
            return Err(lost());
        }
        while self.received.len() < whole {
            self.receive().await?;
        }
        if status / 100 != 2 {
            return Err(refused(status));
        }
        self.received.get(head + 4..whole).ok_or_else(lost)
    }

    async fn receive(&mut self) -> Result<(), Error> {
        let read = self.stream.read_buf(&mut self.received).await.map_err(|_| lost())?;
        let is_lost = read == 0 || self.received.len() > ANSWER_BYTES_MAX;
        if is_lost { Err(lost()) } else { Ok(()) }
    }
}

/// The status of an answer, and how long its body is.
fn read_head(head: &str) -> Option<(u16, usize)> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let (_, length) = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    Some((status, length.trim().parse().ok()?))
}

fn lost() -> Error {
    Error::Unavailable("the server that is measured went away".to_owned())
}

fn refused(status: u16) -> Error {
    Error::Unavailable(format!("the server that is measured answered {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_its_status_and_its_length() {
        assert_eq!(read_head("HTTP/1.1 201 Created\r\ncontent-length: 17\r\ndate: now"), Some((201, 17)));
        assert_eq!(read_head("HTTP/1.1 409 Conflict\r\nContent-Length:3"), Some((409, 3)));
        assert_eq!(read_head("HTTP/1.1 200 OK\r\nserver: x"), None);
    }
}
