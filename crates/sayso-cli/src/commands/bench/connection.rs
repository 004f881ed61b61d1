//! One kept-alive connection to `sayso serve` that takes as little of the shared cores as it can.

use sayso::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A body is never longer here: a round and its answer take less than a kilobyte.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A connection with a credential.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    secret: String,
    line: String,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to the server at `address` as whoever `secret` speaks for.
    pub async fn open(address: &str, secret: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await.map_err(|_| lost())?;
        stream.set_nodelay(true).map_err(|_| lost())?;
        let (address, secret) = (address.to_owned(), secret.to_owned());
        Ok(Self { stream: BufReader::new(stream), address, secret, line: String::new(), body: Vec::new() })
    }

    /// Posts `body` to `path`, under an idempotency key where one is given, and reads the whole answer, which must be of
    /// the kind 2xx.
    pub async fn post(&mut self, path: &str, key: Option<&str>, body: &str) -> Result<&[u8], Error> {
        let (address, secret, length) = (&self.address, &self.secret, body.len());
        let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\n{key}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.exchange(&request).await
    }

    /// Gets `path` and reads the whole answer, which must be of the kind 2xx.
    pub async fn get(&mut self, path: &str) -> Result<&[u8], Error> {
        let (address, secret) = (&self.address, &self.secret);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\n\r\n");
        self.exchange(&request).await
    }

    async fn exchange(&mut self, request: &str) -> Result<&[u8], Error> {
        self.stream.get_mut().write_all(request.as_bytes()).await.map_err(|_| lost())?;
        self.read_line().await?;
        let status = self.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = None;
        loop {
            self.read_line().await?;
            if self.line.is_empty() {
                break;
            }
            if let Some((name, value)) = self.line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let length = length.filter(|length| *length <= BODY_BYTES_MAX).ok_or_else(lost)?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await.map_err(|_| lost())?;
        if status.starts_with('2') { Ok(&self.body) } else { Err(refused(&status)) }
    }

    async fn read_line(&mut self) -> Result<(), Error> {
        self.line.clear();
        let read = self.stream.read_line(&mut self.line).await.map_err(|_| lost())?;
        if read == 0 {
            return Err(lost());
        }
        self.line.truncate(self.line.trim_end().len());
        Ok(())
    }
}

fn lost() -> Error {
    Error::Unavailable("the server that is measured went away".to_owned())
}

fn refused(status: &str) -> Error {
    Error::Unavailable(format!("the server that is measured answered {status}"))
}
