//! What runs the specs of [`sayso::kit`]: scripted agents and direct operations, against servers over stdio and HTTP.
//!
//! The harness `script` is an agent without a model: it makes the calls of its script in order, in one session with each
//! of its servers. What a server asks meanwhile is answered by the plan, or stored as a live round that a person answers.
//! It stands on `operate`, which has the client of a server, and on nothing else here.
//!
//! ```
//! use std::time::Duration;
//!
//! use sayso::Json;
//! use sayso::kit::{AgentSpec, ExecutionStatus, HumanInput, Kit, ScriptedCall, StdioServer};
//! use sayso::storage::{ElicitationResponse, SqliteExecutionStore};
//! use sayso_agents::kit::ScriptRunner;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let line = |id: &str, rest: &str| format!(r#"read l; echo '{{"jsonrpc":"2.0","id":{id},{rest}}}';"#);
//! # let hello = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
//! # let asks = r#""method":"elicitation/create","params":{"message":"Where to?","requestedSchema":{"type":"object"}}"#;
//! # let lines = [
//! #     line("1", hello),
//! #     "read l;".to_owned(),
//! #     line("2", r#""result":{"tools":[{"name":"book_shipment","inputSchema":{"type":"object"}}]}"#),
//! #     line("7", asks),
//! #     line("3", r#""result":{"content":[{"type":"text","text":"Booked."}]}"#),
//! #     "read l".to_owned(),
//! # ];
//! # let command = ["sh".to_owned(), "-c".to_owned(), lines.concat()];
//! let shipping_server = StdioServer::new("shipping", command);
//! let store = SqliteExecutionStore::open(folder.path().join("executions.sqlite")).await?;
//! let kit = Kit::new(&store).with_runner(ScriptRunner);
//! let agents = kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }])?;
//! let agent = agents.first().ok_or("one agent")?;
//! let handle = agent
//!     .submit("Ask for the delivery address, then book the shipment.")
//!     .server(shipping_server)
//!     .tools(["shipping:book_shipment"])
//!     .script([ScriptedCall::new("shipping:book_shipment", Json::parse(r#"{"item":"lamp"}"#)?)])
//!     .human_input(HumanInput::Managed)
//!     .start()
//!     .await?;
//!
//! let mut pending = handle.pending_elicitation().await?;
//! while pending.is_none() {
//!     let snapshot = handle.snapshot().await?;
//!     if snapshot.lifecycle == ExecutionStatus::Finished {
//!         return Err(format!("it finished before it asked: {:?}", snapshot.outcome).into());
//!     }
//!     tokio::time::sleep(Duration::from_millis(20)).await;
//!     pending = handle.pending_elicitation().await?;
//! }
//! let pending = pending.ok_or("a round")?;
//! let (key, _) = pending.requests.0.first().ok_or("a request")?;
//! let address = Json::parse(r#"{"street":"1 Main Street","city":"Pune"}"#)?;
//! handle
//!     .respond_elicitation(
//!         pending.round_id,
//!         [(key.clone(), ElicitationResponse::accept(address))],
//!         &format!("address-{}", pending.round_id),
//!     )
//!     .await?;
//! let result = handle.result(Some(Duration::from_secs(30))).await?;
//! assert_eq!(result.execution.outcome.map(|outcome| outcome.status).as_deref(), Some("completed"));
//! kit.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The same without a runtime of one's own, by [`sayso::blocking`]:
//!
//! ```
//! use std::time::Duration;
//!
//! use sayso::Json;
//! use sayso::blocking::{Kit, SqliteExecutionStore};
//! use sayso::kit::{AgentSpec, ExecutionStatus, HumanInput, ScriptedCall, StdioServer};
//! use sayso::storage::ElicitationResponse;
//! use sayso_agents::kit::ScriptRunner;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let line = |id: &str, rest: &str| format!(r#"read l; echo '{{"jsonrpc":"2.0","id":{id},{rest}}}';"#);
//! # let hello = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
//! # let asks = r#""method":"elicitation/create","params":{"message":"Where to?","requestedSchema":{"type":"object"}}"#;
//! # let lines = [
//! #     line("1", hello),
//! #     "read l;".to_owned(),
//! #     line("2", r#""result":{"tools":[{"name":"book_shipment","inputSchema":{"type":"object"}}]}"#),
//! #     line("7", asks),
//! #     line("3", r#""result":{"content":[{"type":"text","text":"Booked."}]}"#),
//! #     "read l".to_owned(),
//! # ];
//! # let command = ["sh".to_owned(), "-c".to_owned(), lines.concat()];
//! let shipping_server = StdioServer::new("shipping", command);
//! let store = SqliteExecutionStore::open(folder.path().join("executions.sqlite"))?;
//! let kit = Kit::new(&store).with_runner(ScriptRunner);
//! let agents = kit.agents([AgentSpec { harness: "script".to_owned(), ..AgentSpec::default() }])?;
//! let handle = agents
//!     .first()
//!     .ok_or("one agent")?
//!     .submit("Ask for the delivery address, then book the shipment.")
//!     .server(shipping_server)
//!     .tools(["shipping:book_shipment"])
//!     .script([ScriptedCall::new("shipping:book_shipment", Json::parse(r#"{"item":"lamp"}"#)?)])
//!     .human_input(HumanInput::Managed)
//!     .start()?;
//!
//! let pending = loop {
//!     if let Some(pending) = handle.pending_elicitation()? {
//!         break pending;
//!     }
//!     if handle.snapshot()?.lifecycle == ExecutionStatus::Finished {
//!         return Err("it finished before it asked".into());
//!     }
//!     std::thread::sleep(Duration::from_millis(20));
//! };
//! let (key, _) = pending.requests.0.first().ok_or("a request")?;
//! let address = Json::parse(r#"{"street":"1 Main Street","city":"Pune"}"#)?;
//! let answer = [(key.clone(), ElicitationResponse::accept(address))];
//! handle.respond_elicitation(pending.round_id, answer, &format!("address-{}", pending.round_id))?;
//! let result = handle.result(Some(Duration::from_secs(30)))?;
//! assert_eq!(result.execution.outcome.map(|outcome| outcome.status).as_deref(), Some("completed"));
//! kit.close()?;
//! # Ok(())
//! # }
//! ```

mod ended;
mod operation;
mod rounds;
mod script;

use async_trait::async_trait;
use sayso::Error;
use sayso::kit::{Ended, HumanInput, Runner, Spec, Task};

use crate::operate::reach;
pub(crate) use rounds::{AskingCall, Rounds, settle};

/// The name of the harness.
const HARNESS: &str = "script";

/// Runs scripted agents and direct operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptRunner;

#[async_trait]
impl Runner for ScriptRunner {
    fn runs(&self, spec: &Spec) -> bool {
        match spec {
            Spec::Agent(spec) => spec.harness == HARNESS,
            Spec::Operation(_) => true,
        }
    }

    fn check(&self, spec: &Spec, _human_input: HumanInput) -> Result<(), Error> {
        let servers = match spec {
            Spec::Agent(spec) => spec.servers.as_slice(),
            Spec::Operation(spec) => std::slice::from_ref(&spec.server),
        };
        servers.iter().try_for_each(|server| reach(server).map(drop))?;
        match spec {
            Spec::Agent(spec) if spec.script.is_empty() => {
                Err(Error::Model("a scripted agent needs a script: a list of tool calls".to_owned()))
            }
            _ => Ok(()),
        }
    }

    async fn run(&self, task: Task) -> Ended {
        match &task.spec {
            Spec::Agent(spec) => script::run(spec, &task).await,
            Spec::Operation(spec) => operation::run(spec, &task).await,
        }
    }
}
