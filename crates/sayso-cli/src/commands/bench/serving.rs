//! `sayso serve` as a process of its own, as it is run in earnest.

use std::path::Path;
use std::process::Stdio;

use sayso::measure::process;
use sayso::wire::{NewToken, NewTokenKind};
use sayso::{Error, Options, Principal, Sayso};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::connection::Connection;

/// Who owns the folders of measurements.
fn owner() -> Principal {
    Principal::person("local:bench")
}

/// How a folder of measurements is opened here.
pub fn options(data: &Path) -> Options {
    Options::at(data).person(owner())
}

/// The credentials of an agent and of a person.
pub struct Credentials {
    agent: String,
    person: String,
}

impl Credentials {
    /// Makes both. The agent is the one whose rounds [`sayso::measure::pending::make`] makes.
    pub async fn make(sayso: &Sayso) -> Result<Self, Error> {
        let make = async |kind, name: &str| {
            let token = sayso.new_token(sayso.person(), NewToken { kind, name: name.to_owned() }).await?;
            token.token.secret.ok_or(Error::Corrupt("token"))
        };
        Ok(Self { agent: make(NewTokenKind::Agent, "bench").await?, person: make(NewTokenKind::Person, "ada").await? })
    }
}

#[derive(Deserialize)]
struct Listening {
    listening: String,
}

/// A running server; it is killed when dropped.
pub struct Server {
    child: Child,
    address: String,
    process: u32,
}

impl Server {
    /// Starts this same program on `data`, and waits until it listens.
    pub async fn start(data: &Path) -> Result<Self, Error> {
        let failed = |what: &str| Error::Unavailable(format!("the server to be measured {what}"));
        let program = std::env::current_exe().map_err(|_| failed("is nowhere to be found"))?;
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"])
            .arg(data)
            .env_remove("SAYSO_STORE")
            .env_remove("SAYSO_POLL_ONLY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|_| failed("could not be started"))?;
        let process = child.id().ok_or_else(|| failed("ended at once"))?;
        let out = child.stdout.take().ok_or_else(|| failed("says nothing"))?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await.map_err(|_| failed("says nothing"))?;
        let Listening { listening } = serde_json::from_str(&line).map_err(|_| failed("does not listen"))?;
        let address = listening.trim_start_matches("http://").to_owned();
        Ok(Self { child, address, process })
    }

    /// A connection as the agent.
    pub async fn agent(&self, credentials: &Credentials) -> Result<Connection, Error> {
        Connection::open(&self.address, &credentials.agent).await
    }

    /// A connection as the person.
    pub async fn person(&self, credentials: &Credentials) -> Result<Connection, Error> {
        Connection::open(&self.address, &credentials.person).await
    }

    /// Its CPU time so far.
    pub fn cpu_time(&self) -> Result<std::time::Duration, Error> {
        process::cpu_time(self.process)
    }

    /// Its memory now.
    pub fn resident_bytes(&self) -> Result<u64, Error> {
        process::resident_bytes(self.process)
    }

    /// Ends it as `kill -9` does, without a chance to put anything in order.
    pub async fn kill(mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|_| Error::Unavailable("the measured server would not end".to_owned()))
    }
}
