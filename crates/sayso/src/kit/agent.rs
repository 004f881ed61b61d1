use sayso_core::error::Error;
use sayso_core::time::UnixMs;

use super::Kit;
use super::handle::ExecutionHandle;
use super::server::Server;
use super::spec::{AgentSpec, HumanInput, ScriptedCall};
use crate::plan::Plan;

/// An agent of a kit: a harness, and a model where it has any.
#[derive(Clone)]
pub struct Agent {
    kit: Kit,
    spec: AgentSpec,
}

impl Agent {
    pub(super) fn new(kit: &Kit, spec: AgentSpec) -> Self {
        Self { kit: kit.clone(), spec }
    }

    /// What every submission of this agent begins as.
    pub fn spec(&self) -> &AgentSpec {
        &self.spec
    }

    /// Something for this agent to do. Nothing starts before [`Submission::start`].
    pub fn submit(&self, prompt: impl Into<String>) -> Submission {
        let spec = AgentSpec { prompt: prompt.into(), ..self.spec.clone() };
        Submission { kit: self.kit.clone(), spec, human_input: HumanInput::Fail }
    }
}

/// What an agent is to do, as it is put together.
#[must_use = "nothing starts before `start`"]
pub struct Submission {
    kit: Kit,
    spec: AgentSpec,
    human_input: HumanInput,
}

impl Submission {
    /// Also binds it to this server.
    pub fn server(mut self, server: impl Into<Server>) -> Self {
        self.spec.servers.push(server.into());
        self
    }

    /// Offers these tools alone, written `server:name`.
    pub fn tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.spec.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// What a scripted agent calls.
    pub fn script(mut self, calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        self.spec.script = calls.into_iter().collect();
        self
    }

    /// What is expected to be asked, and answered.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.spec.plan = Some(plan);
        self
    }

    /// Until when a person may answer what it asks.
    pub fn deadline(mut self, deadline: UnixMs) -> Self {
        self.spec.deadline = Some(deadline);
        self
    }

    /// What happens when a server asks; by default the execution fails.
    pub fn human_input(mut self, human_input: HumanInput) -> Self {
        self.human_input = human_input;
        self
    }

    /// Starts it; see [`Kit::submit`].
    pub async fn start(self) -> Result<ExecutionHandle, Error> {
        self.kit.submit(self.spec, self.human_input).await
    }
}
