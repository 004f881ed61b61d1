//! Grants: what somebody has allowed beforehand. A grant only narrows, and shows everything it covers.

use serde::{Deserialize, Serialize};

use super::condition::{Condition, ConditionText, Fit, Side};
use super::effects::{Effects, ToolFacts};
use super::error::PolicyError;
use super::shell::{CommandPattern, WorkFolder, split};
use super::tool::{ToolName, ToolPattern};
use crate::id::{GrantId, RoundId};
use crate::json::{Json, pointer_segments, pointer_to};
use crate::limits::CONDITIONS_MAX;
use crate::principal::Principal;
use crate::round::Digest;
use crate::time::UnixMs;

/// Which arguments a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pins {
    /// Any.
    Any,
    /// These alone, as canonical text: `1` and `1.0` differ.
    Exactly(Json),
    /// Those that meet all of these conditions.
    When(Vec<Condition>),
}

/// What a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// The one call that was shown.
    Once {
        /// Digest of the round that asked.
        digest: Digest,
    },
    /// One tool, in one session, as long as it stays the tool that was shown.
    Session {
        /// The session.
        session: String,
        /// The tool.
        tool: ToolName,
        /// Digest of its definition.
        definition: Digest,
        /// Which arguments.
        pins: Pins,
    },
    /// Whatever a rule is about, in every session.
    Rule {
        /// A [`ToolPattern`].
        tools: String,
        /// All of a tool's effects must be listed; none for any.
        effects: Option<Effects>,
        /// Which arguments.
        pins: Pins,
    },
}

/// Somebody's word that covers calls to come.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// What it covers.
    pub scope: GrantScope,
    /// Whose word it is.
    pub granted_by: Principal,
    /// When it was given.
    pub granted_at: UnixMs,
    /// When it ends by itself.
    pub expires_at: Option<UnixMs>,
    /// How many calls it covers.
    pub uses_max: Option<u32>,
    /// How many it has covered.
    pub uses: u32,
    /// When somebody took it back.
    pub revoked_at: Option<UnixMs>,
    /// Whose calls it covers; without it those of every agent.
    pub agent: Option<Principal>,
    /// The round it was drafted from.
    pub round: Option<RoundId>,
}

/// A call that asks for a grant.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    /// The tool.
    pub tool: &'a ToolName,
    /// Its arguments, exactly as they would run.
    pub arguments: &'a Json,
    /// Digest of the tool's definition as it is now.
    pub definition: Digest,
    /// Digest of the round that asked for this very call, if one did.
    pub round: Option<Digest>,
    /// The session it belongs to.
    pub session: &'a str,
    /// Who started the execution.
    pub started_by: Option<&'a Principal>,
    /// What is believed of the tool ([`super::Policy::facts`]).
    pub facts: &'a ToolFacts,
    /// Pointer to the argument that is a shell command ([`super::Policy::command_at`]).
    pub command_at: Option<&'a str>,
    /// The folder the agent works in, where that is known.
    pub work_folder: Option<&'a WorkFolder<'a>>,
}

/// What a grant must be so that it may stand in for the person whom the rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantNeeds {
    /// Not the word of whoever started the execution.
    pub second_person: bool,
    /// Given for the tool as it is now, since that is another than was reviewed: a rule knows no definition.
    pub changed_definition: bool,
}

impl GrantedCall<'_> {
    /// The first of these grants that stands in for a person. The rules have asked, and asked for sure: it is not for
    /// calls that they deny, or that a denying rule could not be ruled out for.
    pub fn grant_among<'g>(
        &self,
        grants: impl IntoIterator<Item = &'g Grant>,
        needs: GrantNeeds,
        now: UnixMs,
    ) -> Option<&'g Grant> {
        grants.into_iter().find(|grant| {
            let is_second = self.started_by.is_some_and(|starter| !starter.is_the_hand_of(&grant.granted_by));
            let knows_it = !needs.changed_definition || !matches!(grant.scope, GrantScope::Rule { .. });
            knows_it && (!needs.second_person || is_second) && grant.covers(self, now).is_ok()
        })
    }
}

/// Why a grant does not cover a call. No variant holds an argument's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCovered {
    /// Somebody took it back.
    #[error("the grant was revoked")]
    Revoked,
    /// Its time is over.
    #[error("the grant has expired")]
    Expired,
    /// It has covered as many calls as it was given for.
    #[error("the grant is used up")]
    UsedUp,
    /// It is for another agent's calls.
    #[error("the grant is for another agent")]
    OtherAgent,
    /// It is for one other call.
    #[error("the grant is for another call")]
    OtherCall,
    /// It is for another session.
    #[error("the grant is for another session")]
    OtherSession,
    /// It is for another tool.
    #[error("the grant is for another tool")]
    OtherTool,
    /// The tool is not the one that was shown.
    #[error("the tool's definition has changed since the grant was given")]
    OtherDefinition,
    /// The tool may do more than the grant says.
    #[error("the tool may do more than the grant says")]
    OtherEffects,
    /// The arguments are not those that the grant says.
    #[error("the grant is for other arguments{}", if at.is_empty() { String::new() } else { format!(": {at}") })]
    OtherArguments {
        /// JSON pointer to the first that differs.
        at: String,
    },
    /// The call runs a shell command that cannot be split.
    #[error("the command cannot be split: {0}")]
    OpaqueCommand(super::shell::Opaque),
}

impl GrantScope {
    /// Checks a scope that somebody wrote.
    pub fn check(&self) -> Result<(), PolicyError> {
        let pins = match self {
            Self::Once { .. } => return Ok(()),
            Self::Session { pins, .. } => pins,
            Self::Rule { tools, pins, .. } => {
                ToolPattern::parse(tools).map_err(|error| error.under("tools"))?;
                pins
            }
        };
        match pins {
            Pins::When(conditions) if conditions.is_empty() || conditions.len() > CONDITIONS_MAX => {
                Err(PolicyError::new("when", format!("lists 1 to {CONDITIONS_MAX} conditions")))
            }
            _ => Ok(()),
        }
    }

    /// The session it is bound to, if it is to one.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Session { session, .. } => Some(session),
            Self::Once { .. } | Self::Rule { .. } => None,
        }
    }

    /// The narrowest rule for calls like this one: this tool with these effects, the same members with the same values,
    /// a shell command word for word. For a person to widen before granting it.
    pub fn drafted(call: &GrantedCall<'_>) -> Self {
        Self::drafted_for(call.tool, call.facts.effects, call.arguments, call.command_at)
    }

    /// As [`GrantScope::drafted`], from what a round shows of its call.
    pub fn drafted_for(tool: &ToolName, effects: Effects, arguments: &Json, command_at: Option<&str>) -> Self {
        let pins = drafted_pins(arguments, command_at).unwrap_or_else(|| Pins::Exactly(arguments.clone()));
        Self::Rule { tools: ToolPattern::text_of(tool), effects: Some(effects), pins }
    }

    /// The scope with these top-level members of the arguments left open: any value, as long as the member is one of
    /// those that were shown. Only what is pinned by conditions can be opened so.
    pub fn with_free(self, members: &[String]) -> Result<Self, PolicyError> {
        if members.is_empty() {
            return Ok(self);
        }
        let Self::Rule { tools, effects, pins: Pins::When(mut conditions) } = self else {
            return Err(PolicyError::new("free", "the arguments cannot be left open member by member"));
        };
        for name in members {
            let at = pointer_to("", name);
            let pinned = conditions.len();
            conditions.retain(|condition| condition.at() != at);
            if conditions.len() == pinned {
                return Err(PolicyError::new("free", "names a member that the call does not have"));
            }
        }
        Ok(Self::Rule { tools, effects, pins: Pins::When(conditions) })
    }

    fn covers(&self, call: &GrantedCall<'_>) -> Result<(), NotCovered> {
        let pins = match self {
            // Bound to the text that was shown, whatever it is.
            Self::Once { digest } if call.round == Some(*digest) => return Ok(()),
            Self::Once { .. } => return Err(NotCovered::OtherCall),
            Self::Session { session, .. } if session != call.session => return Err(NotCovered::OtherSession),
            Self::Session { tool, .. } if tool != call.tool => return Err(NotCovered::OtherTool),
            Self::Session { definition, .. } if *definition != call.definition => {
                return Err(NotCovered::OtherDefinition);
            }
            Self::Session { pins, .. } => pins,
            Self::Rule { tools, effects, pins } => {
                if !ToolPattern::parse(tools).is_ok_and(|tools| tools.matches(call.tool)) {
                    return Err(NotCovered::OtherTool);
                }
                if effects.is_some_and(|effects| !call.facts.effects.is_within(effects)) {
                    return Err(NotCovered::OtherEffects);
                }
                pins
            }
        };
        if let Some(command) = command_of(call) {
            split(&command).map_err(NotCovered::OpaqueCommand)?;
        }
        pins.cover(call)
    }
}

impl Pins {
    fn cover(&self, call: &GrantedCall<'_>) -> Result<(), NotCovered> {
        match self {
            Self::Any => Ok(()),
            Self::Exactly(arguments) if arguments.canonical() == call.arguments.canonical() => Ok(()),
            Self::Exactly(_) => Err(NotCovered::OtherArguments { at: String::new() }),
            Self::When(conditions) => {
                let tree = call.arguments.tree();
                let fits = |condition: &&Condition| condition.fit(&tree, Side::Permits, call.work_folder) == Fit::Yes;
                match conditions.iter().find(|condition| !fits(condition)) {
                    Some(condition) => Err(NotCovered::OtherArguments { at: condition.at().to_owned() }),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Grant {
    /// Whether the grant covers a call, now. It says nothing about the policy: [`super::Verdict::with_grants`] does.
    pub fn covers(&self, call: &GrantedCall<'_>, now: UnixMs) -> Result<(), NotCovered> {
        self.is_usable(now)?;
        if self.agent.as_ref().is_some_and(|agent| call.started_by != Some(agent)) {
            return Err(NotCovered::OtherAgent);
        }
        self.scope.covers(call)
    }

    /// Whether it covers anything at all, now.
    pub fn is_usable(&self, now: UnixMs) -> Result<(), NotCovered> {
        if self.revoked_at.is_some() {
            return Err(NotCovered::Revoked);
        }
        if self.expires_at.is_some_and(|end| end <= now) {
            return Err(NotCovered::Expired);
        }
        if self.uses_limit().is_some_and(|limit| self.uses >= limit) {
            return Err(NotCovered::UsedUp);
        }
        Ok(())
    }

    /// How many calls it covers at most: one where it is for one.
    pub fn uses_limit(&self) -> Option<u32> {
        match self.scope {
            GrantScope::Once { .. } => Some(1),
            _ => self.uses_max,
        }
    }
}

/// The text of a call's shell command. A command that is no text runs nothing that could be split.
fn command_of(call: &GrantedCall<'_>) -> Option<String> {
    let at = pointer_segments(call.command_at?)?;
    call.arguments.tree().at(&at)?.text().map(str::to_owned)
}

/// A condition for every top-level member; none if one cannot be written as a condition.
fn drafted_pins(arguments: &Json, command_at: Option<&str>) -> Option<Pins> {
    let tree = arguments.tree();
    let members = tree.members();
    let names: Vec<String> = members.iter().map(|(name, _)| name.to_string()).collect();
    if names.is_empty() || names.len() >= CONDITIONS_MAX {
        return None;
    }
    let only = ConditionText { only: Some(names), ..ConditionText::default() };
    let mut texts = vec![only];
    for (name, value) in members {
        let at = pointer_to("", name);
        let is_command = command_at == Some(at.as_str());
        let command = if is_command { Some(vec![CommandPattern::text_of(value.text()?)?]) } else { None };
        let equals =
            if is_command { None } else { Some(Json::parse(value.raw).ok().filter(|value| !value.is_null())?) };
        texts.push(ConditionText { at, command, equals, ..ConditionText::default() });
    }
    let conditions = texts.into_iter().map(Condition::try_from).collect::<Result<_, _>>();
    conditions.ok().map(Pins::When)
}
