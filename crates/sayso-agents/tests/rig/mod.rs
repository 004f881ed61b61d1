//! A gateway between a scripted client and a scripted upstream, over in-memory pipes and a real store.

// Each test file uses its own part of this.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod approving;
mod peer;
mod troubled;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso::policy::{Mode, PolicyFiles};
use sayso::{
    Answer, Channel, Desk, Error, Json, LocalDesk, Options, People, Principal, Response, RoundFilter, Sayso, Status,
    wire,
};
use sayso_agents::gateway::{self, Gate, GatewayOptions, GatewayReport, Hold, Replay};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use peer::Pipes;
pub use peer::{Peer, nobody};
pub use troubled::Trouble;
use troubled::Troubled;

const PIPE_BYTES: usize = 1 << 20;
/// Far beyond anything that is waited for; a test that reaches it has hung.
const HANG: Duration = Duration::from_secs(30);

pub struct Rig {
    pub sayso: Sayso,
    pub client: Peer,
    pub upstream: Peer,
    pub launches: mpsc::Receiver<Peer>,
    pub stop: Option<oneshot::Sender<()>>,
    pub gateway: JoinHandle<GatewayReport>,
    _folder: Option<tempfile::TempDir>,
}

pub struct Setup {
    /// The server's name.
    pub name: &'static str,
    pub hold: Duration,
    pub linger: Duration,
    pub tools: Value,
    pub capabilities: Value,
    pub replay: Replay,
    pub trouble: Option<Trouble>,
    /// The policy file that judges its calls.
    pub policy: Option<std::path::PathBuf>,
    pub mode: Option<Mode>,
    pub ask_user: bool,
    pub trust_agent_relay: bool,
    pub inbox: Option<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            name: "shipping",
            hold: Duration::from_secs(45),
            linger: Duration::from_secs(600),
            tools: json!([{"name": "book", "inputSchema": {"type": "object"}}]),
            capabilities: json!({}),
            replay: Replay::Declared,
            trouble: None,
            policy: None,
            mode: None,
            ask_user: false,
            trust_agent_relay: false,
            inbox: None,
        }
    }
}

impl Rig {
    pub async fn start(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::at(folder.path());
        let options = if setup.trust_agent_relay { options.trusting_agent_relay() } else { options };
        let sayso = Sayso::open(options).await.unwrap();
        let mut rig = Self::over(sayso, setup).await;
        rig._folder = Some(folder);
        rig
    }

    /// A gateway on a store that others use too, with the handshake and the reading of the tools behind it.
    pub async fn over(sayso: Sayso, setup: Setup) -> Self {
        let (launched, mut launches) = mpsc::channel(8);
        let options = GatewayOptions {
            name: setup.name.to_owned(),
            upstream: Arc::new(Pipes(Mutex::new(launched))),
            hold: Hold::Fixed(setup.hold),
            linger: setup.linger,
            replay: setup.replay,
            ask_user: setup.ask_user,
            trust_agent_relay: setup.trust_agent_relay,
            inbox: setup.inbox,
            gate: setup.policy.map(|file| Gate {
                policy: Arc::new(PolicyFiles::open([file])),
                mode: setup.mode,
                session: "ses".to_owned(),
            }),
        };
        let (client_in, their_out) = tokio::io::duplex(PIPE_BYTES);
        let (their_in, client_out) = tokio::io::duplex(PIPE_BYTES);
        let mut client = Peer::new(their_in, their_out);
        let desk = sayso.desk(Principal::agent("gateway:shipping"));
        let desk: Arc<dyn Desk> = match setup.trouble {
            Some(trouble) => Arc::new(Troubled::new(desk, &sayso, trouble)),
            None => Arc::new(desk),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let gateway = tokio::spawn(async move {
            let stopped = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            gateway::run(desk, options, client_in, client_out, stopped).await
        });
        client
            .say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": setup.capabilities,
                "clientInfo": {"name": "test", "version": "1"}}}))
            .await;
        let mut upstream = launches.recv().await.unwrap();
        answer_handshake(&mut upstream, &setup.tools).await;
        let initialized = client.hear().await;
        assert_eq!(initialized["id"], 0);
        client.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(upstream.hear().await["method"], "notifications/initialized");
        answer_tools(&mut upstream, &setup.tools).await;
        Self { sayso, client, upstream, launches, stop: Some(stop), gateway, _folder: None }
    }

    /// The client closes its side.
    pub fn client_hangs_up(&mut self) {
        self.client = nobody();
    }

    /// The upstream closes its side, as a process that exits does.
    pub fn upstream_exits(&mut self) {
        self.upstream = nobody();
    }

    /// The client calls `book`; the upstream's number for the call.
    pub async fn call(&mut self, id: u64, arguments: Value) -> Value {
        let params = json!({"name": "book", "arguments": arguments});
        self.client.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        let call = self.upstream.hear().await;
        assert_eq!(call["method"], "tools/call");
        call["id"].clone()
    }

    /// The upstream asks for a street under `id`; the round.
    pub async fn ask(&mut self, id: &str) -> wire::Round {
        let known = self.rounds().await.len();
        self.ask_raw(id).await;
        self.new_round(known).await
    }

    /// The upstream asks for a street under `id`.
    pub async fn ask_raw(&mut self, id: &str) {
        self.upstream
            .say(json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {
                "message": "Where to?", "requestedSchema": {
                    "type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}}}))
            .await;
    }

    /// Waits until there is one more round than `known`.
    pub async fn new_round(&self, known: usize) -> wire::Round {
        let mut feed = self.sayso.event_feed();
        loop {
            let rounds = self.rounds().await;
            if rounds.len() > known {
                return rounds.into_iter().next().unwrap();
            }
            tokio::time::timeout(HANG, feed.maybe_more()).await.expect("no round was stored");
        }
    }

    pub async fn rounds(&self) -> Vec<wire::Round> {
        self.sayso.people().list(RoundFilter::default()).await.unwrap().rounds
    }

    pub async fn round(&self, round: &wire::Round) -> wire::Round {
        self.sayso.people().show(round.round_id).await.unwrap()
    }

    /// Waits until the round has this status.
    pub async fn until(&self, round: &wire::Round, status: Status) -> wire::Round {
        let mut feed = self.sayso.event_feed();
        loop {
            let found = self.round(round).await;
            if found.status == status {
                return found;
            }
            tokio::time::timeout(HANG, feed.maybe_more()).await.expect("the round did not get there");
        }
    }

    pub async fn answer(&self, round: &wire::Round, response: Response) -> Result<wire::Round, sayso::Error> {
        let people = self.sayso.people_as(Principal::person("ada"), Channel::Http);
        people.answer(round.round_id, Answer::one("elicitation", response), "key").await
    }

    pub async fn answer_street(&self, round: &wire::Round) {
        let content = Json::parse(r#"{"street":"1 Main Street"}"#).unwrap();
        self.answer(round, Response::accept(content)).await.unwrap();
    }

    /// The upstream answers call `number` with a text.
    pub async fn result(&mut self, number: &Value, text: &str) {
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.upstream.say(json!({"jsonrpc": "2.0", "id": number, "result": result})).await;
    }
}

pub async fn answer_handshake(upstream: &mut Peer, tools: &Value) {
    let initialize = upstream.hear().await;
    assert_eq!(initialize["method"], "initialize");
    let capabilities = if tools.is_null() { json!({}) } else { json!({"tools": {}}) };
    upstream
        .say(json!({"jsonrpc": "2.0", "id": initialize["id"], "result": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "shipping", "version": "1"}}}))
        .await;
}

pub async fn answer_tools(upstream: &mut Peer, tools: &Value) {
    let list = upstream.hear().await;
    assert_eq!(list["method"], "tools/list");
    upstream.say(json!({"jsonrpc": "2.0", "id": list["id"], "result": {"tools": tools}})).await;
}

pub fn text_of(result: &Value) -> &str {
    result["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// A rig with a policy file that a test can change.
pub struct Gated {
    pub rig: Rig,
    pub folder: tempfile::TempDir,
}

impl std::ops::Deref for Gated {
    type Target = Rig;
    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl std::ops::DerefMut for Gated {
    fn deref_mut(&mut self) -> &mut Rig {
        &mut self.rig
    }
}

impl Gated {
    pub async fn start(policy: &str, setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        std::fs::write(&file, policy).unwrap();
        let rig = Rig::start(Setup { policy: Some(file), ..setup }).await;
        Self { rig, folder }
    }

    pub fn write_policy(&self, policy: &str) {
        let next = self.folder.path().join("next.toml");
        std::fs::write(&next, policy).unwrap();
        std::fs::rename(next, self.folder.path().join("policy.toml")).unwrap();
    }

    pub fn remove_policy(&self) {
        std::fs::remove_file(self.folder.path().join("policy.toml")).unwrap();
    }
}

impl Rig {
    /// The client calls a tool, and nothing is taken to happen.
    pub async fn call_tool(&mut self, id: u64, name: &str, arguments: Value) {
        let params = json!({"name": name, "arguments": arguments});
        self.client.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }

    /// A person decides about a call.
    pub async fn decide(&self, round: &wire::Round, response: Response) -> Result<wire::Round, Error> {
        let people = self.sayso.people_as(Principal::person("ada"), Channel::Http);
        let answer = Answer { digest: Some(round.digest), ..Answer::one("call", response) };
        people.answer(round.round_id, answer, "key").await
    }

    /// A person approves a call, with other arguments where some are given.
    pub async fn approve(&self, round: &wire::Round, arguments: Option<&str>) {
        let response = match arguments {
            Some(arguments) => Response::accept(Json::parse(&format!(r#"{{"arguments":{arguments}}}"#)).unwrap()),
            None => Response::consent(),
        };
        self.decide(round, response).await.unwrap();
    }
}

/// A form with one text.
pub const FORM: &str = r#"{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}"#;

/// An agent's desk at a store that was opened with nothing but its folder.
pub async fn plain_desk() -> (LocalDesk, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
    (sayso.desk(Principal::agent("booking")), folder)
}
