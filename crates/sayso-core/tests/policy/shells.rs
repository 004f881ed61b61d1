//! The splitter against a real shell: what it takes apart, the shell runs in exactly those parts.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sayso_core::policy::split;

/// Runs each command that comes in, with nothing on the path: the shell then hands every program it would run, and its
/// arguments, to a function, which tells them and succeeds.
const SCRIPT: &str = r#"
exec 3>&1 2>/dev/null
PATH=/nowhere
command_not_found_handle() { local all; printf -v all '%s\x1f' "$@"; printf '%s\x1e' "$all" >&3; }
while IFS= read -r -d '' line; do ( eval -- "$line" ) </dev/null >/dev/null; printf '\x1d' >&3; done
"#;

/// What commands are made of: mostly what can be taken apart, else few would be left. `_` is a space, `T` a tab, `N` a
/// line break.
const PIECES: &str =
    r##"a b 1 ab a b b= - @ , : # ^ % ~ ' " 'a_b' "a;b" '#' _ _ _ _ _ T N ; && & | _&&_ _|_ $ ` ( > * { \ !"##;

/// How many commands are tried; each costs the shell a process or more.
const COMMANDS: usize = 600;

/// Programs as the shell ran them for each command, in no order: the parts of a pipe run at once.
fn run(commands: &[String]) -> Vec<Vec<Vec<String>>> {
    let mut shell = Command::new("bash");
    let shell = shell.args(["--norc", "-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().expect("the tests need bash");
    let mut stdin = child.stdin.take().unwrap();
    let input = commands.iter().fold(Vec::new(), |mut input, command| {
        input.extend_from_slice(command.as_bytes());
        input.push(0);
        input
    });
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let words = |program: &str| program.split_terminator('\x1f').map(str::to_owned).collect();
    let programs = |told: &str| told.split_terminator('\x1e').map(words).collect();
    String::from_utf8(output.stdout).unwrap().split_terminator('\x1d').map(programs).collect()
}

/// What the shell should run: past assignments, and nothing for a part that only assigns.
fn expected(command: &str) -> Option<Vec<Vec<String>>> {
    let is_assignment = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
        })
    };
    let segments = split(command).ok()?.into_iter();
    let words = segments.map(|part| part.words.iter().skip_while(is_assignment).cloned().collect::<Vec<_>>());
    Some(words.filter(|words| !words.is_empty()).collect())
}

#[test]
fn bash_runs_the_parts_that_the_splitter_finds() {
    let pieces = PIECES.split(' ').map(|piece| piece.replace('_', " ").replace('T', "\t").replace('N', "\n"));
    let pieces = prop::sample::select(pieces.collect::<Vec<_>>());
    let strategy = prop::collection::vec(pieces, 1..14).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::deterministic();
    // Quoted assignments are none, builtins and jobs are not looked for, and `||` does not run what follows success.
    let is_asked = |command: &String| {
        let is_plain =
            |words: &Vec<String>| words[0].starts_with(|first: char| first.is_ascii_alphanumeric() || first == '-');
        let assigns_quoted = command.contains('=') && command.contains(['\'', '"']);
        !command.contains("||") && !assigns_quoted && expected(command).is_some_and(|parts| parts.iter().all(is_plain))
    };
    let commands = std::iter::repeat_with(|| strategy.new_tree(&mut runner).unwrap().current());
    let commands: Vec<String> = commands.filter(is_asked).take(COMMANDS).collect();
    let ran = run(&commands);
    assert_eq!(ran.len(), COMMANDS);
    for (command, mut ran) in commands.iter().zip(ran) {
        let mut expected = expected(command).unwrap();
        expected.sort();
        ran.sort();
        assert_eq!(ran, expected, "{command:?}");
    }
}
