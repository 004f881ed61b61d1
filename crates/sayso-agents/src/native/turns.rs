//! The loop: the model answers, its calls are judged as a whole, and run once nothing holds them up.

use std::time::Duration;

use sayso::kit::Stop;
use sayso::policy::ToolName;
use sayso::{Error, ExecutionId, Failure, Held, Json, Outcome, Step, words};
use sayso_core::limits::{LEASE_MS, MESSAGE_BYTES_MAX, TOOL_RESULT_BYTES_MAX};
use tokio::time::{MissedTickBehavior, interval};

use super::judge::runs_with;
use super::model::{Answered, ModelFault, message, tool_message};
use super::offer::{Offer, Runs};
use super::outcome::{Halt, RunOutcome, Said};
use super::runtime::AgentRuntime;
use super::servers::Asking;
use super::state::{PendingCall, SuspendedRunState};

/// The pause between two attempts at a store that is away.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A run at work in this process.
pub(super) struct RunAtWork<'a> {
    pub runtime: &'a AgentRuntime,
    pub execution: ExecutionId,
    pub offer: Offer,
    /// What the run was offered when its last turn began.
    pub offered_tools: Vec<ToolName>,
    pub messages: Vec<Json>,
    /// The calls of the last turn.
    pub calls: Vec<PendingCall>,
    pub iterations: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The round whose answer is worked on: its delivery has begun.
    pub held: Option<Held>,
    /// Whether what was answered there does not hold any more.
    pub is_asked_again: bool,
    pub stop: Option<Stop>,
}

impl<'a> RunAtWork<'a> {
    /// A run from its beginning.
    pub fn begin(runtime: &'a AgentRuntime, execution: ExecutionId, offer: Offer, prompt: &str) -> Self {
        let system = runtime.system.as_deref().map(|text| message("system", text));
        let messages = system.into_iter().chain([message("user", prompt)]).collect();
        Self {
            runtime,
            execution,
            offered_tools: offer.names(),
            offer,
            messages,
            calls: Vec::new(),
            iterations: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            held: None,
            is_asked_again: false,
            stop: None,
        }
    }

    /// A run as it waited, whose answers have been taken in.
    pub fn rehydrate(
        runtime: &'a AgentRuntime,
        execution: ExecutionId,
        offer: Offer,
        state: SuspendedRunState,
        held: Held,
    ) -> Self {
        Self {
            runtime,
            execution,
            offer,
            offered_tools: state.offered_tools,
            messages: state.messages,
            calls: state.pending_calls,
            iterations: state.iterations,
            prompt_tokens: state.prompt_tokens,
            completion_tokens: state.completion_tokens,
            held: Some(held),
            is_asked_again: false,
            stop: None,
        }
    }

    /// Goes on until the model has said its last word, or something holds the run up, and stores how it ended.
    pub async fn go_on(mut self, has_turn: bool) -> Result<RunOutcome, Error> {
        let ended = match self.turns(has_turn).await {
            Ok(said) => self.complete(said).await,
            Err(halt) => self.end(halt).await,
        };
        self.offer.servers.close().await;
        ended
    }

    async fn turns(&mut self, has_turn: bool) -> Result<Said, Halt> {
        if has_turn {
            self.finish_turn(true).await?;
        }
        let mut text = String::new();
        loop {
            self.check_is_ours().await?;
            if self.iterations >= self.runtime.turns_max {
                return Ok(self.said(text, true));
            }
            let answered = self.ask_model().await?;
            self.iterations += 1;
            self.prompt_tokens = self.prompt_tokens.saturating_add(answered.prompt_tokens);
            self.completion_tokens = self.completion_tokens.saturating_add(answered.completion_tokens);
            self.messages.push(answered.message);
            text = answered.text;
            if answered.calls.is_empty() {
                return Ok(self.said(text, false));
            }
            self.offered_tools = self.offer.names();
            self.calls.clear();
            for call in answered.calls {
                let judged = self.classify(call).await?;
                self.calls.push(judged);
            }
            self.finish_turn(false).await?;
        }
    }

    async fn ask_model(&mut self) -> Result<Answered, Halt> {
        let answered = self.runtime.model.ask(&self.messages, &self.offer.tools);
        let answered = match &mut self.stop {
            Some(stop) => tokio::select! {
                answered = answered => answered,
                () = stop.told() => return Err(Halt::Cancelled),
            },
            None => answered.await,
        };
        answered.map_err(|fault: ModelFault| Halt::failed(fault.code(), fault.to_string()))
    }

    /// Runs the calls of the turn, unless somebody has to be asked first; every call gets one result.
    /// `is_resumed` where the turn waited: then what was answered is asked again.
    async fn finish_turn(&mut self, is_resumed: bool) -> Result<(), Halt> {
        if let Some(waits_for) = self.waits_for() {
            return Err(self.suspend(waits_for).await);
        }
        if self.judge_again().await?
            && let Some(waits_for) = self.waits_for()
        {
            self.is_asked_again = is_resumed;
            return Err(self.suspend(waits_for).await);
        }
        for call in std::mem::take(&mut self.calls) {
            let text = self.run_call(&call).await?;
            self.messages.push(tool_message(&call.id, &text));
        }
        Ok(())
    }

    async fn run_call(&mut self, call: &PendingCall) -> Result<String, Halt> {
        if let Some(refusal) = &call.refusal {
            return Ok(refusal.clone());
        }
        let offered = call.tool.as_ref().and_then(|name| self.offer.by_name(name));
        let (Some(offered), Some(arguments)) = (offered, runs_with(call)) else {
            return Ok(words::not_offered(&call.tool_name()));
        };
        // The last look before it runs: whoever was paused for long may be taken for dead.
        self.check_is_ours().await?;
        let mut stop = self.stop.clone();
        let stopped = async {
            match &mut stop {
                Some(stop) => stop.told().await,
                None => std::future::pending().await,
            }
        };
        let answered = match &offered.runs {
            Runs::Here(registered) => {
                let tool = registered.tool.clone();
                tokio::select! {
                    answered = tool.call(&arguments) => answered,
                    () = stopped => return Err(Halt::Cancelled),
                }
            }
            Runs::Server => {
                let name = offered.name.clone();
                let operation = format!("call-{}-{}", self.iterations, call.id);
                let asking = Asking {
                    desk: self.runtime.asks_people.then_some(&self.runtime.shared_desk),
                    execution: self.execution,
                    deadline: self.runtime.deadline,
                    round_limit: self.runtime.round_limit,
                };
                tokio::select! {
                    reply = self.offer.servers.call(&name, operation, &arguments, asking) => match reply {
                        Ok(reply) if reply.is_error => Err(reply.text),
                        Ok(reply) => Ok(reply.text),
                        Err(error) => Err(format!("{error}. Nobody can tell whether it ran.")),
                    },
                    () = stopped => return Err(Halt::Cancelled),
                }
            }
        };
        Ok(told(call, answered))
    }

    /// Whether the run is still this process's: not ended elsewhere, and its round not taken over.
    async fn check_is_ours(&self) -> Result<(), Halt> {
        if self.stop.as_ref().is_some_and(Stop::is_told) {
            return Err(Halt::Cancelled);
        }
        let execution = sayso::Desk::execution(&self.runtime.desk, self.execution).await?;
        match execution.outcome {
            Some(outcome) if outcome.status == Outcome::Cancelled.as_str() => return Err(Halt::Cancelled),
            Some(_) => return Err(Halt::LeaseLost),
            None => {}
        }
        let Some(held) = &self.held else { return Ok(()) };
        match sayso::Desk::renew(&self.runtime.desk, held.round, held.fence.clone()).await {
            Ok(_) => Ok(()),
            Err(Error::Conflict { .. } | Error::State { .. }) => Err(Halt::LeaseLost),
            Err(error) => Err(error.into()),
        }
    }

    fn said(&self, text: String, truncated: bool) -> Said {
        let Self { iterations, prompt_tokens, completion_tokens, .. } = *self;
        Said { text, truncated, iterations, prompt_tokens, completion_tokens }
    }

    async fn complete(&mut self, said: Said) -> Result<RunOutcome, Error> {
        let finished = Step::Finished(self.execution, Outcome::Completed, Some(said.written()));
        Ok(match self.settle(finished).await? {
            true => RunOutcome::Completed(said),
            false => self.ended_elsewhere().await?,
        })
    }

    async fn end(&mut self, halt: Halt) -> Result<RunOutcome, Error> {
        let Some(outcome) = halt.ending() else { return Ok(halt.outcome()) };
        let outcome = match outcome {
            Outcome::Failed(failure) => Outcome::Failed(within_limits(failure)),
            other => other,
        };
        let is_suspending = matches!(halt, Halt::SuspendFailed(_));
        match self.settle(Step::Finished(self.execution, outcome, None)).await {
            Ok(true) => Ok(halt.outcome()),
            Ok(false) if is_suspending => Ok(halt.outcome()),
            Ok(false) => self.ended_elsewhere().await,
            // That nobody was asked is true whether or not this is stored.
            Err(_) if is_suspending => Ok(halt.outcome()),
            Err(error) => Err(error),
        }
    }

    /// Stores the end of the run, with that of the round it worked on. False where somebody ended either before.
    async fn settle(&self, finished: Step) -> Result<bool, Error> {
        let mut steps = vec![finished];
        if let Some(Held { round, fence }) = self.held.clone() {
            if self.is_asked_again {
                let words = "what was answered did not hold any more, and could not be asked again";
                steps.push(Step::Failed(round, Some(fence), Failure::new(Failure::SUPERSEDED, words)));
            } else {
                steps.extend([Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)]);
            }
        }
        let mut pause = interval(TRY_AGAIN);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tries = 0;
        loop {
            pause.tick().await;
            match sayso::Desk::settle(&self.runtime.desk, steps.clone()).await {
                Ok(()) => return Ok(true),
                Err(Error::Conflict { .. } | Error::State { .. }) => return Ok(false),
                // After that much time without a store the lease has run out, and others say how it ended.
                Err(Error::Unavailable(_)) if tries < LEASE_MS / 1000 => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn ended_elsewhere(&self) -> Result<RunOutcome, Error> {
        let execution = sayso::Desk::execution(&self.runtime.desk, self.execution).await?;
        let is_cancelled = execution.outcome.is_some_and(|outcome| outcome.status == Outcome::Cancelled.as_str());
        if !is_cancelled {
            return Ok(RunOutcome::LeaseLost);
        }
        if let Some(Held { round, fence }) = self.held.clone() {
            // The round whose answer was used ends, too; where that is refused it has another end already.
            let steps = vec![Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)];
            drop(sayso::Desk::settle(&self.runtime.desk, steps).await);
        }
        Ok(RunOutcome::Cancelled)
    }
}

/// What the model reads of a call that ran: which arguments it ran with, where they are not its own, and the result.
fn told(call: &PendingCall, answered: Result<String, String>) -> String {
    let mut parts = Vec::new();
    if call.is_edited {
        parts.push(words::edited(&call.arguments));
    }
    if let Some(input) = call.input.as_ref().and_then(Json::object) {
        let keys: Vec<_> = input.members.iter().map(|member| member.name.clone()).collect();
        parts.push(words::supplied(&keys));
    }
    parts.push(match answered {
        Ok(text) => shortened(text),
        Err(text) => shortened(format!("Error: {text}")),
    });
    parts.join("\n")
}

fn shortened(text: String) -> String {
    let cut = cut(&text, TOOL_RESULT_BYTES_MAX);
    if cut.len() == text.len() { text } else { format!("{cut}\n(the rest of the result was left out)") }
}

fn within_limits(failure: Failure) -> Failure {
    Failure { message: cut(&failure.message, MESSAGE_BYTES_MAX).to_owned(), ..failure }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
