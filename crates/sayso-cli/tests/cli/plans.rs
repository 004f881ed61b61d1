//! `sayso run`: plans against the sample server `shipping`, and against servers that misbehave.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Ended;

/// A call of the tool that asks where to ship to, up to its first step.
const BOOK: &str = "[[operation]]\ntool = \"book_shipment\"\narguments = { item = \"kettle\" }\n";
const STEP: &str = "[[operation.plan]]\n";

/// Starts a plan from standard input, in an environment without a home or a data folder.
fn start_plan(plan: &str, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["run", "--plan", "-"]).args(args).env_remove("HOME").env_remove("SAYSO_DATA");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(plan.as_bytes()).unwrap();
    child
}

fn run_plan(plan: &str, args: &[&str]) -> Ended {
    let output = start_plan(plan, args).wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Operations against the sample server.
fn run_shipping(operations: &str, args: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_sayso");
    run_plan(&format!("[server]\ncommand = [{program:?}, \"demo\", \"--as-server\"]\n{operations}"), args)
}

/// A server that is connected to and has the tool `t`; what it does when that is called is `script`, in the shell.
fn scripted(script: &str, operations: &str) -> String {
    let connect = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'; read l; read l; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}'; read l"#;
    format!("[server]\ncommand = [\"sh\", \"-c\", '''{connect}; {script}''']\n{operations}")
}

#[test]
fn a_plan_that_holds_passes_and_says_what_was_asked_and_answered() {
    let operations = format!(
        "{BOOK}expect_text = \"Booked: one kettle to 1 Main Street, Pune\"\n{STEP}expect = \"form\"\nmessage = \"kettle\"\n\
         schema = {{ properties = {{ street = {{ minLength = 3 }} }} }}\naccept = {{ street = \"1 Main Street\", city = \"Pune\" }}\n\
         [[operation]]\ntool = \"quote_shipment\"\nexpect_text = \"12.50\"\n\
         {BOOK}expect_text = \"was declined\"\n{STEP}expect = \"form\"\ndecline = \"not this week\"\n\
         {BOOK}expect_text = \"dismissed\"\n{STEP}maybe = \"url\"\naccept = true\n{STEP}expect = \"form\"\ncancel = true\n"
    );
    let ended = run_shipping(&operations, &[]).expect_code(0);
    let expected = "ok      tool book_shipment (1 question answered)\nok      tool quote_shipment\n\
                    ok      tool book_shipment (1 question answered)\nok      tool book_shipment (1 question answered)\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (expected, ""));

    let json = run_shipping(&operations, &["--json"]).expect_code(0).json();
    assert_eq!(json["passed"], true);
    let booked = &json["operations"][0];
    assert_eq!(booked["elicitations"][0]["request"]["message"], "Where should the kettle be delivered?");
    let filled =
        serde_json::json!({"street": "1 Main Street", "city": "Pune", "service": "standard", "insured": false});
    assert_eq!(booked["elicitations"][0]["response"], serde_json::json!({"action": "accept", "content": filled}));
    assert_eq!(booked["answer"]["is_error"], false);
}

#[test]
fn a_plan_that_does_not_hold_says_what_was_expected_and_what_came() {
    let form = "expect = \"form\"\n";
    for (operations, code, words) in [
        (
            format!("{BOOK}{STEP}{form}accept = {{ street = \"x\", city = \"Pune\" }}\n"),
            "managed_input_invalid",
            "the plan's answer to a form \"Where should the kettle be delivered?\" does not fit: \
             /content/street must be at least 3 characters",
        ),
        (
            BOOK.to_owned(),
            "elicitation_expectation_failed",
            "nobody expected a form \"Where should the kettle be delivered?\"; nothing more was expected",
        ),
        (
            format!("{BOOK}{STEP}{form}message = \"teapot\"\ncancel = true\n"),
            "elicitation_expectation_failed",
            "expected was a form whose message contains \"teapot\"",
        ),
        (
            format!("{BOOK}{STEP}{form}cancel = true\n{STEP}expect = \"url\"\naccept = true\n"),
            "elicitation_expectation_failed",
            "consent to a URL was expected and did not come",
        ),
        (
            format!(
                "{BOOK}{STEP}one_of = [{{ expect = \"form\", cancel = true }}, {{ expect = \"form\", decline = true }}]\n"
            ),
            "elicitation_expectation_failed",
            "the plan is ambiguous: ",
        ),
        (format!("{BOOK}round_limit = 0\n{STEP}{form}cancel = true\n"), "elicitation_round_limit", "limit of 0 rounds"),
        (
            format!("{BOOK}expect_error = true\n{STEP}{form}cancel = true\n"),
            "answer_expectation_failed",
            "an error was expected, and it answered: Not booked: the question was dismissed.",
        ),
        (
            "[[operation]]\ntool = \"quote_shipment\"\nexpect_text = \"free\"\n".to_owned(),
            "answer_expectation_failed",
            "\"free\" was expected in the answer, which was: Shipping one parcel costs 12.50 EUR.",
        ),
        (
            "[[operation]]\ntool = \"ship\"\nexpect_error = true\n".to_owned(),
            "not_found",
            "the server has no tool ship; it has quote_shipment, book_shipment",
        ),
        (
            "[[operation]]\nprompt = \"greeting\"\n".to_owned(),
            "answer_expectation_failed",
            "it answered an error: there is no such method",
        ),
    ] {
        let ended = run_shipping(&operations, &["--json"]).expect_code(10);
        let json = ended.json();
        let failure = &json["operations"][0]["failures"][0];
        assert_eq!((&json["passed"], &failure["code"]), (&false.into(), &code.into()), "{operations}");
        assert!(failure["message"].as_str().unwrap().contains(words), "{words}\n{failure}");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn an_operation_that_was_cut_short_does_not_disturb_the_next() {
    let operations = format!("{BOOK}{BOOK}expect_text = \"dismissed\"\n{STEP}expect = \"form\"\ncancel = true\n");
    let ended = run_shipping(&operations, &[]).expect_code(10);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("FAILED  tool book_shipment: nobody expected a form"), "{lines:?}");
    assert_eq!(lines[1], "ok      tool book_shipment (1 question answered)");
    assert_eq!(ended.stderr, "1 of 2 operations did not pass\n");
}

#[test]
fn a_server_that_ends_or_never_answers_fails_the_operation() {
    let operation = format!("[[operation]]\ntool = \"t\"\n{STEP}expect = \"form\"\ncancel = true\n");
    let exits = run_plan(&scripted("exit 3", &operation), &[]).expect_code(10);
    assert!(exits.stdout.contains("the server ended before it answered: exit status: 3"), "{}", exits.stdout);
    let waits = run_plan(&scripted("read l", &operation), &["--timeout", "0.5"]).expect_code(10);
    let words = "no answer within 0.5 s; a form was expected and did not come";
    assert!(waits.stdout.contains(words), "{}", waits.stdout);
    let missing = run_plan(&format!("[server]\ncommand = [\"/no/such/server\"]\n{operation}"), &[]).expect_code(10);
    assert!(missing.stdout.contains("the server cannot be started"), "{}", missing.stdout);
}

#[test]
fn a_servers_ping_is_answered_and_its_other_requests_are_not_taken() {
    let script = r#"echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read pong; echo '{"jsonrpc":"2.0","id":"r","method":"roots/list"}'; read roots; case "$pong$roots" in *'"result":{}'*-32601*) text=well;; *) text=badly;; esac; echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}}"; read l"#;
    run_plan(&scripted(script, "[[operation]]\ntool = \"t\"\nexpect_text = \"well\"\n"), &[]).expect_code(0);
}

#[test]
fn a_plan_file_that_is_not_valid_starts_nothing_and_names_the_line() {
    let ended = run_plan("[server]\ncommand = [\"server\"]\n[[operation]]\ntol = \"t\"\n", &["--json"]).expect_code(3);
    let problem = ended.problem();
    assert_eq!(problem["code"], "managed_input_invalid");
    assert!(problem["detail"].as_str().unwrap().starts_with("-: line 4: unknown field `tol`"), "{problem}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    let missing = command.args(["run", "--plan", "/no/such/plan.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn an_interrupted_run_lets_its_server_leave() {
    let operation = "[[operation]]\ntool = \"t\"\n";
    let mut child = start_plan(&scripted("echo called >&2; read l; echo left >&2", operation), &[]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "called\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("left\nerror[interrupted]"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A server over HTTP with the tool `t`, for one operation. Gives its URL, and what came once it was told the end.
fn over_http() -> (String, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut came = String::new();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while stream.read_line(&mut head).unwrap() > 2 {}
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let result = |id: u32, result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            let (status, answer) = match () {
                () if body.contains("\"initialize\"") => {
                    ("200 OK\r\nmcp-session-id: s", result(1, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#))
                }
                () if body.contains("tools/list") => ("200 OK", result(2, r#"{"tools":[{"name":"t"}]}"#)),
                () if body.contains("tools/call") => ("200 OK", result(3, r#"{"content":[{"text":"done"}]}"#)),
                () if body.is_empty() => ("405 Method Not Allowed", String::new()),
                () => ("202 Accepted", String::new()),
            };
            let length = answer.len();
            let reply = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
            );
            stream.get_mut().write_all(reply.as_bytes()).unwrap();
            came.push_str(&head);
            if head.starts_with("DELETE") {
                break;
            }
        }
        came
    });
    (url, serving)
}

#[test]
fn a_server_over_http_is_named_by_the_plan_or_the_command_line() {
    let operation = "[[operation]]\ntool = \"t\"\nexpect_text = \"done\"\n";
    let (url, serving) = over_http();
    let server = format!("[server]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer of-the-plan\" }}\n");
    run_plan(&format!("{server}{operation}"), &[]).expect_code(0);
    assert!(serving.join().unwrap().contains("authorization: Bearer of-the-plan"));

    // The command line's server is not sent what belongs to the plan's.
    let (url, serving) = over_http();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let args = ["--url", &url, "--bearer-file", file.to_str().unwrap(), "--json"];
    let ended = run_plan(&format!("{server}{operation}"), &args).expect_code(0);
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("s3cret"));
    let came = serving.join().unwrap();
    assert!(came.contains("authorization: Bearer s3cret") && !came.contains("of-the-plan"), "{came}");
}

#[test]
fn a_plan_without_a_server_needs_one_and_a_url_that_cannot_be_used_is_refused() {
    let operation = "[[operation]]\ntool = \"t\"\n";
    for (args, words) in [
        (&[][..], "the plan names no server"),
        (&["--url", "https://localhost/mcp"][..], "https cannot be spoken"),
        (&["--url", "http://mcp.example.com/"][..], "must be on this machine"),
        (&["--bearer-file", "token"][..], "--url"),
    ] {
        let ended = run_plan(operation, args).expect_code(2);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}
