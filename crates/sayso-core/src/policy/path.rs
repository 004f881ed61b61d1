//! Paths in arguments, judged by their text alone. Links are not followed: core reads no disk.

use super::error::PolicyError;

/// A folder by its absolute path, `/` between its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder(Vec<String>);

impl Folder {
    /// Reads an absolute path without `.` and `..`.
    pub(super) fn parse(text: &str) -> Result<Self, PolicyError> {
        let error = || PolicyError::new("", "a folder is an absolute path without . and ..");
        let rest = text.strip_prefix('/').ok_or_else(error)?;
        let parts: Vec<_> = rest.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if parts.iter().any(|part| part == "." || part == "..") {
            return Err(error());
        }
        Ok(Self(parts))
    }

    /// Whether a path is the folder or below it, none if that cannot be said: the path is relative, empty, climbs above
    /// the root, or has characters that no plain path has.
    pub(super) fn holds(&self, path: &str) -> Option<bool> {
        let parts = parts(path.strip_prefix('/')?, Vec::new())?;
        Some(parts.len() >= self.0.len() && parts.iter().zip(&self.0).all(|(part, of)| part == of))
    }

    /// The absolute path that `path` means from here, with `.` and `..` worked out; none as for [`Folder::holds`].
    pub(super) fn resolve(&self, path: &str) -> Option<String> {
        let parts = match path.strip_prefix('/') {
            Some(rest) => parts(rest, Vec::new())?,
            None => parts(path, self.0.clone())?,
        };
        Some(format!("/{}", parts.join("/")))
    }
}

/// The parts after `from`, with `.` and `..` worked out.
fn parts(path: &str, mut from: Vec<String>) -> Option<Vec<String>> {
    if path.contains(['\\', '\0']) || path.contains(char::is_control) {
        return None;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(from.pop()?),
            part => from.push(part.to_owned()),
        }
    }
    Some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inside_by_its_parts_and_not_by_its_letters() {
        let folder = Folder::parse("/home/ada/code/").unwrap();
        for (path, inside) in [
            ("/home/ada/code", Some(true)),
            ("/home/ada/code/a/../b", Some(true)),
            ("//home/./ada/code/x", Some(true)),
            ("/home/ada/codeshop", Some(false)),
            ("/home/ada/code/../secret", Some(false)),
            ("/home/ada/code/../../../../etc", None),
            ("work/x", None),
            ("", None),
            ("~/x", None),
            ("/home/ada/code/a\\..\\b", None),
        ] {
            assert_eq!(folder.holds(path), inside, "{path}");
        }
        assert!(Folder::parse("work").is_err() && Folder::parse("/a/../b").is_err());
        assert_eq!(folder.resolve("a/../..").as_deref(), Some("/home/ada"));
    }
}
