//! `sayso watch`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use sayso::wire::{NewTokenKind, StoredEvent};
use sayso::{Desk as _, PolicyRuling, Principal, Step};
use serde_json::Value;

use crate::folder::Folder;
use crate::terminal::{Terminal, person};

#[test]
fn what_is_asked_and_what_becomes_of_it_is_a_line_each_until_ctrl_c() {
    let folder = Folder::new();
    let mut terminal = Terminal::open(&folder, &["watch"]);
    terminal.expect("Watching.");
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    terminal.expect(&id).expect("asked     form  shipping · booking  Where to?");
    person(&folder, &["answer", &id, "--field", "street=ab"]).expect_code(3);
    terminal.expect("refused   an answer by person local:").expect("managed_input_invalid");
    person(&folder, &["answer", &id, "--field", "street=Elm"]).expect_code(0);
    terminal.expect("answered  by person local:").expect("through cli");
    folder.collect(round.round_id);
    terminal.expect("resolved");
    let pid = Pid::from_child(terminal.child());
    kill_process(pid, Signal::INT).unwrap();
    let ended = terminal.end().expect_code(0);
    assert!(!ended.stderr.contains("Elm"), "values are in no event");
}

#[test]
fn json_events_are_the_wires_one_to_a_line_from_any_place_on() {
    let folder = Folder::new();
    let token = folder.token_file(NewTokenKind::Person, "ada");
    let round = folder.ask_street();
    let mut child = folder
        .command(&["watch", "--since", "0", "--json", "--token-file", &token])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let event: StoredEvent = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((event.round_id, event.body.name()), (Some(round.round_id), "round_created"));
    let people = folder.sayso.people();
    folder.runtime.block_on(sayso::People::cancel(&people, round.execution_id)).unwrap();
    let event: StoredEvent = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(event.body.name(), "failed");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_the_policy_denies_is_a_line_too() {
    let folder = Folder::new();
    let mut terminal = Terminal::open(&folder, &["watch"]);
    terminal.expect("Watching.");
    let ruling = PolicyRuling { tool: "bank:close".to_owned(), approved: false, rule: "operator never".to_owned() };
    let desk = folder.sayso.desk(Principal::agent("booking"));
    folder.runtime.block_on(desk.settle(vec![Step::Ruled(ruling)])).unwrap();
    terminal.expect("denied    bank:close for agent booking by the policy: operator never");
    kill_process(Pid::from_child(terminal.child()), Signal::INT).unwrap();
    terminal.end().expect_code(0);
}

#[test]
fn once_prints_the_oldest_pending_round_or_waits_for_one_or_gives_up() {
    let folder = Folder::new();
    let late = person(&folder, &["watch", "--once", "--wait", "1", "--json"]).expect_code(9);
    assert!(late.stderr.contains("operation_timeout"), "{}", late.stderr);

    let token = folder.token_file(NewTokenKind::Person, "ada");
    let waiting = folder
        .command(&["watch", "--once", "--json", "--token-file", &token])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let first = folder.ask_street();
    let output = waiting.wait_with_output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["round_id"], first.round_id.to_string());

    folder.ask_street();
    let now = person(&folder, &["watch", "--once", "--json"]).expect_code(0).json();
    assert_eq!(now["round_id"], first.round_id.to_string());
}
