//! Members of a URL and of headers, read as strictly as bodies are.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use sayso_core::error::Error;
use sayso_core::id::IdError;
use sayso_core::json::pointer_to;
use sayso_core::limits;

use crate::app::Shared;
use crate::problem::Refusal;

/// The parameters of a query, each known and given once.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the query of `uri`; a parameter that is not `known`, or given twice, is refused by its name.
    pub(crate) fn read(uri: &Uri, known: &[&str]) -> Result<Self, Error> {
        let mut given: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            let refuse = |message: String| Err(Error::field(pointer_to("", &name), message));
            if !known.contains(&&*name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return refuse(format!("is not a parameter of this route; it takes {known}"));
            }
            if given.iter().any(|(other, _)| *other == name) {
                return refuse("is given twice".to_owned());
            }
            given.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(given))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The parameter as `read` takes it; `wanted` reads on from its name.
    pub(crate) fn get<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.text(name) else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| Error::field(pointer_to("", name), wanted))
    }

    /// `wait=45s` or `wait=1500ms`; the library bounds it.
    pub(crate) fn wait(&self) -> Result<Option<Duration>, Error> {
        self.get("wait", "must be a time such as 45s or 1500ms", |text| match text.strip_suffix("ms") {
            Some(number) => number.parse().ok().map(Duration::from_millis),
            None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
        })
    }

    /// `limit`, from 1 to the rows of a page; 0 where it is not given.
    pub(crate) fn limit(&self) -> Result<usize, Error> {
        let wanted = format!("must be a number from 1 to {}", limits::PAGE_ROWS_MAX);
        let read = |text: &str| text.parse().ok().filter(|rows| (1..=limits::PAGE_ROWS_MAX).contains(rows));
        Ok(self.get("limit", &wanted, read)?.unwrap_or(0))
    }

    /// An id, such as a cursor.
    pub(crate) fn id<T: FromStr<Err = IdError>>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: IdError| Error::field(pointer_to("", name), error.to_string()))
    }
}

/// The header `Idempotency-Key` of a request, as it was sent.
pub(crate) struct IdempotencyKey(Option<HeaderValue>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.get("idempotency-key").cloned()))
    }
}

impl IdempotencyKey {
    /// The key, if one was sent.
    pub(crate) fn given(self) -> Result<Option<String>, Error> {
        let Some(value) = self.0 else { return Ok(None) };
        let key = value.to_str().ok().filter(|key| key.len() <= limits::NAME_BYTES_MAX);
        let refused =
            || Error::field("/idempotency_key", format!("must have 1 to {} plain characters", limits::NAME_BYTES_MAX));
        key.map(|key| Some(key.to_owned())).ok_or_else(refused)
    }

    /// The key of a request that must have one.
    pub(crate) fn required(self) -> Result<String, Error> {
        let missing = || Error::field("/idempotency_key", "is required: send the header Idempotency-Key");
        self.given()?.ok_or_else(missing)
    }
}

/// The name of a worker in a route's path.
pub(crate) struct OwnerId(pub(crate) String);

impl FromRequestParts<Shared> for OwnerId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let read = Path::<String>::from_request_parts(parts, app).await;
        Ok(Self(read.map_err(|_| Error::field("/owner", "must be the name of a worker"))?.0))
    }
}

/// The name of a session in a route's path.
pub(crate) struct SessionId(pub(crate) String);

impl FromRequestParts<Shared> for SessionId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let read = Path::<String>::from_request_parts(parts, app).await;
        let name = read.ok().map(|Path(name)| name).filter(|name| name.len() <= limits::NAME_BYTES_MAX);
        Ok(Self(name.ok_or_else(|| Error::field("/session", "must be the name of a session"))?))
    }
}

/// The id in a route's path.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr<Err = IdError>> FromRequestParts<Shared> for Id<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let Path(text) =
            Path::<String>::from_request_parts(parts, app).await.map_err(|_| Error::field("/id", "must be an id"))?;
        let id = text.parse().map_err(|error: IdError| Error::field("/id", error.to_string()))?;
        Ok(Self(id))
    }
}
