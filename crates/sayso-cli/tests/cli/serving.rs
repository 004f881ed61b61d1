//! `sayso serve`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::Folder;
use crate::terminal::person;

/// A server on a free port.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Folder) -> Self {
        let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let address = listening["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    fn stop(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Of a test that failed; one that ended is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_takes_a_free_port_answers_and_stops_on_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = Folder::new();
        let mut server = Server::start(&folder);
        assert!(get(&server.address, "/healthz").starts_with("HTTP/1.1 200"), "{}", server.address);
        // Commands work on the same folder while it runs.
        let round = folder.ask_street();
        person(&folder, &["answer", &round.round_id.to_string(), "--field", "street=Elm"]).expect_code(0);
        server.stop(signal);
    }
}

#[test]
fn a_link_from_login_opens_the_inbox() {
    let folder = Folder::new();
    let mut server = Server::start(&folder);
    let address = &server.address;
    let link = person(&folder, &["login", "--url", &format!("http://{address}")]).expect_code(0);
    let path = link.stdout.trim().strip_prefix(&format!("http://{address}")).unwrap().to_owned();
    let page = get(address, &path);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Log in"), "{page}");
    server.stop(Signal::TERM);
}

#[test]
fn an_address_that_others_can_reach_or_that_is_taken_is_refused() {
    let folder = Folder::new();
    let open = folder.script(&["serve", "--listen", "0.0.0.0:0"]).expect_code(2);
    assert!(open.stderr.contains("--listen-anywhere"), "{}", open.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = folder.script(&["serve", "--listen", &address]).expect_code(8);
    assert!(ended.stderr.contains("is in use") && ended.stderr.contains("--listen 127.0.0.1:0"), "{}", ended.stderr);
}
