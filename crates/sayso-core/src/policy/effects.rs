//! What a tool may do: the hints its server gives, and what is believed of them.

use crate::json::{Json, Kind};

/// One kind of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads.
    Read,
    /// Changes something.
    Write,
    /// Runs programs.
    Exec,
    /// Reaches beyond this machine.
    Network,
}

impl Effect {
    /// Every effect, in order.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Exec, Self::Network];

    /// The word as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Network => "network",
        }
    }

    /// What a call that has it may do, told to whoever is asked.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Read => "It reads data.",
            Self::Write => "It changes or deletes data. What it overwrites may be lost.",
            Self::Exec => "It runs a program.",
            Self::Network => "It reaches the network, beyond this machine.",
        }
    }

    /// What is told of a call of which nothing is known.
    pub const NOTHING_KNOWN: &str =
        "Nothing is known of what it may do. Take it for a call that destroys things and reaches the network.";
}

/// A set of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects(u8);

impl Effects {
    /// Everything: what a tool may do of which nothing is known.
    pub const ALL: Self = Self(0b1111);

    /// Whether the effect is among them.
    pub fn has(self, effect: Effect) -> bool {
        self.0 & 1 << effect as u8 != 0
    }

    /// These and one more.
    pub fn with(self, effect: Effect) -> Self {
        Self(self.0 | 1 << effect as u8)
    }

    /// Whether the two have one in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of these are in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The effects in order.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL.into_iter().filter(move |effect| self.has(*effect))
    }
}

impl FromIterator<Effect> for Effects {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        effects.into_iter().fold(Self::default(), Self::with)
    }
}

impl serde::Serialize for Effects {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.iter())
    }
}

impl<'de> serde::Deserialize<'de> for Effects {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Vec::<Effect>::deserialize(d)?.into_iter().collect())
    }
}

/// The hints of an MCP server about one tool, as it gave them. They are words of the server, not facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Reads MCP's `annotations` object. A hint that is no truth value is as good as missing.
    pub fn read(annotations: &Json) -> Self {
        let tree = annotations.tree();
        let hint = |name: &str| match tree.get(name).map(|hint| &hint.kind) {
            Some(Kind::Bool(hint)) => Some(*hint),
            _ => None,
        };
        Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// What is believed of a tool, for rules and for whoever is asked (`docs/policy.md`, "What a tool may do").
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolFacts {
    /// Whether the policy trusts the tool's server.
    pub trusted: bool,
    /// Nothing is changed and no program is run.
    pub read_only: bool,
    /// Something may be lost.
    pub destructive: bool,
    /// Doing it twice is doing it once.
    pub idempotent: bool,
    /// It reaches beyond what the server itself has.
    pub open_world: bool,
    /// What it may do, at most.
    pub effects: Effects,
}

impl ToolFacts {
    /// What is believed of a tool of which nothing is known.
    pub const UNKNOWN: Self = Self {
        trusted: false,
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
        effects: Effects::ALL,
    };

    /// What follows from a server's hints, the trust in it, and what the policy itself says of the tool. Missing hints
    /// mean the worst. Hints that make a tool look worse always count, those that make it look better only where the
    /// server is trusted, and never against the policy's own word.
    pub fn of(annotations: Annotations, trusted: bool, declared: Option<Effects>) -> Self {
        let good = |hint: Option<bool>, value: bool| trusted && hint == Some(value);
        let is_worse = annotations.read_only == Some(false) || annotations.destructive == Some(true);
        let effects = match declared {
            Some(declared) => {
                let declared = if is_worse { declared.with(Effect::Write) } else { declared };
                if annotations.open_world == Some(true) { declared.with(Effect::Network) } else { declared }
            }
            None => {
                let reads = good(annotations.read_only, true) && !is_worse;
                let here: Effects = if reads {
                    [Effect::Read].into_iter().collect()
                } else {
                    // Hints cannot say that a tool runs no programs.
                    [Effect::Read, Effect::Write, Effect::Exec].into_iter().collect()
                };
                if good(annotations.open_world, false) { here } else { here.with(Effect::Network) }
            }
        };
        let read_only = !effects.has(Effect::Write) && !effects.has(Effect::Exec);
        Self {
            trusted,
            read_only,
            destructive: !read_only && !good(annotations.destructive, false),
            idempotent: read_only || good(annotations.idempotent, true),
            open_world: effects.has(Effect::Network),
            effects,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(text: &str) -> Annotations {
        Annotations::read(&Json::parse(text).unwrap())
    }

    #[test]
    fn missing_hints_mean_the_worst() {
        for annotations in [hints("{}"), hints("null"), hints(r#"{"readOnlyHint":"true"}"#)] {
            let facts = ToolFacts::of(annotations, true, None);
            assert!(facts.destructive && facts.open_world && !facts.read_only && !facts.idempotent);
            assert_eq!(facts.effects, Effects::ALL);
        }
    }

    #[test]
    fn hints_of_an_untrusted_server_only_tighten() {
        let best =
            hints(r#"{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}"#);
        let facts = ToolFacts::of(best, true, None);
        assert!(facts.read_only && !facts.destructive && !facts.open_world && facts.idempotent);
        assert_eq!(ToolFacts::of(best, false, None), ToolFacts::of(Annotations::default(), false, None));

        let read: Effects = [Effect::Read].into_iter().collect();
        let worse = hints(r#"{"destructiveHint":true,"openWorldHint":true}"#);
        for trusted in [false, true] {
            let facts = ToolFacts::of(worse, trusted, Some(read));
            assert!(facts.effects.has(Effect::Write) && facts.effects.has(Effect::Network) && facts.destructive);
            assert!(ToolFacts::of(best, trusted, Some(read)).read_only);
        }
        assert!(!ToolFacts::of(hints(r#"{"readOnlyHint":true,"destructiveHint":true}"#), true, None).read_only);
    }

    #[test]
    fn a_set_of_effects_is_written_in_order() {
        let effects: Effects = serde_json::from_str(r#"["network","read"]"#).unwrap();
        assert_eq!(serde_json::to_string(&effects).unwrap(), r#"["read","network"]"#);
        assert!(effects.is_within(Effects::ALL) && !Effects::ALL.is_within(effects) && effects.meets(Effects::ALL));
    }
}
