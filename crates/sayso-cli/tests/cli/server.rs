//! `sayso serve` as a process, and plain requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::Folder;

/// A server on a free port.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(folder: &Folder) -> Self {
        Self::start_at(folder, "127.0.0.1:0")
    }

    pub fn start_at(folder: &Folder, listen: &str) -> Self {
        Self::start_as(folder.command(&["serve", "--listen", listen, "--json"]))
    }

    /// Starts `sayso serve --json` as this command has it.
    pub fn start_as(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn stop(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Server {
    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Of a test that failed; one that ended is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the server answers, head and body.
pub fn get(address: &str, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\n"), "")
}

/// Sends a request of these first lines and this body, and reads to the end.
pub fn send(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len();
    write!(stream, "{head}Host: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
