//! The two ends of a gateway, as tests speak to them.

use std::sync::Mutex;

use sayso_agents::gateway::{Launch, Launched};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;

use super::{HANG, PIPE_BYTES};

/// One end of a line-framed pipe.
pub struct Peer {
    input: BufReader<DuplexStream>,
    output: DuplexStream,
}

impl Peer {
    pub fn new(input: DuplexStream, output: DuplexStream) -> Self {
        Self { input: BufReader::new(input), output }
    }

    pub async fn say_raw(&mut self, line: &str) {
        self.output.write_all(line.as_bytes()).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    /// As [`Peer::say_raw`], to a peer that may close its side before it has heard all.
    pub async fn try_say(&mut self, line: &str) {
        let _ = self.output.write_all(line.as_bytes()).await;
        let _ = self.output.write_all(b"\n").await;
    }

    pub async fn say(&mut self, message: Value) {
        self.say_raw(&message.to_string()).await;
    }

    /// The next line, or `None` where the other side has closed.
    pub async fn hear_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(HANG, self.input.read_line(&mut line)).await;
        let read = read.expect("nothing was said for too long").unwrap();
        (read > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    pub async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_line().await.expect("the other side has closed")).unwrap()
    }

    /// The next message that is not a notification of this method.
    pub async fn hear_but(&mut self, method: &str) -> Value {
        loop {
            let message = self.hear().await;
            if message["method"] != method {
                return message;
            }
        }
    }
}

#[derive(Debug)]
pub struct Pipes(pub Mutex<mpsc::Sender<Peer>>);

impl Launch for Pipes {
    fn launch(&self) -> Result<Launched, String> {
        let (ours_in, theirs_out) = tokio::io::duplex(PIPE_BYTES);
        let (theirs_in, ours_out) = tokio::io::duplex(PIPE_BYTES);
        let peer = Peer::new(theirs_in, theirs_out);
        self.0.lock().unwrap().try_send(peer).map_err(|_| "nobody takes the upstream".to_owned())?;
        Ok(Launched { input: Box::new(ours_out), output: Box::new(ours_in), process: None })
    }
}

/// In the place of a peer that has gone.
pub fn nobody() -> Peer {
    Peer::new(tokio::io::duplex(1).0, tokio::io::duplex(1).0)
}
