//! One request and the beginning of its answer, on a connection of its own.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use sayso_core::limits::LINE_BYTES_MAX;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::fault::HttpFault;

/// How long a server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The most of a refusal that is read: its words are a sentence.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Characters of a refusal that are repeated.
const REFUSAL_CHARS_MAX: usize = 300;
/// How long the words of a refusal are waited for.
const REFUSAL_WITHIN: Duration = Duration::from_secs(2);

/// What is asked of the server.
pub(super) struct Ask {
    pub method: Method,
    /// The session, the version, and from where a stream is gone on with.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A message; none for what is no POST.
    pub message: Option<String>,
}

/// An answer of which the head was read.
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// The rest of an answer; dropped, it takes its connection along.
pub(super) struct Body {
    incoming: Incoming,
    _connection: Connection,
}

/// What drives a connection, for as long as somebody wants it.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The answer has ended before its end.
#[derive(Debug)]
pub(super) struct Cut;

impl Body {
    /// The next piece; none at the end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Cut> {
        loop {
            match poll_fn(|context| Pin::new(&mut self.incoming).poll_frame(context)).await {
                None => return Ok(None),
                Some(Err(_)) => return Err(Cut),
                // What is no data is a trailer.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => return Ok(Some(piece)),
                    Err(_) => continue,
                },
            }
        }
    }
}

impl Answer {
    /// The media type, without its parameters.
    pub fn media_type(&self) -> String {
        let text = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The whole body, as text.
    pub async fn text(mut self, address: &str) -> Result<String, HttpFault> {
        let mut bytes = Vec::new();
        loop {
            match self.body.piece().await {
                Ok(None) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Ok(Some(piece)) if bytes.len() + piece.len() > LINE_BYTES_MAX => return Err(HttpFault::TooLong),
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Err(Cut) => return Err(HttpFault::Interrupted(address.to_owned())),
            }
        }
    }

    /// What a status that is no success says. What the server says beside it is repeated only where no header of ours
    /// could be in it.
    pub async fn refusal(self, endpoint: &Endpoint) -> HttpFault {
        let status = self.status;
        if status.is_redirection() {
            return HttpFault::Redirected(status.as_u16());
        }
        let words = match endpoint.headers.is_empty() {
            true => timeout(REFUSAL_WITHIN, self.words()).await.unwrap_or_default(),
            false => String::new(),
        };
        HttpFault::Status { status: status.as_u16(), words }
    }

    /// The message of a JSON-RPC error, which servers send also where they know no id for it.
    async fn words(mut self) -> String {
        let mut bytes = Vec::new();
        while let Ok(Some(piece)) = self.body.piece().await {
            if bytes.len() + piece.len() > REFUSAL_BYTES_MAX {
                return String::new();
            }
            bytes.extend_from_slice(&piece);
        }
        let told: Option<Value> = serde_json::from_slice(&bytes).ok();
        let words = told.as_ref().and_then(|told| told.get("error")?.get("message")?.as_str()).unwrap_or_default();
        words.chars().take(REFUSAL_CHARS_MAX).collect()
    }
}

impl Endpoint {
    /// Asks, and reads the head of the answer.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Answer, HttpFault> {
        let unreachable = |reason: String| HttpFault::Unreachable { address: self.address.clone(), reason };
        let stream = timeout(CONNECT_WITHIN, TcpStream::connect(&self.address))
            .await
            .map_err(|_| unreachable("it does not answer".to_owned()))?
            .map_err(|error| unreachable(error.kind().to_string()))?;
        // Messages are small and should leave at once. A socket that refuses the option still works.
        drop(stream.set_nodelay(true));
        let (mut sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|_| unreachable("it speaks no HTTP".to_owned()))?;
        // How a connection ends is told to whoever waits for an answer on it.
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        let answer = sender.send_request(self.request(ask)).await;
        let answer = answer.map_err(|_| HttpFault::Interrupted(self.address.clone()))?;
        let (head, incoming) = answer.into_parts();
        let body = Body { incoming, _connection: connection };
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    fn request(&self, ask: Ask) -> Request<String> {
        let accepted = match ask.method {
            Method::POST => "application/json, text/event-stream",
            _ => "text/event-stream",
        };
        let mut request = Request::new(ask.message.unwrap_or_default());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = self.target.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        if ask.method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in self.headers.iter().chain(&ask.headers) {
            headers.append(name.clone(), value.clone());
        }
        request
    }
}
