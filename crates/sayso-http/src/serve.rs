use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::serve::ListenerExt;
use axum::{Router, ServiceExt};
use sayso::Sayso;
use sayso::gate::Gates;
use sayso::policy::PolicyFiles;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::{App, Shared, Stopping};
use crate::guard::Guarded;
use crate::options::ServeOptions;
use crate::routes::Routes;
use crate::{api, events, guard, inbox, mcp, openapi};

/// How long requests in flight may take once the server was asked to stop: none of ours waits for a person then.
const DRAIN: Duration = Duration::from_secs(5);

/// The API, the event stream and the inbox as one service. Its long polls and streams end with their connections; use
/// [`serve`] for a server that ends them itself.
pub fn router(sayso: Sayso, options: ServeOptions) -> Router {
    Router::new().fallback_service(build(sayso, options, Stopping::never()))
}

/// Everything that is served.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .merge(api::routes())
        .merge(events::routes())
        .merge(mcp::routes())
        .merge(openapi::routes())
        .merge(inbox::routes())
}

fn build(sayso: Sayso, options: ServeOptions, stopping: Stopping) -> Guarded {
    let gates = Gates::new(&sayso, PolicyFiles::open(&options.policy));
    let app: Shared = Arc::new(App { sayso, gates, options, stopping });
    let routes = routes()
        .into_router()
        .fallback(guard::unknown_route)
        .method_not_allowed_fallback(guard::unknown_method)
        .with_state(app.clone());
    Guarded::new(app, routes)
}

/// Serves until `shutdown` is ready: then no connection is accepted, long polls answer as if their wait had ended, event
/// streams end, and whatever is left after a few seconds is dropped.
pub async fn serve(
    listener: TcpListener,
    sayso: Sayso,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let options = ServeOptions { listen: Some(listener.local_addr()?), ..options };
    let (stop, stopping) = watch::channel(false);
    let stopping = Stopping(stopping);
    let guarded = build(sayso, options, stopping.clone());
    // An event is small and should leave at once. A socket that refuses the option still works.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let asked = async move {
        shutdown.await;
        stop.send_replace(true);
    };
    let deadline = async {
        stopping.clone().requested().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        done = axum::serve(listener, ServiceExt::<Request>::into_make_service(guarded)).with_graceful_shutdown(asked).into_future() => done,
        () = deadline => Ok(()),
    }
}
