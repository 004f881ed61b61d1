//! The harness `native` of a kit: runs of a runtime, watched by the kit's process for as long as it lives.

use std::time::Duration;

use async_trait::async_trait;
use sayso::kit::{AgentSpec, Ended, ExecutionResult, HumanInput, Runner, Spec, Stop, Task};
use sayso::{Desk, Error, ExecutionId, Failure, Outcome, Status, wire};
use sayso_core::limits::WAIT_MS_MAX;
use tokio::time::{MissedTickBehavior, interval};

use super::outcome::RunOutcome;
use super::runtime::AgentRuntime;

/// The name of the harness.
pub const HARNESS: &str = "native";

/// The pause before something that could not be done is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Runs the specs of the harness `native`. The runtime is kept in the kit's own store and is the kit's own agent; its
/// model, servers, tools and limits are the spec's where that says any.
///
/// What a run waits for outlives the kit: another process goes on with it ([`AgentRuntime::resume`]). Only
/// [`sayso::kit::Kit::close`] cancels it.
#[derive(Debug, Clone)]
pub struct NativeRunner(AgentRuntime);

impl NativeRunner {
    /// Runs specs as this runtime would.
    pub fn new(runtime: AgentRuntime) -> Self {
        Self(runtime)
    }

    /// The runtime of one spec.
    fn runtime(&self, spec: &AgentSpec, human_input: HumanInput) -> AgentRuntime {
        let mut runtime = self.0.clone();
        if let Some(model) = spec.models.first() {
            runtime.model = runtime.model.model(model);
        }
        if !spec.servers.is_empty() {
            runtime = runtime.servers(spec.servers.clone(), spec.tools.clone());
        }
        runtime.deadline = spec.deadline.or(runtime.deadline);
        let runtime = runtime.round_limit(spec.round_limit).time_limit(spec.time_limit);
        if human_input == HumanInput::Managed { runtime } else { runtime.asking_nobody() }
    }
}

fn refuse<T>(words: &str) -> Result<T, Error> {
    Err(Error::Model(words.to_owned()))
}

#[async_trait]
impl Runner for NativeRunner {
    fn runs(&self, spec: &Spec) -> bool {
        matches!(spec, Spec::Agent(spec) if spec.harness == HARNESS)
    }

    fn check(&self, spec: &Spec, human_input: HumanInput) -> Result<(), Error> {
        let Spec::Agent(spec) = spec else { return refuse("the native harness runs agents, not operations") };
        if spec.models.len() > 1 {
            return refuse("a run has one model; a kit makes an agent of each");
        }
        if !spec.script.is_empty() || spec.plan.is_some() {
            return refuse(
                "the native harness takes neither a script nor a plan: a model decides, and a person answers",
            );
        }
        self.runtime(spec, human_input).check()
    }

    async fn run(&self, task: Task) -> Ended {
        let Spec::Agent(spec) = &task.spec else { return failed("model_validation", "this is no agent's spec") };
        if task.rounds.is_none() {
            return failed("model_validation", "the native harness needs a kit with a persistent store");
        }
        let runtime = self.runtime(spec, task.human_input);
        if let Err(error) = runtime.desk.execution(task.execution).await {
            let words =
                format!("the runtime does not know the kit's executions ({error}); it needs the kit's store and agent");
            return failed(error.code().as_str(), words);
        }
        Watched { runtime, execution: task.execution, stop: task.stop }.run(&spec.prompt).await
    }
}

fn failed(code: &str, words: impl Into<String>) -> Ended {
    Ended { outcome: Outcome::Failed(Failure::new(code, words)), result: None, steps: Vec::new() }
}

/// A run that a process stays with until its end, whoever goes on with it.
struct Watched {
    runtime: AgentRuntime,
    execution: ExecutionId,
    stop: Stop,
}

impl Watched {
    async fn run(mut self, prompt: &str) -> Ended {
        let mut pause = interval(TRY_AGAIN);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut came = match self.runtime.run_until(self.execution, prompt, Some(self.stop.clone())).await {
            Err(error) => return failed(error.code().as_str(), error.to_string()),
            came => came,
        };
        loop {
            match &came {
                Ok(RunOutcome::AwaitingApproval(round) | RunOutcome::AwaitingInput(round)) => {
                    let round = round.clone();
                    self.answered(&round).await;
                }
                Ok(RunOutcome::Completed(_) | RunOutcome::Failed(_) | RunOutcome::Cancelled) => {}
                // What another process is at, or what cannot be run or read now, is looked at again.
                _ => {
                    pause.tick().await;
                }
            }
            match self.runtime.desk.result(self.execution, Duration::ZERO).await {
                Ok(ended) => return as_ended(&ended),
                // Told to stop and not ended: the store was away, and the kit keeps the end.
                Err(_) if self.stop.is_told() => {
                    return Ended { outcome: Outcome::Cancelled, result: None, steps: Vec::new() };
                }
                Err(_) => {}
            }
            came = self.runtime.resume_until(self.execution, Some(self.stop.clone())).await;
        }
    }

    /// Returns once the round does not wait any more, or the run is to stop.
    async fn answered(&mut self, round: &wire::Round) {
        let mut pause = interval(TRY_AGAIN);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (desk, mut seen) = (&self.runtime.desk, round.rev);
        let waiting = async {
            loop {
                match desk.wait(round.round_id, seen, Duration::from_millis(WAIT_MS_MAX)).await {
                    Ok(now) if now.status != Status::Pending => return,
                    Ok(now) => seen = now.rev,
                    // The store is away for a moment; the round is still there.
                    Err(_) => {
                        pause.tick().await;
                    }
                }
            }
        };
        tokio::select! {
            () = waiting => {}
            () = self.stop.told() => {}
        }
    }
}

/// The end as it is stored.
fn as_ended(ended: &ExecutionResult) -> Ended {
    let outcome = match &ended.execution.outcome {
        Some(outcome) if outcome.status == "completed" => Outcome::Completed,
        Some(outcome) if outcome.status == "cancelled" => Outcome::Cancelled,
        Some(outcome) if outcome.status == "failed" => {
            let code = outcome.code.clone().unwrap_or_default();
            Outcome::Failed(Failure::new(&code, outcome.message.clone().unwrap_or_default()))
        }
        _ => Outcome::Lost,
    };
    Ended { outcome, result: ended.result.clone(), steps: Vec::new() }
}
