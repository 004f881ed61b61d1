//! The upstream: started, read line by line, and started again when it has crashed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::options::GatewayOptions;
use super::session::Event;
use crate::jsonrpc::{Line, Running};

/// Starts in a row before the upstream is given up, and the time in which they count.
const STARTS_MAX: usize = 5;
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The upstream, running or not.
#[derive(Default)]
pub(super) struct Upstream {
    running: Option<Running>,
    starts: VecDeque<Instant>,
    /// Counts the processes, so that the words of a dead one are not taken for those of the living.
    pub generation: u32,
}

impl Upstream {
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts the process. The error is a sentence for whoever asked.
    pub fn start(&mut self, options: &GatewayOptions, events: &mpsc::Sender<Event>) -> Result<(), String> {
        let now = Instant::now();
        self.starts.retain(|start| now.duration_since(*start) < STARTS_WITHIN);
        if self.starts.len() >= STARTS_MAX {
            return Err(format!("the server {} crashed {STARTS_MAX} times within a minute", options.name));
        }
        self.starts.push_back(now);
        let (running, mut lines) = options.upstream.launch()?.speak();
        self.generation += 1;
        let (generation, events) = (self.generation, events.clone());
        tokio::spawn(async move {
            loop {
                let line = lines.next().await;
                let is_last = !matches!(line, Line::Text(_));
                if events.send(Event::Upstream(generation, line)).await.is_err() || is_last {
                    return;
                }
            }
        });
        self.running = Some(running);
        Ok(())
    }

    /// Writes a line; to nobody where it is not running.
    pub async fn send(&self, line: String) {
        if let Some(running) = &self.running {
            running.send(line).await;
        }
    }

    /// Takes note that the upstream has closed its output, and ends what is left of it. Says how it ended.
    pub async fn ended(&mut self) -> String {
        match self.running.take() {
            Some(running) => running.ended().await,
            None => "it is not running".to_owned(),
        }
    }

    /// Closes its input and lets it leave, as the stdio transport ends a session.
    pub async fn close(&mut self) {
        if let Some(running) = self.running.take() {
            running.close().await;
        }
    }
}
