//! `/mcp`: a service that somebody else brings, behind the same guard and credentials as everything here.

use std::convert::Infallible;
use std::fmt;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::response::Response;
use sayso_core::error::Error;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::app::Shared;
use crate::auth::Caller;
use crate::problem::Refusal;
use crate::routes::Routes;

/// What answers under `/mcp`. It finds the authenticated [`sayso::Principal`] among a request's extensions.
#[derive(Clone)]
pub struct McpService(BoxCloneSyncService<Request, Response, Infallible>);

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpService(..)")
    }
}

impl McpService {
    /// Serves `service`.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request, Response = axum::http::Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(BoxCloneSyncService::new(service.map_response(|response| response.map(Body::new))))
    }
}

pub(crate) fn routes() -> Routes {
    Routes::new().post("/mcp", pass).delete("/mcp", pass)
}

async fn pass(State(app): State<Shared>, caller: Caller, mut request: Request) -> Result<Response, Refusal> {
    let Some(McpService(service)) = app.options.mcp.clone() else {
        return Err(Error::NotFound("page or route").into());
    };
    request.extensions_mut().insert(caller.principal);
    match service.oneshot(request).await {
        Ok(response) => Ok(response),
        Err(never) => match never {},
    }
}
