//! A client that runs one operation after the other.

use std::sync::Arc;
use std::time::Duration;

use sayso::OperationKind;
use sayso::plan::{PlanError, Run};

use super::connection::{Connection, Planned};
use super::error::OperateError;
use super::operation::{Exchange, Operation, Reply, Report};
use crate::jsonrpc::Transport;

/// A client of one server. The server is started, or a session with it begun, for the first operation and serves the next
/// ones too, unless one was cut short: what is still said then belongs to nothing any more, so the next operation gets a
/// new one.
#[derive(Debug)]
pub struct Client {
    name: String,
    transport: Arc<dyn Transport>,
    time_limit: Duration,
    connection: Option<Connection>,
}

impl Client {
    /// A client of the server `name`. Each operation has `time_limit`, and so has starting the server.
    pub fn new(name: impl Into<String>, transport: Arc<dyn Transport>, time_limit: Duration) -> Self {
        Self { name: name.into(), transport, time_limit, connection: None }
    }

    /// Runs one operation, answering by the plan.
    pub async fn run(&mut self, operation: &Operation, mut run: Run) -> Report {
        let mut report = Report::default();
        match self.carry_out(operation, &mut run, &mut report.exchanges).await {
            Ok(reply) => {
                report.failures.extend(run.finish().err().map(OperateError::Plan));
                report.failures.extend(operation.judge(&reply));
                report.reply = Some(reply);
            }
            Err(error) => report.failures.push(self.cut_short(error, &run).await),
        }
        report
    }

    /// Starts a server where there is none, makes sure that the tool is there, and carries the operation out.
    async fn carry_out(
        &mut self,
        operation: &Operation,
        run: &mut Run,
        exchanges: &mut Vec<Exchange>,
    ) -> Result<Reply, OperateError> {
        // It stays in its place all the while: whoever drops this future can still end the server.
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Connection::open(&*self.transport)?),
        };
        let mut planned = Planned::new(&self.name, operation, run);
        let reply = exchange(connection, operation, &mut planned, self.time_limit).await;
        exchanges.append(&mut planned.exchanges);
        reply
    }

    /// Ends the server of an operation that came to no answer, and says the whole of why.
    async fn cut_short(&mut self, error: OperateError, run: &Run) -> OperateError {
        let Some(connection) = self.connection.take() else { return error };
        match error {
            OperateError::Ended(_) => OperateError::Ended(connection.server.ended().await),
            OperateError::TimedOut { limit, .. } => {
                connection.server.close().await;
                OperateError::TimedOut { limit, expected: run.finish().err() }
            }
            error => {
                connection.server.close().await;
                error
            }
        }
    }

    /// Ends the server.
    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.server.close().await;
        }
    }
}

async fn exchange(
    connection: &mut Connection,
    operation: &Operation,
    planned: &mut Planned<'_>,
    limit: Duration,
) -> Result<Reply, OperateError> {
    within(limit, async {
        if !connection.is_initialized() {
            connection.initialize(planned).await?;
        }
        if operation.kind == OperationKind::Tool {
            connection.find_tool(&operation.name, planned).await?;
        }
        Ok(())
    })
    .await?;
    let (method, params) = operation.request();
    let answer = within(limit, connection.request(method, &params, planned, None)).await?;
    Ok(Reply::read(&answer))
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, OperateError>>) -> Result<T, OperateError> {
    let timed_out = |_| OperateError::TimedOut { limit, expected: None::<PlanError> };
    tokio::time::timeout(limit, work).await.map_err(timed_out)?
}
