//! Connections that are kept for the next request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, Response};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use sayso_core::limits::{RESULT_BYTES_MAX, ROUND_BYTES_MAX};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Connections kept while nobody uses them: a gateway's calls beside its long polls.
const IDLE_MAX: usize = 8;
/// The longest answer: the result of an operation, with what is around it.
const REPLY_BYTES_MAX: usize = RESULT_BYTES_MAX + ROUND_BYTES_MAX;

/// Why there was no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// The server has seen nothing of the request.
    Unsent(String),
    /// Nobody can tell what the server has done.
    Unanswered(String),
}

/// The connections to one server.
pub(super) struct Connections {
    /// Host and port.
    pub(super) address: String,
    idle: Mutex<Vec<SendRequest<Body>>>,
}

impl Connections {
    pub(super) fn to(address: String) -> Self {
        Self { address, idle: Mutex::default() }
    }

    /// Sends one request and reads its whole answer. Dropped half-way, it takes its connection along.
    pub(super) async fn exchange(&self, request: Request<Body>) -> Result<Response<Bytes>, Lost> {
        let mut connection = match self.idle().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let response = connection.try_send_request(request).await.map_err(|mut error| {
            let words = format!("the connection to {} was lost", self.address);
            if error.take_message().is_some() { Lost::Unsent(words) } else { Lost::Unanswered(words) }
        })?;
        let (parts, body) = response.into_parts();
        let body = to_bytes(Body::new(body), REPLY_BYTES_MAX)
            .await
            .map_err(|_| Lost::Unanswered(format!("the answer of {} was cut off", self.address)))?;
        self.keep(connection);
        Ok(Response::from_parts(parts, body))
    }

    async fn idle(&self) -> Option<SendRequest<Body>> {
        loop {
            let mut connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            // One that the server has closed meanwhile is not ready any more.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: SendRequest<Body>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<SendRequest<Body>, Lost> {
        let unreachable = |why: String| Lost::Unsent(format!("{} cannot be reached: {why}", self.address));
        let stream = timeout(CONNECT_WITHIN, TcpStream::connect(&self.address))
            .await
            .map_err(|_| unreachable("it does not answer".to_owned()))?
            .map_err(|error| unreachable(error.kind().to_string()))?;
        // Requests are small and should leave at once. A socket that refuses the option still works.
        drop(stream.set_nodelay(true));
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(error.to_string()))?;
        // How a connection ends is told to whoever waits for an answer on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}
