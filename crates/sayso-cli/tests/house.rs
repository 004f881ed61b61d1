//! The shape of the house as ARCHITECTURE.md draws it, kept by tests instead of by memory: which crate may use which,
//! who alone names a foreign library, how long a file may be, and that every error code has its page.
#![allow(clippy::expect_used, reason = "a test stops at a tree it cannot read")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Our crates and which of ours each may depend on, in every kind of dependency.
const EDGES: [(&str, &[&str]); 6] = [
    ("sayso-core", &[]),
    ("sayso-store", &["sayso-core"]),
    ("sayso", &["sayso-core", "sayso-store"]),
    ("sayso-agents", &["sayso-core", "sayso"]),
    ("sayso-http", &["sayso-core", "sayso"]),
    ("sayso-cli", &["sayso-core", "sayso-store", "sayso", "sayso-agents", "sayso-http"]),
];

/// A library that one crate alone may name.
struct Owned {
    library: &'static str,
    owner: &'static str,
    /// Whether the tests of other crates may use it.
    tests_may: bool,
}

const OWNED: [Owned; 5] = [
    Owned { library: "rusqlite", owner: "sayso-store", tests_may: true },
    Owned { library: "tokio-postgres", owner: "sayso-store", tests_may: true },
    Owned { library: "rmcp", owner: "sayso-agents", tests_may: false },
    Owned { library: "axum", owner: "sayso-http", tests_may: true },
    Owned { library: "maud", owner: "sayso-http", tests_may: true },
];

/// Names that say nothing about what lives there.
const VAGUE: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "misc", "manager"];

/// Codes of plans and operations, which no caller of a store is ever given.
const PLAN_CODES: [&str; 2] = [sayso::plan::EXPECTATION_FAILED, sayso_agents::operate::ANSWER_EXPECTATION_FAILED];

/// Rooms of sayso-agents that stand on another one beside `jsonrpc`.
const STANDS_ON: [(&str, &str); 6] = [
    ("kit", "operate"),
    ("gateway", "tools"),
    ("mcp", "tools"),
    ("native", "operate"),
    ("native", "kit"),
    ("native", "tools"),
];

const FILE_LINES_MAX: usize = 800;

#[test]
fn crates_depend_on_each_other_only_as_the_architecture_allows() {
    let packages = packages();
    let names: BTreeSet<&str> = packages.iter().map(Package::name).collect();
    let expected: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "the crates of the workspace");

    let mut wrong = Vec::new();
    for package in &packages {
        let allowed = EDGES.iter().find(|(name, _)| *name == package.name()).map_or(&[][..], |(_, uses)| uses);
        for dependency in package.dependencies().filter(|dependency| names.contains(dependency.name)) {
            if !allowed.contains(&dependency.name) {
                wrong.push(format!("{} must not use {}", package.name(), dependency.name));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn a_foreign_library_is_named_by_its_one_crate() {
    let mut wrong = Vec::new();
    for package in &packages() {
        for dependency in package.dependencies() {
            let owned = OWNED.iter().find(|owned| owned.library == dependency.name);
            if let Some(owned) = owned
                && owned.owner != package.name()
                && !(owned.tests_may && dependency.for_tests)
            {
                wrong.push(format!("only {} names {}, not {}", owned.owner, owned.library, package.name()));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_crate_inherits_the_lints_and_unsafe_code_is_forbidden() {
    let root = read(&root().join("Cargo.toml"));
    assert!(
        table(&root, "workspace.lints.rust").any(|line| line == "unsafe_code = \"forbid\""),
        "the workspace forbids unsafe code"
    );
    let mut wrong = Vec::new();
    for package in &packages() {
        let manifest = read(Path::new(package.text("manifest_path")));
        if !table(&manifest, "lints").any(|line| line == "workspace = true") {
            wrong.push(format!("{} does not inherit the workspace's lints", package.name()));
        }
    }
    assert_none(&wrong);
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let lines = read(&file).lines().count();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert_none(&wrong);
}

#[test]
fn no_module_has_a_vague_name() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let inside = file.strip_prefix(root()).expect("a file of this tree").with_extension("");
        let in_path = inside.iter().filter_map(|part| part.to_str()).find(|part| VAGUE.contains(part));
        let text = read(&file);
        let declared = text.lines().filter_map(declared_module).find(|name| VAGUE.contains(name));
        if let Some(name) = in_path.or(declared) {
            wrong.push(format!("{}: `{name}` says nothing about what lives there", file.display()));
        }
    }
    assert_none(&wrong);
}

#[test]
fn the_rooms_of_the_agents_crate_do_not_see_each_other() {
    let source = root().join("crates/sayso-agents/src");
    let rooms: BTreeSet<String> = fs::read_dir(&source)
        .expect("the sources of sayso-agents")
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let mut wrong = Vec::new();
    for file in rust_files().into_iter().filter(|file| file.starts_with(&source)) {
        let module = module_path(file.strip_prefix(&source).expect("a file of this crate"));
        let Some(room) = module.first().filter(|first| rooms.contains(*first)) else {
            continue;
        };
        for seen in seen_from_root(&read(&file), module.len()) {
            let stands_on = STANDS_ON.contains(&(room.as_str(), seen.as_str()));
            if seen != *room && seen != "jsonrpc" && !stands_on && rooms.contains(&seen) {
                wrong.push(format!("{} sees the room {seen}", file.display()));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let folder = root().join("docs/errors");
    let pages: BTreeSet<String> = files_under(&folder, "md")
        .iter()
        .filter_map(|page| Some(page.file_stem()?.to_str()?.to_owned()))
        .filter(|stem| stem != "README")
        .collect();
    let codes: BTreeSet<String> = sayso_core::error::ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(PLAN_CODES)
        .map(str::to_owned)
        .collect();
    let mut wrong: Vec<String> =
        codes.difference(&pages).map(|code| format!("{code} has no page docs/errors/{code}.md")).collect();
    wrong.extend(pages.difference(&codes).map(|page| format!("docs/errors/{page}.md is the page of no code")));
    assert_none(&wrong);
}

#[test]
fn paths_into_other_rooms_are_found_however_they_are_written() {
    let text = "
        use crate::gateway::Session;
        use crate::{claude, codex::{self, crate_like}, jsonrpc::Id};
        // use crate::acp;
        fn f() { super::super::mcp::serve(); super::native(); }
    ";
    assert_eq!(seen_from_root(text, 2), ["gateway", "claude", "codex", "jsonrpc", "mcp"]);
    assert_eq!(module_path(Path::new("gateway/call/mod.rs")), ["gateway", "call"]);
    assert_eq!(module_path(Path::new("gateway/call.rs")), ["gateway", "call"]);
    assert_eq!(declared_module("pub(crate) mod utils;"), Some("utils"));
    assert_eq!(declared_module("mod common {"), Some("common"));
    assert_eq!(declared_module("model helpers"), None);
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/sayso-cli has a root").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One package as `cargo metadata` tells it.
struct Package(Value);

struct Dependency<'a> {
    name: &'a str,
    for_tests: bool,
}

impl Package {
    fn text(&self, member: &str) -> &str {
        self.0.get(member).and_then(Value::as_str).expect("a member that cargo metadata documents")
    }

    fn name(&self) -> &str {
        self.text("name")
    }

    fn dependencies(&self) -> impl Iterator<Item = Dependency<'_>> {
        self.0.get("dependencies").and_then(Value::as_array).into_iter().flatten().filter_map(|dependency| {
            Some(Dependency {
                name: dependency.get("name")?.as_str()?,
                for_tests: dependency.get("kind")?.as_str() == Some("dev"),
            })
        })
    }
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    match metadata.get_mut("packages").map(Value::take) {
        Some(Value::Array(packages)) => packages.into_iter().map(Package).collect(),
        other => panic!("cargo metadata has no packages: {other:?}"),
    }
}

/// The lines of one table of a manifest, as they are written there.
fn table<'a>(manifest: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let header = format!("[{name}]");
    manifest
        .lines()
        .map(str::trim)
        .skip_while(move |line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
}

/// Every Rust file that is ours, the fuzz targets included.
fn rust_files() -> Vec<PathBuf> {
    let mut files = files_under(&root().join("crates"), "rs");
    files.extend(files_under(&root().join("fuzz/targets"), "rs"));
    assert!(!files.is_empty(), "the tree has Rust files");
    files
}

fn files_under(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The name in `mod name;` or `mod name {`, whatever its visibility.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.trim();
    let (visibility, rest) = line.split_once("mod ")?;
    let visibility = visibility.trim();
    let declares = visibility.is_empty() || visibility.starts_with("pub");
    declares.then(|| rest.trim_end_matches([';', '{', '}', ' ']))
}

/// The module a file is, from the crate's root: `gateway/call.rs` and `gateway/call/mod.rs` are both `gateway::call`.
fn module_path(file: &Path) -> Vec<String> {
    let stem = file.with_extension("");
    stem.iter().filter_map(|part| part.to_str()).filter(|part| *part != "mod").map(str::to_owned).collect()
}

/// The first segments of all paths in `text` that start at the crate's root, by `crate::` or by `super::` as often as
/// the file is deep. Comment lines do not count.
fn seen_from_root(text: &str, depth: usize) -> Vec<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut seen = Vec::new();
    for to_root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, found) in code.match_indices(&to_root) {
            let (before, after) = (code.get(..at).unwrap_or(""), code.get(at + found.len()..).unwrap_or(""));
            if !before.ends_with(|c: char| c == '_' || c == ':' || c.is_alphanumeric()) {
                seen.extend(first_segments(after));
            }
        }
    }
    seen
}

/// The first segment of a path, or of each path of a braced group.
fn first_segments(path: &str) -> Vec<String> {
    let Some(group) = path.trim_start().strip_prefix('{') else {
        return vec![path.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect()];
    };
    let mut segments = vec![String::new()];
    let (mut depth, mut in_first) = (0_u32, true);
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                segments.push(String::new());
                in_first = true;
            }
            ':' if depth == 0 => in_first = false,
            c if depth == 0 && in_first && !c.is_whitespace() => {
                if let Some(last) = segments.last_mut() {
                    last.push(c);
                }
            }
            _ => {}
        }
    }
    segments
}
