//! One operation of a server, answered by its plan.

use sayso::Outcome;
use sayso::kit::{Ended, OperationSpec, Task};
use sayso::plan::Plan;

use super::ended::{Answers, failure};
use crate::operate::{Client, OperateError, Operation, reach};

pub(super) async fn run(spec: &OperationSpec, task: &Task) -> Ended {
    let mut answers = Answers::default();
    let plan = match spec.plan.clone().unwrap_or_else(Plan::nothing).begin() {
        Ok(plan) => plan,
        Err(error) => return answers.ended(failure(&OperateError::Plan(error)), Vec::new()),
    };
    let operation = Operation { arguments: spec.arguments.clone(), ..Operation::new(spec.kind, &spec.name) };
    let transport = match reach(&spec.server) {
        Ok(transport) => transport,
        Err(error) => return answers.ended(failure(&OperateError::Start(error.to_string())), Vec::new()),
    };
    let mut client = Client::new(spec.server.name(), transport, spec.time_limit);
    let mut stop = task.stop.clone();
    let report = tokio::select! {
        report = client.run(&operation, plan) => Some(report),
        () = stop.told() => None,
    };
    client.close().await;
    let Some(report) = report else { return answers.ended(Outcome::Cancelled, Vec::new()) };
    if let Some(reply) = &report.reply {
        answers.add(&spec.name, reply);
    }
    let outcome = report.failures.first().map_or(Outcome::Completed, failure);
    answers.ended(outcome, Vec::new())
}
