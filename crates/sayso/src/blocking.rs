//! [`crate::kit`] and its handles, for programs without a runtime of their own.
//!
//! Each call waits for its end. A store or a kit brings a runtime along, which its handles keep; dropping the last of them
//! ends what still runs there as the end of a process would, so close a kit first. Not for async code: there every call is
//! refused as unavailable.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;

use crate::kit::{self, AgentSpec, HumanInput, KitStore, Runner, ScriptedCall, Server, Spec};
use crate::plan::Plan;
use crate::storage::{self, ElicitationResponse, Options, PendingElicitationRound};
use sayso_core::time::UnixMs;

pub use crate::kit::{ExecutionResult, ExecutionState, ExecutionStatus};

/// A runtime with one thread, for what runs beside the caller's.
#[derive(Clone)]
struct Runtime(Arc<Own>);

struct Own(Option<tokio::runtime::Runtime>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting for its tasks here could block a caller that only lets go.
            runtime.shutdown_background();
        }
    }
}

impl Runtime {
    fn new() -> Result<Self, Error> {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime =
            built.map_err(|error| Error::Unavailable(format!("no runtime can be started: {}", error.kind())))?;
        Ok(Self(Arc::new(Own(Some(runtime)))))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::Unavailable("blocking calls are not for async code: use sayso::kit there".to_owned()));
        }
        match &self.0.0 {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::Unavailable("the runtime has ended".to_owned())),
        }
    }
}

/// Executions in a SQLite file, with the rounds they wait for.
#[derive(Clone)]
pub struct SqliteExecutionStore {
    runtime: Runtime,
    store: storage::SqliteExecutionStore,
}

impl SqliteExecutionStore {
    /// Opens the file at `path`, which is created (0600) where it is missing.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(path, Options::default())
    }

    /// As [`SqliteExecutionStore::open`], with options.
    pub fn open_with(path: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        let store = runtime.wait(storage::SqliteExecutionStore::open_with(path, options))?;
        Ok(Self { runtime, store })
    }
}

/// Submits executions, as [`kit::Kit`] does.
#[derive(Clone)]
pub struct Kit {
    runtime: Runtime,
    kit: kit::Kit,
}

impl Kit {
    /// A kit that keeps its executions in `store`.
    pub fn new(store: &SqliteExecutionStore) -> Self {
        Self { runtime: store.runtime.clone(), kit: kit::Kit::new(&store.store) }
    }

    /// A kit on whatever `opening` opens: a database, or a server elsewhere.
    pub fn open<S: Into<KitStore>>(opening: impl Future<Output = Result<S, Error>>) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        let store = runtime.wait(opening)?;
        Ok(Self { runtime, kit: kit::Kit::new(store) })
    }

    /// A kit that keeps nothing, and in which nobody can be asked.
    pub fn unstored() -> Result<Self, Error> {
        Ok(Self { runtime: Runtime::new()?, kit: kit::Kit::unstored() })
    }

    /// The same kit, which also runs what `runner` can.
    #[must_use]
    pub fn with_runner(self, runner: impl Runner + 'static) -> Self {
        Self { kit: self.kit.with_runner(runner), ..self }
    }

    /// One agent for each model of each spec, and one for a spec that names none.
    pub fn agents(&self, specs: impl IntoIterator<Item = AgentSpec>) -> Result<Vec<Agent>, Error> {
        let agents = self.kit.agents(specs)?;
        Ok(agents.into_iter().map(|agent| Agent { runtime: self.runtime.clone(), agent }).collect())
    }

    /// Starts an execution; see [`kit::Kit::submit`].
    pub fn submit(&self, spec: impl Into<Spec>, human_input: HumanInput) -> Result<ExecutionHandle, Error> {
        let spec = spec.into();
        self.handle_of(self.kit.submit(spec, human_input))
    }

    /// A handle of an execution that was submitted earlier.
    pub fn handle(&self, execution: ExecutionId) -> Result<ExecutionHandle, Error> {
        Ok(ExecutionHandle { runtime: self.runtime.clone(), handle: self.kit.handle(execution)? })
    }

    /// Calls a tool, answering by the plan.
    pub fn tool(
        &self,
        server: impl Into<Server>,
        name: impl Into<String>,
        arguments: Json,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.handle_of(self.kit.tool(server, name, arguments, plan))
    }

    /// Gets a prompt, answering by the plan.
    pub fn prompt(
        &self,
        server: impl Into<Server>,
        name: impl Into<String>,
        arguments: Json,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.handle_of(self.kit.prompt(server, name, arguments, plan))
    }

    /// Reads a resource, answering by the plan.
    pub fn resource(
        &self,
        server: impl Into<Server>,
        uri: impl Into<String>,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.handle_of(self.kit.resource(server, uri, plan))
    }

    /// Cancels what still runs here and waits for its end.
    pub fn close(self) -> Result<(), Error> {
        self.runtime.wait(self.kit.close())
    }

    fn handle_of(
        &self,
        submitting: impl Future<Output = Result<kit::ExecutionHandle, Error>>,
    ) -> Result<ExecutionHandle, Error> {
        Ok(ExecutionHandle { runtime: self.runtime.clone(), handle: self.runtime.wait(submitting)? })
    }
}

/// An agent of a kit, as [`kit::Agent`].
#[derive(Clone)]
pub struct Agent {
    runtime: Runtime,
    agent: kit::Agent,
}

impl Agent {
    /// What every submission of this agent begins as.
    pub fn spec(&self) -> &AgentSpec {
        self.agent.spec()
    }

    /// Something for this agent to do. Nothing starts before [`Submission::start`].
    pub fn submit(&self, prompt: impl Into<String>) -> Submission {
        Submission { runtime: self.runtime.clone(), submission: self.agent.submit(prompt) }
    }
}

/// What an agent is to do, as [`kit::Submission`].
#[must_use = "nothing starts before `start`"]
pub struct Submission {
    runtime: Runtime,
    submission: kit::Submission,
}

impl Submission {
    /// Also binds it to this server.
    pub fn server(self, server: impl Into<Server>) -> Self {
        Self { submission: self.submission.server(server), ..self }
    }

    /// Offers these tools alone, written `server:name`.
    pub fn tools<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { submission: self.submission.tools(tools), ..self }
    }

    /// What a scripted agent calls.
    pub fn script(self, calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        Self { submission: self.submission.script(calls), ..self }
    }

    /// What is expected to be asked, and answered.
    pub fn plan(self, plan: Plan) -> Self {
        Self { submission: self.submission.plan(plan), ..self }
    }

    /// Until when a person may answer what it asks.
    pub fn deadline(self, deadline: UnixMs) -> Self {
        Self { submission: self.submission.deadline(deadline), ..self }
    }

    /// What happens when a server asks; by default the execution fails.
    pub fn human_input(self, human_input: HumanInput) -> Self {
        Self { submission: self.submission.human_input(human_input), ..self }
    }

    /// Starts it.
    pub fn start(self) -> Result<ExecutionHandle, Error> {
        let handle = self.runtime.wait(self.submission.start())?;
        Ok(ExecutionHandle { runtime: self.runtime, handle })
    }
}

/// One execution, as [`kit::ExecutionHandle`].
#[derive(Clone)]
pub struct ExecutionHandle {
    runtime: Runtime,
    handle: kit::ExecutionHandle,
}

impl ExecutionHandle {
    /// The execution's id.
    pub fn execution_id(&self) -> ExecutionId {
        self.handle.execution_id()
    }

    /// Every round that waits for a person.
    pub fn pending_rounds(&self) -> Result<Vec<PendingElicitationRound>, Error> {
        self.runtime.wait(self.handle.pending_rounds())
    }

    /// The one round that waits for a person, if any; a state error that names them all where there are several.
    pub fn pending_elicitation(&self) -> Result<Option<PendingElicitationRound>, Error> {
        self.runtime.wait(self.handle.pending_elicitation())
    }

    /// Answers a round of this execution.
    pub fn respond_elicitation<K: Into<String>>(
        &self,
        round_id: RoundId,
        responses: impl IntoIterator<Item = (K, ElicitationResponse)>,
        idempotency_key: &str,
    ) -> Result<(), Error> {
        self.runtime.wait(self.handle.respond_elicitation(round_id, responses, idempotency_key))
    }

    /// How the execution stands.
    pub fn snapshot(&self) -> Result<ExecutionState, Error> {
        self.runtime.wait(self.handle.snapshot())
    }

    /// Waits for the execution to finish, at most for `timeout`.
    pub fn result(&self, timeout: Option<Duration>) -> Result<ExecutionResult, Error> {
        self.runtime.wait(self.handle.result(timeout))
    }

    /// Cancels the execution.
    pub fn cancel(&self) -> Result<(), Error> {
        self.runtime.wait(self.handle.cancel())
    }
}
