//! The commands on a database that processes share, as they work on a data folder.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use sayso::wire::{NewToken, NewTokenKind};
use sayso::{Ask, Desk as _, Options, Principal, Sayso};

use crate::cluster::Cluster;
use crate::folder::{Ended, Folder, request};

/// The command with `store`, and nothing else of the test's environment that it would heed.
fn command(store: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(args).env_remove("SAYSO_DATA").env("SAYSO_STORE", store).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(store: &str, args: &[&str]) -> Ended {
    let output = command(store, args).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_given_by_one_process_wakes_the_agent_in_another() {
    for polls in [false, true] {
        let store = Cluster::shared().fresh().await;
        let options = Options::database(&store).person(Principal::person("local:test"));
        let options = if polls { options.polling() } else { options };
        let sayso = Sayso::open(options).await.unwrap();
        let new = NewToken { kind: NewTokenKind::Person, name: "ada".to_owned() };
        let secret = sayso.new_token(sayso.person(), new).await.unwrap().token.secret.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("ada.token");
        std::fs::write(&token, &secret).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        let token = token.to_str().unwrap();

        let mut serving = command(&store, &["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut serving = serving.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(serving.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");

        let desk = sayso.desk(Principal::agent("booking"));
        let round = desk
            .ask(Ask::one("name", request(r#"{"kind":"text","question":"What is it called?"}"#)), None)
            .await
            .unwrap();
        let id = round.round_id.to_string();
        let mut waiting = Box::pin(desk.collect(round.round_id, "once", Duration::from_secs(45)));
        let extra: &[&str] = if polls { &["--poll-only"] } else { &[] };
        let listed = run(&store, &[&["list", "--token-file", token, "--json"], extra].concat()).expect_code(0);
        assert!(listed.stdout.contains(&id), "{}", listed.stdout);
        let answering = command(&store, &[&["answer", &id, "--text", "Ada", "--token-file", token], extra].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let collected = waiting.as_mut().await.unwrap();
        let content = collected.responses.get("name").unwrap().content.as_ref().unwrap();
        assert!(content.as_str().contains("Ada"));
        assert!(answering.wait_with_output().unwrap().status.success());
        // A server that is killed leaves nothing that another cannot go on with.
        serving.kill().unwrap();
        serving.wait().unwrap();
        assert!(sayso.last_event().await.unwrap() > 0);
    }
}

#[test]
fn a_store_that_is_no_store_is_refused_without_its_password() {
    let folder = Folder::new();
    let data = folder.data();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let both = [&serve[..], &["--data", data.to_str().unwrap()]].concat();
    for (store, args, code) in [
        ("postgres://u:hunter2@h/d", both.as_slice(), 2),
        ("", &serve, 2),
        ("mysql://u:hunter2@h/d", &serve, 3),
        ("postgres://u:hunter2@%2Fnowhere/d", &serve, 8),
    ] {
        let ended = run(store, args).expect_code(code);
        assert!(!ended.stderr.contains("hunter2") && ended.stderr.contains("store"), "{}", ended.stderr);
    }
}
