//! Requests read and answers written: bodies with a bound, one JSON text or a stream of events.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use sayso_core::limits;
use tokio::sync::{mpsc, oneshot};

/// A message of a client: a whole round as asked, and its frame.
const MESSAGE_BYTES_MAX: usize = limits::ROUND_BYTES_MAX + 64 * 1024;
/// Events that wait for a client that reads slowly.
const EVENTS_MAX: usize = 4;

/// The body of an answer.
pub struct McpBody(Content);

enum Content {
    Whole(Option<Bytes>),
    Events {
        events: mpsc::Receiver<Bytes>,
        /// Says that the last event was taken; dropped before that, that the client has gone.
        taken: Option<oneshot::Sender<()>>,
    },
}

/// The way into a stream of events.
pub(super) struct EventSender {
    pub events: mpsc::Sender<Bytes>,
    /// Whether the client took all of it, once `events` is gone.
    pub taken: oneshot::Receiver<()>,
}

impl Body for McpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Content::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Events { events, taken } => events.poll_recv(context).map(|event| {
                if event.is_none()
                    && let Some(taken) = taken.take()
                {
                    // Whoever wanted to know may have gone.
                    let _ = taken.send(());
                }
                event.map(|event| Ok(Frame::data(event)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }
}

/// An answer with this JSON text.
pub(super) fn json(status: StatusCode, text: String) -> Response<McpBody> {
    let mut response = Response::new(McpBody(Content::Whole(Some(text.into()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer that is its status.
pub(super) fn empty(status: StatusCode) -> Response<McpBody> {
    let mut response = Response::new(McpBody(Content::Whole(None)));
    *response.status_mut() = status;
    response
}

/// A stream of events, and the way into it.
pub(super) fn events() -> (Response<McpBody>, EventSender) {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let (taken, is_taken) = oneshot::channel();
    let mut response = Response::new(McpBody(Content::Events { events, taken: Some(taken) }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // A proxy that collects a stream before it passes it on would keep the signs of life.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    (response, EventSender { events: sender, taken: is_taken })
}

/// A message as an event. Line breaks stand only between the tokens of strict JSON, so a space says the same.
pub(super) fn event(message: &str) -> Bytes {
    format!("event: message\ndata: {}\n\n", message.replace(['\n', '\r'], " ")).into()
}

/// A header's text; nothing where it is none.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a media type is among those of a header, whatever their parameters.
pub(super) fn names(headers: &HeaderMap, name: &str, wanted: &[&str]) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).map(|part| part.split(';').next().unwrap_or_default());
    types.any(|media_type| wanted.iter().any(|wanted| media_type.trim().eq_ignore_ascii_case(wanted)))
}

/// The whole body as text; none where it is too long, cut off or no UTF-8.
pub(super) async fn read<B: Body<Data = Bytes>>(body: B) -> Option<String> {
    let mut body = Box::pin(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        // What is no data is a trailer.
        let Ok(piece) = frame.ok()?.into_data() else { continue };
        if bytes.len() + piece.len() > MESSAGE_BYTES_MAX {
            return None;
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).ok()
}
