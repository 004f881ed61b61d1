//! The one task that owns all state of a gateway.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sayso::{Desk, Digest, ExecutionId, Handed, wire};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::call::{Ask, Call, Open, Pending};
use super::handshake::Handshake;
use super::late::LateCall;
use super::lists::Lists;
use super::options::{GatewayExit, GatewayOptions, GatewayReport};
use super::stored::StoredResults;
use super::timers::{Due, Timers};
use super::upstream::Upstream;
use crate::jsonrpc::{Line, LineReader, Outgoing};

/// Events that may wait for the session before whoever sends them is held back.
const EVENTS_MAX: usize = 256;

/// What happens to a gateway.
pub(super) enum Event {
    /// The client said something, or left.
    Client(Line),
    /// The upstream of this generation said something, or ended.
    Upstream(u32, Line),
    /// The round of this ask is no longer pending.
    Changed(u64, Box<wire::Round>),
    /// The answer of this ask is being handed over; or it cannot be.
    Started(u64, Result<Box<Handed>, sayso::Error>),
    /// The late round of this call is no longer pending.
    LateAnswered(Box<LateCall>),
    /// What a person decided, for the client's request of this id.
    Reported { client_id: String, result: String },
    /// A result that another process stores, for the client's request of this id.
    Elsewhere { client_id: String, execution: ExecutionId, outcome: Result<wire::ExecutionResult, sayso::Error> },
}

/// All state of one gateway: one client, one upstream, and what is open between them.
pub(super) struct Session {
    pub desk: Arc<dyn Desk>,
    pub options: GatewayOptions,
    pub events: mpsc::Sender<Event>,
    pub client: Outgoing,
    pub upstream: Upstream,
    pub handshake: Option<Handshake>,
    /// Whether the upstream has answered `initialize`; until then lines wait here.
    pub is_initialized: bool,
    pub queued: VecDeque<String>,
    pub hold: Duration,
    pub lists: Lists,
    pub timers: Timers,
    /// Counts our requests to the upstream; the number is also our progress token.
    pub next_number: u64,
    pub requests: BTreeMap<u64, Pending>,
    /// The client's open requests, by their id as written.
    pub open: HashMap<String, Open>,
    pub next_ask: u64,
    pub asks: BTreeMap<u64, Ask>,
    /// The upstream's requests that were passed to the client, by our number: its id as written.
    pub passed_to_client: HashMap<u64, String>,
    pub stored: StoredResults,
    /// The definitions under which tools were last reviewed, by name, as far as that was read since the tools were.
    pub reviewed: HashMap<String, Digest>,
    pub client_has_left: bool,
    /// Lines of the upstream that were no JSON.
    pub skipped_lines: u64,
}

/// Runs a gateway between a client and an upstream until the client leaves, or `stop` tells it to.
pub async fn run(
    desk: Arc<dyn Desk>,
    options: GatewayOptions,
    client_in: impl AsyncRead + Unpin + Send + 'static,
    client_out: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> GatewayReport {
    let (events, mut happens) = mpsc::channel(EVENTS_MAX);
    let reading = events.clone();
    let reader = tokio::spawn(async move {
        let mut lines = LineReader::new(client_in);
        loop {
            let line = lines.next().await;
            let is_last = !matches!(line, Line::Text(_));
            if reading.send(Event::Client(line)).await.is_err() || is_last {
                return;
            }
        }
    });
    let mut session = Session::new(desk, options, events, Outgoing::start(client_out));
    tokio::pin!(stop);
    let exit = loop {
        let exit = tokio::select! {
            () = &mut stop => Some(GatewayExit::Stopped),
            due = session.timers.next() => session.due(due).await,
            Some(event) = happens.recv() => session.happened(event).await,
        };
        if let Some(exit) = exit {
            break exit;
        }
        if session.client_has_left && !session.has_reason_to_stay() {
            break GatewayExit::ClientLeft;
        }
    };
    reader.abort();
    let skipped_lines = session.skipped_lines;
    session.leave(exit).await;
    GatewayReport { exit, skipped_lines }
}

impl Session {
    fn new(desk: Arc<dyn Desk>, options: GatewayOptions, events: mpsc::Sender<Event>, client: Outgoing) -> Self {
        let hold = options.hold.for_client(None);
        Self {
            desk,
            options,
            events,
            client,
            upstream: Upstream::default(),
            handshake: None,
            is_initialized: false,
            queued: VecDeque::new(),
            hold,
            lists: Lists::default(),
            timers: Timers::default(),
            next_number: 1,
            requests: BTreeMap::new(),
            open: HashMap::new(),
            next_ask: 1,
            asks: BTreeMap::new(),
            passed_to_client: HashMap::new(),
            stored: StoredResults::default(),
            reviewed: HashMap::new(),
            client_has_left: false,
            skipped_lines: 0,
        }
    }

    async fn happened(&mut self, event: Event) -> Option<GatewayExit> {
        match event {
            Event::Client(Line::Text(line)) => self.client_said(&line).await,
            Event::Client(Line::End) => self.client_left().await,
            Event::Client(Line::TooLong) => return Some(GatewayExit::ClientBroken),
            Event::Upstream(generation, line) if generation == self.upstream.generation => match line {
                Line::Text(line) => self.upstream_said(&line).await,
                Line::End => self.upstream_ended("ended").await,
                Line::TooLong => self.upstream_ended("sent a line over the limit").await,
            },
            Event::Upstream(..) => {}
            Event::Changed(ask, round) => self.round_changed(ask, &round).await,
            Event::Started(ask, started) => self.started(ask, started.map(|handed| *handed)).await,
            Event::LateAnswered(call) => self.make_again(*call).await,
            Event::Reported { client_id, result } => self.reported(&client_id, &result).await,
            Event::Elsewhere { client_id, execution, outcome } => {
                self.found_elsewhere(&client_id, execution, outcome).await;
            }
        }
        None
    }

    async fn due(&mut self, due: Due) -> Option<GatewayExit> {
        match due {
            Due::HoldOver { client_id } => self.hold_over(&client_id).await,
            Due::Heartbeat { call } => self.heartbeat(call).await,
            Due::Collected { client_id, key } => self.collected(&client_id, &key).await,
            Due::HandOver { ask } => self.hand_over_again(ask).await,
            Due::LingerOver => return Some(GatewayExit::LingerOver),
        }
        None
    }

    /// A number for a request of ours to the upstream.
    pub fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// The call of this number, while it is in flight.
    pub fn call(&mut self, number: u64) -> Option<&mut Call> {
        match self.requests.get_mut(&number) {
            Some(Pending::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Whether call `number` waits for a person, as far as is known.
    pub fn is_paused(&self, number: u64) -> bool {
        self.asks.values().any(|ask| ask.pauses(number))
    }

    /// Writes a line to the upstream, starting it first where it has crashed; until it has answered `initialize`, the
    /// line waits. The error is a sentence for whoever asked.
    pub async fn send_upstream(&mut self, line: String) -> Result<(), String> {
        if !self.upstream.is_running() {
            self.start_again().await?;
        }
        if self.is_initialized {
            self.upstream.send(line).await;
        } else {
            self.queued.push_back(line);
        }
        Ok(())
    }

    /// Starts an upstream that has crashed, with the stored `initialize`.
    pub async fn start_again(&mut self) -> Result<(), String> {
        let Some(handshake) = &self.handshake else { return Err("the client has not sent initialize yet".to_owned()) };
        let params = handshake.params.clone();
        self.is_initialized = false;
        self.upstream.start(&self.options, &self.events)?;
        let number = self.number();
        self.requests.insert(number, Pending::Initialize { client_id: None });
        self.upstream.send(crate::jsonrpc::request(&number.to_string(), "initialize", &params)).await;
        Ok(())
    }
}
