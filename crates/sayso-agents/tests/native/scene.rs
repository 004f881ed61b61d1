//! A store under a clock that tests move, a scripted model, and runtimes as several processes would have them.

use std::sync::Arc;

use sayso::clock::ManualClock;
use sayso::policy::PolicyFiles;
use sayso::wire::{self, Keyed};
use sayso::{Answer, Desk, ExecutionId, Json, LocalPeople, Options, Principal, Response, Sayso, UnixMs};
use sayso_agents::native::{AgentRuntime, ChatEndpoint, RunOutcome, Toolbox};

use crate::model::{Model, Turn};
use crate::tools::{Kind, Ran, TestTool};

pub const START: UnixMs = UnixMs(1_796_000_000_000);
pub const AGENT: &str = "native";

pub fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub struct Scene {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub model: Model,
    pub sayso: Sayso,
    pub ran: Ran,
}

impl Scene {
    pub async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(START));
        let sayso = open(&folder, &clock).await;
        Self { folder, clock, model: Model::start(turns).await, sayso, ran: Ran::default() }
    }

    /// The store as another process opens it.
    pub async fn another(&self) -> Sayso {
        open(&self.folder, &self.clock).await
    }

    /// The store as a process opens it that takes an agent's word for a person's.
    pub async fn trusting(&self) -> Sayso {
        Sayso::open(options(&self.folder, &self.clock).trusting_agent_relay()).await.unwrap()
    }

    /// Changes what is stored behind the store's back; how many rows.
    pub fn tamper(&self, sql: &str) -> usize {
        rusqlite::Connection::open(self.file()).unwrap().execute(sql, ()).unwrap()
    }

    pub fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("sayso.sqlite")
    }

    pub fn tool(&self, name: &'static str, kind: Kind) -> TestTool {
        TestTool::new(name, kind, &self.ran)
    }

    /// A runtime with these tools, in this process.
    pub fn runtime(&self, tools: &[(&'static str, Kind)]) -> AgentRuntime {
        self.runtime_in(&self.sayso, tools)
    }

    pub fn runtime_in(&self, sayso: &Sayso, tools: &[(&'static str, Kind)]) -> AgentRuntime {
        self.runtime_of(sayso, tools.iter().map(|(name, kind)| self.tool(name, *kind)))
    }

    pub fn runtime_of(&self, sayso: &Sayso, tools: impl IntoIterator<Item = TestTool>) -> AgentRuntime {
        let toolbox = tools.into_iter().fold(Toolbox::new(), |box_, tool| box_.with(tool).unwrap());
        let model = ChatEndpoint::new(&self.model.url, "scripted", Some("s3cret")).unwrap();
        AgentRuntime::new(sayso, Principal::agent(AGENT), model).tools(toolbox)
    }

    /// The policy file, written anew.
    pub fn policy(&self, text: &str) -> PolicyFiles {
        let file = self.folder.path().join("policy.toml");
        std::fs::write(&file, text).unwrap();
        PolicyFiles::open([file])
    }

    pub fn people(&self) -> LocalPeople {
        self.sayso.people()
    }

    /// What ran, as `tool arguments`.
    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().iter().map(|(tool, arguments)| format!("{tool} {arguments}")).collect()
    }

    pub async fn events(&self) -> Vec<&'static str> {
        let events = self.sayso.events_after(self.sayso.person(), 0).await.unwrap();
        events.iter().map(|event| event.event.body.name()).collect()
    }

    /// How the execution ended: the word, or the code of its failure.
    pub async fn ended(&self, execution: ExecutionId) -> Option<String> {
        let desk = self.sayso.desk(Principal::agent(AGENT));
        let outcome = desk.execution(execution).await.unwrap().outcome;
        outcome.map(|outcome| outcome.code.unwrap_or(outcome.status))
    }
}

fn options(folder: &tempfile::TempDir, clock: &Arc<ManualClock>) -> Options {
    Options::at(folder.path()).clock(clock.clone()).person(Principal::person("local:ada"))
}

async fn open(folder: &tempfile::TempDir, clock: &Arc<ManualClock>) -> Sayso {
    Sayso::open(options(folder, clock)).await.unwrap()
}

pub async fn run(runtime: &AgentRuntime) -> (ExecutionId, RunOutcome) {
    let execution = runtime.begin().await.unwrap();
    (execution, runtime.run(execution, "Do it.").await.unwrap())
}

pub fn approval(outcome: &RunOutcome) -> wire::Round {
    match outcome {
        RunOutcome::AwaitingApproval(round) => (**round).clone(),
        other => panic!("no approval is awaited: {other:?}"),
    }
}

pub fn input(outcome: &RunOutcome) -> wire::Round {
    match outcome {
        RunOutcome::AwaitingInput(round) => (**round).clone(),
        other => panic!("no input is awaited: {other:?}"),
    }
}

pub fn completed(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed(said) => said.text.clone(),
        other => panic!("not completed: {other:?}"),
    }
}

pub fn answers(responses: impl IntoIterator<Item = (&'static str, Response)>) -> Answer {
    let responses = responses.into_iter().map(|(key, response)| (key.to_owned(), response)).collect();
    Answer { digest: None, responses: Keyed(responses) }
}

pub fn yes() -> Response {
    Response::consent()
}

pub fn no(reason: &str) -> Response {
    Response::decline(Some(reason.to_owned()))
}

pub fn accept(content: &str) -> Response {
    Response::accept(json(content))
}

pub fn keys(round: &wire::Round) -> Vec<&str> {
    round.requests.0.iter().map(|(key, _)| key.as_str()).collect()
}
