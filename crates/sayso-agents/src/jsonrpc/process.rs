//! The process of an MCP server: started, spoken to over its standard input and output, and ended with what it started.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use super::{LineReader, Outgoing};

/// How long a server whose input was closed may take to leave before it is told to. With what follows this is less
/// than the 2 seconds that the official clients give us after SIGTERM, so that nobody is left behind.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// How long one that was told to leave may take before it is killed.
const TERMINATE_WITHIN: Duration = Duration::from_millis(500);

/// A server that has just been started.
pub struct Launched {
    /// Where it reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Where it writes.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its process, if it is one of ours.
    pub process: Option<Child>,
}

/// Starts a server, as often as it is needed.
pub trait Launch: Send + Sync + std::fmt::Debug {
    /// Starts it. The error is a sentence for whoever asked.
    fn launch(&self) -> Result<Launched, String>;
}

/// A program that speaks MCP on its standard input and output; what it prints beside that goes to our standard error.
#[derive(Debug, Clone)]
pub struct Program(pub Vec<OsString>);

impl Launch for Program {
    fn launch(&self) -> Result<Launched, String> {
        let (program, arguments) = self.0.split_first().ok_or("no command was given")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            // A Ctrl-C at the terminal is for us: the server leaves when its input is closed.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok(Launched { input: Box::new(input), output: Box::new(output), process: Some(child) })
            }
            _ => Err("the server has no pipes".to_owned()),
        }
    }
}

impl Launched {
    /// The two ends of the conversation: what writes to the server, and what reads from it.
    pub fn speak(self) -> (Running, LineReader<Box<dyn AsyncRead + Send + Unpin>>) {
        (Running { input: Outgoing::start(self.input), process: self.process }, LineReader::new(self.output))
    }
}

/// A running server, as one writes to it and ends it.
pub struct Running {
    input: Outgoing,
    process: Option<Child>,
}

impl Running {
    /// Writes a line.
    pub async fn send(&self, line: String) {
        self.input.send(line).await;
    }

    /// Takes note that the server has closed its output, and ends what is left of it. Says how it ended.
    pub async fn ended(self) -> String {
        drop(self.input);
        let Some(mut process) = self.process else { return "connection closed".to_owned() };
        match tokio::time::timeout(LEAVE_WITHIN, process.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                // It closed its output and stays: nothing more can come of it.
                end_group(&mut process).await;
                "it stopped answering".to_owned()
            }
        }
    }

    /// Closes the server's input and lets it leave, as the stdio transport ends a session.
    pub async fn close(mut self) {
        let leaves = async {
            self.input.finish().await;
            if let Some(process) = &mut self.process {
                drop(process.wait().await);
            }
        };
        // A process that reads no more, or that waits for something else, must not keep us.
        if tokio::time::timeout(LEAVE_WITHIN, leaves).await.is_err()
            && let Some(process) = &mut self.process
        {
            end_group(process).await;
        }
    }
}

/// Ends a process that had its time, with whatever it has started: a launcher such as `npx` is not the server itself.
async fn end_group(process: &mut Child) {
    signal_group(process, Signal::TERM);
    if tokio::time::timeout(TERMINATE_WITHIN, process.wait()).await.is_err() {
        signal_group(process, Signal::KILL);
        // It cannot refuse; what is left is to take note of its end.
        let _ = process.wait().await;
    }
}

fn signal_group(process: &Child, signal: Signal) {
    let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // One that has just ended needs no signal.
        let _ = kill_process_group(group, signal);
    }
}
