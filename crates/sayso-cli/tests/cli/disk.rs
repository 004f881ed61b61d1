//! A disk that is full, and one that can only be read: what is said, that nothing is half done, and that it goes on by
//! itself. The disk is a small tmpfs in a mount namespace of the test's own. Where nobody may mount one, as in a container
//! without privileges, a limit on the size of files takes its place, and what was not tried is said.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, prlimit};
use sayso::wire::NewTokenKind;
use serde_json::{Value, json};

use crate::folder::{Ended, Folder};
use crate::mount::{Accounts, again_in_a_namespace, fill, is_inside, mount, not_tried, unmount};
use crate::server::{Server, get, send};

/// Questions that fill what room SQLite's log has left before the disk is asked for more.
const ASKED_MAX: usize = 400;

/// What stands in for a small disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Mounted,
    Limited,
}

/// Runs `scenario` where a disk may be mounted: in this process if it is there already, else in another.
fn with_a_disk(test: &str, scenario: impl FnOnce(Disk)) {
    if is_inside() {
        scenario(Disk::Mounted);
    } else if !again_in_a_namespace(test, Accounts::Own) {
        scenario(Disk::Limited);
    }
}

/// A data folder on a disk of 3 MB.
fn small(disk: Disk) -> Folder {
    Folder::prepared(|data| {
        if disk == Disk::Mounted {
            fs::create_dir(data).unwrap();
            mount(&["-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs"], data);
        }
    })
}

/// A command that survives a write beyond the limit, as one on a full disk does.
fn limited(command: &Command, blocks: Option<u32>) -> Command {
    let limit = blocks.map_or(String::new(), |blocks| format!("ulimit -S -f {blocks}; "));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("trap '' XFSZ; {limit}exec \"$0\" \"$@\"")).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

impl Disk {
    fn serve(self, folder: &Folder) -> Server {
        let command = folder.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        Server::start_as(if self == Self::Limited { limited(&command, None) } else { command })
    }

    /// From now on the disk takes no more, but for what was reserved before.
    fn fill(self, folder: &Folder, server: &Server) {
        if self == Self::Limited {
            let size = |name: &str| fs::metadata(folder.data().join(name)).map_or(0, |found| found.len());
            let largest = ["sayso.sqlite", "sayso.sqlite-wal"].into_iter().map(size).max();
            prlimit(Some(server.pid()), Resource::Fsize, Rlimit { current: largest, maximum: None }).unwrap();
            return;
        }
        fill(&Self::ballast(folder));
    }

    fn free(self, folder: &Folder, server: &Server) {
        if self == Self::Limited {
            prlimit(Some(server.pid()), Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
            return;
        }
        fs::remove_file(Self::ballast(folder)).unwrap();
    }

    fn ballast(folder: &Folder) -> PathBuf {
        folder.data().join("ballast")
    }

    /// A command on the full disk.
    fn script(self, folder: &Folder, args: &[&str]) -> Ended {
        if self == Self::Mounted {
            return folder.script(args);
        }
        let output = limited(&folder.command(args), Some(0)).stdin(Stdio::null()).output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// An agent at the server.
struct Agent<'a> {
    server: &'a Server,
    secret: String,
}

impl Agent<'_> {
    fn post(&self, path: &str, key: &str, body: &Value) -> (String, Value) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {key}\r\n",
            self.secret
        );
        let answer = send(&self.server.address, &head, &body.to_string());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().to_owned();
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
    }

    fn ask(&self, n: usize) -> (String, Value) {
        let question = format!("{n}: {}", "What is it called? ".repeat(500));
        let body = json!({"requests": {"name": {"kind": "text", "question": question}}});
        self.post("/v1/rounds", &format!("ask-{n}"), &body)
    }
}

fn is_about_the_disk(text: &str) -> bool {
    text.contains("the disk is full") || text.contains("the disk answered with an error")
}

#[test]
fn on_a_full_disk_nothing_is_half_done_and_it_goes_on_once_there_is_room() {
    const TEST: &str = "disk::on_a_full_disk_nothing_is_half_done_and_it_goes_on_once_there_is_room";
    with_a_disk(TEST, |disk| {
        if disk == Disk::Limited {
            not_tried(&format!("{TEST} (a limit on the size of files took the disk's place)"), Accounts::Own);
        }
        let folder = small(disk);
        let (agent, person) =
            (folder.token_file(NewTokenKind::Agent, "booking"), folder.token_file(NewTokenKind::Person, "ada"));
        let server = disk.serve(&folder);
        let agent = Agent { server: &server, secret: fs::read_to_string(agent).unwrap() };
        let (status, asked) = agent.ask(0);
        assert_eq!(status, "201", "{asked}");
        let id = asked["round_id"].as_str().unwrap().to_owned();

        disk.fill(&folder, &server);
        let mut acknowledged = 1;
        let refused = (1..ASKED_MAX).find_map(|n| match agent.ask(n) {
            (status, _) if status == "201" => {
                acknowledged += 1;
                None
            }
            refused => Some(refused),
        });
        let (status, problem) = refused.expect("the disk is full at last");
        assert_eq!((status.as_str(), problem["code"].as_str()), ("503", Some("unavailable")), "{problem}");
        assert!(is_about_the_disk(problem["detail"].as_str().unwrap()), "{problem}");

        // People are told as well, and nothing of their answer is kept.
        let answer = ["answer", &id, "--text", "hunter2", "--token-file", &person];
        let refused = disk.script(&folder, &answer).expect_code(8);
        assert!(is_about_the_disk(&refused.stderr) && !refused.stderr.contains("hunter2"), "{}", refused.stderr);
        // Reading goes on.
        assert!(get(&server.address, "/healthz").starts_with("HTTP/1.1 200"));
        let listed =
            folder.script(&["list", "--limit", "100", "--token-file", &person, "--json"]).expect_code(0).json();
        assert_eq!(listed["rounds"].as_array().unwrap().len(), acknowledged.min(100));
        let shown = folder.script(&["show", &id, "--token-file", &person, "--json"]).expect_code(0).json();
        assert_eq!((shown["status"].as_str(), &shown["answered"]), (Some("pending"), &Value::Null));
        let looked = folder.script(&["doctor", "--json"]).expect_code(0).json();
        let chain = looked["findings"].as_array().unwrap().iter().find(|one| one["check"] == "chain").unwrap();
        assert_eq!(chain["severity"], "ok");

        // The same process, asked again in the same words, goes on.
        disk.free(&folder, &server);
        let (status, again) = agent.ask(acknowledged);
        assert_eq!(status, "201", "{again}");
        folder.script(&answer).expect_code(0);
        let path = format!("/v1/rounds/{id}/collect");
        let (status, collected) = agent.post(&path, "once", &Value::Null);
        assert_eq!(status, "200", "{collected}");
        assert_eq!(collected["responses"]["name"]["content"]["answer"][0], "hunter2");
        let looked = folder.script(&["doctor", "--json"]).expect_code(0).json();
        let rounds = looked["findings"].as_array().unwrap().iter().find(|one| one["check"] == "rounds").unwrap();
        let counted = format!("{}: {acknowledged} pending, 1 resolved", acknowledged + 1);
        assert_eq!(rounds["detail"], counted, "all that was acknowledged, and nothing else");
    });
}

#[test]
fn on_a_disk_that_can_only_be_read_it_says_so_and_goes_on_once_it_can_be_written() {
    const TEST: &str = "disk::on_a_disk_that_can_only_be_read_it_says_so_and_goes_on_once_it_can_be_written";
    with_a_disk(TEST, |disk| {
        if disk == Disk::Limited {
            return not_tried(TEST, Accounts::Own);
        }
        let folder = small(disk);
        let person = folder.token_file(NewTokenKind::Person, "ada");
        let id = folder.ask_street().round_id.to_string();
        let secret = fs::read_to_string(&person).unwrap();
        let dir = folder.close();
        let data = dir.path().join("data");
        // The disk is a file system of its own: the token lies beside it.
        fs::write(&person, secret).unwrap();
        let run = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
            command.args(args).args(["--token-file", &person]).env("SAYSO_DATA", &data).env("NO_COLOR", "1");
            let output = command.stdin(Stdio::null()).output().unwrap();
            Ended {
                code: output.status.code().unwrap_or(-1),
                stdout: String::from_utf8(output.stdout).unwrap(),
                stderr: String::from_utf8(output.stderr).unwrap(),
            }
        };
        let file = data.join("sayso.sqlite");
        let before = fs::read(&file).unwrap();
        mount(&["-o", "remount,ro"], &data);
        for args in [&["answer", &id, "--field", "street=Elm"][..], &["list"], &["serve", "--listen", "127.0.0.1:0"]] {
            let refused = run(args).expect_code(8);
            assert!(refused.stderr.contains("cannot be written"), "{args:?}: {}", refused.stderr);
        }
        let looked = run(&["doctor"]).expect_code(0);
        assert!(looked.stdout.contains("1 pending"), "{}", looked.stdout);
        assert!(fs::read(&file).unwrap() == before, "not a byte has changed");
        mount(&["-o", "remount,rw"], &data);
        run(&["answer", &id, "--field", "street=Elm"]).expect_code(0);
        assert!(run(&["show", &id, "--json"]).expect_code(0).stdout.contains("response_validated"));
        unmount(&data);
    });
}
