//! A leading `cd` that stays where the agent works.

use std::fmt;

use crate::policy::error::PolicyError;
use crate::policy::path::Folder;

/// The folder an agent works in. A command that begins with `cd DIR && ` and stays inside is judged by what follows.
pub struct WorkFolder<'a> {
    folder: Folder,
    stays: &'a dyn Fn(&str) -> bool,
}

impl<'a> WorkFolder<'a> {
    /// The folder `path`, absolute. Core reads no disk: `stays` says of an absolute path below it by name whether it
    /// stays there once links are followed.
    pub fn new(path: &str, stays: &'a dyn Fn(&str) -> bool) -> Result<Self, PolicyError> {
        Ok(Self { folder: Folder::parse(path)?, stays })
    }

    /// What follows a leading `cd DIR && ` into the folder or below; none if the command begins otherwise.
    pub(super) fn after_cd<'c>(&self, command: &'c str) -> Option<&'c str> {
        let rest = spaces(command.strip_prefix("cd")?)?;
        let (target, rest) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest.get(1..)?.split_once(quote)?,
            _ => rest.split_at_checked(rest.find([' ', '\t'])?)?,
        };
        let is_plain = |next: char| next.is_ascii_alphanumeric() || "_./- ".contains(next);
        if target.is_empty() || target.starts_with(['-', ' ']) || !target.chars().all(is_plain) {
            return None;
        }
        let rest = spaces(spaces(rest)?.strip_prefix("&&")?)?;
        let path = self.folder.resolve(target)?;
        (self.folder.holds(&path) == Some(true) && (self.stays)(&path)).then_some(rest)
    }
}

/// The text after at least one space or tab.
fn spaces(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches([' ', '\t']);
    (rest.len() < text.len()).then_some(rest)
}

impl fmt::Debug for WorkFolder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkFolder({:?})", self.folder)
    }
}
