//! A scripted agent: its calls, one after the other.

use std::collections::BTreeMap;

use sayso::kit::{AgentSpec, Ended, HumanInput, ScriptedCall, Task};
use sayso::plan::{Plan, Run};
use sayso::{Failure, OperationKind, Outcome, Step};

use super::ended::{Answers, failure};
use super::rounds::{AskingCall, Rounds, settle};
use crate::operate::{Answer, Connection, OperateError, Operation, Planned, Reply, reach};

/// What becomes of a run beside its answers.
struct Script<'a> {
    spec: &'a AgentSpec,
    task: &'a Task,
    servers: BTreeMap<&'a str, Connection>,
    plan: Run,
}

pub(super) async fn run(spec: &AgentSpec, task: &Task) -> Ended {
    let mut answers = Answers::default();
    let plan = match spec.plan.clone().unwrap_or_else(Plan::nothing).begin() {
        Ok(plan) => plan.with_round_limit(spec.round_limit),
        Err(error) => return answers.ended(failure(&OperateError::Plan(error)), Vec::new()),
    };
    let mut script = Script { spec, task, servers: BTreeMap::new(), plan };
    let mut steps = Vec::new();
    let mut outcome = Outcome::Completed;
    for (at, call) in spec.script.iter().enumerate() {
        // What a call's answer proves is stored before the next one is made; with the last one it is stored with the end.
        if let Some(desk) = &task.rounds {
            settle(desk.as_ref(), std::mem::take(&mut steps)).await;
        }
        let (called, known) = script.call(at + 1, call).await;
        steps = known;
        match called {
            Ok(Some(reply)) => answers.add(&call.tool, &reply),
            Ok(None) => outcome = Outcome::Cancelled,
            Err(error) => outcome = failure(&error),
        }
        if outcome != Outcome::Completed {
            break;
        }
    }
    if outcome == Outcome::Completed
        && let Err(error) = script.plan.finish()
    {
        outcome = failure(&OperateError::Plan(error));
    }
    for (_, connection) in std::mem::take(&mut script.servers) {
        connection.server.close().await;
    }
    answers.ended(outcome, steps)
}

impl<'a> Script<'a> {
    /// Makes a call; none where it was told to stop. With what is then known of its rounds.
    async fn call(&mut self, place: usize, call: &'a ScriptedCall) -> (Result<Option<Reply>, OperateError>, Vec<Step>) {
        let (server, tool) = call.tool.split_once(':').unwrap_or_default();
        let managed = (self.task.human_input == HumanInput::Managed).then_some(self.task.rounds.as_ref()).flatten();
        match managed {
            Some(desk) => {
                let asking = AskingCall {
                    operation: format!("call-{place}"),
                    arguments: call.arguments.clone(),
                    deadline: self.spec.deadline,
                    round_limit: self.spec.round_limit,
                };
                let mut rounds = Rounds::new(desk, self.task.execution, asking, (server, tool));
                let called = self.carry_out(server, tool, call, &mut rounds).await;
                let steps = match &called {
                    Ok(Some(_)) => rounds.answered(),
                    Ok(None) => rounds.cut_short(&Failure::new(Failure::CANCELLED, "the execution was cancelled")),
                    Err(error) => {
                        let words = format!("the call came to no answer: {error}");
                        rounds.cut_short(&Failure::new(Failure::WITHDRAWN, words))
                    }
                };
                (called, steps)
            }
            None => {
                let mut plan = self.plan.clone();
                let operation = Operation::new(OperationKind::Tool, tool);
                let mut planned = Planned::new(server, &operation, &mut plan);
                let called = self.carry_out(server, tool, call, &mut planned).await;
                self.plan = plan;
                (called, Vec::new())
            }
        }
    }

    async fn carry_out(
        &mut self,
        server: &'a str,
        tool: &str,
        call: &ScriptedCall,
        answering: &mut dyn Answer,
    ) -> Result<Option<Reply>, OperateError> {
        let mut stop = self.task.stop.clone();
        let called = tokio::select! {
            called = self.request(server, tool, call, answering) => Some(called),
            () = stop.told() => None,
        };
        match called {
            Some(Ok(reply)) => Ok(Some(reply)),
            // How its process ended is known once it was waited for.
            Some(Err(OperateError::Ended(_))) => match self.servers.remove(server) {
                Some(connection) => Err(OperateError::Ended(connection.server.ended().await)),
                None => Err(OperateError::Ended(String::new())),
            },
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }

    async fn request(
        &mut self,
        server: &'a str,
        tool: &str,
        call: &ScriptedCall,
        answering: &mut dyn Answer,
    ) -> Result<Reply, OperateError> {
        let limit = self.spec.time_limit;
        let connection = match self.servers.entry(server) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let bound = self.spec.servers.iter().find(|bound| bound.name() == server);
                let bound = bound.ok_or_else(|| OperateError::Start(format!("{server} is not bound")))?;
                let transport = reach(bound).map_err(|error| OperateError::Start(error.to_string()))?;
                place.insert(Connection::open(&*transport)?)
            }
        };
        let begun = async {
            if !connection.is_initialized() {
                connection.initialize(answering).await?;
            }
            connection.find_tool(tool, answering).await
        };
        let timed_out = |_| OperateError::TimedOut { limit, expected: None };
        tokio::time::timeout(limit, begun).await.map_err(timed_out)??;
        let operation =
            Operation { arguments: Some(call.arguments.clone()), ..Operation::new(OperationKind::Tool, tool) };
        let (method, params) = operation.request();
        let answer = connection.request(method, &params, answering, Some(limit)).await?;
        Ok(Reply::read(&answer))
    }
}
