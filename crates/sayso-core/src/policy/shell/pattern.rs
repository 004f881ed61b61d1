//! Patterns for one command: a word for a word.

use super::split::{Segment, split};
use crate::policy::error::PolicyError;
use crate::policy::glob::Glob;

/// A pattern for one command, such as `npm run *`: words between spaces, each a [`Glob`] for one word of the command. A
/// last word that is `*` alone takes all the words that are left, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<Glob>,
    /// Whether any words may follow.
    is_open: bool,
    text: String,
}

/// Programs that run the program named in their arguments.
const RUNNERS: [&str; 18] = [
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "time", "timeout", "unbuffer", "watch", "xargs",
];
/// Programs whose arguments are commands in a text or file, which nobody can tell from outside.
const SHELLS: [&str; 11] = [".", "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "sh", "source", "zsh"];

impl CommandPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let is_open = words.last() == Some(&"*");
        if is_open {
            words.pop();
        } else if words.is_empty() {
            return Err(PolicyError::new("", "a command pattern has words"));
        }
        let words = words.into_iter().map(Glob::parse).collect::<Result<_, _>>()?;
        Ok(Self { words, is_open, text: text.to_owned() })
    }

    /// The text of the pattern that takes exactly this command; none if it is no single simple command or has a word
    /// that a pattern cannot say.
    pub fn text_of(command: &str) -> Option<String> {
        let segments = split(command).ok()?;
        let [Segment { words }] = segments.as_slice() else {
            return None;
        };
        let is_plain = |word: &String| !word.is_empty() && !word.contains(' ');
        words.iter().all(is_plain).then(|| words.iter().map(|word| Glob::escaped(word)).collect::<Vec<_>>().join(" "))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn fits(&self, words: &[String], takes: impl Fn(&Glob, usize, &str) -> bool) -> bool {
        let enough = if self.is_open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        enough && self.words.iter().zip(words).enumerate().all(|(at, (glob, word))| takes(glob, at, word))
    }

    /// Whether the pattern, as one that restricts, takes these words. The program counts by its name alone too.
    pub(super) fn finds(&self, words: &[String]) -> bool {
        self.fits(words, |glob, at, word| glob.matches(word) || (at == 0 && glob.matches(base_name(word))))
    }
}

/// Whether one of the patterns, as patterns that permit, takes the whole of one command.
pub(super) fn covers_segment(patterns: &[CommandPattern], segment: &Segment) -> bool {
    patterns.iter().any(|pattern| pattern.fits(&segment.words, |glob, _, word| glob.covers(word)))
}

/// The words from each place where a program may be named: past assignments, and behind programs that run another.
pub(super) fn starts(words: &[String]) -> impl Iterator<Item = &[String]> {
    let first = words.iter().take_while(|word| is_assignment(word)).count();
    let behind = words.get(first).is_some_and(|program| RUNNERS.contains(&base_name(program)));
    let last = if behind { words.len() } else { first + 1 };
    (first..last).filter_map(|from| words.get(from..)).filter(|words| !words.is_empty())
}

/// Whether a command hands a text or file to another shell.
pub(super) fn runs_another(words: &[String]) -> bool {
    starts(words).any(|from| from.first().is_some_and(|program| SHELLS.contains(&base_name(program))))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        !name.is_empty() && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::super::{covers, finds};
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
        texts.iter().map(|text| CommandPattern::parse(text).unwrap()).collect()
    }

    #[test]
    fn what_permits_must_cover_every_part() {
        let allowed = patterns(&["npm test", "npm run *", "cat src/*"]);
        for (command, covered) in [
            ("npm test", true),
            ("npm  'test'", true),
            ("npm test --watch", false),
            ("npm run", true),
            ("npm run lint -- --fix", true),
            ("npm test && npm run lint", true),
            ("npm test && curl x", false),
            ("npm test | sh", false),
            ("npm test\nrm x", false),
            ("X=1 npm test", false),
            ("/tmp/npm test", false),
            ("sudo npm test", false),
            ("'npm test'", false),
            ("cat src/a", true),
            ("cat src/../../etc/passwd", false),
        ] {
            assert_eq!(covers(&allowed, command, None), Ok(covered), "{command}");
        }
        assert_eq!(covers(&allowed, "npm run $(x)", None), Err(super::super::Opaque::Substitution));
        assert_eq!(covers(&patterns(&["*"]), "npm test; anything", None), Ok(true));
    }

    #[test]
    fn what_restricts_finds_any_part() {
        let denied = patterns(&["rm *", "git push *"]);
        for (command, found) in [
            ("ls", Some(false)),
            ("ls && rm -rf x", Some(true)),
            ("ls | /bin/rm", Some(true)),
            ("X=1 'rm' x", Some(true)),
            ("sudo -u root rm x", Some(true)),
            ("find . -print | xargs -0 rm", Some(true)),
            ("git rm x", Some(false)),
            ("echo rm", Some(false)),
            ("git 'push' origin", Some(true)),
            ("bash -c 'rm x'", None),
            ("ls > x", None),
            ("echo $(rm -rf /)", Some(true)),
            ("if true; then r\\m x; fi", Some(true)),
            ("cat <<X\nrm x\nX", Some(true)),
        ] {
            assert_eq!(finds(&denied, command), found, "{command}");
        }
    }

    #[test]
    fn a_command_can_be_written_as_a_pattern_of_itself() {
        let text = CommandPattern::text_of("grep 'a*b' x").unwrap();
        let pattern = patterns(&[&text]);
        assert_eq!(covers(&pattern, "grep 'a*b' x", None), Ok(true));
        assert_eq!(covers(&pattern, "grep 'axb' x", None), Ok(false));
        for other in ["a && b", "a > b", "echo 'a b'", "echo ''"] {
            assert_eq!(CommandPattern::text_of(other), None, "{other}");
        }
    }
}
