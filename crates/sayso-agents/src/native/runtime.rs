//! The runtime: what a run is put together from, and its verbs.

use std::sync::Arc;
use std::time::Duration;

use sayso::gate::{Gate, Gates};
use sayso::kit::{Server, Stop, TIME_LIMIT_DEFAULT};
use sayso::policy::{Mode, PolicyFiles};
use sayso::{
    Answer, Desk, Error, ExecutionId, ExecutionKind, Failure, LocalDesk, LocalPeople, Principal, Sayso, Status, UnixMs,
};
use sayso_core::limits::{MODEL_TURNS_DEFAULT, MODEL_TURNS_MAX, ROUND_LIMIT_DEFAULT};

use super::model::ChatEndpoint;
use super::offer::Offer;
use super::outcome::RunOutcome;
use super::resume::AtWork;
use super::sealed::Keyring;
use super::servers;
use super::state::WaitsFor;
use super::tool::{OWN_SERVER, Toolbox};
use super::turns::RunAtWork;

/// Runs a model with tools; where a call needs a person the run suspends, and any process that has the same tools goes
/// on with it. Cheap to clone.
#[derive(Clone)]
pub struct AgentRuntime {
    pub(super) sayso: Sayso,
    pub(super) desk: LocalDesk,
    pub(super) shared_desk: Arc<dyn Desk>,
    pub(super) gate: Gate,
    pub(super) at_work: AtWork,
    pub(super) model: ChatEndpoint,
    pub(super) toolbox: Toolbox,
    pub(super) servers: Vec<Server>,
    pub(super) allowed: Vec<String>,
    pub(super) keys: Option<Keyring>,
    pub(super) system: Option<String>,
    pub(super) deadline: Option<UnixMs>,
    pub(super) round_limit: u32,
    pub(super) turns_max: u32,
    pub(super) time_limit: Duration,
    pub(super) asks_people: bool,
}

impl std::fmt::Debug for AgentRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRuntime").field("model", &self.model).field("tools", &self.toolbox).finish_non_exhaustive()
    }
}

impl AgentRuntime {
    /// A runtime whose runs are kept in `sayso` and are `agent`'s: whoever goes on with one is the same agent.
    pub fn new(sayso: &Sayso, agent: Principal, model: ChatEndpoint) -> Self {
        let desk = sayso.desk(agent.clone());
        Self {
            sayso: sayso.clone(),
            shared_desk: Arc::new(desk.clone()),
            desk,
            gate: Gates::new(sayso, PolicyFiles::none()).of(agent),
            at_work: AtWork::default(),
            model,
            toolbox: Toolbox::new(),
            servers: Vec::new(),
            allowed: Vec::new(),
            keys: None,
            system: None,
            deadline: None,
            round_limit: ROUND_LIMIT_DEFAULT,
            turns_max: MODEL_TURNS_DEFAULT,
            time_limit: TIME_LIMIT_DEFAULT,
            asks_people: true,
        }
    }

    /// The same with these tools of the program's own.
    #[must_use]
    pub fn tools(self, toolbox: Toolbox) -> Self {
        Self { toolbox, ..self }
    }

    /// The same with the tools of these servers; of those named in `allowed` (`server:name`) where it names any.
    #[must_use]
    pub fn servers(self, servers: Vec<Server>, allowed: Vec<String>) -> Self {
        Self { servers, allowed, ..self }
    }

    /// The same, where these files say which calls run, ask, or never run. They are read again when they change.
    #[must_use]
    pub fn policy(self, policy: PolicyFiles, mode: Option<Mode>) -> Self {
        let gate = Gates::new(&self.sayso, policy).of(self.desk.caller().clone());
        Self { gate: mode.into_iter().fold(gate, Gate::in_mode), ..self }
    }

    /// The same, with suspended runs sealed at rest.
    #[must_use]
    pub fn keys(self, keys: Keyring) -> Self {
        Self { keys: Some(keys), ..self }
    }

    /// The same, with what the model is told before the prompt.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// The same, with a moment until which people may answer; rules may say less.
    #[must_use]
    pub fn deadline(self, deadline: UnixMs) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The same, with so many answers of the model at most; then the run ends with what it said last.
    #[must_use]
    pub fn turns_max(self, turns: u32) -> Self {
        Self { turns_max: turns.clamp(1, MODEL_TURNS_MAX), ..self }
    }

    /// The same, with so many rounds at most about one turn.
    #[must_use]
    pub fn round_limit(self, rounds: u32) -> Self {
        Self { round_limit: rounds, ..self }
    }

    /// The same, with so long for a server to answer while nobody is asked.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: limit, ..self }
    }

    /// The same, asking nobody: a call that needs a person ends the run.
    #[must_use]
    pub(super) fn asking_nobody(self) -> Self {
        Self { asks_people: false, ..self }
    }

    /// Whether its servers can be reached from here at all, and its calls judged (the mode `guarded` needs a policy); an
    /// [`Error::Model`] if not. Nothing is started.
    pub fn check(&self) -> Result<(), Error> {
        self.gate.check()?;
        if self.servers.iter().any(|server| server.name() == OWN_SERVER) {
            return Err(Error::Model(format!("no server can be named {OWN_SERVER}: that is the program's own tools")));
        }
        let is_bound = |tool: &str| match tool.split_once(':') {
            Some((server, name)) => !name.is_empty() && self.servers.iter().any(|bound| bound.name() == server),
            None => false,
        };
        if let Some(tool) = self.allowed.iter().find(|tool| !is_bound(tool)) {
            return Err(Error::Model(format!(
                "the tool {tool} must be written server:name, of a server that is bound"
            )));
        }
        servers::check(&self.servers)
    }

    /// Begins the record of a run.
    pub async fn begin(&self) -> Result<ExecutionId, Error> {
        self.gate.check()?;
        self.desk.begin_as(ExecutionKind::Agent).await
    }

    /// Runs `prompt` in an execution that has been begun, as far as it goes without a person.
    pub async fn run(&self, execution: ExecutionId, prompt: &str) -> Result<RunOutcome, Error> {
        self.run_until(execution, prompt, None).await
    }

    pub(super) async fn run_until(
        &self,
        execution: ExecutionId,
        prompt: &str,
        stop: Option<Stop>,
    ) -> Result<RunOutcome, Error> {
        self.gate.check()?;
        let offer = match Offer::gather(&self.toolbox, &self.servers, &self.allowed, self.time_limit).await {
            Ok(offer) => offer,
            Err(error) => {
                let failure = Failure::new(error.code(), error.to_string());
                let step = sayso::Step::Finished(execution, sayso::Outcome::Failed(failure.clone()), None);
                self.desk.settle(vec![step]).await?;
                return Ok(RunOutcome::Failed(failure));
            }
        };
        let mut run = RunAtWork::begin(self, execution, offer, prompt);
        run.stop = stop;
        run.go_on(false).await
    }

    /// Answers the approvals that a run waits for, a verdict for each call, and goes on with it. Without a digest the
    /// answer binds to what the round asks now. A run that waits for something else is a state error.
    pub async fn approve(
        &self,
        people: &LocalPeople,
        execution: ExecutionId,
        answer: Answer,
        key: &str,
    ) -> Result<RunOutcome, Error> {
        self.decide(people, execution, WaitsFor::Approval, answer, key).await
    }

    /// Gives the typed values that a run waits for, and goes on with it. They are checked before anything is claimed:
    /// what does not fit changes nothing, and may be sent again.
    pub async fn submit_input(
        &self,
        people: &LocalPeople,
        execution: ExecutionId,
        answer: Answer,
        key: &str,
    ) -> Result<RunOutcome, Error> {
        self.decide(people, execution, WaitsFor::Input, answer, key).await
    }

    async fn decide(
        &self,
        people: &LocalPeople,
        execution: ExecutionId,
        expected: WaitsFor,
        answer: Answer,
        key: &str,
    ) -> Result<RunOutcome, Error> {
        let not_waiting = |words: &str, status| Error::State { detail: words.to_owned(), status, failure: None };
        let Some(round) = self.round_of(execution).await? else {
            return Err(not_waiting("the run waits for nobody", Status::Resolved));
        };
        if !people.may_answer() {
            return Err(Error::Forbidden("an agent's credential cannot answer; a person does"));
        }
        if round.status == Status::Pending {
            let state = self.stored_state(&round).await?;
            if state.waits_for != expected {
                let words = match state.waits_for {
                    WaitsFor::Approval => "the run waits for approval, not for input",
                    WaitsFor::Input => "the run waits for input, not for approval",
                };
                return Err(not_waiting(words, round.status));
            }
        }
        let answer = Answer { digest: answer.digest.or(Some(round.digest)), ..answer };
        sayso::People::answer(people, round.round_id, answer, key).await?;
        self.resume(execution).await
    }

    /// Cancels a run: what it waits for ends as `cancelled`. One that is at work stops at its next step.
    pub async fn cancel(&self, people: &LocalPeople, execution: ExecutionId) -> Result<RunOutcome, Error> {
        sayso::People::cancel(people, execution).await.map(|_| RunOutcome::Cancelled)
    }
}
