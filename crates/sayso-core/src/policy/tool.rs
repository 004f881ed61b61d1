//! A tool is the pair of its server and its name, and is compared as a pair.

use std::fmt;

use super::error::PolicyError;
use super::glob::Glob;
use crate::limits::NAME_BYTES_MAX;
use crate::round::OperationKind;

/// What stands before a prompt's name, so that rules can name it.
pub const PROMPT_PREFIX: &str = "prompt:";
/// What stands before a resource's URI, likewise.
pub const RESOURCE_PREFIX: &str = "resource:";

/// A tool, written `server:name`. A server's name has no colon, a tool's may.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName {
    server: String,
    name: String,
}

impl ToolName {
    /// The tool `name` of `server`; both have 1 to [`NAME_BYTES_MAX`] bytes.
    pub fn new(server: impl Into<String>, name: impl Into<String>) -> Result<Self, PolicyError> {
        let (server, name) = (server.into(), name.into());
        let is_name = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if !is_name(&server) || !is_name(&name) {
            return Err(PolicyError::new("", format!("a server and a tool have 1 to {NAME_BYTES_MAX} bytes each")));
        }
        if server.contains(':') {
            return Err(PolicyError::new("", "a server's name has no colon"));
        }
        Ok(Self { server, name })
    }

    /// Reads `server:name`, split at the first colon.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (server, name) = pair(text)?;
        Self::new(server, name)
    }

    /// The tool that stands for an operation in rules and grants: a tool itself, and prompts and resources by names that
    /// begin with [`PROMPT_PREFIX`] and [`RESOURCE_PREFIX`].
    pub fn of_operation(server: &str, kind: OperationKind, name: &str) -> Result<Self, PolicyError> {
        let name = match kind {
            OperationKind::Tool => name.to_owned(),
            OperationKind::Prompt => format!("{PROMPT_PREFIX}{name}"),
            OperationKind::Resource => format!("{RESOURCE_PREFIX}{name}"),
        };
        Self::new(server, name)
    }

    /// The server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tool's name on its server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.name)
    }
}

impl serde::Serialize for ToolName {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ToolName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Which tools are meant: a pattern for the server and one for the name, written `server:name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    server: Glob,
    name: Glob,
}

impl ToolPattern {
    /// Reads `server:name`, each a [`Glob`]; `*:*` is every tool.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (server, name) = pair(text)?;
        Ok(Self { server: Glob::parse(server)?, name: Glob::parse(name)? })
    }

    /// Whether the tool is meant.
    pub fn matches(&self, tool: &ToolName) -> bool {
        self.server.matches(&tool.server) && self.name.matches(&tool.name)
    }

    /// The pattern of exactly this tool, as text.
    pub(super) fn text_of(tool: &ToolName) -> String {
        format!("{}:{}", Glob::escaped(&tool.server), Glob::escaped(&tool.name))
    }
}

fn pair(text: &str) -> Result<(&str, &str), PolicyError> {
    text.split_once(':').ok_or_else(|| PolicyError::new("", "a tool is written server:name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_compared_as_a_pair() {
        let tool = ToolName::parse("files:read:all").unwrap();
        assert_eq!((tool.server(), tool.name()), ("files", "read:all"));
        assert!(
            ToolName::new("a:b", "c").is_err() && ToolName::parse("read").is_err() && ToolName::parse(":x").is_err()
        );
        let pattern = ToolPattern::parse("file?:read*").unwrap();
        assert!(pattern.matches(&tool) && !pattern.matches(&ToolName::parse("f:iles:read").unwrap()));
        assert!(ToolPattern::parse("*:*").unwrap().matches(&tool) && ToolPattern::parse("*").is_err());
        let exact = ToolPattern::parse(&ToolPattern::text_of(&ToolName::parse("a*:b?").unwrap())).unwrap();
        assert!(
            exact.matches(&ToolName::parse("a*:b?").unwrap()) && !exact.matches(&ToolName::parse("ax:by").unwrap())
        );
    }
}
