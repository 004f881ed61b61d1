//! Endings: the client leaves, the upstream ends, the gateway is told to stop.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sayso::{ExecutionId, Failure, Outcome, Step};
use sayso_core::round::OperationKind;
use tokio::time::{Instant, timeout};

use super::call::{Ask, Asker, Call, Pending, Stage};
use super::lists::Reading;
use super::options::GatewayExit;
use super::session::Session;
use super::timers::Due;
use crate::jsonrpc::{self, INTERNAL_ERROR};
use crate::tools::tool_error;

/// How long the store may take, twice, while the gateway leaves: with the ending of the upstream this is about the 2
/// seconds that the official clients give us after SIGTERM. A store at a server may be away for longer.
const SETTLE_LEAVING: Duration = Duration::from_millis(400);
/// How long it may take otherwise: longer than any desk tries.
const SETTLE_STAYING: Duration = Duration::from_secs(60);

/// What the agent, or another of its processes, reads of a call that was held when its client left.
const NOT_RUN_CLIENT_LEFT: &str = "The agent left before this call ran. Nobody refused it, and it was not run.";

/// What becomes of the calls that a person has not decided about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// They wait on.
    GoOn,
    /// They end.
    End,
}

impl Session {
    /// The client has closed its side. What has paused goes on for a while, so that an answer is not lost; what has not
    /// is cancelled.
    pub(super) async fn client_left(&mut self) {
        self.client_has_left = true;
        self.open.clear();
        let numbers: Vec<_> = self.requests.keys().copied().collect();
        for number in numbers {
            let is_agents =
                self.asks.values().any(|ask| ask.candidates == [number] && matches!(ask.asker, Asker::Agent(_)));
            if !is_agents && self.call(number).is_some_and(|call| call.stage == Stage::Held) {
                // An approved call runs only for somebody who waits, and nobody can come back to this process.
                let failure = Failure::new(Failure::WITHDRAWN, "the agent left before the call ran; it was not run");
                let steps = self.fail_approvals(number, &failure);
                self.end_held(number, steps, Outcome::Failed(failure), NOT_RUN_CLIENT_LEFT).await;
                continue;
            }
            if self.keep_going(number).await {
                continue;
            }
            if let Some(Pending::Call(_) | Pending::Plain { .. }) = self.requests.get(&number) {
                self.requests.remove(&number);
                let params = format!(r#"{{"requestId":{number},"reason":"the client left"}}"#);
                self.upstream.send(jsonrpc::notification("notifications/cancelled", &params)).await;
            }
        }
        self.timers.at(Instant::now() + self.options.linger, Due::LingerOver);
    }

    /// Whether there is a question open, or a call running whose answer was given.
    pub(super) fn has_reason_to_stay(&self) -> bool {
        self.upstream.is_running()
            && (!self.asks.is_empty() || self.requests.values().any(|pending| matches!(pending, Pending::Call(_))))
    }

    /// The upstream is gone. Nobody can tell what became of an answer that was written to it.
    pub(super) async fn upstream_ended(&mut self, how: &str) {
        let status = self.upstream.ended().await;
        self.is_initialized = false;
        self.queued.clear();
        self.passed_to_client.clear();
        let why = format!("the server {} {how} ({status})", self.options.name);
        self.end_everything(&why, SETTLE_STAYING, Held::GoOn).await;
    }

    /// Ends what is open between client and upstream: questions that nobody can deliver an answer to any more, calls
    /// whose result will not come, requests that wait for it.
    async fn end_everything(&mut self, why: &str, settle_within: Duration, held: Held) {
        let kept = match held {
            Held::GoOn => self.take_surviving(),
            Held::End => BTreeMap::new(),
        };
        let (mut steps, dying) = self.fail_asks(why);
        let mut lines = Vec::new();
        for (number, pending) in std::mem::take(&mut self.requests) {
            match pending {
                Pending::Call(call) if kept.values().any(|ask| ask.candidates == [number]) => {
                    self.requests.insert(number, Pending::Call(call));
                }
                Pending::Call(call) => {
                    // An execution dies with a round that cannot be recovered; any other ends here.
                    let ran = if call.stage == Stage::Sent { "the call may have run" } else { "the call was not run" };
                    let failure = Failure::new("upstream_exited", format!("{why}; {ran}"));
                    let ends_here = call.execution.filter(|execution| !dying.contains(execution));
                    steps.extend(ends_here.map(|id| Step::Finished(id, Outcome::Failed(failure), None)));
                    let waiter = call.waiter.as_ref();
                    lines.extend(waiter.map(|waiter| lost_call(&call, &waiter.client_id, why)));
                }
                Pending::Plain { client_id, .. } | Pending::Initialize { client_id: Some(client_id) } => {
                    let line = jsonrpc::error(&client_id, INTERNAL_ERROR, why, None);
                    lines.push((client_id, line));
                }
                Pending::Initialize { client_id: None } | Pending::ListTools | Pending::Receipt { .. } => {}
            }
        }
        self.asks = kept;
        // What is not stored in time is for the sweeper, as what cannot be stored is.
        let _ = timeout(settle_within, self.settle(steps)).await;
        for (client_id, line) in lines {
            if self.open.remove(&client_id).is_some() {
                self.client.send(line).await;
            }
        }
        self.tools_lost().await;
    }

    /// Takes out the questions that do not depend on the upstream that has ended: the agent's own, and approvals that a
    /// person has not decided yet, since the next upstream will be started to run their calls.
    fn take_surviving(&mut self) -> BTreeMap<u64, Ask> {
        let (kept, others) = std::mem::take(&mut self.asks).into_iter().partition(|(_, ask)| ask.outlives_upstream());
        self.asks = others;
        kept
    }

    /// The steps that fail every open question, and the executions that end with them.
    fn fail_asks(&mut self, why: &str) -> (Vec<Step>, HashSet<ExecutionId>) {
        let mut dying = HashSet::new();
        let mut steps = Vec::new();
        for ask in std::mem::take(&mut self.asks).into_values() {
            let (code, message) = match (&ask.asker, ask.answered) {
                (Asker::Upstream(_), true) => (
                    Failure::RECOVERY_UNAVAILABLE,
                    "after the answer was written to it; nobody can tell whether it was used",
                ),
                (Asker::Upstream(_), false) => {
                    (Failure::RECOVERY_UNAVAILABLE, "before anybody answered; the question died with it")
                }
                (Asker::Gate(_), true) => {
                    (Failure::RECOVERY_UNAVAILABLE, "while the approved call was running; it may have run")
                }
                (Asker::Gate(_), false) => (Failure::WITHDRAWN, "before the call ran; it was not run"),
                (Asker::Agent(_), _) => (Failure::WITHDRAWN, "before anybody answered"),
            };
            let failure = Failure::new(code, format!("{why} {message}"));
            // A late round that nobody has claimed waits for the next time, whoever asks then.
            let Some(fence) = ask.fence else { continue };
            steps.push(Step::Failed(ask.round, Some(fence), failure));
            if code != Failure::RECOVERY_UNAVAILABLE {
                continue;
            }
            let single = match ask.candidates.as_slice() {
                [only] => self.call(*only).and_then(|call| call.execution),
                _ => None,
            };
            dying.extend(ask.own_execution.or(single));
        }
        (steps, dying)
    }

    /// The gateway ends: what is held is settled with a reason, the lease given back, both peers let go.
    pub(super) async fn leave(mut self, exit: GatewayExit) {
        let why = match exit {
            GatewayExit::ClientLeft if self.asks.is_empty() => None,
            GatewayExit::ClientLeft => Some("the agent left, and its server has ended"),
            GatewayExit::LingerOver => Some("the agent left, and nobody answered while the gateway lingered"),
            GatewayExit::Stopped => Some("the gateway was stopped"),
            GatewayExit::ClientBroken => Some("the client sent a line over the limit"),
        };
        if let Some(why) = why {
            self.end_everything(why, SETTLE_LEAVING, Held::End).await;
        }
        // Whatever could not be settled is for the sweeper, which waits for the lease to run out anyway.
        let desk = self.desk.clone();
        let (_, ()) = tokio::join!(timeout(SETTLE_LEAVING, desk.leave()), self.upstream.close());
        self.client.finish().await;
    }

    /// Lists that waited for a reading which will not end get an answer.
    async fn tools_lost(&mut self) {
        for message in std::mem::take(&mut self.lists.waiting) {
            if let Some(id) = message.member("id")
                && self.open.remove(id).is_some()
            {
                let line = jsonrpc::error(id, INTERNAL_ERROR, "the server ended before it listed its tools", None);
                self.client.send(line).await;
            }
        }
        if self.lists.state != Reading::Unread {
            self.lists.state = if self.options.gate.is_some() { Reading::Stale } else { Reading::Read };
        }
    }
}

/// What whoever waits for a lost call reads. A tool's failure is for the agent; any other is for its program.
fn lost_call(call: &Call, client_id: &str, why: &str) -> (String, String) {
    let ran = match call.stage {
        Stage::Sent => "It may have run, in part or in whole.",
        Stage::Held => "It was not run.",
    };
    let words = format!("{why} while this call was open. {ran}");
    let line = match call.kind {
        OperationKind::Tool => tool_error(client_id, &words),
        _ => jsonrpc::error(client_id, INTERNAL_ERROR, &words, None),
    };
    (client_id.to_owned(), line)
}
