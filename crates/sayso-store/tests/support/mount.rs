//! A small disk for one test, mounted where only that test sees it: it runs again in a mount namespace of its own. Where
//! nobody may mount one, that the test was not tried is said aloud, and noted for `./test`.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells a test that it runs again, in a mount namespace of its own.
const INSIDE: &str = "SAYSO_TEST_IN_NAMESPACE";
/// Names the file in which `./test` finds what was not tried, a line each: who could have (`root`, or `any` who is root in a
/// namespace of their own), and the test.
const NOT_TRIED: &str = "SAYSO_TEST_NOT_TRIED";

/// The ways to a namespace in which a disk may be mounted. `./test` knows the same.
const AS_ROOT: [&[&str]; 2] = [&["unshare", "-m"], &["sudo", "-n", "unshare", "-m"]];
/// As a user who is root in there, and nobody else: no other account can be had.
const AS_SELF: &[&str] = &["unshare", "-Urm"];

/// Which accounts a test needs beside its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accounts {
    /// None.
    Own,
    /// That of a server, which refuses to be root.
    Servers,
}

/// Whether this is the test that runs again.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

fn way(accounts: Accounts) -> Option<&'static [&'static str]> {
    let folder = tempfile::tempdir().expect("a folder");
    let ways = AS_ROOT.into_iter().chain((accounts == Accounts::Own).then_some(AS_SELF));
    ways.into_iter().find(|way| {
        let Some((program, arguments)) = way.split_first() else { return false };
        let mut command = Command::new(program);
        command.args(arguments).args(["sh", "-c", "mount -t tmpfs -o size=1m tmpfs \"$0\""]).arg(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// Runs the test again where a disk may be mounted; false where nowhere is such a place. `test` is its whole name.
pub fn again_in_a_namespace(test: &str, accounts: Accounts) -> bool {
    let Some((program, arguments)) = way(accounts).and_then(<[_]>::split_first) else { return false };
    let mut command = Command::new(program);
    command.args(arguments).args(["env", &format!("{INSIDE}=1")]).arg(std::env::current_exe().expect("a path"));
    assert!(command.args([test, "--exact", "--nocapture"]).status().expect("starts").success());
    true
}

/// Says that a test, or what of it is named, was not tried for want of a disk of its own.
pub fn not_tried(what: &str, accounts: Accounts) {
    let needs = match accounts {
        Accounts::Own => "any",
        Accounts::Servers => "root",
    };
    eprintln!("NOT TRIED, for want of a disk that may be mounted: {what}");
    if let Some(file) = std::env::var_os(NOT_TRIED) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        writeln!(file.expect("a place to note it"), "{needs} {what}").expect("noted");
    }
}

pub fn mount(arguments: &[&str], folder: &Path) {
    assert!(Command::new("mount").args(arguments).arg(folder).status().expect("starts").success(), "{arguments:?}");
}

pub fn unmount(folder: &Path) {
    assert!(Command::new("umount").arg(folder).status().expect("starts").success());
}

/// Writes until the disk takes no more, into a file that can be removed again.
pub fn fill(ballast: &Path) {
    let mut file = std::fs::File::create(ballast).expect("a file");
    for piece in [65_536, 4096, 512, 1] {
        let bytes = vec![0; piece];
        while file.write_all(&bytes).is_ok() {}
    }
}
