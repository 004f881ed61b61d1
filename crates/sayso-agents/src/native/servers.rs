//! The MCP servers of a run: reached when it starts or goes on, asked for their tools, and called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sayso::kit::Server;
use sayso::policy::{Annotations, ToolName};
use sayso::{Desk, Digest, Error, ExecutionId, Failure, Json, OperationKind, UnixMs, words};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::jsonrpc::{self, INTERNAL_ERROR, Message};
use crate::kit::{AskingCall, Rounds, settle};
use crate::operate::{Answer, Asked, Connection, OperateError, Operation, Reply, reach};

/// What a server says of a tool.
pub(super) struct ServerTool {
    pub name: ToolName,
    pub description: Option<String>,
    pub parameters: Json,
    pub annotations: Annotations,
    pub definition: Digest,
}

/// Connections to servers, by their names.
#[derive(Default)]
pub(super) struct Servers {
    /// Never locked: it makes what only one task uses fit to be shared while others are only looked at.
    connections: Mutex<BTreeMap<String, Connection>>,
    limit: Duration,
}

/// Who answers what servers ask during calls: people, in live rounds; without a desk nobody.
pub(super) struct Asking<'a> {
    pub desk: Option<&'a Arc<dyn Desk>>,
    pub execution: ExecutionId,
    pub deadline: Option<UnixMs>,
    pub round_limit: u32,
}

/// Says of every question that nobody is asked.
struct Nobody;

#[async_trait]
impl Answer for Nobody {
    async fn asked(&mut self, _message: &Message, id: &str) -> Asked {
        Asked { line: Some(jsonrpc::error(id, INTERNAL_ERROR, words::QUESTION_UNAVAILABLE, None)), failure: None }
    }
}

impl Servers {
    /// Begins a conversation with each, and reads what they have.
    pub async fn reach(servers: &[Server], limit: Duration) -> Result<(Self, Vec<ServerTool>), OperateError> {
        let (mut reached, mut tools) = (Self { connections: Mutex::default(), limit }, Vec::new());
        for server in servers {
            match reached.reach_one(server).await {
                Ok(listed) => tools.extend(listed),
                Err(error) => {
                    reached.close().await;
                    return Err(error);
                }
            }
        }
        Ok((reached, tools))
    }

    async fn reach_one(&mut self, server: &Server) -> Result<Vec<ServerTool>, OperateError> {
        let transport = reach(server).map_err(|error| OperateError::Start(error.to_string()))?;
        // It is in its place before anything is waited for, so that it is ended whatever comes.
        let connection = match self.connections.get_mut().entry(server.name().to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Connection::open(&*transport)?),
        };
        let begun = async {
            connection.initialize(&mut Nobody).await?;
            connection.list_definitions(&mut Nobody).await
        };
        let limit = self.limit;
        let listed = tokio::time::timeout(limit, begun).await;
        let listed = listed.map_err(|_| OperateError::TimedOut { limit, expected: None })??;
        Ok(read_tools(server.name(), &listed))
    }

    /// Calls a tool. What its server asks meanwhile is asked in the run's execution.
    pub async fn call(
        &mut self,
        tool: &ToolName,
        call_id: String,
        arguments: &Json,
        asking: Asking<'_>,
    ) -> Result<Reply, OperateError> {
        let operation =
            Operation { arguments: Some(arguments.clone()), ..Operation::new(OperationKind::Tool, tool.name()) };
        let Some(desk) = asking.desk else { return self.request(tool, &operation, &mut Nobody).await };
        let about = AskingCall {
            operation: call_id,
            arguments: arguments.clone(),
            deadline: asking.deadline,
            round_limit: asking.round_limit,
        };
        let mut rounds = Rounds::new(desk, asking.execution, about, (tool.server(), tool.name()));
        let called = self.request(tool, &operation, &mut rounds).await;
        let steps = match &called {
            Ok(_) => rounds.answered(),
            Err(error) => {
                let words = format!("the call came to no answer: {error}");
                rounds.cut_short(&Failure::new(Failure::WITHDRAWN, words))
            }
        };
        settle(desk.as_ref(), steps).await;
        called
    }

    async fn request(
        &mut self,
        tool: &ToolName,
        operation: &Operation,
        answering: &mut dyn Answer,
    ) -> Result<Reply, OperateError> {
        let gone = || OperateError::Ended("its conversation has ended".to_owned());
        let connection = self.connections.get_mut().get_mut(tool.server()).ok_or_else(gone)?;
        let (method, params) = operation.request();
        match connection.request(method, &params, answering, Some(self.limit)).await {
            Ok(answer) => Ok(Reply::read(&answer)),
            Err(error) => {
                // What is still said belongs to nothing any more.
                if let Some(connection) = self.connections.get_mut().remove(tool.server()) {
                    connection.server.close().await;
                }
                Err(error)
            }
        }
    }

    /// Ends every conversation.
    pub async fn close(&mut self) {
        for (_, connection) in std::mem::take(self.connections.get_mut()) {
            connection.server.close().await;
        }
    }
}

/// What a server's list says. Of a tool that stands in it twice nobody can tell which of the two is meant, so no good
/// word about it counts.
fn read_tools(server: &str, listed: &[Json]) -> Vec<ServerTool> {
    let mut tools: Vec<ServerTool> = Vec::new();
    for tool in listed.iter().filter_map(|definition| read_tool(server, definition)) {
        match tools.iter_mut().find(|known| known.name == tool.name) {
            Some(known) => {
                known.annotations = Annotations::default();
                known.definition = Digest::of_text(&format!("{} {}", known.definition, tool.definition));
            }
            None => tools.push(tool),
        }
    }
    tools
}

fn read_tool(server: &str, definition: &Json) -> Option<ServerTool> {
    let view = definition.object()?;
    let text = |name: &str| serde_json::from_str::<Value>(view.get(name)?).ok()?.as_str().map(str::to_owned);
    let json = |name: &str| Json::parse(view.get(name)?).ok();
    let schema = json("inputSchema").filter(Json::is_object);
    Some(ServerTool {
        name: ToolName::new(server, text("name")?).ok()?,
        description: text("description"),
        parameters: schema.or_else(|| Json::parse(r#"{"type":"object"}"#).ok())?,
        annotations: json("annotations").map(|hints| Annotations::read(&hints)).unwrap_or_default(),
        definition: Digest::of_text(&definition.canonical()),
    })
}

/// Whether a server can be reached from here at all; an [`Error::Model`] if not.
pub(super) fn check(servers: &[Server]) -> Result<(), Error> {
    servers.iter().try_for_each(|server| reach(server).map(drop))
}
