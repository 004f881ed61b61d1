//! One conversation with a server, as a client has it.

use std::time::Duration;

use async_trait::async_trait;
use sayso::plan::{DEFAULT_KEY, Elicitation, Run};
use sayso_core::json::{Json, ObjectView};
use sayso_core::limits::{JSON_DEPTH_CEILING, LINE_BYTES_MAX};
use serde_json::Value;

use super::error::OperateError;
use super::operation::{Exchange, Operation, Reply};
use crate::jsonrpc::{
    self, INTERNAL_ERROR, INVALID_PARAMS, Kind, METHOD_NOT_FOUND, Message, MessageReceiver, MessageSender, Received,
    Transport, elicit_result, read_elicitation,
};

/// The version that is offered, and those that are taken: the server may answer an earlier one.
const VERSION: &str = "2025-11-25";
const VERSIONS: [&str; 2] = [VERSION, "2025-06-18"];
/// Pages of a list that are read: a server with more goes round in circles.
const PAGES_MAX: usize = 64;

/// A server that is spoken to.
pub(crate) struct Connection {
    pub server: Box<dyn MessageSender>,
    receiver: Box<dyn MessageReceiver>,
    next_id: u64,
    tools: Vec<String>,
    is_initialized: bool,
}

/// Nothing of it is for reading.
impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Answers what a server asks while an operation of it is waited for.
#[async_trait]
pub(crate) trait Answer: Send {
    /// The server asks, under its own `id`. A failure ends the operation.
    async fn asked(&mut self, message: &Message, id: &str) -> Asked;
    /// The server takes back what it asked under `id`.
    async fn withdrawn(&mut self, _id: &str) {}
    /// Returns once there is a line for a question that was not answered at once. Nothing is lost where it is dropped.
    async fn ready(&mut self) -> Asked {
        std::future::pending().await
    }
    /// Whether somebody is asked, so that the server's time stands still.
    fn is_waiting(&self) -> bool {
        false
    }
}

/// What there is to say to the server, and why the operation cannot go on.
#[derive(Default)]
pub(crate) struct Asked {
    pub line: Option<String>,
    pub failure: Option<OperateError>,
}

/// What answers a server's questions by a plan, and what came of it.
pub(crate) struct Planned<'a> {
    server_name: &'a str,
    operation: &'a Operation,
    run: &'a mut Run,
    pub exchanges: Vec<Exchange>,
}

impl<'a> Planned<'a> {
    /// Follows `run` during an operation of the server.
    pub fn new(server_name: &'a str, operation: &'a Operation, run: &'a mut Run) -> Self {
        Self { server_name, operation, run, exchanges: Vec::new() }
    }
}

impl Connection {
    pub fn open(transport: &dyn Transport) -> Result<Self, OperateError> {
        let conversation = transport.open().map_err(OperateError::Start)?;
        let (server, receiver) = (conversation.sender, conversation.receiver);
        Ok(Self { server, receiver, next_id: 1, tools: Vec::new(), is_initialized: false })
    }

    /// Declares forms and URLs, as a client of a person would.
    pub async fn initialize(&mut self, answering: &mut dyn Answer) -> Result<(), OperateError> {
        let params = format!(
            r#"{{"protocolVersion":"{VERSION}","capabilities":{{"elicitation":{{"form":{{}},"url":{{}}}}}},"clientInfo":{{"name":"sayso","version":"{}"}}}}"#,
            env!("CARGO_PKG_VERSION")
        );
        let answer = self.request("initialize", &params, answering, None).await?;
        let Some(result) = answer.member("result") else {
            return Err(OperateError::Refused(Reply::read(&answer).text));
        };
        let version = member(result, "protocolVersion");
        let version = version.as_ref().and_then(Value::as_str).unwrap_or("none").to_owned();
        if !VERSIONS.contains(&version.as_str()) {
            return Err(OperateError::Version(version));
        }
        self.server.send(jsonrpc::notification("notifications/initialized", "{}")).await;
        self.is_initialized = true;
        Ok(())
    }

    /// Whether the server has taken the connection.
    pub fn is_initialized(&self) -> bool {
        self.is_initialized
    }

    /// Whether the server lists the tool. A list that lacks it is read once more: some add tools once they know what the
    /// client can do.
    pub async fn find_tool(&mut self, name: &str, answering: &mut dyn Answer) -> Result<(), OperateError> {
        for _ in 0..2 {
            if self.tools.iter().any(|known| known == name) {
                return Ok(());
            }
            self.tools = self.list_tools(answering).await?;
        }
        match self.tools.iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(OperateError::NoSuchTool { name: name.to_owned(), known: self.tools.clone() }),
        }
    }

    async fn list_tools(&mut self, answering: &mut dyn Answer) -> Result<Vec<String>, OperateError> {
        let name = |tool: &Json| member(tool.as_str(), "name")?.as_str().map(str::to_owned);
        Ok(self.list_definitions(answering).await?.iter().filter_map(name).collect())
    }

    /// What the server says of its tools, as it says it.
    pub async fn list_definitions(&mut self, answering: &mut dyn Answer) -> Result<Vec<Json>, OperateError> {
        let (mut definitions, mut params) = (Vec::new(), "{}".to_owned());
        for _ in 0..PAGES_MAX {
            let answer = self.request("tools/list", &params, answering, None).await?;
            let Some(result) = answer.member("result") else { break };
            let tools = ObjectView::read(result).and_then(|view| view.get("tools"));
            let tools = tools.and_then(|tools| Json::parse_within(tools, LINE_BYTES_MAX, JSON_DEPTH_CEILING).ok());
            definitions.extend(tools.iter().flat_map(Json::items));
            let cursor = ObjectView::read(result).and_then(|view| view.get("nextCursor"));
            let Some(cursor) = cursor.filter(|cursor| *cursor != "null") else { break };
            params = format!(r#"{{"cursor":{cursor}}}"#);
        }
        Ok(definitions)
    }

    /// Sends a request and reads until its answer, answering the server's own requests meanwhile. The server has `limit`
    /// for each stretch in which nobody is asked.
    pub async fn request(
        &mut self,
        method: &str,
        params: &str,
        answering: &mut dyn Answer,
        limit: Option<Duration>,
    ) -> Result<Message, OperateError> {
        let own_id = self.next_id.to_string();
        self.next_id += 1;
        self.server.send(jsonrpc::request(&own_id, method, params)).await;
        loop {
            let line = match self.receive(answering, limit).await? {
                Received::Message(line) => line,
                Received::TooLong => return Err(OperateError::TooLong),
                // How it ended is known once its process was waited for.
                Received::Ended => return Err(OperateError::Ended(String::new())),
                Received::Lost(fault) => return Err(OperateError::Http(fault)),
            };
            // Servers print banners and debug output where only messages belong.
            let Ok(message) = Message::parse(&line) else { continue };
            match &message.kind {
                Kind::Response { id } if *id == own_id => return Ok(message),
                Kind::Notification { method } if method == "notifications/cancelled" => {
                    if let Some(id) = message.param("requestId") {
                        answering.withdrawn(id).await;
                    }
                }
                Kind::Response { .. } | Kind::Notification { .. } => {}
                Kind::Request { id, method } => match method.as_str() {
                    "ping" => self.server.send(jsonrpc::result(id, "{}")).await,
                    "elicitation/create" => {
                        let asked = answering.asked(&message, id).await;
                        say(&*self.server, asked).await?;
                    }
                    _ => {
                        let words = "this client takes elicitations only";
                        self.server.send(jsonrpc::error(id, METHOD_NOT_FOUND, words, None)).await;
                    }
                },
            }
        }
    }

    /// What the server says next; what becomes ready to be said meanwhile is said.
    async fn receive(&mut self, answering: &mut dyn Answer, limit: Option<Duration>) -> Result<Received, OperateError> {
        // One read from its beginning to its end: given up half-way it would lose what it has read.
        let mut next = std::pin::pin!(self.receiver.next());
        loop {
            let limit = limit.filter(|_| !answering.is_waiting());
            let asked = tokio::select! {
                line = &mut next => return Ok(line),
                asked = answering.ready() => asked,
                () = tokio::time::sleep(limit.unwrap_or_default()), if limit.is_some() => {
                    return Err(OperateError::TimedOut { limit: limit.unwrap_or_default(), expected: None });
                }
            };
            say(&*self.server, asked).await?;
        }
    }
}

/// Says what there is to say, and fails where that is the end.
async fn say(server: &dyn MessageSender, asked: Asked) -> Result<(), OperateError> {
    if let Some(line) = asked.line {
        server.send(line).await;
    }
    asked.failure.map_or(Ok(()), Err)
}

#[async_trait]
impl Answer for Planned<'_> {
    async fn asked(&mut self, message: &Message, id: &str) -> Asked {
        let request = match read_elicitation(message) {
            Ok(request) => request,
            Err(words) => {
                let line = Some(jsonrpc::error(id, INVALID_PARAMS, &words, None));
                return Asked { line, failure: Some(OperateError::Unreadable(words)) };
            }
        };
        let Operation { kind, name, .. } = self.operation;
        let asked = Elicitation {
            key: DEFAULT_KEY.to_owned(),
            request,
            server: Some(self.server_name.to_owned()),
            operation: Some((*kind, name.clone())),
        };
        let answered = self.run.answer(std::slice::from_ref(&asked));
        let answer = answered.as_ref().ok().and_then(|answers| answers.get(DEFAULT_KEY)).cloned();
        let line = match &answered {
            Ok(_) => jsonrpc::result(id, &elicit_result(answer.as_ref())),
            Err(_) => jsonrpc::error(id, INTERNAL_ERROR, "the plan has no answer to this", None),
        };
        self.exchanges.push(Exchange { asked, answer });
        Asked { line: Some(line), failure: answered.err().map(OperateError::Plan) }
    }
}

fn member(object: &str, name: &str) -> Option<Value> {
    serde_json::from_str(ObjectView::read(object)?.get(name)?).ok()
}
