//! Streams of events: read to the answer, and gone on with where the connection was cut.

use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use sayso_core::limits::{HTTP_EVENT_ID_BYTES_MAX, HTTP_STREAM_EVENTS_MAX, LINE_BYTES_MAX};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::events::{EventReader, Oversized};
use super::exchange::{Answer, Ask, Body};
use super::fault::HttpFault;
use super::session::Session;
use crate::jsonrpc::{Kind, Message};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long to wait before a stream is gone on with, unless the server says otherwise.
const RETRY: Duration = Duration::from_secs(1);
/// The least and the most of what a server may say: neither a busy loop nor an answer that comes a day late.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Attempts in a row that may fail before the stream is given up: a server that restarts takes a few seconds.
const ATTEMPTS_MAX: u32 = 5;

/// How far a stream was read.
pub(super) struct Place {
    /// The id that it ends with; none ends the stream of what belongs to no request.
    request: Option<String>,
    last_event: Option<HeaderValue>,
    retry: Duration,
    events: usize,
}

impl Place {
    /// At the beginning of a request's stream.
    pub fn of_request(id: &str) -> Self {
        Self { request: Some(id.to_owned()), ..Self::of_none() }
    }

    /// At the beginning of the stream of what belongs to no request.
    pub fn of_none() -> Self {
        Self { request: None, last_event: None, retry: RETRY, events: 0 }
    }

    fn is_answer(&self, message: &str) -> bool {
        let Some(request) = &self.request else { return false };
        let id = Message::parse(message).map(|message| message.kind);
        matches!(id, Ok(Kind::Response { id }) if id == *request)
    }

    /// Takes note of where the stream can be gone on from. An empty id takes that back.
    fn mark(&mut self, id: &str) -> Result<(), HttpFault> {
        if id.len() > HTTP_EVENT_ID_BYTES_MAX {
            return Err(HttpFault::EventId);
        }
        self.last_event = HeaderValue::from_str(id).ok().filter(|id| !id.is_empty());
        Ok(())
    }
}

impl Session {
    /// Reads a stream until its answer has come, going on with it as often as it is cut.
    pub(super) async fn follow(&self, mut body: Body, mut place: Place) -> Result<(), HttpFault> {
        loop {
            if self.read(body, &mut place).await? {
                return Ok(());
            }
            body = self.go_on(&mut place).await?;
        }
    }

    /// Reads a stream to its end; whether that was the answer.
    async fn read(&self, mut body: Body, place: &mut Place) -> Result<bool, HttpFault> {
        let mut reader = EventReader::new(LINE_BYTES_MAX);
        // One that is cut off can be gone on with as one that has ended.
        while let Ok(Some(piece)) = body.piece().await {
            let events = reader.feed(&piece).map_err(|Oversized| HttpFault::TooLong)?;
            place.retry = reader.retry.map_or(place.retry, |retry| retry.clamp(RETRY_MIN, RETRY_MAX));
            for event in events {
                place.events += 1;
                if place.events > HTTP_STREAM_EVENTS_MAX {
                    return Err(HttpFault::TooManyEvents);
                }
                if let Some(id) = &event.id {
                    place.mark(id)?;
                }
                if event.data.is_empty() || !matches!(event.kind.as_str(), "" | "message") {
                    continue;
                }
                let is_answer = place.is_answer(&event.data);
                self.pass(event.data).await;
                if is_answer {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Asks for the rest of a stream. A request's stream without a place to go on from is lost.
    async fn go_on(&self, place: &mut Place) -> Result<Body, HttpFault> {
        if place.request.is_some() && place.last_event.is_none() {
            return Err(HttpFault::StreamEnded);
        }
        let mut attempts = 0;
        loop {
            sleep(place.retry).await;
            match self.listen(place).await {
                Ok(body) => return Ok(body),
                Err(fault) => {
                    attempts += 1;
                    let is_final = matches!(
                        fault,
                        HttpFault::SessionGone
                            | HttpFault::StreamEnded
                            | HttpFault::Redirected(_)
                            | HttpFault::ContentType(_)
                    );
                    if is_final || attempts == ATTEMPTS_MAX {
                        return Err(fault);
                    }
                }
            }
        }
    }

    /// Opens a stream from a place on.
    async fn listen(&self, place: &Place) -> Result<Body, HttpFault> {
        let mut headers = self.headers();
        headers.extend(place.last_event.clone().map(|id| (LAST_EVENT_ID, id)));
        let answer = self.endpoint.ask(Ask { method: Method::GET, headers, message: None }).await?;
        match answer.status {
            StatusCode::OK => event_stream(answer),
            // There is no such stream here.
            StatusCode::METHOD_NOT_ALLOWED => Err(HttpFault::StreamEnded),
            // Some servers say so like this; a session that is gone shows in the next request.
            StatusCode::NOT_FOUND if place.request.is_none() => Err(HttpFault::StreamEnded),
            _ => Err(self.refused(answer).await),
        }
    }

    /// Passes on what belongs to no request, for as long as there is a stream for it. Nobody waits for it, and what
    /// befalls it says nothing of the calls.
    pub(super) async fn overhear(&self, listens: oneshot::Sender<()>) {
        let place = Place::of_none();
        let listening = self.listen(&place).await;
        // It may have been waited for long enough.
        let _ = listens.send(());
        if let Ok(body) = listening {
            drop(self.follow(body, place).await);
        }
    }
}

fn event_stream(answer: Answer) -> Result<Body, HttpFault> {
    match answer.media_type().as_str() {
        "text/event-stream" => Ok(answer.body),
        other => Err(HttpFault::content_type(other)),
    }
}
