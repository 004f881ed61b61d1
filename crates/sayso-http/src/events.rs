//! The event stream: every change after a cursor, in order, none skipped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use sayso::EventFeed;
use sayso::wire::StoredEvent;
use sayso_core::error::Error;

use crate::app::{Shared, Stopping};
use crate::auth::Caller;
use crate::problem::Refusal;
use crate::query::Query;
use crate::routes::Routes;

/// How often a silent stream says that it is alive: well below the minute after which proxies give up.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) fn routes() -> Routes {
    Routes::new().get("/v1/events", events)
}

struct Following {
    app: Shared,
    caller: Caller,
    feed: EventFeed,
    stopping: Stopping,
    cursor: u64,
    frames: VecDeque<Frame>,
}

impl Following {
    /// The next frame; none once the server stops, the credential is revoked or the store is gone. The caller comes
    /// back with the number of the last event it saw.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            if !self.caller.is_still_good(&self.app.sayso).await {
                return None;
            }
            let events = self.app.sayso.events_after(&self.caller.principal, self.cursor).await.ok()?;
            if events.is_empty() {
                tokio::select! {
                    biased;
                    () = self.stopping.requested() => return None,
                    () = self.feed.maybe_more() => {}
                }
                continue;
            }
            for event in events {
                let wire = StoredEvent::from(&event);
                self.cursor = wire.seq;
                let data = serde_json::to_string(&wire).ok()?;
                let frame = Frame::default().id(wire.seq.to_string()).event(wire.body.name()).data(data);
                self.frames.push_back(frame);
            }
        }
    }
}

/// The number of the last event that the caller saw, where it comes back.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok());
    seq.map(Some).ok_or_else(|| Error::field("/Last-Event-ID", "must be the number of an event"))
}

async fn events(State(app): State<Shared>, caller: Caller, headers: HeaderMap, uri: Uri) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    // Listening before reading: no event falls between the two.
    let feed = app.sayso.event_feed();
    let last_seq = app.sayso.last_event().await?;
    let cursor = last_event_id(&headers)?.unwrap_or(last_seq).min(last_seq);
    // The marker carries the cursor and not `last_seq`, so that who loses the stream right after it misses nothing.
    let marker = Frame::default().id(cursor.to_string()).event("snapshot").data(format!("{{\"last_seq\":{last_seq}}}"));
    let stopping = app.stopping.clone();
    let following =
        Following { app: Arc::clone(&app), caller, feed, stopping, cursor, frames: VecDeque::from([marker]) };
    Ok(Sse::new(frames(following)).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

fn frames(following: Following) -> impl Stream<Item = Result<Frame, Infallible>> {
    unfold(following, |mut following| async move {
        let frame = following.next().await?;
        Some((Ok(frame), following))
    })
}
