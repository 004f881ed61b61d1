//! One run by its name: the values that it waits for, and the way on with them.

use sayso::wire::{Keyed, Response};
use sayso::{Answer, Error, ExecutionId, Json, LocalPeople, Status};

use super::outcome::RunOutcome;
use super::runtime::AgentRuntime;
use super::state::{SuspendedRunState, WaitsFor};

/// The tool loop of one run. It holds nothing of the run, which is in the store: any number of them may be made, in any
/// process.
#[derive(Debug, Clone)]
pub struct ToolLoop {
    runtime: AgentRuntime,
    execution: ExecutionId,
}

/// A run that waits for typed values, as it is stored. Which calls need them, and by which schemas, is in its
/// [`SuspendedRunState::pending_calls`]; the first are its `input_tool_name()` and `input_schema()`.
#[derive(Debug, Clone)]
pub struct ToolInputRequired(pub SuspendedRunState);

impl AgentRuntime {
    /// The loop of a run of this agent's.
    pub fn tool_loop(&self, execution: ExecutionId) -> ToolLoop {
        ToolLoop { runtime: self.clone(), execution }
    }
}

impl ToolLoop {
    /// The run, where it waits for typed values; none where it waits for approval, is at work or has ended. A state that
    /// cannot be read is `corrupt_suspended_state`. Looking takes nothing away.
    pub async fn input_required(&self) -> Result<Option<ToolInputRequired>, Error> {
        let round = self.runtime.round_of(self.execution).await?;
        let Some(round) = round.filter(|round| round.status == Status::Pending) else { return Ok(None) };
        let state = self.runtime.stored_state(&round).await?;
        Ok((state.waits_for == WaitsFor::Input).then_some(ToolInputRequired(state)))
    }

    /// Gives the values of every call that needs some, each an object under its call's id, and goes on: as
    /// [`AgentRuntime::submit_input`] where all of them are given.
    pub async fn resume_with_input(
        &self,
        people: &LocalPeople,
        values: impl IntoIterator<Item = (String, Json)>,
        key: &str,
    ) -> Result<RunOutcome, Error> {
        let responses = values.into_iter().map(|(id, values)| (id, Response::accept(values))).collect();
        let answer = Answer { digest: None, responses: Keyed(responses) };
        self.runtime.submit_input(people, self.execution, answer, key).await
    }
}
