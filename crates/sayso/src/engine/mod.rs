//! Elicitations from within a program: a destructive call waits for a person, a handler asks one, and what was approved
//! for a session is not asked again (`docs/approvals.md`).
//!
//! A destructive tool pauses, whoever drives the program shows it to a person, and the call goes on:
//!
//! ```
//! use sayso::engine::{ElicitationEngine, ExecutionResult, Gated, Options, ToolDef};
//! use sayso::{Json, Sayso};
//! use std::sync::Arc;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let sayso = Sayso::open(sayso::Options::at(folder.path())).await?;
//! let (paused, mut pauses) = tokio::sync::mpsc::channel(8);
//! let engine = Arc::new(ElicitationEngine::new(&sayso, Options::default().on_pause(move |elicitation| {
//!     // Called once the question is stored.
//!     let _ = paused.try_send(ExecutionResult::paused(elicitation.clone()));
//! })));
//!
//! let script = tokio::spawn({
//!     let engine = engine.clone();
//!     async move {
//!         let tool = ToolDef::destructive("github.issues.create").described("Creates an issue");
//!         engine.gate(&tool, &Json::parse(r#"{"title":"It broke"}"#).expect("JSON")).await
//!     }
//! });
//!
//! let result = pauses.recv().await.ok_or("it pauses")?;
//! let pause = result.paused.ok_or("it is paused")?;
//! assert_eq!(pause.tool_path, "github.issues.create");
//! assert!(engine.has_pending().await?);
//! // The user approves.
//! assert!(engine.resolve(pause.execution_id, true, None).await?);
//! let Gated::Approved { arguments } = script.await?? else { return Err("it was approved".into()) };
//! assert_eq!(arguments.as_str(), r#"{"title":"It broke"}"#);
//!
//! // An approval for the session is kept, and listed with every other grant.
//! engine.add_session_approval("github.issues.create").await?;
//! // Future calls to github.issues.create will not pause.
//! let tool = ToolDef::destructive("github.issues.create");
//! assert!(matches!(engine.gate(&tool, &Json::parse("{}")?).await?, Gated::Approved { .. }));
//! assert!(engine.is_session_approved("github.issues.create").await?);
//! engine.clear_session_approvals().await?;
//! assert!(!engine.is_session_approved("github.issues.create").await?);
//! # Ok(())
//! # }
//! ```
//!
//! A handler asks for itself:
//!
//! ```
//! # use sayso::engine::{Elicit, ElicitationEngine, Options};
//! # use sayso::{Json, Sayso};
//! async fn create_issue(engine: &ElicitationEngine, input: Json) -> Result<(), Box<dyn std::error::Error>> {
//!     let question = Elicit::approval("github.issues.create", "Create issue \"It broke\" in ada/shop?").about(input);
//!     let approval = engine.elicit(question).await?;
//!     if !approval.approved {
//!         return Err("Issue creation denied by user".into());
//!     }
//!     // proceed...
//!     Ok(())
//! }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let sayso = Sayso::open(sayso::Options::at(folder.path())).await?;
//! # let (paused, mut pauses) = tokio::sync::mpsc::channel(8);
//! # let options = Options::default().on_pause(move |elicitation| drop(paused.try_send(elicitation.clone())));
//! # let engine = ElicitationEngine::new(&sayso, options);
//! # let answering = async { engine.resolve(pauses.recv().await.expect("asked").execution_id, false, None).await };
//! # let (created, answered) = tokio::join!(create_issue(&engine, Json::parse("{}")?), answering);
//! # assert!(created.is_err() && answered?);
//! # Ok(())
//! # }
//! ```

mod types;

use std::sync::Arc;

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::{Annotations, GrantScope, Pins, ToolName};
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::Status;
use sayso_core::wire::{self, Answer, Call as AskedCall, Keyed, Request, RequestKind, Response};
use sayso_store::{GrantFilter, GrantsOf, RoundFilter};

use crate::gate::{CALL_KEY, Call, Gate, Gates, Ruling, definition_of, operation, session_prefix};
use crate::open::Sayso;
use crate::people::{LocalPeople, People};
use crate::policy::PolicyFiles;
use crate::{Ask, Desk, NewGrant, ids, words};

pub use types::{Elicit, ElicitationResponse, ElicitationType, ExecutionResult, Gated, PendingElicitation, ToolDef};

/// The server of tools that name none.
const OWN_SERVER: &str = "engine";

type OnPause = Arc<dyn Fn(&PendingElicitation) + Send + Sync>;

/// How an engine is made.
pub struct Options {
    session_id: String,
    agent: Principal,
    policy: PolicyFiles,
    on_pause: OnPause,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            session_id: "default".to_owned(),
            agent: Principal::agent(OWN_SERVER),
            policy: PolicyFiles::none(),
            on_pause: Arc::new(|_| {}),
        }
    }
}

impl Options {
    /// The session that approvals are for. It goes on after a restart under the same name.
    #[must_use]
    pub fn session(self, session_id: impl Into<String>) -> Self {
        Self { session_id: session_id.into(), ..self }
    }

    /// Who asks; by default `agent engine`.
    #[must_use]
    pub fn agent(self, agent: Principal) -> Self {
        Self { agent, ..self }
    }

    /// A policy that decides first. Without one, destructive tools ask and others run.
    #[must_use]
    pub fn policy(self, policy: PolicyFiles) -> Self {
        Self { policy, ..self }
    }

    /// Hears of everything that waits for a person, once it is stored.
    #[must_use]
    pub fn on_pause(self, on_pause: impl Fn(&PendingElicitation) + Send + Sync + 'static) -> Self {
        Self { on_pause: Arc::new(on_pause), ..self }
    }
}

/// The in-process face of approvals. What it asks is stored, and found again after a restart: the same call in the same
/// session takes an answer that was given meanwhile, once.
pub struct ElicitationEngine {
    gate: Gate,
    people: LocalPeople,
    session: String,
    on_pause: OnPause,
}

impl ElicitationEngine {
    /// An engine over an opened store. Whoever it answers and grants as is the person of that [`Sayso`].
    pub fn new(sayso: &Sayso, options: Options) -> Self {
        Self {
            gate: Gates::new(sayso, options.policy).of(options.agent),
            people: sayso.people_as(sayso.person().clone(), Channel::Library),
            session: options.session_id,
            on_pause: options.on_pause,
        }
    }

    /// Lets a call through, or waits for a person. Answers at once for a tool that is not destructive or was approved for
    /// the session. That it expired, was cancelled, or that nobody could be asked, is an error and never a denial.
    pub async fn gate(&self, tool: &ToolDef, args: &Json) -> Result<Gated, Error> {
        let name = tool_name(&tool.path)?;
        let call = Call {
            path: Some(tool.path.clone()),
            description: tool.description.clone(),
            definition: Some(definition_of(&name, Annotations::default())),
            is_harmless: !tool.destructive,
            ..Call::new(self.session.clone(), name, args.clone())
        };
        match self.gate.pass(&call, None, |round| self.tell(round)).await? {
            Ruling::Allow(allowed) => Ok(Gated::Approved { arguments: allowed.arguments }),
            Ruling::Deny(denied) => Ok(Gated::Denied { reason: denied.reason }),
            Ruling::Ask(_) => Err(Error::Timeout),
        }
    }

    /// Asks a person from within a handler, and waits for the answer.
    pub async fn elicit(&self, elicit: Elicit) -> Result<ElicitationResponse, Error> {
        let (ask, operation) = self.asked(&elicit)?;
        let mut taken = Vec::new();
        loop {
            let (round, hold) = match self.gate.unfinished(&operation, &taken).await? {
                Some(found) => {
                    let Some(hold) = self.gate.held.take(found.round_id) else {
                        taken.push(found.round_id);
                        continue;
                    };
                    (found, Some(hold))
                }
                None => {
                    let unavailable = words::approval_unavailable;
                    let prepared = self.gate.gated(ask.clone(), operation.clone()).await.map_err(unavailable)?;
                    self.gate.store_new(prepared, None, true).await.map_err(unavailable)?
                }
            };
            if round.status == Status::Pending {
                self.tell(&round);
            }
            self.gate.answered(round.round_id, None).await?;
            match self.collect(&round).await {
                // Another process was faster: its answer was for its own call.
                Err(Error::Conflict { .. } | Error::State { .. } | Error::Recovery(_)) => taken.push(round.round_id),
                Err(error) => return Err(error),
                Ok(response) => return response_of(round.execution_id, response),
            }
            drop(hold);
        }
    }

    async fn collect(&self, round: &wire::Round) -> Result<Response, Error> {
        let key = format!("{:032x}", ids::random()?);
        let collected = self.gate.desk.collect(round.round_id, &key, std::time::Duration::ZERO).await?;
        collected.responses.get(CALL_KEY).cloned().ok_or(Error::Corrupt("answer"))
    }

    /// What a handler's question becomes, and the operation it is found under.
    fn asked(&self, elicit: &Elicit) -> Result<(Ask, String), Error> {
        let name = tool_name(&elicit.tool_path)?;
        let args = elicit.args.clone().map_or_else(empty_object, Ok)?;
        let request = match elicit.kind {
            ElicitationType::Approval => Request {
                tool: Some(elicit.tool_path.clone()),
                message: Some(elicit.message.clone()),
                arguments: Some(args.clone()),
                session: Some(self.session.clone()),
                ..Request::empty(RequestKind::Approval)
            },
            ElicitationType::Form => {
                let schema = elicit.schema.clone();
                Request::form(
                    &*elicit.message,
                    schema.ok_or_else(|| Error::field("/schema", "is required for a form"))?,
                )
            }
        };
        let schema = elicit.schema.as_ref().map(Json::canonical).unwrap_or_default();
        let parts = [elicit.tool_path.as_str(), elicit.message.as_str(), &args.canonical(), &schema];
        let operation = operation("elicit", &self.session, &parts);
        let calls = match elicit.kind {
            ElicitationType::Form => vec![AskedCall { name: elicit.tool_path.clone(), arguments: Some(args) }],
            ElicitationType::Approval => Vec::new(),
        };
        let ask = Ask {
            server: Some(name.server().to_owned()),
            operation_name: Some(name.name().to_owned()),
            calls,
            requests: Keyed(vec![(CALL_KEY.to_owned(), request)]),
            ..Ask::default()
        };
        Ok((ask, operation))
    }

    fn tell(&self, round: &wire::Round) {
        if let Some(pending) = PendingElicitation::of(round) {
            (self.on_pause)(&pending);
        }
    }

    /// Answers what waits, as this engine's person. False where it is unknown or settled. `data` is a form's data; with
    /// an approval it may hold `{"arguments"?, "input"?}`, and with a denial `{"reason"}`.
    pub async fn resolve(&self, execution: ExecutionId, approved: bool, data: Option<Json>) -> Result<bool, Error> {
        let Some(round) = self.pending_round(execution).await? else { return Ok(false) };
        let response = match (approved, data) {
            (true, Some(data)) => Response::accept(data),
            (true, None) => Response::consent(),
            (false, data) => Response::decline(data.as_ref().and_then(reason_in)),
        };
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, response) };
        let key = format!("{:032x}", ids::random()?);
        match self.people.answer(round.round_id, answer, &key).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict { .. } | Error::State { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What waits in this execution.
    pub async fn get_pending(&self, execution: ExecutionId) -> Result<Option<PendingElicitation>, Error> {
        Ok(self.pending_round(execution).await?.as_ref().and_then(PendingElicitation::of))
    }

    /// Everything that waits in this engine's session, newest first.
    pub async fn get_all_pending(&self) -> Result<Vec<PendingElicitation>, Error> {
        let mut all = Vec::new();
        let mut before: Option<RoundId> = None;
        loop {
            let filter = RoundFilter {
                status: Some(Status::Pending),
                unfinished_gated: Some(session_prefix(&self.session)),
                before,
                ..RoundFilter::default()
            };
            let page = self.gate.desk.sayso.rounds(&self.gate.desk.caller, filter).await?;
            all.extend(page.rounds.iter().filter_map(PendingElicitation::of));
            match page.next_cursor {
                Some(cursor) => before = Some(cursor),
                None => return Ok(all),
            }
        }
    }

    /// Whether anything waits in this engine's session.
    pub async fn has_pending(&self) -> Result<bool, Error> {
        Ok(!self.get_all_pending().await?.is_empty())
    }

    async fn pending_round(&self, execution: ExecutionId) -> Result<Option<wire::Round>, Error> {
        let desk = &self.gate.desk;
        let found = match desk.sayso.execution(&desk.caller, execution).await {
            Ok(found) => found,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(id) = found.pending.first() else { return Ok(None) };
        let round = desk.sayso.round(&desk.caller, *id).await?;
        let is_ours = round.logical_operation_id.starts_with(&session_prefix(&self.session));
        Ok(Some(round).filter(|round| is_ours && round.status == Status::Pending))
    }

    /// Lets calls of this tool through from now on, until it is taken back; stored as this engine's person's word.
    pub async fn add_session_approval(&self, tool_path: &str) -> Result<(), Error> {
        self.approve_session(tool_path, Pins::Any).await
    }

    /// As [`Self::add_session_approval`], for calls with exactly these arguments.
    pub async fn add_session_approval_for(&self, tool_path: &str, args: &Json) -> Result<(), Error> {
        self.approve_session(tool_path, Pins::Exactly(args.clone())).await
    }

    async fn approve_session(&self, tool_path: &str, pins: Pins) -> Result<(), Error> {
        let tool = tool_name(tool_path)?;
        let definition = definition_of(&tool, Annotations::default());
        let scope = GrantScope::Session { session: self.session.clone(), tool, definition, pins };
        let new = NewGrant { agent: Some(self.gate.desk.caller.clone()), ..NewGrant::of(scope) };
        self.people.grant(new).await.map(drop)
    }

    /// Whether every call of this tool is approved for the session. False where only some arguments are.
    pub async fn is_session_approved(&self, tool_path: &str) -> Result<bool, Error> {
        let name = tool_name(tool_path)?;
        let now = self.gate.desk.sayso.now().await?;
        let mut filter =
            GrantFilter { of: GrantsOf::Session(self.session.clone()), usable_at: Some(now), ..GrantFilter::default() };
        loop {
            let (grants, next) = self.people.grants(filter.clone()).await?;
            let is_it = |scope: &GrantScope| matches!(scope, GrantScope::Session { tool, pins: Pins::Any, .. } if *tool == name);
            let caller = &self.gate.desk.caller;
            if grants.iter().any(|grant| is_it(&grant.scope) && grant.agent.as_ref().is_none_or(|one| one == caller)) {
                return Ok(true);
            }
            match next {
                Some(cursor) => filter.before = Some(cursor),
                None => return Ok(false),
            }
        }
    }

    /// Takes back every approval for the session.
    pub async fn clear_session_approvals(&self) -> Result<(), Error> {
        self.people.clear_session_approvals(&self.session).await.map(drop)
    }
}

/// A path that names no server is of the program's own.
fn tool_name(path: &str) -> Result<ToolName, Error> {
    let name = if path.contains(':') { ToolName::parse(path) } else { ToolName::new(OWN_SERVER, path) };
    name.map_err(|error| Error::field("/tool_path", error.message))
}

fn empty_object() -> Result<Json, Error> {
    Json::parse("{}").map_err(|_| Error::Corrupt("request"))
}

fn reason_in(data: &Json) -> Option<String> {
    data.value().get("reason")?.as_str().map(str::to_owned)
}

fn response_of(execution_id: ExecutionId, response: Response) -> Result<ElicitationResponse, Error> {
    match response.action {
        Action::Accept => Ok(ElicitationResponse { execution_id, approved: true, data: response.content }),
        Action::Decline => Ok(ElicitationResponse { execution_id, approved: false, data: None }),
        Action::Cancel => Err(words::dismissed()),
    }
}
