//! The native tool loop: a model behind an OpenAI-compatible endpoint, tools of the program and of MCP servers, and a
//! person wherever a call needs one. A run that waits lives in no process: it is stored whole, and goes on wherever its
//! tools are (`docs/native.md`).
//!
//! A turn is judged whole before any of its calls runs. Whatever is wrong with an answer is found before anything is
//! claimed, so the run waits as it did and the answer may be sent again:
//!
//! ```
//! use async_trait::async_trait;
//! use sayso::{Answer, ErrorCode, Json, Options, Principal, Response, Sayso};
//! use sayso_agents::native::{AgentRuntime, ChatEndpoint, RequiresInput, RunOutcome, Tool, Toolbox};
//!
//! struct Ship;
//!
//! #[async_trait]
//! impl Tool for Ship {
//!     fn name(&self) -> &str {
//!         "ship"
//!     }
//!     fn description(&self) -> &str {
//!         "Plans a shipment to the city that a person names."
//!     }
//!     fn parameters(&self) -> Json {
//!         Json::parse(r#"{"type":"object","properties":{"item":{"type":"string"}}}"#).expect("a schema")
//!     }
//!     fn is_harmless(&self) -> bool {
//!         true
//!     }
//!     fn requires_input(&self) -> Option<&dyn RequiresInput> {
//!         Some(self)
//!     }
//!     async fn call(&self, arguments: &Json) -> Result<String, String> {
//!         Ok(format!("Planned: {}", arguments.as_str()))
//!     }
//! }
//!
//! impl RequiresInput for Ship {
//!     fn input_schema(&self) -> Json {
//!         let schema = r#"{"type":"object","properties":{"city":{"type":"string","minLength":2}},"required":["city"]}"#;
//!         Json::parse(schema).expect("a schema")
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::io::{BufRead, BufReader, Read, Write};
//! # let folder = tempfile::tempdir()?;
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let url = format!("http://{}/v1", listener.local_addr()?);
//! # std::thread::spawn(move || {
//! #     let calls = r#"[{"id":"c1","type":"function","function":{"name":"ship","arguments":"{\"item\":\"lamp\"}"}}]"#;
//! #     let mut says = [format!(r#"{{"tool_calls":{calls}}}"#), r#"{"content":"It goes to Pune."}"#.to_owned()].into_iter();
//! #     for stream in listener.incoming() {
//! #         let mut stream = BufReader::new(stream.expect("a connection"));
//! #         let mut head = String::new();
//! #         while stream.read_line(&mut head).expect("a line") > 2 {}
//! #         let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
//! #         stream.read_exact(&mut vec![0; length.parse().expect("a number")]).expect("a body");
//! #         let text = format!(r#"{{"choices":[{{"message":{}}}]}}"#, says.next().expect("a message"));
//! #         let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", text.len());
//! #         stream.get_mut().write_all(format!("{head}{text}").as_bytes()).expect("is sent");
//! #     }
//! # });
//! let sayso = Sayso::open(Options::at(folder.path())).await?;
//! let model = ChatEndpoint::new(&url, "some-model", None)?;
//! let runtime = AgentRuntime::new(&sayso, Principal::agent("shop"), model).tools(Toolbox::new().with(Ship)?);
//! let run = runtime.begin().await?;
//! let RunOutcome::AwaitingInput(round) = runtime.run(run, "Ship the lamp.").await? else { panic!("it asks where to") };
//!
//! // The program may end here, and go on tomorrow. What does not fit changes nothing.
//! let city = |text: &str| Json::parse(text).map(|city| Answer::one("c1", Response::accept(city)));
//! let refused = runtime.submit_input(&sayso.people(), run, city(r#"{"city":"X"}"#)?, "first").await.unwrap_err();
//! assert_eq!(refused.code(), ErrorCode::ManagedInputInvalid);
//! assert_eq!(runtime.resume(run).await?, RunOutcome::AwaitingInput(round), "it waits as it did");
//!
//! let outcome = runtime.submit_input(&sayso.people(), run, city(r#"{"city":"Pune"}"#)?, "second").await?;
//! assert!(matches!(outcome, RunOutcome::Completed(said) if said.text == "It goes to Pune."));
//! # Ok(())
//! # }
//! ```
//!
//! A tool has one marker. One that is marked for approval and for input is refused when it is registered, since no way of
//! approving it could carry the input; needing both is a marker of its own, [`RequiresApprovedInput`]:
//!
//! ```
//! # use async_trait::async_trait;
//! # use sayso::{ErrorCode, Json};
//! use sayso_agents::native::{RequiresApproval, RequiresInput, Tool, Toolbox};
//! # struct Pay;
//! # impl RequiresApproval for Pay {}
//! # impl RequiresInput for Pay {
//! #     fn input_schema(&self) -> Json {
//! #         Json::parse(r#"{"type":"object","properties":{"pin":{"type":"string"}}}"#).expect("a schema")
//! #     }
//! # }
//!
//! # #[async_trait]
//! impl Tool for Pay {
//!     // …
//! #     fn name(&self) -> &str { "pay" }
//! #     fn description(&self) -> &str { "Pays." }
//! #     fn parameters(&self) -> Json { Json::parse("{}").expect("a schema") }
//! #     async fn call(&self, _arguments: &Json) -> Result<String, String> { Ok(String::new()) }
//!     fn requires_approval(&self) -> Option<&dyn RequiresApproval> {
//!         Some(self)
//!     }
//!     fn requires_input(&self) -> Option<&dyn RequiresInput> {
//!         Some(self)
//!     }
//! }
//!
//! let refused = Toolbox::new().with(Pay).unwrap_err();
//! assert_eq!(refused.code(), ErrorCode::ModelValidation);
//! assert!(refused.to_string().contains("a tool has one marker"));
//! ```

mod answers;
mod asking;
mod judge;
mod model;
mod offer;
mod outcome;
mod resume;
mod runner;
mod runtime;
mod sealed;
mod servers;
mod state;
mod tool;
mod tool_loop;
mod turns;

pub use model::{ANSWER_WITHIN_DEFAULT, ChatEndpoint};
pub use outcome::{RunOutcome, Said};
pub use runner::{HARNESS, NativeRunner};
pub use runtime::AgentRuntime;
pub use sayso_core::schema::{InputSchema, SchemaError};
pub use sealed::{Keyring, KeyringError};
pub use state::{AllowedBy, PendingCall, SuspendedRunState, WaitsFor};
pub use tool::{OWN_SERVER, RequiresApproval, RequiresApprovedInput, RequiresInput, Tool, Toolbox};
pub use tool_loop::{ToolInputRequired, ToolLoop};
