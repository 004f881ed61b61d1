//! What `list`, `show` and `--help` print.

use serde_json::Value;

use crate::folder::{Folder, form, request};
use crate::terminal::person;

#[test]
fn hostile_text_is_made_visible_in_lists_and_pages() {
    let folder = Folder::new();
    let schema = r#"{"type":"object","properties":{"na\u202eme":{"type":"string","title":"ti\u200btle","default":"de\u001b[2Jfault"}}}"#;
    let round = folder.ask(&[("k\u{202e}", form("pay\u{202e}100\u{1b}[2J\nnext │ line", schema))]);
    let list = person(&folder, &["list"]).expect_code(0);
    assert!(list.stdout.contains("pay⟦U+202E⟧100⟦U+001B⟧[2J"), "{}", list.stdout);
    let page = person(&folder, &["show", &round.round_id.to_string()]).expect_code(0);
    for shown in ["k⟦U+202E⟧", "│ pay⟦U+202E⟧100", "│ next", "na⟦U+202E⟧me", "ti⟦U+200B⟧tle"] {
        assert!(page.stdout.contains(shown), "{shown}: {}", page.stdout);
    }
    for text in [&list.stdout, &page.stdout] {
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}') && !text.contains('\u{200b}'));
    }
    let refused = person(&folder, &["answer", &round.round_id.to_string(), "--field", "x\u{202e}=1"]).expect_code(3);
    assert!(refused.stderr.contains("x⟦U+202E⟧") && !refused.stderr.contains('\u{202e}'), "{}", refused.stderr);
}

#[test]
fn a_list_is_one_page_of_the_wire_with_a_cursor() {
    let folder = Folder::new();
    let mut rounds: Vec<_> = (0..3).map(|_| folder.ask_street()).collect();
    // Those of one millisecond are in the order of their ids.
    rounds.sort_by_key(|round| round.round_id.to_string());
    let page = person(&folder, &["list", "--limit", "2", "--json"]).expect_code(0).json();
    assert_eq!(page["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(page["rounds"][0]["round_id"], rounds[2].round_id.to_string());
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = person(&folder, &["list", "--cursor", cursor, "--json"]).expect_code(0).json();
    assert_eq!(rest["rounds"][0]["round_id"], rounds[0].round_id.to_string());
    assert_eq!(rest["next_cursor"], Value::Null);

    let id = rounds[0].round_id.to_string();
    person(&folder, &["answer", &id, "--decline", "--reason", "no"]).expect_code(0);
    let pending = person(&folder, &["list"]).expect_code(0).stdout;
    assert!(!pending.contains(&id) && pending.contains("shipping · booking") && pending.contains("Where to?"));
    let all = person(&folder, &["list", "--all"]).expect_code(0).stdout;
    assert!(all.contains(&id) && all.contains("response_validated"));
    let done = person(&folder, &["list", "--status", "response_validated", "--json"]).expect_code(0).json();
    assert_eq!(done["rounds"].as_array().unwrap().len(), 1);
}

#[test]
fn a_page_shows_what_each_field_takes_and_later_the_answer() {
    let folder = Folder::new();
    let schema = r#"{"type":"object","required":["n"],"properties":{
        "n":{"type":"integer","minimum":1,"maximum":9,"description":"How many"},
        "group":{"type":"object","properties":{"b":{"type":"boolean"}}},
        "deep":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{}}}}"#;
    let round = folder.ask(&[("f", form("m", schema))]);
    let id = round.round_id.to_string();
    let page = person(&folder, &["show", &id]).expect_code(0).stdout;
    for shown in [
        "n: whole number, required, at least 1, at most 9",
        "How many",
        r#"schema: {"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{}}"#,
        "group.b: yes or no",
        &round.digest.to_string(),
        &format!("sayso answer {id} --field n=…"),
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert_eq!(person(&folder, &["show", &id, "--answer", "--json"]).expect_code(0).json(), Value::Null);
    person(&folder, &["answer", &id, "--field", "n=7"]).expect_code(0);
    let page = person(&folder, &["show", &id]).expect_code(0).stdout;
    assert!(page.contains(r#"f: accept {"n":7}"#) && page.contains("through cli at"), "{page}");
    let answer = person(&folder, &["show", &id, "--answer", "--json"]).expect_code(0).json();
    assert_eq!(answer["effective"]["f"]["content"]["n"], 7);
}

#[test]
fn a_url_is_shown_whole_with_its_host_apart() {
    let folder = Folder::new();
    let url = r#"{"kind":"url","message":"Connect","url":"https://bank.example@evil.example/"}"#;
    let round = folder.ask(&[("u", request(url))]);
    let page = person(&folder, &["show", &round.round_id.to_string()]).expect_code(0).stdout;
    assert!(page.contains("URL:  https://bank.example@evil.example/") && page.contains("Host: evil.example"));
    assert!(page.contains("Warning: There is a user name before the host"), "{page}");
}

#[test]
fn a_folder_that_is_not_there_is_not_an_empty_one() {
    let folder = Folder::new();
    let missing = folder.data().join("missing");
    let ended = person(&folder, &["--data", missing.to_str().unwrap(), "list"]).expect_code(7);
    assert!(ended.stderr.contains("error[not_found]") && ended.stderr.contains("--data"), "{}", ended.stderr);
    assert!(!missing.exists());
}

#[test]
fn every_command_has_examples_and_exit_codes_in_its_help() {
    let folder = Folder::new();
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = folder.script(&args).expect_code(0).stdout;
        assert!(help.contains("\nExamples:\n  "), "{path:?}");
        for line in ["\nExit codes:\n", "  0    done\n", "  4    somebody else was first", "  130  interrupted"] {
            assert!(help.contains(line), "{path:?}: {line:?}");
        }
        seen += 1;
        let commands = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or("");
        let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
        for name in names.filter(|name| *name != "help" && !name.is_empty()) {
            open.push(path.iter().cloned().chain([name.to_owned()]).collect());
        }
    }
    assert!(seen >= 11, "the command, its seven commands and the three of `token`, found {seen}");
}

#[test]
fn every_command_takes_json() {
    let folder = Folder::new();
    for path in [
        &["demo"][..],
        &["policy", "check"],
        &["policy", "explain"],
        &["serve"],
        &["login"],
        &["token", "new"],
        &["token", "list"],
        &["token", "revoke"],
        &["list"],
        &["show"],
        &["answer"],
        &["watch"],
    ] {
        let args: Vec<&str> = path.iter().copied().chain(["--help"]).collect();
        assert!(folder.script(&args).expect_code(0).stdout.contains("--json"), "{path:?}");
    }
}
