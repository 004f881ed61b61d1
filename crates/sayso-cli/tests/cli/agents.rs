//! `sayso agent`: real processes that are killed while a run waits and while it goes on, others that go on with it, and a
//! file that counts how often the tool ran.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso::clock::{Clock as _, ManualClock, SystemClock};
use sayso::wire::Response;
use sayso::{Answer, Json, Options, People as _, Principal, RoundId, Sayso, UnixMs, limits};
use sayso_agents::native::{AgentRuntime, ChatEndpoint, RunOutcome};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::folder::Ended;

/// A model that says these messages, one after the other.
struct Model {
    url: String,
    told: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    fn start(messages: impl IntoIterator<Item = Value>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let (mut messages, record): (VecDeque<_>, _) = (messages.into_iter().collect(), told.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while stream.read_line(&mut head).unwrap_or(0) > 2 {}
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
                let mut body = vec![0; length];
                if stream.read_exact(&mut body).is_err() {
                    continue;
                }
                let mut asked: Value = serde_json::from_slice(&body).unwrap();
                asked["bearer"] = json!(head.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")));
                record.lock().unwrap().push(asked);
                let message = messages.pop_front().unwrap_or_else(|| json!({"content": "Nothing more."}));
                let text = json!({"choices": [{"message": message}]}).to_string();
                let length = text.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
                let _ = write!(stream.get_mut(), "{head}content-length: {length}\r\n\r\n{text}");
            }
        });
        Self { url, told }
    }

    fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap().clone()
    }
}

fn calls(id: &str, path: &str) -> Value {
    let function = json!({"name": "files__write", "arguments": json!({ "path": path }).to_string()});
    json!({"content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn says(text: &str) -> Value {
    json!({ "content": text })
}

/// An MCP server, as a program, that writes a line into a file for each call, and with `hangs` answers none.
fn server(folder: &Path, hangs: bool) -> PathBuf {
    let file = folder.join("written");
    let answers = if hangs { ": " } else { r#"say '{"content":[{"type":"text","text":"It is written."}]}' "# };
    let script = format!(
        r#"#!/bin/sh
say() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while read -r l; do
  id=$(printf '%s' "$l" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$l" in
    *'"initialize"'*) say '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"files","version":"1"}}}}' ;;
    *'"tools/list"'*) say '{{"tools":[{{"name":"write","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}}}}}}}}]}}' ;;
    *'"tools/call"'*) printf '%s\n' "$l" >> '{}'; {answers};;
  esac
done
"#,
        file.display()
    );
    let program = folder.join(if hangs { "hanging-server" } else { "server" });
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    program
}

struct Place {
    folder: tempfile::TempDir,
    model: Model,
    store: Option<String>,
}

impl Place {
    fn new(messages: impl IntoIterator<Item = Value>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), model: Model::start(messages), store: None }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn options(&self) -> Options {
        let options = match &self.store {
            Some(store) => Options::database(store),
            None => Options::at(self.data()),
        };
        options.person(Principal::person("local:test"))
    }

    /// `sayso agent …` with a server that answers calls, or hangs in them.
    fn command(&self, args: &[&str], hangs: bool) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        let server = format!("files={}", server(self.folder.path(), hangs).display());
        command.arg("agent").args(args).args(["--endpoint", &self.model.url, "--model", "scripted", "--json"]);
        command.args(["--server", &server, "--name", "tidy"]).env("SAYSO_MODEL_KEY", "s3cret").env("NO_COLOR", "1");
        match &self.store {
            Some(store) => command.env_remove("SAYSO_DATA").env("SAYSO_STORE", store),
            None => command.env_remove("SAYSO_STORE").env("SAYSO_DATA", self.data()),
        };
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        let output = self.command(args, false).output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn written(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("written")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the tool has run so often.
    fn until_written(&self, times: usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut look = tokio::time::interval(Duration::from_millis(10));
            while self.written().len() < times {
                look.tick().await;
            }
        });
    }

    async fn answer(&self, round: &str, key: &str, response: Response) {
        let sayso = Sayso::open(self.options()).await.unwrap();
        let round = RoundId::parse(round).unwrap();
        let digest = Some(sayso.people().show(round).await.unwrap().digest);
        let answer = Answer { digest, ..Answer::one(key, response) };
        sayso.people().answer(round, answer, "inbox").await.unwrap();
    }

    fn answered(&self, round: &Value, key: &str, response: Response) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.answer(round.as_str().unwrap(), key, response));
    }
}

/// As `kill -9` does.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_mode_guarded_without_a_policy_is_refused_before_anything_starts() {
    let place = Place::new([]);
    for args in [&["run", "--prompt", "Tidy.", "--mode", "guarded"][..], &["resume", "--mode", "guarded"]] {
        let refused = place.run(args).expect_code(2);
        assert!(refused.stderr.contains("--mode guarded needs a policy"), "{}", refused.stderr);
    }
    assert!(place.model.told().is_empty() && !place.data().exists());
}

#[test]
fn a_run_waits_without_a_process_and_another_goes_on_with_it() {
    let place = Place::new([calls("c1", "a"), calls("c1", "b"), says("Tidy.")]);
    let first = place.run(&["run", "--prompt", "Tidy the notes."]).expect_code(12);
    assert!(first.stderr.contains("sayso agent resume exe_") && !first.stderr.contains("s3cret"), "{}", first.stderr);
    let first = first.json();
    assert_eq!(first["outcome"], "awaiting_approval");
    let (paused, args) = (&first["paused"][0], json!({"path": "a"}));
    assert_eq!((&paused["tool_path"], &paused["args"]), (&json!("files:write"), &args));
    assert_eq!(paused["execution_id"], first["execution_id"]);
    assert_eq!(place.run(&["resume"]).expect_code(0).json(), json!({"runs": []}));
    let execution = first["execution_id"].as_str().unwrap();
    assert_eq!(place.run(&["resume", execution]).expect_code(12).json()["round_id"], first["round_id"]);

    let edited = Response::accept(Json::parse(r#"{"arguments":{"path":"elsewhere"}}"#).unwrap());
    place.answered(&first["round_id"], "c1", edited);
    let second = place.run(&["resume"]).expect_code(12).json();
    assert_eq!(
        (&second["runs"][0]["execution_id"], second["runs"].as_array().unwrap().len()),
        (&first["execution_id"], 1)
    );
    assert!(place.written().len() == 1 && place.written()[0].contains("elsewhere"), "{:?}", place.written());
    place.answered(&second["runs"][0]["round_id"], "c1", Response::decline(Some("Not b.".to_owned())));
    let done = place.run(&["resume", execution]).expect_code(0).json();
    assert_eq!(
        (&done["outcome"], &done["text"], &done["iterations"]),
        (&json!("completed"), &json!("Tidy."), &json!(3))
    );
    assert_eq!(place.written().len(), 1);
    let told = place.model.told();
    assert_eq!((told[0]["bearer"].as_str(), told.len()), (Some("s3cret"), 3));
    let last = told[2]["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(last["content"].as_str().unwrap().contains("Not b."), "{last}");
}

#[test]
fn killed_while_it_waits_it_loses_nothing() {
    let place = Place::new([calls("c1", "a"), says("Tidy.")]);
    let mut waiting = place.command(&["run", "--prompt", "Tidy.", "--wait"], false);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let round = line.split('`').nth(1).unwrap().strip_prefix("sayso answer ").unwrap().to_owned();
    kill(waiting);
    place.answered(&json!(round), "c1", Response::consent());
    let done = place.run(&["resume"]).expect_code(0).json();
    assert_eq!(done["runs"][0]["text"], "Tidy.");
    assert_eq!(place.written().len(), 1);
}

#[test]
fn killed_while_a_tool_runs_it_never_runs_it_again_and_says_that_it_may_have_run() {
    let place = Place::new([calls("c1", "a"), says("Tidy.")]);
    let first = place.run(&["run", "--prompt", "Tidy."]).expect_code(12).json();
    place.answered(&first["round_id"], "c1", Response::consent());
    let resuming = place.command(&["resume"], true).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    place.until_written(1);
    kill(resuming);
    // As long as its lease may be renewed, somebody is at it.
    let busy = place.run(&["resume", first["execution_id"].as_str().unwrap()]).expect_code(4);
    assert_eq!(busy.problem()["code"], "managed_input_conflict");
    assert_eq!(place.run(&["resume"]).expect_code(0).json(), json!({"runs": []}));
    // For this process the lease has run out at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let UnixMs(now) = SystemClock.now();
        let clock = Arc::new(ManualClock::at(UnixMs(now + 2 * limits::LEASE_MS)));
        let sayso = Sayso::open(place.options().clock(clock)).await.unwrap();
        let model = ChatEndpoint::new(&place.model.url, "scripted", None).unwrap();
        let agent = AgentRuntime::new(&sayso, Principal::agent("agent:tidy"), model);
        let execution = agent.answered().await.unwrap().remove(0);
        agent.resume(execution).await.unwrap()
    });
    assert!(matches!(&ended, RunOutcome::Failed(failure) if failure.code == "recovery_unavailable"), "{ended:?}");
    let after = place.run(&["resume", first["execution_id"].as_str().unwrap()]).expect_code(14).json();
    assert_eq!(after["code"], "recovery_unavailable");
    assert_eq!(place.written().len(), 1, "a write never runs twice");
}

#[test]
fn a_run_suspended_on_one_machine_goes_on_on_another_over_a_database() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(Cluster::shared().fresh());
    let keys = |folder: &Path| {
        let file = folder.join("keys");
        std::fs::write(&file, format!("2026-11 {}\n", "ab".repeat(32))).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let place = Place { store: Some(store), ..Place::new([calls("c1", "a"), says("Tidy.")]) };
    let keys = keys(place.folder.path());
    let first = place.run(&["run", "--prompt", "Tidy.", "--state-keys", &keys]).expect_code(12).json();
    place.answered(&first["round_id"], "c1", Response::consent());
    let refused = place.run(&["resume"]).expect_code(1).json();
    assert_eq!(refused["runs"][0]["code"], "corrupt_suspended_state");
    assert!(refused["runs"][0]["message"].as_str().unwrap().contains("2026-11"), "{refused}");
    let mut watching = place.command(&["resume", "--watch", "--state-keys", &keys], false);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watching.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    kill(watching);
    let done: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&done["outcome"], &done["text"]), (&json!("completed"), &json!("Tidy.")));
    assert_eq!(place.written().len(), 1);
}

#[test]
fn what_cannot_be_run_starts_nothing() {
    let mut place = Place::new([]);
    for (args, code, words) in [
        (&["run", "--prompt", "x", "--tool", "files"][..], 3, "server:name"),
        (&["run", "--prompt", "x", "--state-keys", "/no/such/keys"], 2, "--state-keys"),
        (&["run", "--prompt", "x", "--server", "nothing"], 2, "invalid value"),
        (&["resume", "nonsense"], 3, "must be a run's id"),
        (&["resume", "exe_01JZ0000000000000000000000"], 7, "no such"),
    ] {
        let ended = place.run(args);
        assert!(ended.code == code && ended.stderr.contains(words), "{args:?}: {} {}", ended.code, ended.stderr);
    }
    place.model.url = "https://api.example.com/v1".to_owned();
    let ended = place.run(&["run", "--prompt", "x"]).expect_code(2);
    assert!(ended.stderr.contains("https cannot be spoken here"), "{}", ended.stderr);
    assert!(place.model.told().is_empty() && place.written().is_empty());
}
