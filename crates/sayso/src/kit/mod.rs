//! Executions from a program: specs are submitted, handles say how they stand and answer what they ask.
//!
//! A spec is plain data. What runs it is a [`Runner`], which knows harnesses and the servers' dialect; `sayso-agents`
//! has one. A kit works the same on a file, on a database, and on a server elsewhere ([`KitStore::of`]).

mod agent;
mod handle;
mod runner;
mod server;
mod spec;
mod store;
mod supervise;

pub use agent::{Agent, Submission};
pub use handle::{ExecutionHandle, ExecutionResult, ExecutionState, ExecutionStatus};
pub use runner::{Ended, Runner, Stop, Task};
pub use server::{HttpHeader, HttpServer, Server, StdioServer};
pub use spec::{AgentSpec, HumanInput, OperationSpec, ScriptedCall, Spec, TIME_LIMIT_DEFAULT};
pub use store::KitStore;

use std::sync::{Arc, Mutex, PoisonError};

use sayso_core::error::Error;
use sayso_core::execution::{ExecutionKind, Lifecycle};
use sayso_core::id::ExecutionId;
use sayso_core::json::Json;
use sayso_core::wire::Execution;
use sayso_store::clock::{Clock, SystemClock};
use tokio::sync::watch;

use crate::ids;
use crate::plan::Plan;
use handle::{Live, Record};

/// Submits executions. Cheap to clone; what is running goes on when it is dropped.
#[derive(Clone)]
pub struct Kit {
    store: Option<KitStore>,
    runners: Vec<Arc<dyn Runner>>,
    /// What was submitted here and may still run.
    running: Arc<Mutex<Vec<ExecutionHandle>>>,
}

impl Kit {
    /// A kit that keeps its executions in `store`. It runs nothing before it has a runner.
    pub fn new(store: impl Into<KitStore>) -> Self {
        Self { store: Some(store.into()), runners: Vec::new(), running: Arc::default() }
    }

    /// A kit that keeps nothing: its executions are known in this process alone, and nobody can be asked.
    pub fn unstored() -> Self {
        Self { store: None, runners: Vec::new(), running: Arc::default() }
    }

    /// The same kit, which also runs what `runner` can.
    #[must_use]
    pub fn with_runner(mut self, runner: impl Runner + 'static) -> Self {
        self.runners.push(Arc::new(runner));
        self
    }

    /// One agent for each model of each spec, and one for a spec that names none.
    pub fn agents(&self, specs: impl IntoIterator<Item = AgentSpec>) -> Result<Vec<Agent>, Error> {
        let mut agents = Vec::new();
        for spec in specs {
            spec.check_harness()?;
            self.runner(&spec.clone().into())?;
            if spec.models.is_empty() {
                agents.push(Agent::new(self, spec));
                continue;
            }
            for model in &spec.models {
                agents.push(Agent::new(self, AgentSpec { models: vec![model.clone()], ..spec.clone() }));
            }
        }
        Ok(agents)
    }

    /// Starts an execution. What cannot be run is an [`Error::Model`], and nothing was started. Needs a tokio runtime.
    pub async fn submit(&self, spec: impl Into<Spec>, human_input: HumanInput) -> Result<ExecutionHandle, Error> {
        let spec = spec.into();
        spec.check(human_input, self.store.is_some())?;
        let runner = self.runner(&spec)?;
        runner.check(&spec, human_input)?;
        let kind = match &spec {
            Spec::Agent(_) => ExecutionKind::Agent,
            Spec::Operation(_) => ExecutionKind::Operation,
        };
        let execution = match &self.store {
            Some(store) => {
                let id = store.desk.begin_as(kind).await?;
                store.desk.execution(id).await?
            }
            None => unstored(kind)?,
        };
        let id = execution.execution_id;
        let (stop, told) = watch::channel(false);
        let live = Arc::new(Live { stop, state: watch::Sender::new(ExecutionResult { execution, result: None }) });
        let task = Task {
            execution: id,
            spec,
            human_input,
            rounds: self.store.as_ref().map(|store| store.desk.clone()),
            stop: Stop(told),
        };
        let record = match &self.store {
            Some(store) => Record::Stored(store.clone(), Some(live.clone())),
            None => Record::Unstored(live.clone()),
        };
        supervise::start(runner, task, live, self.store.clone());
        let handle = ExecutionHandle::new(id, record);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(ExecutionHandle::is_running_here);
        running.push(handle.clone());
        Ok(handle)
    }

    /// A handle of an execution that was submitted earlier, perhaps by another process.
    pub fn handle(&self, execution: ExecutionId) -> Result<ExecutionHandle, Error> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = running.iter().find(|handle| handle.execution_id() == execution) {
            return Ok(handle.clone());
        }
        let store = self.store.clone().ok_or(Error::NotFound("execution"))?;
        Ok(ExecutionHandle::new(execution, Record::Stored(store, None)))
    }

    /// Calls a tool, answering by the plan.
    pub async fn tool(
        &self,
        server: impl Into<Server>,
        name: impl Into<String>,
        arguments: Json,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.submit(OperationSpec { plan, ..OperationSpec::tool(server, name, arguments) }, HumanInput::Fail).await
    }

    /// Gets a prompt, answering by the plan.
    pub async fn prompt(
        &self,
        server: impl Into<Server>,
        name: impl Into<String>,
        arguments: Json,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.submit(OperationSpec { plan, ..OperationSpec::prompt(server, name, arguments) }, HumanInput::Fail).await
    }

    /// Reads a resource, answering by the plan.
    pub async fn resource(
        &self,
        server: impl Into<Server>,
        uri: impl Into<String>,
        plan: Option<Plan>,
    ) -> Result<ExecutionHandle, Error> {
        self.submit(OperationSpec { plan, ..OperationSpec::resource(server, uri) }, HumanInput::Fail).await
    }

    /// Cancels what still runs here, waits for its end, and gives the worker's lease back.
    pub async fn close(self) -> Result<(), Error> {
        let handles = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in &handles {
            handle.cancel().await?;
            handle.gone().await;
        }
        match &self.store {
            Some(store) if !handles.is_empty() => store.desk.leave().await,
            _ => Ok(()),
        }
    }

    fn runner(&self, spec: &Spec) -> Result<Arc<dyn Runner>, Error> {
        let found = self.runners.iter().find(|runner| runner.runs(spec)).cloned();
        found.ok_or_else(|| {
            Error::Model(match spec {
                Spec::Agent(spec) => format!("there is no harness {}", spec.harness),
                Spec::Operation(_) => "this kit has nothing that runs operations".to_owned(),
            })
        })
    }
}

/// A record that is kept in this process alone.
fn unstored(kind: ExecutionKind) -> Result<Execution, Error> {
    let now = SystemClock.now();
    Ok(Execution {
        execution_id: ids::new_id(now, ExecutionId::from_parts)?,
        kind,
        lifecycle: Lifecycle::Running,
        outcome: None,
        pending: Vec::new(),
        created_at: now,
        finished_at: None,
    })
}
