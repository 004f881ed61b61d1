//! The rule of the local credential, in one place: without `--token-file` a command acts as the owner of the data
//! folder, and only for somebody who sits at a terminal. An agent that runs commands has none; `docs/security.md` says
//! what that does and does not protect.

use std::io::{IsTerminal as _, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sayso::Error;

use crate::error::CommandError;

/// A token is about a hundred bytes; more is another file.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// Which of the standard streams are terminals.
#[derive(Debug, Clone, Copy)]
pub struct Terminals {
    /// Where keys would come from.
    pub stdin: bool,
    /// Where a person would read.
    pub stderr: bool,
}

impl Terminals {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self { stdin: std::io::stdin().is_terminal(), stderr: std::io::stderr().is_terminal() }
    }

    /// Whether a form can be shown and answered here.
    pub fn can_ask(self) -> bool {
        self.stdin && self.stderr
    }
}

/// What standard input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// A person's keys.
    Keys,
    /// The answer itself (`--json -`).
    Data,
}

/// Whether the local credential may be used: standard error must be a terminal, and standard input too unless it
/// carries the answer.
pub fn check_local(terminals: Terminals, stdin: Stdin) -> Result<(), CommandError> {
    if terminals.stderr && (terminals.stdin || stdin == Stdin::Data) {
        return Ok(());
    }
    Err(CommandError::from(Error::Unauthenticated(
        "without a terminal nobody can tell that a person is here, so the local credential is not used",
    )))
}

/// The secret in `file`, which only its owner may be able to read.
pub fn read_token(file: &Path) -> Result<String, CommandError> {
    let refuse = |problem: String| CommandError::TokenFile { path: file.display().to_string(), problem };
    let opened = std::fs::File::open(file).map_err(|error| refuse(format!("cannot be read: {}", error.kind())))?;
    let about = opened.metadata().map_err(|error| refuse(format!("cannot be read: {}", error.kind())))?;
    if !about.is_file() {
        return Err(refuse("is not a file".to_owned()));
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        return Err(refuse(format!("others can read or change it (mode {mode:03o}), so it keeps no secret")));
    }
    let mut text = String::new();
    opened
        .take(TOKEN_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| refuse(format!("cannot be read: {}", error.kind())))?;
    let secret = text.trim();
    if secret.is_empty() || secret.contains(char::is_whitespace) {
        return Err(refuse("must hold one token and nothing else".to_owned()));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_local_credential_needs_somebody_at_a_terminal() {
        for (stdin, stderr, carries, allowed) in [
            (true, true, Stdin::Keys, true),
            (true, true, Stdin::Data, true),
            (false, true, Stdin::Data, true),
            (false, true, Stdin::Keys, false),
            (true, false, Stdin::Keys, false),
            (true, false, Stdin::Data, false),
            (false, false, Stdin::Keys, false),
            (false, false, Stdin::Data, false),
        ] {
            let found = check_local(Terminals { stdin, stderr }, carries);
            assert_eq!(found.is_ok(), allowed, "stdin {stdin}, stderr {stderr}, {carries:?}");
            assert!(allowed || matches!(found, Err(error) if error.exit() == crate::exit::Exit::Credential));
        }
    }

    #[test]
    fn a_token_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "sayso_person_00ff\n").unwrap();
        for (mode, usable) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o622, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_token(&file).is_ok(), usable, "{mode:o}");
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_token(&file).unwrap(), "sayso_person_00ff");
        std::fs::write(&file, "two words").unwrap();
        assert!(read_token(&file).is_err());
        assert!(read_token(folder.path()).is_err());
    }
}
