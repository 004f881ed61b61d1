//! Grants, and what each of them shows to whoever gives it, read from its parts as `docs/approvals.md` says and by no
//! code of the policy's: what it permits beyond that is a fault.

use proptest::prelude::*;
use sayso_core::id::GrantId;
use sayso_core::policy::{Effect, Grant, GrantScope, Pins};
use sayso_core::principal::Principal;
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;
use serde_json::Value;

use crate::granting::{NOW, grant};
use crate::{json, tool, when};

/// A condition as it is written, and what it says of arguments.
type Stated = (&'static str, fn(&Value) -> bool);

const CONDITIONS: [Stated; 9] = [
    (r#"{"at":"/command","command":["ls *","rm x"]}"#, |call| {
        parts(call, |part| part[0] == "ls" || part == ["rm", "x"])
    }),
    (r#"{"at":"/command","command":["*"]}"#, |call| parts(call, |_| true)),
    (r#"{"at":"/n","min":2}"#, |call| call["n"].as_f64().is_some_and(|n| n >= 2.0)),
    (r#"{"at":"/n","max":2}"#, |call| call["n"].as_f64().is_some_and(|n| n <= 2.0)),
    (r#"{"at":"/n","equals":1}"#, |call| call["n"].as_f64() == Some(1.0)),
    (r#"{"at":"/path","within":"/w"}"#, |call| call["path"] == "/w/a"),
    (r#"{"at":"/path","glob":"/w/*"}"#, |call| call["path"] == "/w/a"),
    (r#"{"at":"/path","exists":true}"#, |call| !call["path"].is_null()),
    (r#"{"at":"","only":["n","path"]}"#, |call| call["command"].is_null()),
];

/// Whether the command of a call is simple commands alone, each of them as `is_shown` says.
fn parts(call: &Value, is_shown: impl Fn(&[&str]) -> bool) -> bool {
    call["command"].as_str().is_some_and(|command| {
        let mut parts = command.split(['&', ';', '|', '\n']).map(|part| part.split_whitespace().collect::<Vec<_>>());
        is_plain(command) && parts.all(|part| part.is_empty() || is_shown(&part))
    })
}

/// Nothing in it that cannot be split into commands: no substitution, redirection or open quotes.
fn is_plain(command: &str) -> bool {
    !command.contains(['$', '(', '>', '\''])
}

#[derive(Debug, Clone)]
enum Which {
    Any,
    Exactly(&'static str),
    When(Vec<usize>),
}

#[derive(Debug, Clone)]
enum Scope {
    Once { is_this_round: bool },
    Session { session: &'static str, tool: &'static str, is_this_definition: bool, which: Which },
    Rule { tools: &'static str, effects: Option<u8>, which: Which },
}

/// A grant by its parts.
#[derive(Debug, Clone)]
pub struct Given {
    scope: Scope,
    expires_in_ms: Option<i64>,
    uses_max: Option<u32>,
    uses: u32,
    is_revoked: bool,
    by_starter: bool,
    agent: Option<&'static str>,
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        Just(Which::Any),
        prop_oneof![Just("{}"), Just(r#"{"n":1}"#)].prop_map(Which::Exactly),
        prop::collection::vec(0..CONDITIONS.len(), 1..3).prop_map(Which::When),
    ]
}

fn scopes() -> impl Strategy<Value = Scope> {
    let effects = prop::option::of(prop_oneof![Just(15), 1u8..16]);
    let usual = || prop::bool::weighted(0.8);
    prop_oneof![
        usual().prop_map(|is_this_round| Scope::Once { is_this_round }),
        (usual(), prop_oneof![Just("a:x"), Just("a:y"), Just("b:y")], usual(), which()).prop_map(
            |(is_own, tool, is_this_definition, which)| {
                Scope::Session { session: if is_own { "s" } else { "t" }, tool, is_this_definition, which }
            }
        ),
        (prop_oneof![Just("*:*"), Just("a:*"), Just("a:x"), Just("b:*"), Just("?:y")], effects, which())
            .prop_map(|(tools, effects, which)| Scope::Rule { tools, effects, which }),
    ]
}

pub fn given() -> impl Strategy<Value = Given> {
    let agents = prop::option::weighted(0.3, prop_oneof![Just("local:ada"), Just("local:grace")]);
    let ends = (prop::option::weighted(0.3, -1i64..2), prop::option::weighted(0.3, 0u32..3), 0u32..2);
    (scopes(), ends, prop::bool::weighted(0.1), any::<bool>(), agents).prop_map(
        |(scope, (expires_in_ms, uses_max, uses), is_revoked, by_starter, agent)| Given {
            scope,
            expires_in_ms,
            uses_max,
            uses,
            is_revoked,
            by_starter,
            agent,
        },
    )
}

impl Given {
    /// The grant, under this number.
    pub fn grant(&self, number: u64) -> Grant {
        let pins = |which: &Which| match which {
            Which::Any => Pins::Any,
            Which::Exactly(arguments) => Pins::Exactly(json(arguments)),
            Which::When(listed) => {
                let texts: Vec<_> = listed.iter().map(|at| CONDITIONS[*at].0).collect();
                Pins::When(when(&format!("[{}]", texts.join(","))))
            }
        };
        let scope = match &self.scope {
            Scope::Once { is_this_round } => {
                GrantScope::Once { digest: Digest::of_text(if *is_this_round { "round" } else { "another" }) }
            }
            Scope::Session { session, tool: name, is_this_definition, which } => GrantScope::Session {
                session: (*session).to_owned(),
                tool: tool(name),
                definition: Digest::of_text(if *is_this_definition { "definition" } else { "another" }),
                pins: pins(which),
            },
            Scope::Rule { tools, effects, which } => GrantScope::Rule {
                tools: (*tools).to_owned(),
                effects: effects.map(|bits| {
                    Effect::ALL
                        .into_iter()
                        .enumerate()
                        .filter(|(at, _)| bits & 1 << at != 0)
                        .map(|(_, each)| each)
                        .collect()
                }),
                pins: pins(which),
            },
        };
        Grant {
            id: GrantId::from_parts(NOW.0, number.into()),
            expires_at: self.expires_in_ms.map(|ms| UnixMs(NOW.0 + ms)),
            uses_max: self.uses_max,
            uses: self.uses,
            revoked_at: self.is_revoked.then_some(NOW),
            granted_by: Principal::person(if self.by_starter { "local:ada" } else { "local:grace" }),
            agent: self.agent.map(Principal::person),
            ..grant(scope)
        }
    }

    /// Whether it shows this call, made by `local:ada` in session `s`, of a tool that may do anything; where a second
    /// person is needed, or the tool is another than was reviewed.
    pub fn shows(&self, name: &str, arguments: &str, second_person: bool, is_changed: bool) -> bool {
        let call: Value = serde_json::from_str(arguments).unwrap();
        let pinned = |which: &Which| match which {
            Which::Any => true,
            Which::Exactly(exactly) => *exactly == arguments,
            Which::When(listed) => listed.iter().all(|at| CONDITIONS[*at].1(&call)),
        };
        // No lasting grant covers a command that cannot be split; the one call that was shown is its text.
        let is_plain = call["command"].as_str().is_none_or(is_plain);
        let (is_shown, limit) = match &self.scope {
            Scope::Once { is_this_round } => (*is_this_round, Some(1)),
            Scope::Session { session, tool, is_this_definition, which } => {
                (*session == "s" && *tool == name && *is_this_definition && is_plain && pinned(which), self.uses_max)
            }
            Scope::Rule { tools, effects, which } => {
                let about = match *tools {
                    "*:*" => true,
                    "a:*" => name.starts_with("a:"),
                    "b:*" => name.starts_with("b:"),
                    "?:y" => name.ends_with(":y"),
                    one => one == name,
                };
                let knows = effects.is_none_or(|bits| bits == 15) && !is_changed;
                (about && knows && is_plain && pinned(which), self.uses_max)
            }
        };
        is_shown
            && !self.is_revoked
            && self.expires_in_ms.is_none_or(|ms| ms > 0)
            && limit.is_none_or(|limit| self.uses < limit)
            && self.agent.is_none_or(|agent| agent == "local:ada")
            && !(second_person && self.by_starter)
    }
}
