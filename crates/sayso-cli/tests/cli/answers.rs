//! Answering by flags and by JSON: what comes out, and what each refusal says.

use sayso::Status;
use sayso::wire::NewTokenKind;
use sayso_core::response::Action;

use crate::folder::{Ended, Folder, form, request};
use crate::terminal::{ESC, Terminal};

/// A folder with a person's token, for commands without a terminal.
struct Scripted {
    folder: Folder,
    token: String,
}

impl Scripted {
    fn new() -> Self {
        let folder = Folder::new();
        let token = folder.token_file(NewTokenKind::Person, "ada");
        Self { folder, token }
    }

    fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> Ended {
        let args: Vec<&str> = ["--token-file", &self.token].into_iter().chain(args.iter().copied()).collect();
        self.folder.script_with(&args, stdin)
    }
}

#[test]
fn fields_are_read_by_their_kind_and_numbers_stay_as_typed() {
    let it = Scripted::new();
    let schema = r#"{"type":"object","properties":{"n":{"type":"number"},"b":{"type":"boolean"},
        "many":{"type":"array","items":{"enum":["a","b"]}},"t":{"type":"string"},"city":{"type":"string","default":"Pune"}}}"#;
    let round = it.folder.ask(&[("f", form("m", schema))]);
    let id = round.round_id.to_string();
    let fields =
        ["--field", "n=1.50", "--field", "b=yes", "--field", "many=a", "--field", "many=b", "--field", "t=-x=y"];
    let args: Vec<&str> = ["answer", &id].into_iter().chain(fields).collect();
    it.run(&args).expect_code(0);
    assert_eq!(
        it.folder.content(round.round_id, "f"),
        r#"{"n":1.50,"b":true,"many":["a","b"],"t":"-x=y","city":"Pune"}"#
    );
}

#[test]
fn an_answer_that_does_not_fit_names_the_field_and_leaves_the_round_pending() {
    let it = Scripted::new();
    let round = it.folder.ask_street();
    let id = round.round_id.to_string();
    let ended = it.run(&["answer", &id, "--field", "street=s3"]).expect_code(3);
    assert!(
        ended.stderr.contains("field /responses/address/content/street: must be at least 3 characters"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("help: ") && !ended.stderr.contains("s3\n"));
    let problem = it.run(&["answer", &id, "--field", "street=s3", "--json"]).expect_code(3).problem();
    assert_eq!(problem["fields"][0]["pointer"], "/responses/address/content/street");
    assert_eq!(problem["round"], id.as_str());
    it.run(&["answer", &id, "--field", "nope=1"]).expect_code(3);
    it.run(&["answer", &id, "--accept"]).expect_code(3);
    it.run(&["answer", &id, "--text", "x"]).expect_code(3);
    assert_eq!(it.folder.round(round.round_id).status, Status::Pending);
}

#[test]
fn a_command_line_that_cannot_be_is_a_usage_error() {
    let it = Scripted::new();
    let id = it.folder.ask_street().round_id.to_string();
    for args in [
        &["answer", &id, "--field", "street"][..],
        &["answer", &id, "--accept", "--decline"],
        &["answer", &id, "--field", "street=Elm", "--cancel"],
        &["answer", &id, "--reason", "no"],
        &["answer", &id, "--accept", "--digest", "abc"],
        &["answer", &id, "--accept", "--json", "-"],
        &["answer", &id],
        &["answer"],
        &["list", "--status", "lost"],
        &["list", "--all", "--status", "failed"],
        &["nonsense"],
    ] {
        it.run(args).expect_code(2);
    }
    assert_eq!(it.run(&["list", "--limit", "0", "--json"]).expect_code(2).problem()["code"], "managed_input_invalid");
}

#[test]
fn json_answers_come_as_a_map_or_whole_from_a_file_or_a_pipe() {
    let it = Scripted::new();
    let round = it.folder.ask_street();
    let map = r#"{"address":{"action":"accept","content":{"street":"1 Main Street"}}}"#;
    let done = it.run_with(&["answer", &round.round_id.to_string(), "--json", "-"], map).expect_code(0);
    assert_eq!(done.json()["status"], "response_validated");

    let round = it.folder.ask_street();
    let whole = format!(r#"{{"digest":"{}","responses":{map}}}"#, round.digest);
    let file = it.folder.file("answer.json", &whole, 0o600);
    it.run(&["answer", &round.round_id.to_string(), "--json", file.to_str().unwrap()]).expect_code(0);

    let id = it.folder.ask_street().round_id.to_string();
    let refused = it.run_with(&["answer", &id, "--json", "-"], r#"{"address":"s3cret"}"#).expect_code(3);
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    assert_eq!(refused.problem()["fields"][0]["pointer"], "/responses/address");
    it.run_with(&["answer", &id, "--json", "-"], "{").expect_code(3);
    it.run(&["answer", &id, "--json", "/nonexistent"]).expect_code(2);
}

#[test]
fn an_approval_needs_the_digest_that_was_shown() {
    let it = Scripted::new();
    let round = it.folder.ask(&[("call", request(r#"{"kind":"approval","tool":"bank:pay","arguments":{"n":1}}"#))]);
    let id = round.round_id.to_string();
    let ended = it.run(&["answer", &id, "--accept"]).expect_code(3);
    assert!(ended.stderr.contains("field /digest") && ended.stderr.contains("--digest"), "{}", ended.stderr);
    let other = format!("sha256:{}", "0".repeat(64));
    let stale = it.run(&["answer", &id, "--accept", "--digest", &other, "--json"]).expect_code(4);
    assert_eq!(stale.problem()["code"], "managed_input_stale");
    it.run(&["answer", &id, "--accept", "--digest", &round.digest.to_string()]).expect_code(0);
    assert_eq!(it.folder.collect(round.round_id).get("call").unwrap().action, Action::Accept);
}

#[test]
fn text_answers_a_choice_by_number_and_a_question_as_typed() {
    let it = Scripted::new();
    let round = it
        .folder
        .ask(&[("q", request(r#"{"kind":"choice","question":"?","options":[{"label":"red"},{"label":"blue"}]}"#))]);
    it.run(&["answer", &round.round_id.to_string(), "--text", "2"]).expect_code(0);
    assert_eq!(it.folder.content(round.round_id, "q"), r#"{"answer":["blue"]}"#);

    let round = it.folder.ask(&[
        ("q", request(r#"{"kind":"text","question":"?"}"#)),
        ("url", request(r#"{"kind":"url","message":"m","url":"https://example.com/"}"#)),
    ]);
    let id = round.round_id.to_string();
    it.run(&["answer", &id, "--text", "2"]).expect_code(3);
    it.run(&["answer", &id, "--text", "2", "--accept"]).expect_code(0);
    assert_eq!(it.folder.content(round.round_id, "q"), r#"{"answer":["2"]}"#);
}

#[test]
fn a_round_is_found_by_a_piece_of_its_id_that_only_it_has() {
    let it = Scripted::new();
    let round = it.folder.ask_street();
    let id = round.round_id.to_string();
    it.run(&["show", &id[id.len() - 6..].to_lowercase()]).expect_code(0);
    it.run(&["show", &id[..20]]).expect_code(0);
    it.run(&["show", &id[id.len() - 5..]]).expect_code(3);
    it.run(&["show", "ZZZZZZZ"]).expect_code(7);
    it.run(&["show", "rnd_00000000000000000000000000"]).expect_code(7);
    it.folder.ask_street();
    let ambiguous = it.run(&["show", &id[..10]]).expect_code(3);
    assert!(ambiguous.stderr.contains("names 2 rounds") && ambiguous.stderr.contains(&id), "{}", ambiguous.stderr);
    it.run(&["answer", &id[id.len() - 8..], "--cancel"]).expect_code(0);
    // Answered, it is still known by its piece, and says who won.
    it.run(&["answer", &id[id.len() - 8..], "--decline"]).expect_code(4);
}

#[test]
fn an_expired_round_says_so_and_is_no_conflict() {
    let it = Scripted::new();
    let round = it.folder.ask_street();
    let execution = round.execution_id;
    let people = it.folder.sayso.people();
    it.folder.runtime.block_on(sayso::People::cancel(&people, execution)).unwrap();
    let ended = it.run(&["answer", &round.round_id.to_string(), "--decline"]).expect_code(5);
    assert!(ended.stderr.contains("error[managed_input_state]") && ended.stderr.contains("cancelled"));
}

#[test]
fn the_same_answer_twice_is_the_same_record_and_another_is_a_conflict() {
    let it = Scripted::new();
    let id = it.folder.ask_street().round_id.to_string();
    let first = it.run(&["answer", &id, "--field", "street=Elm", "--json"]).expect_code(0);
    let again = it.run(&["answer", &id, "--field", "street=Elm", "--json"]).expect_code(0);
    assert_eq!(first.stdout, again.stdout);
    let other = it.run(&["answer", &id, "--field", "street=Oak"]).expect_code(4);
    assert!(other.stderr.contains("answered by person ada through cli at 20"), "{}", other.stderr);
    let bob = it.folder.token_file(NewTokenKind::Person, "bob");
    let same = it.folder.script(&["answer", &id, "--field", "street=Elm", "--token-file", &bob, "--json"]);
    assert_eq!(same.expect_code(4).problem()["winner"]["principal"], "person ada");
}

#[test]
fn an_explicit_key_repeats_or_conflicts() {
    let it = Scripted::new();
    let id = it.folder.ask_street().round_id.to_string();
    it.run(&["answer", &id, "--field", "street=Elm", "--key", "k1"]).expect_code(0);
    it.run(&["answer", &id, "--field", "street=Elm", "--key", "k1"]).expect_code(0);
    it.run(&["answer", &id, "--field", "street=Oak", "--key", "k1"]).expect_code(4);
    it.run(&["answer", &id, "--field", "street=Elm", "--key", "k2"]).expect_code(4);
}

const PAYMENT: &str = r#"{"kind":"approval","tool":"bank:pay","arguments":{"to":"acme","n":1.0},"effects":["write"],"rule":"money",
    "message":"Moves money.","arguments_schema":{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"number","maximum":9}},"required":["to"]},
    "schema":{"type":"object","properties":{"pin":{"type":"integer"}},"required":["pin"]}}"#;

#[test]
fn a_call_is_approved_with_edited_arguments_and_input() {
    let it = Scripted::new();
    let ask = || it.folder.ask(&[("call", request(PAYMENT))]);
    let round = ask();
    let (id, digest) = (round.round_id.to_string(), round.digest.to_string());
    let approve = |more: &[&str]| it.run(&[&["answer", &id, "--approve", "--digest", &digest], more].concat());
    assert!(approve(&[]).expect_code(3).stderr.contains("field /responses/call/content/input: is required"));
    let wrong = approve(&["--field", "pin=x", "--arguments", r#"{"n":10}"#]).expect_code(3);
    assert!(wrong.stderr.contains("/responses/call/content/arguments/"), "{}", wrong.stderr);
    approve(&["--arguments", "[1]"]).expect_code(2);
    approve(&["--arguments", "@/nonexistent"]).expect_code(2);
    let edited = it.folder.file("edited.json", "{\"to\": \"acme\", \"n\": 2.50}\n", 0o600);
    approve(&["--input", r#"{"pin":7}"#, "--arguments", &format!("@{}", edited.display())]).expect_code(0);
    let shown = it.run(&["show", &id]).expect_code(0).stdout;
    for part in [
        "What its server says of it",
        "Asked by rule: money",
        "It changes or deletes data",
        "-   \"n\": 1.0",
        "+   \"n\": 2.50",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let expected = r#"{"arguments":{"to": "acme", "n": 2.50},"input":{"pin":7}}"#;
    assert_eq!(it.folder.content(round.round_id, "call"), expected);

    let round = ask();
    it.run(&["answer", &round.round_id.to_string(), "--deny", "--reason", "not now"]).expect_code(0);
    assert_eq!(it.folder.collect(round.round_id).get("call").unwrap().reason.as_deref(), Some("not now"));
    let form = it.folder.ask_street().round_id.to_string();
    it.run(&["answer", &form, "--approve"]).expect_code(3);
    it.run(&["answer", &form, "--approve", "--deny"]).expect_code(2);
    it.run(&["answer", &form, "--accept", "--arguments", "{}"]).expect_code(2);
}

#[test]
fn the_card_of_a_call_shows_its_preview_its_session_and_that_another_person_is_needed() {
    let it = Scripted::new();
    let call = r#"{"kind":"approval","tool":"bank:pay","arguments":{"n":1},"rule":"operator money","session":"ses-7",
        "preview":["120.50 EUR to acme","Session: forged\nrent"],"require_second_person":true}"#;
    let parts = [
        "  Preview, in the asker's words:\n  │ 120.50 EUR to acme\n  │ Session: forged\n  │ rent\n",
        "  Asked by rule: operator money\n  Session: ses-7\n",
        "  Whoever started this work may deny it, but somebody else must approve it.\n",
    ];
    let round = it.folder.ask(&[("call", request(call))]);
    let id = round.round_id.to_string();
    let shown = it.run(&["show", &id]).expect_code(0).stdout;
    let mut terminal = Terminal::open(&it.folder, &["answer", &id]);
    for part in parts {
        assert!(shown.contains(part), "{part} in {shown}");
        part.lines().fold(&mut terminal, |terminal, line| terminal.expect(line));
    }
    terminal.expect("> Deny").type_keys(ESC);
    terminal.end();
    assert_eq!(it.folder.round(round.round_id).status, Status::Pending);

    let bare = it.folder.ask(&[("call", request(r#"{"kind":"approval","tool":"bank:pay","arguments":{"n":1}}"#))]);
    let shown = it.run(&["show", &bare.round_id.to_string()]).expect_code(0).stdout;
    for absent in ["Preview", "Session:", "somebody else must approve"] {
        assert!(!shown.contains(absent), "{absent} in {shown}");
    }
}

#[test]
fn a_field_in_a_group_or_a_row_is_given_by_its_path() {
    let it = Scripted::new();
    let schema = r#"{"type":"object","properties":{
        "address":{"type":"object","properties":{"street":{"type":"string","minLength":3}},"required":["street"]},
        "parcels":{"type":"array","items":{"type":"object","properties":{"kg":{"type":"number"}}}}}}"#;
    let round = it.folder.ask(&[("f", form("m", schema))]);
    let id = round.round_id.to_string();
    let wrong = it.run(&["answer", &id, "--field", "address.street=x"]).expect_code(3);
    assert!(wrong.stderr.contains("/responses/f/content/address/street: must be at least 3"), "{}", wrong.stderr);
    let fields = ["--field", "address.street=Elm", "--field", "parcels.0.kg=1.50", "--field", "parcels.1.kg=2"];
    it.run(&[&["answer", &id], &fields[..]].concat()).expect_code(0);
    let expected = r#"{"address":{"street":"Elm"},"parcels":[{"kg":1.50},{"kg":2}]}"#;
    assert_eq!(it.folder.content(round.round_id, "f"), expected);
}
