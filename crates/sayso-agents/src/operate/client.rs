//! A client that runs one operation after the other.

use std::sync::Arc;
use std::time::Duration;

use sayso::OperationKind;
use sayso::plan::{PlanError, Run};

use super::connection::{Answering, Connection};
use super::error::OperateError;
use super::operation::{Operation, Reply, Report};
use crate::jsonrpc::Launch;

/// A client of one server. The server is started for the first operation and serves the next ones too, unless one was cut
/// short: what that server still says belongs to nothing any more, so the next operation gets a new one.
#[derive(Debug)]
pub struct Client {
    name: String,
    launch: Arc<dyn Launch>,
    time_limit: Duration,
    connection: Option<Connection>,
}

impl Client {
    /// A client of the server `name`. Each operation has `time_limit`, and so has starting the server.
    pub fn new(name: impl Into<String>, launch: Arc<dyn Launch>, time_limit: Duration) -> Self {
        Self { name: name.into(), launch, time_limit, connection: None }
    }

    /// Runs one operation, answering by the plan.
    pub async fn run(&mut self, operation: &Operation, mut run: Run) -> Report {
        let mut report = Report::default();
        let mut answering =
            Answering { server_name: &self.name, operation, run: &mut run, exchanges: &mut report.exchanges };
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match Connection::open(&*self.launch) {
                Ok(connection) => connection,
                Err(error) => return Report { failures: vec![error], ..Report::default() },
            },
        };
        let carried = carry_out(&mut connection, &mut answering, self.time_limit).await;
        match carried {
            Ok(reply) => {
                self.connection = Some(connection);
                report.failures.extend(run.finish().err().map(OperateError::Plan));
                report.failures.extend(operation.judge(&reply));
                report.reply = Some(reply);
            }
            Err(OperateError::Ended(_)) => {
                report.failures.push(OperateError::Ended(connection.server.ended().await));
            }
            Err(error) => {
                connection.server.close().await;
                let error = match error {
                    OperateError::TimedOut { limit, .. } => {
                        OperateError::TimedOut { limit, expected: run.finish().err() }
                    }
                    error => error,
                };
                report.failures.push(error);
            }
        }
        report
    }

    /// Ends the server.
    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.server.close().await;
        }
    }
}

/// Starts what is new, makes sure that the tool is there, and carries the operation out.
async fn carry_out(
    connection: &mut Connection,
    answering: &mut Answering<'_>,
    limit: Duration,
) -> Result<Reply, OperateError> {
    let operation = answering.operation;
    within(limit, async {
        if !connection.is_initialized() {
            connection.initialize(answering).await?;
        }
        if operation.kind == OperationKind::Tool {
            connection.find_tool(&operation.name, answering).await?;
        }
        Ok(())
    })
    .await?;
    let (method, params) = operation.request();
    let answer = within(limit, connection.request(method, &params, answering)).await?;
    Ok(Reply::read(&answer))
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, OperateError>>) -> Result<T, OperateError> {
    let timed_out = |_| OperateError::TimedOut { limit, expected: None::<PlanError> };
    tokio::time::timeout(limit, work).await.map_err(timed_out)?
}
