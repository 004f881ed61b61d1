//! Being told to stop.

use tokio::signal::unix::{SignalKind, signal as listen};

use crate::error::CommandError;

/// Resolves at the first SIGINT or SIGTERM. The handlers are in place when this returns.
pub fn signal() -> Result<impl Future<Output = ()> + Send + 'static, CommandError> {
    let mut interrupt = listen(SignalKind::interrupt()).map_err(CommandError::Runtime)?;
    let mut terminate = listen(SignalKind::terminate()).map_err(CommandError::Runtime)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
