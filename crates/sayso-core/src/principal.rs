//! Who is calling, and through what.

use std::fmt;
use std::sync::Arc;

/// What the names of this machine's own accounts begin with.
pub const LOCAL: &str = "local:";

/// What kind of caller it is. Only a person (or a written policy) answers; only an agent or service collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// A human being.
    Person,
    /// An agent, or the worker that speaks for it.
    Agent,
    /// Another program of the operator's.
    Service,
    /// A written rule that answered.
    Policy,
}

impl PrincipalKind {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Service => "service",
            Self::Policy => "policy",
        }
    }
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Person, Self::Agent, Self::Service, Self::Policy].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// An authenticated caller. Over HTTP it is always the credential's; nothing in a body says who somebody is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Person, agent, service or policy.
    pub kind: PrincipalKind,
    /// The name the credential was given, such as `local:ada`. Shared: it goes into every event of theirs.
    pub name: Arc<str>,
}

impl Principal {
    /// A person by name.
    pub fn person(name: impl Into<Arc<str>>) -> Self {
        Self { kind: PrincipalKind::Person, name: name.into() }
    }
    /// An agent by name.
    pub fn agent(name: impl Into<Arc<str>>) -> Self {
        Self { kind: PrincipalKind::Agent, name: name.into() }
    }
    /// Reads `person local:ada`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(' ')?;
        Some(Self { kind: PrincipalKind::parse(kind)?, name: name.into() })
    }
    /// Whether whoever is behind this caller is `other`: the same principal, or of one account of this machine
    /// (`local:…`, a name that no credential can be given) its owner and what they started themselves.
    pub fn is_the_hand_of(&self, other: &Self) -> bool {
        self == other || (self.name == other.name && self.name.starts_with(LOCAL))
    }
    /// Whether this caller may answer what is asked: persons and policies only (invariant 6).
    pub fn may_answer(&self) -> bool {
        matches!(self.kind, PrincipalKind::Person | PrincipalKind::Policy)
    }
    /// Whether this caller may ask and take answers away: agents and services only.
    pub fn may_collect(&self) -> bool {
        matches!(self.kind, PrincipalKind::Agent | PrincipalKind::Service)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        f.write_str(" ")?;
        f.write_str(&self.name)
    }
}

impl serde::Serialize for Principal {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Principal {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected a principal such as `person local:ada`"))
    }
}

/// The surface an answer came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The web inbox.
    Inbox,
    /// The command line.
    Cli,
    /// The HTTP API.
    Http,
    /// An MCP connection.
    Mcp,
    /// A chat thread.
    Thread,
    /// The embedded library.
    Library,
    /// An agent that passed on what a person told it, where the operator trusts it to. The principal is the agent.
    Relay,
    /// Sayso itself: a deadline, a sweep, a rule.
    Service,
}

impl Channel {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Cli => "cli",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Thread => "thread",
            Self::Library => "library",
            Self::Relay => "relay",
            Self::Service => "service",
        }
    }
    /// The channel that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        let all =
            [Self::Inbox, Self::Cli, Self::Http, Self::Mcp, Self::Thread, Self::Library, Self::Relay, Self::Service];
        all.into_iter().find(|channel| channel.as_str() == word)
    }
}
