//! Many processes, one round, one winner.

use std::process::Stdio;

use sayso::Status;
use sayso::wire::NewTokenKind;

use crate::folder::Folder;

const CONTENDERS: usize = 50;

#[test]
fn of_fifty_processes_one_wins_and_the_others_are_told_who() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    let token = folder.token_file(NewTokenKind::Person, "ada");
    let start = |at: usize| {
        let (field, key) = (format!("street=number {at}"), format!("key-{at}"));
        folder
            .command(&["answer", &id, "--field", &field, "--key", &key, "--token-file", &token, "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let contenders: Vec<_> = (0..CONTENDERS).map(start).collect();
    let outputs: Vec<_> = contenders.into_iter().map(|child| child.wait_with_output().unwrap()).collect();

    let winners: Vec<usize> = (0..CONTENDERS).filter(|at| outputs[*at].status.success()).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let answered = folder.round(round.round_id).answered.unwrap();
    for output in outputs.iter().filter(|output| !output.status.success()) {
        assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
        let problem: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(problem["winner"]["principal"], "person ada");
        assert_eq!(problem["winner"]["at"], answered.at.to_string());
    }
    assert_eq!(folder.round(round.round_id).status, Status::ResponseValidated);
    let won = format!(r#"{{"street":"number {}"}}"#, winners[0]);
    assert_eq!(folder.content(round.round_id, "address"), won);
}
