//! Late answers: most servers give up after a minute, people do not. A question that its server took back goes on as a
//! round of its own; its answer is used once, when the call is made again and asks exactly the same.

use std::time::Duration;

use sayso::{
    Ask as NewRound, ClaimOf, Digest, Error, Failure, Handed, LATE_PREFIX, Request, RoundId, Status, Step, wire,
};
use sayso_core::round::{Delivery, OperationKind};

use super::ask::REQUEST_KEY;
use super::call::{Ask, Asker, Call, CallKey, Pending, Stage};
use super::options::Replay;
use super::passage;
use super::session::{Event, Session};
use crate::jsonrpc::Message;

/// How long one wait for a late answer lasts before it is begun again.
const WAIT: Duration = Duration::from_secs(50);
/// Hexadecimal digits of a hash that name a call or a question among one server's: 64 bits.
const HASH_CHARS: usize = 16;

/// The late rounds that concern a question.
#[derive(Default)]
pub(super) struct Late {
    /// The one that asks exactly the same for the same call.
    pub same: Option<wire::Round>,
    /// Those that asked something else for the same call, newest first.
    pub others: Vec<wire::Round>,
}

/// A call whose question goes on without it, as it is to be made again.
pub(super) struct LateCall {
    round: RoundId,
    kind: OperationKind,
    name: String,
    key: CallKey,
    message: Message,
}

/// The beginning of the operation ids of a call's late rounds: server, method, name and arguments.
fn call_prefix(server: &str, key: &CallKey) -> String {
    let text = serde_json::json!([server, key.method, key.name, key.arguments]).to_string();
    format!("{LATE_PREFIX}{}:", short_hash(&text))
}

/// What makes a question the same: message and schema, or message and URL. The asker's ids and own members do not.
fn question_hash(request: &Request) -> String {
    let schema = request.schema.as_ref().map(sayso::Json::canonical);
    short_hash(&serde_json::json!([request.message, schema, request.url]).to_string())
}

fn short_hash(text: &str) -> String {
    let digest = Digest::of_text(text).to_string();
    digest.trim_start_matches("sha256:").chars().take(HASH_CHARS).collect()
}

impl Session {
    /// The late rounds of the one call that asks. A question that no single call asks has none.
    pub(super) async fn find_late(&mut self, candidates: &[u64], request: &Request) -> Late {
        let server = self.options.name.clone();
        let [only] = candidates else { return Late::default() };
        // What a person has changed is another call than the agent's.
        let Some(call) = self.call(*only).filter(|call| call.ran_with.is_none()) else { return Late::default() };
        let prefix = call_prefix(&server, &call.key);
        // A store that is away has no late rounds to offer; whether anything can be asked is found out next.
        let found = self.desk.late(&prefix).await.unwrap_or_default();
        let is_free = |round: &wire::Round| {
            let waits = matches!(round.status, Status::Pending | Status::ResponseValidated);
            waits && self.asks.values().all(|ask| ask.round != round.round_id)
        };
        let wanted = format!("{prefix}{}", question_hash(request));
        let (same, others): (Vec<_>, Vec<_>) =
            found.into_iter().filter(is_free).partition(|round| round.logical_operation_id == wanted);
        Late { same: same.into_iter().next(), others }
    }

    /// The question comes again: its late round is answered already, or goes on being asked.
    pub(super) async fn take_up(
        &mut self,
        upstream_id: &str,
        round: wire::Round,
        request: Request,
        candidates: Vec<u64>,
    ) {
        let ask = Ask {
            asker: Asker::Upstream(upstream_id.to_owned()),
            round: round.round_id,
            fence: None,
            request,
            candidates,
            own_execution: None,
            answered: false,
        };
        self.open_ask(ask, 0).await;
    }

    /// A late round is claimed when its answer is handed over, and not earlier.
    pub(super) async fn claim_and_start(&mut self, number: u64, round: RoundId) -> Result<Handed, Error> {
        let fence = self.desk.claim(round, ClaimOf::default(), None).await?.fence;
        if let Some(ask) = self.asks.get_mut(&number) {
            ask.fence = Some(fence.clone());
        }
        self.desk.start(round, fence).await
    }

    /// A call asked something else than before: the earlier question has been replaced.
    pub(super) async fn supersede(&self, others: Vec<wire::Round>) {
        for round in others {
            let fence = match round.status {
                Status::Pending => None,
                // Whoever else claims it decides over it.
                _ => match self.desk.claim(round.round_id, ClaimOf::default(), None).await {
                    Ok(claimed) => Some(claimed.fence),
                    Err(_) => continue,
                },
            };
            let failure = Failure::new(Failure::SUPERSEDED, "the call was made again and asked something else");
            self.settle(vec![Step::Failed(round.round_id, fence, failure)]).await;
        }
    }

    /// The upstream takes its question back. Where one call asked it, the question goes on as a late round.
    pub(super) async fn withdrawn(&mut self, number: u64) {
        const WHY: &str = "the server that asked took its question back";
        let Some(ask) = self.asks.get(&number) else { return };
        let ([only], Some(fence)) = (ask.candidates.as_slice(), ask.fence.clone()) else {
            self.dropped(number, WHY).await;
            return;
        };
        let (round, request, only) = (ask.round, ask.request.clone(), *only);
        let server = self.options.name.clone();
        let Some(call) = self.call(only).filter(|call| call.ran_with.is_none()) else {
            self.dropped(number, WHY).await;
            return;
        };
        let operation = format!("{}{}", call_prefix(&server, &call.key), question_hash(&request));
        let successor = NewRound {
            logical_operation_id: Some(operation),
            server: Some(server),
            operation_kind: Some(call.kind),
            operation_name: Some(call.name.clone()),
            delivery: Some(Delivery::Resumable),
            calls: vec![call.shown()],
            suggestion_of: Some(round),
            ..NewRound::one(REQUEST_KEY, request)
        };
        let late = LateCall {
            round,
            kind: call.kind,
            name: call.name.clone(),
            key: call.key.clone(),
            message: call.message.clone(),
        };
        match self.desk.withdraw(round, fence, successor).await {
            Ok(opened) => {
                if let Some(call) = self.call(only) {
                    call.goes_on_late = true;
                }
                self.drop_ask(number).await;
                self.watch_late(LateCall { round: opened.round_id, ..late });
            }
            Err(_) => self.dropped(number, WHY).await,
        }
    }

    fn may_make_again(&self, call: &LateCall) -> bool {
        match self.options.replay {
            Replay::Always => true,
            Replay::Never => false,
            Replay::Declared => call.kind != OperationKind::Tool || self.lists.may_repeat(&call.name),
        }
    }

    /// Waits in the background for a late answer, where the call may then be made again.
    fn watch_late(&self, call: LateCall) {
        if !self.may_make_again(&call) {
            return;
        }
        let (desk, events) = (self.desk.clone(), self.events.clone());
        tokio::spawn(async move {
            let mut rev = 0;
            let mut pause = tokio::time::interval(Duration::from_secs(1));
            pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while !events.is_closed() {
                match desk.wait(call.round, rev, WAIT).await {
                    Ok(found) if found.status == Status::ResponseValidated => {
                        // A session that is gone leaves the answer to the next one.
                        let _ = events.send(Event::LateAnswered(Box::new(call))).await;
                        return;
                    }
                    Ok(found) if found.status != Status::Pending => return,
                    Ok(found) => rev = found.rev,
                    Err(_) => drop(pause.tick().await),
                }
            }
        });
    }

    /// A person has answered what a call asked before its server gave up: the call is made again, for whoever asks for
    /// its result. Not while an identical one is in flight, which will ask by itself.
    pub(super) async fn make_again(&mut self, late: LateCall) {
        let is_it = |pending: &Pending| matches!(pending, Pending::Call(call) if call.key == late.key);
        if self.requests.values().any(is_it) {
            return;
        }
        let arguments = late.message.param("arguments").and_then(|text| sayso::Json::parse(text).ok());
        if self.options.gate.is_some() && !self.is_allowed_again(late.kind, &late.name, &late.message).await {
            return;
        }
        // Without a record there is nowhere to keep the result; the agent's own next call will use the answer.
        let Ok(execution) = self.desk.begin().await else { return };
        let number = self.number();
        let line = passage::forwarded(&late.message, number, Some(&number.to_string()));
        let call = Call {
            kind: late.kind,
            name: late.name,
            arguments,
            key: late.key,
            waiter: None,
            execution: Some(execution),
            was_parked: true,
            goes_on_late: false,
            stage: Stage::Sent,
            ran_with: None,
            progress: f64::NEG_INFINITY,
            message: late.message,
        };
        self.requests.insert(number, Pending::Call(Box::new(call)));
        if let Err(words) = self.send_upstream(line).await {
            self.requests.remove(&number);
            let failure = Failure::new("upstream_exited", words);
            self.settle(vec![Step::Finished(execution, sayso::Outcome::Failed(failure), None)]).await;
        }
    }
}
