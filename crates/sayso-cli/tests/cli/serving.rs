//! `sayso serve`.

use rustix::process::Signal;
use sayso::wire::NewTokenKind;
use serde_json::json;

use crate::folder::Folder;
use crate::server::{Server, get, send};
use crate::terminal::person;

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

#[test]
fn an_agent_speaks_mcp_with_it_by_its_token() {
    let folder = Folder::new();
    let mut server = Server::start(&folder);
    let token = std::fs::read_to_string(folder.token_file(NewTokenKind::Agent, "claude")).unwrap();
    let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    .to_string();
    let nobody = send(&server.address, &format!("POST /mcp HTTP/1.1\r\n{types}"), &hello);
    assert!(nobody.starts_with("HTTP/1.1 401"), "{nobody}");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let agent = send(&server.address, &format!("POST /mcp HTTP/1.1\r\n{types}{bearer}"), &hello);
    assert!(agent.starts_with("HTTP/1.1 200") && agent.contains("mcp-session-id: "), "{agent}");
    assert!(agent.contains(r#""serverInfo":{"name":"sayso""#), "{agent}");
    server.stop(Signal::TERM);
}
