//! `sayso gate` and `sayso grants`: exit codes, who may do what, and that an answer is taken once.

use sayso::People as _;
use sayso::wire::{Answer, NewTokenKind, Response, Round};
use serde_json::Value;

use crate::folder::Folder;
use crate::server::Server;
use crate::terminal::person;

const POLICY: &str = "[[rule]]\nid = \"never\"\ndeny = [\"bank:close\"]\nreason = \"Accounts stay open.\"\n\
    [[rule]]\nid = \"pay\"\nask = [\"bank:*\"]\n[[rule]]\nid = \"read\"\nallow = [\"notes:*\"]\n";

const TRANSFER: [&str; 7] = ["gate", "--tool", "bank:transfer", "--args", r#"{"amount":12}"#, "--session", "s"];

fn with_policy<'a>(args: &[&'a str], file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&["--policy", file]).chain(more).copied().collect()
}

fn answer(folder: &Folder, round: &Value, response: Response) {
    let round: Round = serde_json::from_value(round.clone()).unwrap();
    let answer = Answer { digest: Some(round.digest), ..Answer::one("call", response) };
    folder.runtime.block_on(folder.sayso.people().answer(round.round_id, answer, "k")).unwrap();
}

#[test]
fn the_exit_code_is_the_verdict_and_an_answer_is_taken_once() {
    let folder = Folder::new();
    let file = folder.file("policy.toml", POLICY, 0o600);
    let file = file.to_str().unwrap();
    let allowed = folder.script(&with_policy(&["gate", "--tool", "notes:read"], file, &[])).expect_code(0);
    assert_eq!(allowed.stdout, "allow: This call is allowed.\n");
    let denied = folder.script(&with_policy(&["gate", "--tool", "bank:close"], file, &[])).expect_code(11);
    assert!(denied.stdout.starts_with("deny: The policy denies this call (rule operator never)."), "{}", denied.stdout);

    let gate = || folder.script(&with_policy(&TRANSFER, file, &["--json"]));
    let asked = gate().expect_code(12).json();
    assert_eq!((asked["verdict"].as_str(), asked["rule"].as_str()), (Some("ask"), Some("operator pay")));
    answer(&folder, &asked["round"], Response::consent());
    let allowed = gate().expect_code(0).json();
    assert_eq!(allowed["arguments"].to_string(), r#"{"amount":12}"#);
    let again = gate().expect_code(12).json();
    assert_ne!(again["round"]["round_id"], asked["round"]["round_id"]);
    answer(&folder, &again["round"], Response::decline(Some("too much".to_owned())));
    let waited = folder.script(&with_policy(&TRANSFER, file, &["--wait", "45s"])).expect_code(11);
    assert!(waited.stdout.contains("A person refused this call."), "{}", waited.stdout);

    let dismissed = gate().expect_code(12).json();
    answer(&folder, &dismissed["round"], Response::cancel());
    let nobody = gate().expect_code(5).problem();
    assert!(nobody["detail"].as_str().unwrap().contains("Nobody refused"), "{nobody}");
}

#[test]
fn a_policy_that_cannot_be_read_denies_and_says_so() {
    let folder = Folder::new();
    let file = folder.file("policy.toml", "rule = 1", 0o600);
    let denied = folder.script(&with_policy(&TRANSFER, file.to_str().unwrap(), &[])).expect_code(11);
    assert!(denied.stdout.contains("policy.toml"), "{}", denied.stdout);
}

#[test]
fn a_person_grants_lists_and_takes_back_and_neither_a_script_nor_an_agent_does() {
    let folder = Folder::new();
    let file = folder.file("policy.toml", POLICY, 0o600);
    let file = file.to_str().unwrap();
    let gate = || folder.script(&with_policy(&TRANSFER, file, &["--json"]));
    let asked = gate().expect_code(12).json();
    let round = asked["round"]["round_id"].as_str().unwrap().to_owned();
    let add = ["grants", "add", "--from", round.as_str(), "--pinned", "--uses", "2", "--json"];
    folder.script(&add).expect_code(6);
    let agent = folder.token_file(NewTokenKind::Agent, "shop");
    let as_agent: Vec<_> = add.iter().copied().chain(["--token-file", agent.as_str()]).collect();
    folder.script(&as_agent).expect_code(7);
    folder.script(&["grants", "list", "--token-file", agent.as_str()]).expect_code(6);

    let grant = person(&folder, &add).expect_code(0).json();
    assert_eq!((grant["kind"].as_str(), grant["arguments"]["amount"].as_u64()), (Some("session"), Some(12)));
    let allowed = gate().expect_code(0).json();
    assert_eq!(allowed["grant_id"], grant["grant_id"]);
    let list = person(&folder, &["grants", "list"]).expect_code(0).stdout;
    assert!(list.contains("1 of 2") && list.contains(r#"bank:transfer with {"amount":12} in session s"#), "{list}");
    let id = grant["grant_id"].as_str().unwrap();
    person(&folder, &["grants", "revoke", id]).expect_code(0);
    gate().expect_code(12);
    assert!(person(&folder, &["grants", "list"]).expect_code(0).stdout.contains("revoked"));
    person(&folder, &["grants", "add", "--session", "s", "--tool", "bank:transfer"]).expect_code(0);
    gate().expect_code(0);
    let never = with_policy(&["gate", "--tool", "bank:close", "--session", "s"], file, &[]);
    person(&folder, &["grants", "add", "--session", "s", "--tool", "bank:close"]).expect_code(0);
    folder.script(&never).expect_code(11);
    assert!(folder.events().contains(&"grant_used"));
}

#[test]
fn a_rule_is_drafted_from_a_call_or_written_out_and_the_call_shown_is_granted_once() {
    let folder = Folder::new();
    let file = folder.file("policy.toml", POLICY, 0o600);
    let file = file.to_str().unwrap();
    let gate = |amount: &str, more: &[&str]| {
        let mut args = vec!["gate", "--tool", "bank:transfer", "--args", amount, "--policy", file, "--json"];
        args.extend(more);
        folder.script(&args)
    };
    let asked = gate(r#"{"amount":12,"to":"a"}"#, &[]).expect_code(12).json();
    let round = asked["round"]["round_id"].as_str().unwrap().to_owned();
    let add = ["grants", "add", "--from", &round, "--kind", "rule", "--free", "amount", "--json"];
    let grant = person(&folder, &add).expect_code(0).json();
    assert_eq!((grant["kind"].as_str(), grant["tool"].as_str()), (Some("rule"), Some("bank:transfer")));
    gate(r#"{"amount":13,"to":"a"}"#, &["--session", "t"]).expect_code(0);
    let other = gate(r#"{"amount":13,"to":"b"}"#, &[]).expect_code(12).json();
    let other = other["round"]["round_id"].as_str().unwrap().to_owned();
    person(&folder, &["grants", "add", "--from", &other, "--kind", "once"]).expect_code(0);
    gate(r#"{"amount":13,"to":"b"}"#, &[]).expect_code(0);
    gate(r#"{"amount":13,"to":"b"}"#, &[]).expect_code(12);
    let when = r#"[{"at":"/amount","max":100}]"#;
    person(&folder, &["grants", "add", "--kind", "rule", "--tool", "bank:*", "--when", when, "--uses", "1"])
        .expect_code(0);
    gate(r#"{"amount":100,"to":"c"}"#, &[]).expect_code(0);
    gate(r#"{"amount":101,"to":"c"}"#, &[]).expect_code(12);
    person(&folder, &["grants", "add", "--kind", "rule"]).expect_code(3);
    person(&folder, &["grants", "add", "--kind", "once", "--tool", "a:b"]).expect_code(3);
}

#[test]
fn a_gate_at_a_server_has_the_same_exit_codes_and_the_servers_policy() {
    let folder = Folder::new();
    let file = folder.file("policy.toml", POLICY, 0o600);
    let server = Server::start_as(folder.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--policy",
        file.to_str().unwrap(),
    ]));
    let url = format!("http://{}", server.address);
    let token = folder.token_file(NewTokenKind::Agent, "shop");
    let gate = |tool: &str, more: &[&str]| {
        let mut args = vec!["gate", "--server", &url, "--token-file", &token, "--tool", tool];
        args.extend(more);
        folder.script(&args)
    };
    assert_eq!(gate("notes:read", &[]).expect_code(0).stdout, "allow: This call is allowed.\n");
    assert!(gate("bank:close", &[]).expect_code(11).stdout.contains("rule operator never"));
    let asked = gate("bank:transfer", &["--json"]).expect_code(12).json();
    gate("bank:transfer", &["--wait", "50ms"]).expect_code(12);
    answer(&folder, &asked["round"], Response::consent());
    gate("bank:transfer", &["--wait", "45s"]).expect_code(0);
    let next = gate("bank:transfer", &["--json"]).expect_code(12).json();
    answer(&folder, &next["round"], Response::cancel());
    gate("bank:transfer", &[]).expect_code(5);
    let person = folder.token_file(NewTokenKind::Person, "ada");
    folder.script(&["gate", "--server", &url, "--token-file", &person, "--tool", "notes:read"]).expect_code(6);
    folder.script(&["gate", "--server", &url, "--tool", "notes:read"]).expect_code(2);
    folder.script(&["gate", "--server", "http://127.0.0.1:1", "--token-file", &token, "--tool", "a:b"]).expect_code(8);
}
