//! What every request passes before a handler sees it, and every answer before it leaves.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use sayso_core::error::Error;
use tower::Service;

use crate::app::Shared;
use crate::inbox;
use crate::problem::Refusal;

/// Nothing inline, nothing from elsewhere, no frame around us, and forms post to us alone.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// `same-origin` sends nobody else a referrer, as `no-referrer` would, but leaves our own forms their `Origin`, by which
/// browsers that do not send `Sec-Fetch-Site` (plain http beyond loopback) are told apart.
const REFERRER_POLICY: &str = "same-origin";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, REFERRER_POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

const WRONG_HOST: Error = Error::Forbidden("this host name is not served here; set the public URL to allow it");
const OTHER_SITE: Error = Error::Forbidden("the request came from another site");

/// Whether a path belongs to the API, whose errors are problems; else they are pages.
pub(crate) fn is_api(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/") || matches!(path, "/mcp" | "/healthz" | "/readyz" | "/openapi.json")
}

fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Whether an unsafe request comes from our own pages or from no page at all. Browsers send `Sec-Fetch-Site` to
/// loopback and https, and `Origin` with every unsafe request; other programs send neither.
fn is_own_site(headers: &HeaderMap) -> bool {
    let site = text(headers, "sec-fetch-site");
    if !matches!(site, None | Some("same-origin" | "none")) {
        return false;
    }
    match text(headers, header::ORIGIN) {
        None => true,
        // What a privacy setting makes of it; the browser has said by the other header where it comes from.
        Some("null") => site.is_some(),
        Some(origin) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(headers, header::HOST)
        }
    }
}

fn checked(app: &Shared, request: &Request) -> Result<(), Error> {
    let headers = request.headers();
    let host = text(headers, header::HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    if !host.is_some_and(|host| app.options.allows_host(host)) {
        return Err(WRONG_HOST);
    }
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || is_own_site(headers) { Ok(()) } else { Err(OTHER_SITE) }
}

/// Routes behind what every request passes: the host is checked and, for what may change something, the site it comes
/// from; every answer gets its headers. It stands around the router, as a layer would stand around each route of it.
#[derive(Clone)]
pub(crate) struct Guarded {
    app: Shared,
    routes: Router,
}

impl Guarded {
    pub(crate) fn new(app: Shared, routes: Router) -> Self {
        Self { app, routes }
    }
}

impl Service<Request> for Guarded {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    /// A router is always ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let handled = match checked(&self.app, &request) {
            Ok(()) => Ok(self.routes.call(request)),
            Err(error) => Err(refused(request.uri(), error.into())),
        };
        Box::pin(async move {
            let mut response = match handled {
                Ok(routed) => routed.await?,
                Err(refused) => refused,
            };
            let headers = response.headers_mut();
            for (name, value) in HEADERS {
                headers.insert(name, HeaderValue::from_static(value));
            }
            headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
            Ok(response)
        })
    }
}

fn refused(uri: &Uri, refusal: Refusal) -> Response {
    if is_api(uri.path()) { refusal.into_response() } else { inbox::error_page(&refusal, None) }
}

/// There is nothing at this path.
pub(crate) async fn unknown_route(uri: Uri) -> Response {
    refused(&uri, Error::NotFound("page or route").into())
}

/// The path is known, but not with this method.
pub(crate) async fn unknown_method(uri: Uri) -> Response {
    refused(&uri, Refusal::method())
}
