//! Which folder the rounds are in.

use std::path::{Path, PathBuf};

use sayso::Error;

use crate::error::CommandError;

/// What to do where the folder is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Create it, readable for its owner only.
    Create,
    /// Refuse: there is nothing to read, and a mistyped folder should not look like an empty one.
    Refuse,
}

/// The folder that `--data` or `SAYSO_DATA` names, else `sayso` in the platform's data folder.
pub fn resolve(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    match given {
        Some(path) if path.as_os_str().is_empty() => Err(CommandError::Usage {
            message: "--data (or SAYSO_DATA) is empty".to_owned(),
            help: "name a folder, or leave it out to use the platform's data folder".to_owned(),
        }),
        Some(path) => Ok(path.to_owned()),
        None => dirs::data_dir().map(|folder| folder.join("sayso")).ok_or_else(|| CommandError::Usage {
            message: "this account has no data folder".to_owned(),
            help: "name one: --data DIR, or set SAYSO_DATA".to_owned(),
        }),
    }
}

/// Checks that the folder is there where it has to be.
pub fn check(folder: &Path, missing: Missing) -> Result<(), CommandError> {
    if missing == Missing::Create || folder.is_dir() {
        return Ok(());
    }
    Err(CommandError::Advised {
        error: Error::NotFound("data folder"),
        help: format!(
            "{} does not exist; `sayso serve` or an agent's gateway creates it, and --data or SAYSO_DATA names another",
            folder.display()
        ),
    })
}
