//! What can be submitted: plain data, and what is wrong with it.

use std::collections::BTreeSet;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::limits::{ROUND_LIMIT_DEFAULT, ROUND_LIMIT_MAX};
use sayso_core::round::OperationKind;
use sayso_core::time::UnixMs;

use super::server::Server;
use crate::plan::Plan;

/// How long a server may take for an answer while nobody is asked, unless somebody says otherwise.
pub const TIME_LIMIT_DEFAULT: Duration = Duration::from_secs(30);

/// What happens when a server asks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HumanInput {
    /// The plan answers; what it does not expect fails the execution.
    #[default]
    Fail,
    /// The question is stored, and a person answers it.
    Managed,
}

/// One call of a scripted agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The tool, as `server:name`.
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Json,
}

impl ScriptedCall {
    /// A call of `tool`, written `server:name`.
    pub fn new(tool: impl Into<String>, arguments: Json) -> Self {
        Self { tool: tool.into(), arguments }
    }
}

/// A run of an agent.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// What runs it, such as `script`.
    pub harness: String,
    /// The models to run it with, where the harness has any.
    pub models: Vec<String>,
    /// What it is to do.
    pub prompt: String,
    /// The servers it is bound to.
    pub servers: Vec<Server>,
    /// The tools it is offered, as `server:name`; none stands for every tool of its servers.
    pub tools: Vec<String>,
    /// What a scripted agent calls, in this order.
    pub script: Vec<ScriptedCall>,
    /// What is expected to be asked, and answered.
    pub plan: Option<Plan>,
    /// Until when a person may answer what it asks.
    pub deadline: Option<UnixMs>,
    /// How many rounds each of its calls may ask for.
    pub round_limit: u32,
    /// How long a server may take for an answer while nobody is asked.
    pub time_limit: Duration,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self {
            harness: String::new(),
            models: Vec::new(),
            prompt: String::new(),
            servers: Vec::new(),
            tools: Vec::new(),
            script: Vec::new(),
            plan: None,
            deadline: None,
            round_limit: ROUND_LIMIT_DEFAULT,
            time_limit: TIME_LIMIT_DEFAULT,
        }
    }
}

/// One operation of a server, without an agent.
#[derive(Debug, Clone)]
pub struct OperationSpec {
    /// The server.
    pub server: Server,
    /// A tool call, a prompt, or the reading of a resource.
    pub kind: OperationKind,
    /// The tool's or prompt's name, or the resource's URI.
    pub name: String,
    /// The arguments, an object; none for a resource.
    pub arguments: Option<Json>,
    /// What is expected to be asked, and answered.
    pub plan: Option<Plan>,
    /// How long it may take.
    pub time_limit: Duration,
}

impl OperationSpec {
    /// A tool call.
    pub fn tool(server: impl Into<Server>, name: impl Into<String>, arguments: Json) -> Self {
        Self { arguments: Some(arguments), ..Self::new(server.into(), OperationKind::Tool, name.into()) }
    }

    /// A prompt.
    pub fn prompt(server: impl Into<Server>, name: impl Into<String>, arguments: Json) -> Self {
        Self { arguments: Some(arguments), ..Self::new(server.into(), OperationKind::Prompt, name.into()) }
    }

    /// The reading of a resource.
    pub fn resource(server: impl Into<Server>, uri: impl Into<String>) -> Self {
        Self::new(server.into(), OperationKind::Resource, uri.into())
    }

    /// The same, with what is expected to be asked.
    #[must_use]
    pub fn plan(self, plan: Plan) -> Self {
        Self { plan: Some(plan), ..self }
    }

    fn new(server: Server, kind: OperationKind, name: String) -> Self {
        Self { server, kind, name, arguments: None, plan: None, time_limit: TIME_LIMIT_DEFAULT }
    }
}

/// What can be submitted.
#[derive(Debug, Clone)]
pub enum Spec {
    /// A run of an agent.
    Agent(Box<AgentSpec>),
    /// One operation of a server.
    Operation(Box<OperationSpec>),
}

impl From<AgentSpec> for Spec {
    fn from(spec: AgentSpec) -> Self {
        Self::Agent(Box::new(spec))
    }
}

impl From<OperationSpec> for Spec {
    fn from(spec: OperationSpec) -> Self {
        Self::Operation(Box::new(spec))
    }
}

pub(super) fn refuse<T>(words: impl Into<String>) -> Result<T, Error> {
    Err(Error::Model(words.into()))
}

impl Spec {
    /// Says what is wrong with it, before anything starts. Whether there is such a harness is for its runner to say.
    pub(super) fn check(&self, human_input: HumanInput, is_stored: bool) -> Result<(), Error> {
        if human_input == HumanInput::Managed {
            match self {
                Self::Operation(_) => return refuse("only an agent's questions can be managed, not an operation's"),
                Self::Agent(spec) if spec.plan.is_some() => {
                    return refuse("managed input and a plan exclude each other: a person answers, or the plan does");
                }
                Self::Agent(_) if !is_stored => return refuse("managed input needs a kit with a persistent store"),
                Self::Agent(_) => {}
            }
        }
        match self {
            Self::Agent(spec) => spec.check(),
            Self::Operation(spec) => spec.check(),
        }
    }
}

fn check_plan(plan: Option<&Plan>) -> Result<(), Error> {
    match plan.map(Plan::begin) {
        Some(Err(error)) => refuse(format!("the plan cannot be followed: {error}")),
        _ => Ok(()),
    }
}

fn check_time(limit: Duration) -> Result<(), Error> {
    if limit.is_zero() { refuse("the time limit must be more than nothing") } else { Ok(()) }
}

impl AgentSpec {
    /// What a kit's agents need: something to run them with.
    pub(super) fn check_harness(&self) -> Result<(), Error> {
        if self.harness.is_empty() {
            return refuse("no harness is named");
        }
        if self.models.iter().any(|model| model.trim().is_empty()) {
            return refuse("a model has no name");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.check_harness()?;
        if self.prompt.trim().is_empty() {
            return refuse("the prompt is empty");
        }
        let mut names = BTreeSet::new();
        for server in &self.servers {
            server.check()?;
            if !names.insert(server.name()) {
                return refuse(format!("two servers are named {}", server.name()));
            }
        }
        let known = |tool: &str| match tool.split_once(':') {
            Some((server, name)) if names.contains(server) && !name.is_empty() => Ok(()),
            Some((server, _)) if !names.contains(server) => {
                refuse(format!("the tool {tool} is of the server {server}, which is not bound"))
            }
            _ => refuse(format!("the tool {tool} must be written server:name")),
        };
        self.tools.iter().try_for_each(|tool| known(tool))?;
        for call in &self.script {
            known(&call.tool)?;
            if !self.offers(&call.tool) {
                return refuse(format!(
                    "the script calls {}, which is not among the tools that are offered",
                    call.tool
                ));
            }
            if !call.arguments.is_object() {
                return refuse(format!("the arguments of {} must be an object", call.tool));
            }
        }
        if self.round_limit == 0 || self.round_limit > ROUND_LIMIT_MAX {
            return refuse(format!("the round limit must be 1 to {ROUND_LIMIT_MAX}"));
        }
        check_time(self.time_limit)?;
        check_plan(self.plan.as_ref())
    }

    /// Whether the agent may call `tool`, written `server:name`.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|offered| offered == tool)
    }
}

impl OperationSpec {
    fn check(&self) -> Result<(), Error> {
        self.server.check()?;
        if self.name.is_empty() {
            return refuse(format!("the {} has no name", self.kind.as_str()));
        }
        match &self.arguments {
            Some(_) if self.kind == OperationKind::Resource => return refuse("a resource takes no arguments"),
            Some(arguments) if !arguments.is_object() => return refuse("the arguments must be an object"),
            _ => {}
        }
        check_time(self.time_limit)?;
        check_plan(self.plan.as_ref())
    }
}
