//! What everybody in the test shares: where the processes are, who may do what, and what has been seen so far.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso::wire::{NewToken, NewTokenKind};
use sayso::{Options, Principal, Sayso};
use tokio::sync::watch;

use crate::gateway::{Calls, Gateway};
use crate::serve::Serve;

/// How long at most somebody waits for a process to come back before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Where a gateway keeps its rounds.
pub enum Works {
    OnTheDatabase,
    AtTheServer,
}

pub struct Scene {
    pub store: String,
    pub addresses: [String; 2],
    pub agent: String,
    pub person: String,
    pub agent_file: String,
    /// How many rounds there are to be, over HTTP and through gateways.
    pub over_http: usize,
    pub through_gateways: usize,
    next: AtomicUsize,
    next_call: AtomicUsize,
    done: watch::Sender<usize>,
    /// Moves whenever a process has come back.
    back: watch::Sender<usize>,
    /// What the acceptance of which was acknowledged, by question.
    pub accepted: Mutex<HashMap<String, String>>,
    /// What the agents were handed, by question.
    pub received: Mutex<HashMap<String, Vec<String>>>,
    /// Calls whose gateway was killed before it answered, and those that were told why there is no answer.
    pub lost: AtomicUsize,
    pub refused: Mutex<Vec<String>>,
    /// How often a request had to be made again.
    pub repeated: AtomicUsize,
    pub calls: [watch::Sender<Option<Calls>>; 2],
    _folder: tempfile::TempDir,
}

fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Scene {
    pub async fn open(store: &str, rounds: usize, gateway_share: usize) -> Arc<Self> {
        let sayso = Sayso::open(Options::database(store).person(Principal::person("local:test"))).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut secrets = Vec::new();
        for (kind, name) in [(NewTokenKind::Agent, "booking"), (NewTokenKind::Person, "ada")] {
            let new = NewToken { kind, name: name.to_owned() };
            secrets.push(sayso.new_token(sayso.person(), new).await.unwrap().token.secret.unwrap());
        }
        let [agent, person]: [String; 2] = secrets.try_into().unwrap();
        let file = folder.path().join("agent.token");
        std::fs::write(&file, &agent).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let through_gateways = rounds / gateway_share;
        Arc::new(Self {
            store: store.to_owned(),
            addresses: [free_address(), free_address()],
            agent,
            person,
            agent_file: file.to_str().unwrap().to_owned(),
            over_http: rounds - through_gateways,
            through_gateways,
            next: AtomicUsize::new(0),
            next_call: AtomicUsize::new(0),
            done: watch::Sender::new(0),
            back: watch::Sender::new(0),
            accepted: Mutex::default(),
            received: Mutex::default(),
            lost: AtomicUsize::new(0),
            refused: Mutex::default(),
            repeated: AtomicUsize::new(0),
            calls: [watch::Sender::new(None), watch::Sender::new(None)],
            _folder: folder,
        })
    }

    pub async fn serve(&self, number: usize) -> Serve {
        Serve::start(&self.store, &self.addresses[number]).await
    }

    /// A gateway on the database, or one that asks the first server.
    pub async fn gateway(&self, number: usize, works: Works) -> Gateway {
        let server = match works {
            Works::OnTheDatabase => None,
            Works::AtTheServer => Some(format!("http://{}", self.addresses[0])),
        };
        Gateway::start(&self.store, server.as_deref(), &self.agent_file, self.calls[number].clone()).await
    }

    /// The next question to be asked over HTTP.
    pub fn next(&self) -> Option<usize> {
        let n = self.next.fetch_add(1, Ordering::SeqCst);
        (n < self.over_http).then_some(n)
    }

    /// The next call to be made through a gateway.
    pub fn next_call(&self) -> Option<usize> {
        let n = self.next_call.fetch_add(1, Ordering::SeqCst);
        (n < self.through_gateways).then_some(n)
    }

    pub fn one_is_done(&self) {
        self.done.send_modify(|done| *done += 1);
    }

    /// Returns once so many percent of the rounds are done.
    pub async fn done(&self, percent: usize) {
        let enough = (self.over_http + self.through_gateways) * percent / 100;
        self.done.subscribe().wait_for(|done| *done >= enough).await.unwrap();
    }

    pub fn is_over(&self) -> bool {
        *self.done.borrow() >= self.over_http + self.through_gateways
    }

    /// Some process is back.
    pub fn changed(&self) {
        self.back.send_modify(|times| *times += 1);
    }

    /// Waits until some process is back, or it is time to look again.
    pub async fn pause(&self) {
        let mut back = self.back.subscribe();
        let _ = tokio::time::timeout(LOOK_AGAIN, back.changed()).await;
    }

    pub fn note_accepted(&self, question: &str, value: &str) {
        let mut accepted = self.accepted.lock().unwrap();
        let known = accepted.entry(question.to_owned()).or_insert_with(|| value.to_owned());
        assert_eq!(known, value, "two answers of {question} were accepted");
    }

    pub fn note_received(&self, question: &str, value: &str) {
        self.received.lock().unwrap().entry(question.to_owned()).or_default().push(value.to_owned());
    }
}
