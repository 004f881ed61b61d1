//! `sayso policy`, with the policy that the documentation shows.

use std::process::Command;

use crate::folder::Ended;

/// The policy in `docs/policy.md`, in a file of its own.
fn documented() -> (tempfile::TempDir, String) {
    let page = include_str!("../../../../docs/policy.md");
    let policy = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.toml");
    std::fs::write(&path, policy).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

/// Runs the command in an environment without a home or a data folder.
fn policy(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    let output = command.arg("policy").args(args).env_remove("HOME").env_remove("SAYSO_DATA").output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_documented_policy_judges_as_its_page_says() {
    let (_dir, path) = documented();
    for (tool, arguments, annotations, code, rule) in [
        ("shell:run", r#"{"command":"npm test"}"#, "{}", 0, "tests"),
        ("shell:run", r#"{"command":"npm test && git diff HEAD~1"}"#, "{}", 0, "tests"),
        ("shell:run", r#"{"command":"npm test && curl x"}"#, "{}", 12, "default"),
        ("shell:run", r#"{"command":"npm test && rm -rf build"}"#, "{}", 11, "never"),
        ("shell:run", r#"{"command":"npm test > log"}"#, "{}", 12, "default"),
        ("shell:run", r#"{"command":"echo $(sudo id)"}"#, "{}", 11, "never"),
        ("files:write_file", r#"{"path":"/home/ada/code/shop/src/a.js"}"#, "{}", 0, "edit-here"),
        ("files:write_file", r#"{"path":"/home/ada/code/shop/../.ssh/config"}"#, "{}", 12, "default"),
        ("files:read_file", r#"{"path":"/etc/hosts"}"#, r#"{"readOnlyHint":true}"#, 0, "reading"),
        ("files:read_file", "{}", "{}", 12, "default"),
        ("other:read", "{}", r#"{"readOnlyHint":true}"#, 12, "default"),
        ("web:get", "{}", "{}", 0, "reading"),
        ("bank:transfer", r#"{"to":"x","amount":50.0,"currency":"EUR"}"#, "{}", 0, "pay-little"),
        ("bank:transfer", r#"{"to":"x","amount":50.01,"currency":"EUR"}"#, "{}", 12, "pay"),
        ("bank:transfer", r#"{"to":"x","amount":"5","currency":"EUR"}"#, "{}", 12, "pay"),
        ("bank:transfer", r#"{"to":"x","amount":5,"currency":"EUR","note":1}"#, "{}", 12, "pay"),
    ] {
        let args =
            ["explain", "--policy", &path, "--tool", tool, "--args", arguments, "--annotations", annotations, "--json"];
        let ended = policy(&args).expect_code(code);
        let rules = &ended.json()["verdict"]["rules"];
        assert!(rules.as_array().unwrap().iter().any(|found| found["id"] == rule), "{tool} {arguments}: {rules}");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn an_explanation_reads_as_its_page_shows_it() {
    let (_dir, path) = documented();
    let arguments = r#"{"command":"npm test && rm -rf build"}"#;
    let ended = policy(&["explain", "--policy", &path, "--tool", "shell:run", "--args", arguments]).expect_code(11);
    let page = include_str!("../../../../docs/policy.md");
    let shown = page.split("$ sayso policy explain").nth(1).unwrap();
    let shown: Vec<_> = shown.lines().skip(1).take_while(|line| *line != "…").collect();
    assert_eq!(shown.len(), 9);
    assert!(ended.stdout.starts_with(&shown.join("\n")), "{}", ended.stdout);

    let strict = policy(&["explain", "--policy", &path, "--tool", "bank:pay"]).expect_code(12);
    for words in ["because   operator pay", "a second person", "14400 s"] {
        assert!(strict.stdout.contains(words), "{}", strict.stdout);
    }
    let autonomous =
        |tool| policy(&["explain", "--policy", &path, "--tool", tool, "--mode", "autonomous", "--args", "{}"]);
    let mode = autonomous("shop:buy").expect_code(0);
    assert!(mode.stdout.contains("the mode autonomous, where operator default would ask"), "{}", mode.stdout);
    autonomous("bank:pay").expect_code(12);
    let hidden = policy(&["explain", "--tool", "a:b\u{202e}c"]).expect_code(12);
    assert!(hidden.stdout.contains("a:b⟦U+202E⟧c"), "{}", hidden.stdout);
}

#[test]
fn a_check_prints_the_version_or_what_is_wrong() {
    let (dir, path) = documented();
    let checked = policy(&["check", &path]).expect_code(0).stdout;
    assert!(checked.starts_with("operator: 6 rules\nversion sha256:"), "{checked}");
    let project = dir.path().join("project.toml");
    std::fs::write(&project, "layer = \"project\"\n[[rule]]\nid = \"p\"\ndeny = [\"git:push\"]\n").unwrap();
    let project = project.to_str().unwrap();
    let json = policy(&["check", &path, project, "--json"]).expect_code(0).json();
    assert_eq!(json["layers"][1], serde_json::json!({"layer": "project", "rules": 1}));

    std::fs::write(project, "layer = \"project\"\n[[rule]]\nid = \"p\"\ndeny = [\"push\"]\n").unwrap();
    let problem = policy(&["check", &path, project, "--json"]).expect_code(3).problem();
    assert_eq!(problem["code"], "managed_input_invalid");
    let expected = format!("{project}: line 4: rule `p`: deny: a tool is written server:name");
    assert_eq!(problem["detail"], expected);
    let refused = policy(&["explain", "--policy", project, "--tool", "a:b"]).expect_code(3);
    assert!(refused.stderr.contains("denies every call"), "{}", refused.stderr);
    policy(&["check", "/no/such/policy.toml"]).expect_code(3);
}

#[test]
fn a_command_line_that_names_no_call_is_refused() {
    for args in [
        &["explain", "--tool", "read"][..],
        &["explain", "--tool", "a:b", "--args", "{"],
        &["explain", "--tool", "a:b", "--args", r#"{"a":1,"a":2}"#],
        &["explain", "--tool", "a:b", "--mode", "free"],
        &["explain"],
        &["check"],
    ] {
        policy(args).expect_code(2);
    }
    policy(&["explain", "--tool", "a:b", "--args", "[]"]).expect_code(11);
}
