//! A data folder of the test's own, with the library open on it in this process, as an agent would have it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use sayso::wire::{self, Keyed, NewToken, NewTokenKind, Request, Response};
use sayso::{Ask, Desk as _, Json, Options, People as _, Principal, RoundId, Sayso};
use tokio::runtime::Runtime;

/// What a command ended with.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.stdout, self.stderr))
    }

    /// The problem that `--json` prints on standard error, which then is all there is.
    pub fn problem(&self) -> serde_json::Value {
        assert_eq!(self.stdout, "", "a failed command prints no result");
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {:?}", self.stderr))
    }

    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

pub struct Folder {
    dir: tempfile::TempDir,
    pub runtime: Runtime,
    pub sayso: Sayso,
}

impl Folder {
    pub fn new() -> Self {
        Self::prepared(|_| {})
    }

    /// One whose data folder is there already, as `prepare` leaves it.
    pub fn prepared(prepare: impl FnOnce(&std::path::Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        prepare(&dir.path().join("data"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let options = Options::at(dir.path().join("data")).person(Principal::person("local:test"));
        let sayso = runtime.block_on(Sayso::open(options)).unwrap();
        Self { dir, runtime, sayso }
    }

    /// Closes the library; the folder alone is left.
    pub fn close(self) -> tempfile::TempDir {
        drop(self.sayso);
        self.dir
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A file beside the data folder.
    pub fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A file with a new token.
    pub fn token_file(&self, kind: NewTokenKind, name: &str) -> String {
        let new = NewToken { kind, name: name.to_owned() };
        let minted = self.runtime.block_on(self.sayso.new_token(self.sayso.person(), new)).unwrap();
        let path = self.file(&format!("{name}.token"), &minted.token.secret.unwrap(), 0o600);
        path.to_str().unwrap().to_owned()
    }

    /// Asks, as the agent `booking`.
    pub fn ask(&self, requests: &[(&str, Request)]) -> wire::Round {
        let requests = requests.iter().map(|(key, request)| ((*key).to_owned(), request.clone())).collect();
        let ask = Ask { requests: Keyed(requests), server: Some("shipping".to_owned()), ..Ask::default() };
        let desk = self.sayso.desk(Principal::agent("booking"));
        self.runtime.block_on(desk.ask(ask, None)).unwrap()
    }

    /// Asks for the one field `street`.
    pub fn ask_street(&self) -> wire::Round {
        let schema =
            r#"{"type":"object","properties":{"street":{"type":"string","minLength":3}},"required":["street"]}"#;
        self.ask(&[("address", form("Where to?", schema))])
    }

    pub fn round(&self, id: RoundId) -> wire::Round {
        self.runtime.block_on(self.sayso.people().show(id)).unwrap()
    }

    /// The answer, as the agent gets it.
    pub fn collect(&self, id: RoundId) -> Keyed<Response> {
        let desk = self.sayso.desk(Principal::agent("booking"));
        self.runtime.block_on(desk.collect(id, "once", Duration::ZERO)).unwrap().responses
    }

    /// The content under `key`, as the agent gets it.
    pub fn content(&self, id: RoundId, key: &str) -> String {
        self.collect(id).get(key).unwrap().content.as_ref().map_or("none", Json::as_str).to_owned()
    }

    pub fn events(&self) -> Vec<&'static str> {
        let events = self.runtime.block_on(self.sayso.events_after(self.sayso.person(), 0)).unwrap();
        events.iter().map(|event| event.event.body.name()).collect()
    }

    /// The command on this folder, with nothing else of the test's environment that it would heed.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(args).env("SAYSO_DATA", self.data()).env("NO_COLOR", "1").env("TERM", "xterm");
        command
    }

    /// Runs it without any terminal, as a script or an agent does.
    pub fn script(&self, args: &[&str]) -> Ended {
        self.script_with(args, "")
    }

    /// As [`Folder::script`], with a text on standard input.
    pub fn script_with(&self, args: &[&str], stdin: &str) -> Ended {
        use std::io::Write as _;
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that refuses before it reads closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn form(message: &str, schema: &str) -> Request {
    Request::form(message, Json::parse(schema).unwrap())
}

pub fn request(text: &str) -> Request {
    serde_json::from_str(text).unwrap()
}
