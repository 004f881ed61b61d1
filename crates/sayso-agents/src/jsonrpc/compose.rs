use std::time::Duration;

use sayso_core::limits::OUTGOING_LINES_MAX;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How long a peer with a full queue may read nothing before its pipe is closed: it is broken, and must not keep us.
const STALL: Duration = Duration::from_secs(10);

/// A request of ours. `params` is JSON text.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, quoted(method))
}

/// A notification of ours. `params` is JSON text.
pub fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, quoted(method))
}

/// An answer of ours. `result` is JSON text.
pub fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error of ours; `data` is JSON text.
pub fn error(id: &str, code: i64, message: &str, data: Option<&str>) -> String {
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}{data}}}}}"#, quoted(message))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The way out to a peer: one task writes, so that lines never mix, and flushes whenever nothing more waits.
pub struct Outgoing {
    lines: mpsc::Sender<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Outgoing {
    /// Starts writing to `peer`.
    pub fn start(mut peer: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(OUTGOING_LINES_MAX);
        let task = tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                let written = async {
                    peer.write_all(one_line(&line).as_bytes()).await?;
                    peer.write_all(b"\n").await?;
                    if waiting.is_empty() { peer.flush().await } else { Ok(()) }
                };
                if written.await.is_err() {
                    return;
                }
            }
            // The peer may have closed its side; there is nobody left to tell.
            let _ = peer.shutdown().await;
        });
        Self { lines, task }
    }

    /// Queues a line. A peer that is gone loses it; its end is noticed by whoever reads from it.
    pub async fn send(&self, line: String) {
        if tokio::time::timeout(STALL, self.lines.send(line)).await.is_err() {
            self.task.abort();
        }
    }

    /// Writes what waits, closes the way out, and returns when that is done.
    pub async fn finish(self) {
        drop(self.lines);
        let stop = self.task.abort_handle();
        // A writer that panicked has been reported.
        if tokio::time::timeout(STALL, self.task).await.is_err() {
            stop.abort();
        }
    }
}

/// Line breaks stand only between the tokens of strict JSON, never inside one, so a space says the same.
fn one_line(line: &str) -> std::borrow::Cow<'_, str> {
    if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ").into() } else { line.into() }
}
