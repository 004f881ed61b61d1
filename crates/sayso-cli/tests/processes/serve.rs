//! `sayso serve` as a process that is killed.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The command on a database, and nothing else of the test's environment that it would heed.
pub fn command(store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.env_remove("SAYSO_DATA").env("SAYSO_STORE", store).env("NO_COLOR", "1");
    command.kill_on_drop(true);
    command
}

pub struct Serve {
    child: Child,
}

impl Serve {
    pub async fn start(store: &str, address: &str) -> Self {
        let mut command = command(store);
        command.args(["serve", "--listen", address, "--json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        assert!(line.contains("listening"), "{line}");
        Self { child }
    }

    /// As `kill -9` does.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}
