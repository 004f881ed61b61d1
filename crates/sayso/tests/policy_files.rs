//! Policies in files: what is refused and where, and that a change is in force without a restart.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use sayso::clock::ManualClock;
use sayso::policy::{Basis, Context, Decision, Layer, Mode, PolicyFiles, ToolName, read_layer};
use sayso::{Json, UnixMs};

const FUTURE: UnixMs = UnixMs(4_102_444_800_000);

fn decide(files: &PolicyFiles, tool: &str) -> Decision {
    files.evaluate(&ToolName::parse(tool).unwrap(), &Json::parse("{}").unwrap(), &Context::default()).decision
}

fn fault(files: &PolicyFiles, tool: &str) -> String {
    let tool = ToolName::parse(tool).unwrap();
    match files.evaluate(&tool, &Json::parse("{}").unwrap(), &Context::default()).basis {
        Basis::Error(fault) => fault,
        other => format!("no error but {other:?}"),
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn rule(id: &str, decision: &str, tools: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\n{decision} = [\"{tools}\"]\n")
}

#[test]
fn a_file_is_refused_with_the_line_and_the_key_that_is_wrong() {
    let good = rule("a", "ask", "a:*");
    for (text, line, words) in [
        (format!("{good}tol = 1\n"), 4, "unknown field `tol`"),
        ("[[rule]]\nask = [\"a:b\"]\n".to_owned(), 1, "missing field `id`"),
        (format!("{good}{}", rule("b", "permit", "a:*")), 6, "unknown field `permit`"),
        (format!("{good}[[rule]]\nid = \"b\"\n"), 4, "rule `b`: a rule has one of allow, ask and deny"),
        (format!("{good}deny = [\"a:b\"]\n"), 1, "rule `a`: a rule has one of allow, ask and deny"),
        (format!("{good}\n{}", rule("b", "allow", "read")), 7, "rule `b`: allow: a tool is written server:name"),
        (format!("{good}\n{}", rule("a", "allow", "a:*")), 6, "rule `a`: id: names an earlier rule"),
        (
            format!("{good}when = [\n  {{ at = \"/x\", glob = \"y\" }},\n  {{ at = \"x\", glob = \"y\" }},\n]\n"),
            6,
            "at: is no JSON pointer",
        ),
        (format!("{good}when = [{{ at = \"/x\" }}]\n"), 4, "one of equals, in, glob"),
        (format!("{good}when = [{{ at = \"/x\", equals = [1] }}]\n"), 4, "equals: is a text, a number, true or false"),
        (format!("{good}when = [{{ at = \"/x\", matches = \"y\" }}]\n"), 4, "unknown field `matches`"),
        (format!("{good}deadline_seconds = 0\n"), 4, "rule `a`: deadline_seconds: is more than nothing"),
        (format!("{good}effects = [\"delete\"]\n"), 4, "unknown variant `delete`"),
        (
            "layer = \"project\"\nmode = \"autonomous\"\n".to_owned(),
            2,
            "mode: can be said in the operator's layer only",
        ),
        ("layer = \"project\"\n\n[[server]]\nname = \"a\"\ntrusted = true\n".to_owned(), 3, "server: can be said"),
        ("[[tool]]\ntools = [\"a:b\"]\ncommand = \"cmd\"\n".to_owned(), 3, "tool: command: is no JSON pointer"),
        ("layer = \"team\"\n".to_owned(), 1, "unknown variant `team`"),
        ("[[rule]\n".to_owned(), 1, ""),
    ] {
        let error = read_layer(&text).unwrap_err();
        assert_eq!(error.line, line, "{text}\n{error}");
        assert!(error.message.contains(words), "{text}\n{error}");
    }
}

#[test]
fn a_file_says_everything_a_layer_can() {
    let layer = read_layer(
        "layer = \"operator\"\nmode = \"guarded\"\n\
         [[server]]\nname = \"files\"\ntrusted = true\n[[server]]\nname = \"web\"\ntrusted = false\n\
         [[tool]]\ntools = [\"sh:*\"]\neffects = [\"exec\"]\ncommand = \"/script\"\n\
         [[rule]]\nid = \"r\"\nask = [\"*:*\"]\neffects = [\"write\"]\nrequire_second_person = true\n\
         deadline_seconds = 90\nreason = \"why\"\nwhen = [{ at = \"/n\", min = 1, max = 2.5 }, { at = \"/m\", in = [\"a\", 2, true] }]\n",
    )
    .unwrap();
    assert_eq!(
        (layer.layer, layer.mode, layer.trusted.as_slice()),
        (Layer::Operator, Some(Mode::Guarded), &["files".to_owned()][..])
    );
    let written = serde_json::to_string(&layer.rules[0]).unwrap();
    assert_eq!(
        written,
        r#"{"id":"r","decision":"ask","tools":["*:*"],"effects":["write"],"when":[{"at":"/n","min":1,"max":2.5},{"at":"/m","in":["a",2,true]}],"require_second_person":true,"deadline_ms":90000,"reason":"why"}"#
    );
    assert_eq!(read_layer("").unwrap().layer, Layer::Operator, "an empty file is an operator's without rules");
}

#[test]
fn a_change_is_in_force_without_a_restart_and_bumps_the_version() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let path = folder.file("policy.toml", &rule("a", "allow", "a:*"));
    // By this clock the file has not changed for years, so only its metadata shows the change.
    let files = PolicyFiles::with_clock([&path], Arc::new(ManualClock::at(FUTURE)));
    let version = files.version();
    assert_eq!(decide(&files, "a:b"), Decision::Allow);
    assert!(Arc::ptr_eq(&files.current(), &files.current()), "an unchanged file is not read again");
    folder.file("policy.toml", &format!("# stricter now\n{}", rule("a", "deny", "a:*")));
    assert_eq!(decide(&files, "a:b"), Decision::Deny);
    assert_ne!(files.version(), version);
    folder.file("policy.toml", &format!("# a comment\n{}", rule("a", "allow", "a:*")));
    assert_eq!(files.version(), version, "comments do not count");
}

#[test]
fn two_changes_within_a_tick_of_the_disks_clock_are_both_seen() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let path = folder.file("policy.toml", &rule("a", "deny", "a:*"));
    let files = PolicyFiles::open([&path]);
    for decision in ["ask", "deny", "ask", "deny"].repeat(10) {
        // The same number of bytes each time, by a space.
        let padded = rule("a", decision, "a:*") + if decision == "ask" { " " } else { "" };
        folder.file("policy.toml", &padded);
        assert_eq!(decide(&files, "a:b") == Decision::Ask, decision == "ask");
    }
}

#[test]
fn a_broken_file_denies_what_was_allowed_and_the_last_good_version_is_not_used() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let operator = folder.file("operator.toml", &(rule("no", "deny", "a:no") + &rule("yes", "allow", "*:*")));
    let project = folder.file("project.toml", &format!("layer = \"project\"\n{}", rule("p", "ask", "a:p")));
    let files = PolicyFiles::open([&operator, &project]);
    assert_eq!((decide(&files, "a:b"), decide(&files, "a:p")), (Decision::Allow, Decision::Ask));

    folder.file("project.toml", "layer = \"project\"\n\nrules = 1\n");
    let expected = format!("{}: line 3: unknown field `rules`", project.display());
    assert!(fault(&files, "a:b").starts_with(&expected), "{}", fault(&files, "a:b"));
    assert!(fault(&files, "a:no").starts_with("no error"), "what is denied anyway names its rule");
    assert_eq!(files.current().faults().len(), 1);

    fs::remove_file(&project).unwrap();
    assert!(fault(&files, "a:b").contains("project.toml: cannot be read: No such file"), "{}", fault(&files, "a:b"));
    folder.file("project.toml", "layer = \"project\"\n");
    assert_eq!(decide(&files, "a:b"), Decision::Allow);

    let twice = PolicyFiles::open([&operator, &operator]);
    assert!(fault(&twice, "a:b").contains("layer: there is a layer of the operator already"));
    let folder_itself = PolicyFiles::open([folder.0.path()]);
    assert!(fault(&folder_itself, "a:b").contains("it is no plain file"));
}

#[test]
fn without_files_everything_asks() {
    let files = PolicyFiles::open(Vec::<PathBuf>::new());
    assert_eq!(decide(&files, "a:b"), Decision::Ask);
    assert!(files.current().is_empty());
}
