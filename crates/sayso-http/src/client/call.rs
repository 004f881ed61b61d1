//! One request and its answer, repeated where the connection was lost and a repeat does no harm.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use sayso::wire::Problem;
use sayso_core::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::Link;
use super::connections::Lost;

/// The first pause before a repeat; each further one is twice as long.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long an answer may take beyond the wait that was asked for, before the connection is taken for dead.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// The pause after this one.
pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(PAUSE_MAX)
}

/// One request, as often as it is sent.
pub(super) struct Call {
    method: Method,
    path: String,
    key: Option<String>,
    body: Option<String>,
    /// How long the server is asked to hold it.
    hold: Duration,
    /// How long it is repeated, where that is not as for every call.
    repeat_for: Option<Duration>,
    /// Whether a repeat does no harm where nobody can tell if it was done.
    repeats: bool,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), key: None, body: None, hold: Duration::ZERO, repeat_for: None, repeats: true }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// A POST with a JSON body.
    pub(super) fn send<T: Serialize>(path: impl Into<String>, body: &T) -> Result<Self, Error> {
        let body = serde_json::to_string(body).map_err(|_| Error::field("", "cannot be written as JSON"))?;
        Ok(Self { body: Some(body), ..Self::post(path) })
    }

    pub(super) fn key(self, key: String) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Held by the server for up to `hold`, as the path says too. Sent once: each repeat has less time left.
    pub(super) fn held(self, hold: Duration) -> Self {
        Self { hold, repeat_for: Some(Duration::ZERO), ..self }
    }

    /// Not sent again once the server may have seen it.
    pub(super) fn once(self) -> Self {
        Self { repeats: false, ..self }
    }
}

impl Link {
    /// Sends the call until there is an answer, within its time.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let until = Instant::now() + call.repeat_for.unwrap_or(self.repeat_for);
        let mut pause = PAUSE_MIN;
        loop {
            let (error, may_repeat) = match self.attempt(&call).await {
                Ok(response) => match read(&response) {
                    // A server that goes down, or whose store is busy; it says that it has done nothing.
                    Err(away @ Error::Unavailable(_)) => (away, call.repeats),
                    outcome => return outcome,
                },
                Err(Lost::Unsent(words)) => (Error::Unavailable(words), true),
                Err(Lost::Unanswered(words)) => (Error::Unavailable(words), call.repeats),
            };
            if !may_repeat || Instant::now() + pause >= until {
                return Err(error);
            }
            sleep(pause).await;
            pause = longer(pause);
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Response<Bytes>, Lost> {
        let request = self.request(call).map_err(|_| Lost::Unsent("the request cannot be written".to_owned()))?;
        let unanswered = || Lost::Unanswered(format!("{} does not answer", self.connections.address));
        timeout(call.hold + ANSWER_WITHIN, self.connections.exchange(request)).await.map_err(|_| unanswered())?
    }

    fn request(&self, call: &Call) -> Result<Request<Body>, axum::http::Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(header::HOST, &self.connections.address)
            .header(header::AUTHORIZATION, self.credential.clone());
        if let Some(key) = &call.key {
            request = request.header("idempotency-key", key);
        }
        match &call.body {
            Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.clone())),
            None => request.body(Body::empty()),
        }
    }
}

/// The answer's body, or the error that it tells of.
fn read<T: DeserializeOwned>(response: &Response<Bytes>) -> Result<T, Error> {
    let status = response.status();
    if !status.is_success() {
        // What is no problem was said by a proxy, while the server behind it restarts for one.
        let told = serde_json::from_slice::<Problem>(response.body()).ok().and_then(|problem| problem.error());
        return Err(told.unwrap_or_else(|| Error::Unavailable(format!("the server answered {status}"))));
    }
    let body = if status == StatusCode::NO_CONTENT { b"null".as_slice() } else { response.body() };
    serde_json::from_slice(body).map_err(|_| Error::Unavailable("the server's answer cannot be read".to_owned()))
}
