//! Who may do what: the local credential at a terminal, tokens elsewhere.

use std::process::Stdio;

use sayso::Status;
use sayso::wire::NewTokenKind;

use crate::folder::Folder;
use crate::terminal::{Terminal, person};

#[test]
fn without_a_terminal_nothing_is_done_and_nothing_changes() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    let before = folder.events();
    for args in [
        &["answer", &id, "--field", "street=1 Main Street"][..],
        &["answer", &id, "--json", "-"],
        &["answer", &id],
        &["list"],
        &["show", &id],
        &["watch", "--once"],
        &["token", "new", "--kind", "person", "--name", "me"],
        &["token", "list"],
        &["login"],
    ] {
        let ended = folder.script_with(args, r#"{"address":{"action":"cancel"}}"#).expect_code(6);
        assert_eq!(ended.stdout, "", "{args:?}");
        if args.contains(&"--json") {
            assert_eq!(ended.problem()["code"], "unauthenticated");
            continue;
        }
        assert!(ended.stderr.contains("error[unauthenticated]"), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("--token-file") && ended.stderr.contains("docs/security.md"));
    }
    assert_eq!(folder.events(), before);
    assert_eq!(folder.round(round.round_id), round);
}

#[test]
fn a_terminal_on_one_side_only_is_not_enough_except_for_an_answer_from_a_pipe() {
    let folder = Folder::new();
    let id = folder.ask_street().round_id.to_string();
    let piped = || Some(Stdio::from(std::fs::File::open("/dev/null").unwrap()));
    let ended = Terminal::start(&folder, &["list"], piped(), Some(Stdio::piped())).end();
    ended.expect_code(6);

    let answer = folder.file("answer.json", r#"{"address":{"action":"decline","reason":"no"}}"#, 0o600);
    let stdin = Stdio::from(std::fs::File::open(answer).unwrap());
    let ended = Terminal::start(&folder, &["answer", &id, "--json", "-"], Some(stdin), Some(Stdio::piped())).end();
    assert_eq!(ended.expect_code(0).json()["answered"]["channel"], "cli");
}

#[test]
fn the_owner_at_a_terminal_answers_and_the_record_says_who() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let ended = person(&folder, &["answer", &round.round_id.to_string(), "--field", "street=1 Main Street"]);
    assert!(ended.expect_code(0).stdout.contains("accept accepted at"));
    let answered = folder.round(round.round_id).answered.unwrap();
    assert!(answered.principal.to_string().starts_with("person local:"), "{}", answered.principal);
    assert_eq!(folder.content(round.round_id, "address"), r#"{"street":"1 Main Street"}"#);
}

#[test]
fn a_persons_token_answers_without_a_terminal_and_an_agents_does_not() {
    let folder = Folder::new();
    let round = folder.ask_street();
    let id = round.round_id.to_string();
    let agent = folder.token_file(NewTokenKind::Agent, "booking");
    let refused = folder.script(&["answer", &id, "--field", "street=Elm", "--token-file", &agent, "--json"]);
    assert_eq!(refused.expect_code(6).problem()["code"], "forbidden");
    assert_eq!(folder.round(round.round_id).status, Status::Pending);
    // It sees what it asked, and no answer's values.
    let seen = folder.script(&["show", &id, "--token-file", &agent, "--json"]).expect_code(0);
    assert_eq!(seen.json()["round_id"], id.as_str());

    let ada = folder.token_file(NewTokenKind::Person, "ada");
    let done = folder.script(&["answer", &id, "--field", "street=Elm", "--token-file", &ada, "--json"]);
    assert_eq!(done.expect_code(0).json()["answered"]["principal"], "person ada");
    let shown = folder.script(&["show", &id, "--token-file", &agent]).expect_code(0);
    assert!(!shown.stdout.contains("Elm"), "{}", shown.stdout);
    let shown = folder.script(&["show", &id, "--token-file", &agent, "--answer", "--json"]).expect_code(0);
    assert_eq!(shown.json()["redacted"], true);
    let shown = folder.script(&["show", &id, "--token-file", &ada]).expect_code(0);
    assert!(shown.stdout.contains("Elm"));
}

#[test]
fn a_token_file_is_readable_for_its_owner_alone_and_holds_a_known_token() {
    let folder = Folder::new();
    let file = folder.file("open.token", "sayso_person_00", 0o644);
    let ended = folder.script(&["list", "--token-file", file.to_str().unwrap()]).expect_code(6);
    assert!(ended.stderr.contains("others can read") && ended.stderr.contains("chmod 600"), "{}", ended.stderr);
    let file = folder.file("unknown.token", "sayso_person_00", 0o600);
    let ended = folder.script(&["list", "--token-file", file.to_str().unwrap(), "--json"]).expect_code(6);
    assert_eq!(ended.problem()["code"], "unauthenticated");
    let ended = folder.script(&["list", "--token-file", "/nonexistent/token"]).expect_code(6);
    assert!(ended.stderr.contains("cannot be read"), "{}", ended.stderr);
}

#[test]
fn a_token_is_made_listed_and_revoked_and_its_secret_is_shown_once() {
    let folder = Folder::new();
    let made = person(&folder, &["token", "new", "--kind", "person", "--name", "ada"]).expect_code(0);
    let secret = made.stdout.trim();
    assert!(secret.starts_with("sayso_person_") && made.stdout.lines().count() == 1, "{}", made.stdout);
    let file = folder.file("ada.token", secret, 0o600);
    let file = file.to_str().unwrap();
    folder.script(&["list", "--token-file", file]).expect_code(0);

    let listed = person(&folder, &["token", "list", "--json"]).expect_code(0);
    assert!(!listed.stdout.contains(secret));
    let page = listed.json();
    assert_eq!(page["tokens"][0]["principal"], "person ada");
    let id = page["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    // A person's token is not the owner's credential.
    folder.script(&["token", "revoke", &id, "--token-file", file]).expect_code(6);
    let revoked = person(&folder, &["token", "revoke", &id, "--json"]).expect_code(0);
    assert!(revoked.json()["revoked_at"].is_string());
    folder.script(&["list", "--token-file", file]).expect_code(6);

    let json = person(&folder, &["token", "new", "--kind", "agent", "--name", "bot", "--json"]).expect_code(0).json();
    assert!(json["secret"].as_str().unwrap().starts_with("sayso_agent_"));
    person(&folder, &["token", "revoke", "tok_nonsense"]).expect_code(3);
    person(&folder, &["token", "new", "--kind", "agent", "--name", "local:root"]).expect_code(3);
}

#[test]
fn login_prints_a_link_that_works_once() {
    let folder = Folder::new();
    let link = person(&folder, &["login", "--url", "http://127.0.0.1:9/"]).expect_code(0);
    let secret = link.stdout.trim().strip_prefix("http://127.0.0.1:9/login?token=").unwrap();
    folder.runtime.block_on(folder.sayso.use_login(secret)).unwrap();
    assert!(folder.runtime.block_on(folder.sayso.use_login(secret)).is_err());
    let json = person(&folder, &["login", "--json"]).expect_code(0).json();
    assert!(json["expires_at"].is_string());
    assert!(json["url"].as_str().unwrap().starts_with("http://127.0.0.1:7717/login?token="));
}
