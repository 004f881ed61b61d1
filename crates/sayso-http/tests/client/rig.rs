//! A server on a port of its own, in a runtime of its own so that it can be killed like a process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sayso::clock::ManualClock;
use sayso::wire::{NewToken, NewTokenKind, RequestKind};
use sayso::{Answer, Ask, Json, Options, People, Principal, Request, Response, RoundId, Sayso, UnixMs};
use sayso_core::round::Delivery;
use sayso_http::ServeOptions;
use sayso_http::client::{Client, ClientOptions};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub struct Rig {
    pub sayso: Sayso,
    pub clock: Arc<ManualClock>,
    pub address: SocketAddr,
    pub agent: String,
    pub other_agent: String,
    pub person: String,
    server: Option<Server>,
    _folder: tempfile::TempDir,
}

struct Server {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl Rig {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(UnixMs(1_800_000_000_000)));
        let sayso = Sayso::open(Options::at(folder.path()).clock(clock.clone())).await.unwrap();
        let admin = Principal::person("local:ada");
        let token = async |kind, name: &str| {
            let new = NewToken { kind, name: name.to_owned() };
            sayso.new_token(&admin, new).await.unwrap().token.secret.unwrap()
        };
        let mut rig = Self {
            agent: token(NewTokenKind::Agent, "booking").await,
            other_agent: token(NewTokenKind::Agent, "other").await,
            person: token(NewTokenKind::Person, "ada").await,
            address: ([127, 0, 0, 1], 0).into(),
            server: None,
            clock,
            sayso,
            _folder: folder,
        };
        rig.serve().await;
        rig
    }

    /// Serves the store, on the port that was taken first.
    pub async fn serve(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (address, sayso) = (self.address, self.sayso.clone());
        let (bound, is_bound) = oneshot::channel();
        let (stop, told) = oneshot::channel::<()>();
        let (ended, stopped) = oneshot::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            bound.send(listener.local_addr().unwrap()).unwrap();
            let told = async move { drop(told.await) };
            sayso_http::serve(listener, sayso, ServeOptions::default(), told).await.unwrap();
            // Whoever killed the server does not listen.
            let _ = ended.send(());
        });
        self.address = is_bound.await.unwrap();
        self.server = Some(Server { runtime, stop, stopped });
    }

    /// Lets the server end as it does when it is told to.
    pub async fn stop(&mut self) {
        let server = self.server.take().unwrap();
        server.stop.send(()).unwrap();
        server.stopped.await.unwrap();
        server.runtime.shutdown_background();
    }

    /// Ends the server where it stands; its connections break.
    pub fn kill(&mut self) {
        let runtime = self.server.take().unwrap().runtime;
        // Until its port is free again.
        std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(10))).join().unwrap();
    }

    pub fn options(&self, address: SocketAddr) -> ClientOptions {
        ClientOptions::new(format!("http://{address}"), &self.agent)
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.options(self.address)).await.unwrap()
    }

    pub async fn answer(&self, round: RoundId) {
        let content = Json::parse(r#"{"street":"Elm"}"#).unwrap();
        let answer = Answer::one("address", Response::accept(content));
        self.sayso.people().answer(round, answer, "key").await.unwrap();
    }

    pub async fn round(&self, id: RoundId) -> sayso::wire::Round {
        self.sayso.people().show(id).await.unwrap()
    }

    /// How many rounds there are.
    pub async fn rounds(&self) -> usize {
        self.sayso.people().list(sayso::RoundFilter::default()).await.unwrap().rounds.len()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.runtime.shutdown_background();
        }
    }
}

pub fn ask(delivery: Delivery) -> Ask {
    let schema = r#"{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}"#;
    let request = Request::form("Where to?", Json::parse(schema).unwrap());
    Ask { delivery: Some(delivery), request_state: Some("opaque".to_owned()), ..Ask::one("address", request) }
}

pub fn ask_url() -> Ask {
    let url = Some("https://example.com/connect".to_owned());
    let request = Request { message: Some("Connect".to_owned()), url, ..Request::empty(RequestKind::Url) };
    Ask::one("consent", request)
}
