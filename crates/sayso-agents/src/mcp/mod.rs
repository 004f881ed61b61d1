//! An MCP server of our own over streamable HTTP (2025-03-26 to 2025-11-25), by which an agent asks a person without a
//! gateway: `ask_user`, `sayso_wait`, `resume`.
//!
//! It is a [`tower::Service`]. Whoever serves it has checked where a request comes from and who is calling, and says so by
//! a [`Principal`] among the request's extensions; nothing in a message says who somebody is.
//!
//! What is asked is a stored round that anybody may answer and this agent alone takes, so a restart of the server loses
//! nothing but the session, and the client begins another. A call is held for a while, with signs of life; then its
//! pending result ends it, and `sayso_wait` goes on.
//!
//! A program's gate pauses, a person approves, and `resume` says so:
//!
//! ```
//! use sayso::gate::{Call, Gates, Ruling};
//! use sayso::policy::{PolicyFiles, ToolName};
//! use sayso::wire::Gated;
//! use sayso::{Answer, Json, Options, People, Principal, Response, Sayso};
//! use sayso_agents::mcp::{McpOptions, McpServer};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # for relay in [false, true] {
//! # let options = Options::at(folder.path());
//! # let options = if relay { options.trusting_agent_relay() } else { options };
//! let sayso = Sayso::open(options).await?;
//! let agent = Principal::agent("shop");
//! let mcp = McpServer::new(&sayso, McpOptions { trust_agent_relay: relay, ..McpOptions::default() });
//!
//! // 1 to 4: the call is gated, and pauses.
//! let gate = Gates::new(&sayso, PolicyFiles::none()).of(agent.clone());
//! let call = Call::new("s", ToolName::parse("github:issues.create")?, Json::parse(r#"{"title":"It broke"}"#)?);
//! let Ruling::Ask(round) = gate.judge(&call).await? else { panic!("a person is asked") };
//! let paused = Gated::from(Ruling::Ask(round.clone())).paused.expect("it waits");
//! assert_eq!((paused.tool_path.as_str(), paused.args.as_str()), ("github:issues.create", r#"{"title":"It broke"}"#));
//!
//! // 6: the agent says that the user approved.
//! let resume = format!(r#"{{"execution_id":"{}","approved":true}}"#, paused.execution_id);
//! let told = mcp.call_tool(&agent, "resume", &Json::parse(&resume)?).await?;
//! if relay {
//!     // It is trusted with that; the answer is recorded as relayed by it.
//!     assert!(told.contains(r#""approved":true"#) && told.contains(r#""relayed_by":"agent shop""#));
//! } else {
//!     // Its word is not a person's: the call goes on waiting.
//!     assert!(told.contains(r#""resolved":false"#) && told.contains(r#""answer_at""#));
//!     let approval = Answer { digest: Some(round.digest), ..Answer::one("call", Response::consent()) };
//!     sayso.people().answer(round.round_id, approval, "approved").await?;
//!     assert!(mcp.call_tool(&agent, "resume", &Json::parse(&resume)?).await?.contains(r#""approved":true"#));
//! }
//!
//! // 8: execution goes on.
//! assert!(matches!(gate.judge(&call).await?, Ruling::Allow(_)));
//! # }
//! # Ok(())
//! # }
//! ```

mod call;
mod http;
mod post;
mod sessions;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes};
use hyper::{Request, Response};
use sayso::{Error, Json, Principal, Sayso};
use tokio::sync::watch;

pub use crate::tools::Hold;
pub use http::McpBody;

use sessions::{Session, Sessions};

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// How long a tool call is held before its pending result ends it.
    pub hold: Hold,
    /// Where people answer, such as `http://127.0.0.1:7717`, as far as it is known.
    pub inbox: Option<String>,
    /// Whether what an agent says with `resume` counts as the person's verdict, recorded as relayed by it. The store must
    /// have been opened so, too ([`sayso::Options::trusting_agent_relay`]).
    pub trust_agent_relay: bool,
    /// Turns true once the server stops: what is held answers as if its hold were over.
    pub stopping: Option<watch::Receiver<bool>>,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self { hold: Hold::DEFAULT, inbox: None, trust_agent_relay: false, stopping: None }
    }
}

/// The server. Cheap to clone; all clones have the same sessions.
#[derive(Clone)]
pub struct McpServer {
    inner: Arc<Inner>,
}

/// What all sessions share.
struct Inner {
    sayso: Sayso,
    options: McpOptions,
    sessions: Sessions,
}

impl McpServer {
    /// A server for the rounds of one store.
    pub fn new(sayso: &Sayso, options: McpOptions) -> Self {
        Self { inner: Arc::new(Inner { sayso: sayso.clone(), options, sessions: Sessions::default() }) }
    }

    /// Calls a tool for `caller` outside every session, for programs that have their own way to an agent. The result as
    /// MCP writes it: `{"content": …, "structuredContent": …, "isError": …}`.
    pub async fn call_tool(&self, caller: &Principal, name: &str, arguments: &Json) -> Result<String, Error> {
        let hold = self.inner.options.hold.for_client(None);
        let session = Arc::new(Session::new(&self.inner.sayso, caller.clone(), hold));
        match self.call(&session, name, Some(arguments.as_str())).await {
            (call::Reply::Result(result), held) => {
                sessions::Held::collect(held);
                Ok(result)
            }
            (call::Reply::Error(_, message), _) => Err(Error::field("/arguments", message)),
        }
    }
}

impl<B> tower::Service<Request<B>> for McpServer
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}
