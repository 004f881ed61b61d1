//! A session with a server: what is said goes out in order, each request is followed to its answer, and the end is said.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use sayso_core::json::ObjectView;
use sayso_core::limits::{HTTP_SESSION_BYTES_MAX, HTTP_UNREAD_MESSAGES_MAX, OUTGOING_LINES_MAX};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::exchange::{Answer, Ask};
use super::fault::HttpFault;
use super::stream::Place;
use crate::jsonrpc::{Kind, Message, MessageReceiver, MessageSender, Received, notification};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// A version is a date; one that is longer is refused by whoever reads the answer.
const VERSION_BYTES_MAX: usize = 32;
/// How long a server may take to take an answer or a notification.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// How long the stream of no request is waited for; some servers say nothing of it before there is something to say.
const LISTEN_WITHIN: Duration = Duration::from_secs(1);
/// How long saying the end may take: on this machine it is a few milliseconds.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// What a session's tasks share.
pub(super) struct Session {
    pub endpoint: Endpoint,
    known: Mutex<Known>,
    heard: mpsc::Sender<Received>,
}

/// What became known of the session.
#[derive(Default)]
struct Known {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Requests without an answer; an `initialize` is never cancelled, so it is not among them.
    open: Vec<String>,
}

/// The way out.
pub(super) struct Sender {
    messages: Option<mpsc::Sender<String>>,
    task: JoinHandle<()>,
}

/// The way in.
pub(super) struct Receiver(mpsc::Receiver<Received>);

/// Begins a session; the first message makes the first connection.
pub(super) fn begin(endpoint: Endpoint) -> (Sender, Receiver) {
    let (heard, hears) = mpsc::channel(HTTP_UNREAD_MESSAGES_MAX);
    let (messages, waiting) = mpsc::channel(OUTGOING_LINES_MAX);
    let session = Arc::new(Session { endpoint, known: Mutex::default(), heard });
    let task = tokio::spawn(speak(session, waiting));
    (Sender { messages: Some(messages), task }, Receiver(hears))
}

/// Sends what there is to say, until nothing more comes.
async fn speak(session: Arc<Session>, mut waiting: mpsc::Receiver<String>) {
    // They end with this task.
    let mut streams = JoinSet::new();
    while let Some(text) = waiting.recv().await {
        while streams.try_join_next().is_some() {}
        let Ok(message) = Message::parse(&text) else { continue };
        match message.kind {
            Kind::Request { id, method } => {
                let is_first = method == "initialize";
                if !is_first {
                    session.known(|known| known.open.push(id.clone()));
                }
                let session = session.clone();
                streams.spawn(async move { session.call(id, text, is_first).await });
            }
            Kind::Notification { method } => {
                session.say(text).await;
                if method == "notifications/initialized" {
                    let session = session.clone();
                    let (listens, listening) = oneshot::channel();
                    streams.spawn(async move { session.overhear(listens).await });
                    // What a server asks there before somebody listens may be lost. Whether it failed is nobody's concern.
                    drop(timeout(LISTEN_WITHIN, listening).await);
                }
            }
            Kind::Response { .. } => session.say(text).await,
        }
    }
    session.leave().await;
}

impl Session {
    fn known<T>(&self, read: impl FnOnce(&mut Known) -> T) -> T {
        read(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The headers that name the session and the version, once they are known.
    pub(super) fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.known(|known| {
            let id = known.id.clone().map(|id| (SESSION_ID, id));
            let version = known.version.clone().map(|version| (PROTOCOL_VERSION, version));
            id.into_iter().chain(version).collect()
        })
    }

    async fn post(&self, message: String) -> Result<Answer, HttpFault> {
        self.endpoint.ask(Ask { method: Method::POST, headers: self.headers(), message: Some(message) }).await
    }

    /// What a status that is no success means in this session.
    pub(super) async fn refused(&self, answer: Answer) -> HttpFault {
        let had_session = answer.status == StatusCode::NOT_FOUND && self.known(|known| known.id.take().is_some());
        if had_session { HttpFault::SessionGone } else { answer.refusal(&self.endpoint).await }
    }

    pub(super) async fn pass(&self, message: String) {
        if self.known(|known| known.version.is_none()) {
            let version = agreed_version(&message);
            self.known(|known| known.version = version);
        }
        // Nobody who listens any more is missed.
        let _ = self.heard.send(Received::Message(message)).await;
    }

    async fn lost(&self, fault: HttpFault) {
        let _ = self.heard.send(Received::Lost(fault)).await;
    }

    /// Says what wants no answer, and tells where it is not taken.
    async fn say(&self, message: String) {
        let said = match timeout(TAKE_WITHIN, self.post(message)).await {
            Ok(Ok(answer)) if answer.status.is_success() => Ok(()),
            Ok(Ok(answer)) => Err(self.refused(answer).await),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(HttpFault::Stalled(TAKE_WITHIN.as_secs())),
        };
        if let Err(fault) = said {
            self.lost(fault).await;
        }
    }

    /// Makes a request and passes on what comes of it.
    async fn call(&self, id: String, message: String, is_first: bool) {
        let answered = self.carry_out(&id, message, is_first).await;
        self.known(|known| known.open.retain(|open| *open != id));
        if let Err(fault) = answered {
            self.lost(fault).await;
        }
    }

    async fn carry_out(&self, id: &str, message: String, is_first: bool) -> Result<(), HttpFault> {
        let answer = self.post(message).await?;
        if !answer.status.is_success() {
            return Err(self.refused(answer).await);
        }
        if is_first {
            self.take_session(&answer)?;
        }
        match answer.media_type().as_str() {
            "text/event-stream" => self.follow(answer.body, Place::of_request(id)).await,
            "application/json" => {
                let text = answer.text(&self.endpoint.address).await?;
                let kind = Message::parse(&text).map(|message| message.kind);
                match kind {
                    Ok(Kind::Response { id: answered }) if answered == id => {
                        self.pass(text).await;
                        Ok(())
                    }
                    _ => Err(HttpFault::NoAnswer),
                }
            }
            "" => Err(HttpFault::NoAnswer),
            other => Err(HttpFault::content_type(other)),
        }
    }

    /// The session's id is of visible ASCII characters.
    fn take_session(&self, answer: &Answer) -> Result<(), HttpFault> {
        let Some(id) = answer.headers.get(&SESSION_ID) else { return Ok(()) };
        let bytes = id.as_bytes();
        if bytes.is_empty() || bytes.len() > HTTP_SESSION_BYTES_MAX || !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(HttpFault::SessionId);
        }
        let mut id = id.clone();
        id.set_sensitive(true);
        self.known(|known| known.id = Some(id));
        Ok(())
    }

    /// Takes back what is open, and ends the session. A server that ends none says so, and that is that.
    async fn leave(&self) {
        let open = self.known(|known| std::mem::take(&mut known.open));
        for id in open {
            let params = format!(r#"{{"requestId":{id},"reason":"the operation was ended"}}"#);
            drop(self.post(notification("notifications/cancelled", &params)).await);
        }
        if self.known(|known| known.id.is_some()) {
            let end = Ask { method: Method::DELETE, headers: self.headers(), message: None };
            drop(self.endpoint.ask(end).await);
        }
    }
}

/// The version in the answer to `initialize`, which every later request names.
fn agreed_version(message: &str) -> Option<HeaderValue> {
    let message = Message::parse(message).ok()?;
    let version = ObjectView::read(message.member("result")?)?.get("protocolVersion")?;
    let version = serde_json::from_str::<String>(version).ok().filter(|version| version.len() <= VERSION_BYTES_MAX)?;
    HeaderValue::from_str(&version).ok()
}

#[async_trait]
impl MessageSender for Sender {
    async fn send(&self, message: String) {
        if let Some(messages) = &self.messages {
            // Whoever hears is told why it is gone.
            let _ = messages.send(message).await;
        }
    }

    async fn close(mut self: Box<Self>) {
        self.messages = None;
        // One that takes longer is ended where it is; there is no process to be left behind.
        drop(timeout(LEAVE_WITHIN, &mut self.task).await);
    }

    async fn ended(self: Box<Self>) -> String {
        "connection closed".to_owned()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl MessageReceiver for Receiver {
    async fn next(&mut self) -> Received {
        self.0.recv().await.unwrap_or(Received::Ended)
    }
}
