//! A question of the upstream's: stored as a round, answered by a person, handed over.

use std::time::Duration;

use sayso::{Ask as NewRound, Desk, Error, Failure, Fence, Handed, Outcome, Received, RoundId, Status, Step, words};
use sayso_core::limits;
use sayso_core::round::Delivery;

use super::call::{Ask, Asker, Pending, Stage};
use super::session::{Event, Session};
use super::timers::{Due, HEARTBEAT, TRY_AGAIN};
use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Message, elicit_result, read_elicitation};

/// The key of the one request in a round of ours.
pub(super) const REQUEST_KEY: &str = "elicitation";
/// How long one wait for a round lasts before it is begun again.
const WAIT: Duration = Duration::from_secs(50);

impl Session {
    /// The upstream asks. The round is stored before anybody sees it; if it cannot be, it was never asked.
    pub(super) async fn asked(&mut self, message: &Message, upstream_id: &str) {
        if self.asks.len() >= limits::OPEN_QUESTIONS_MAX {
            let words = format!("{} questions are open already; ask again later", limits::OPEN_QUESTIONS_MAX);
            self.upstream.send(jsonrpc::error(upstream_id, INTERNAL_ERROR, &words, None)).await;
            return;
        }
        let request = match read_elicitation(message) {
            Ok(request) => request,
            Err(words) => {
                self.upstream.send(jsonrpc::error(upstream_id, INVALID_PARAMS, &words, None)).await;
                return;
            }
        };
        let candidates = self.candidates();
        let late = self.find_late(&candidates, &request).await;
        if let Some(round) = late.same {
            self.take_up(upstream_id, round, request, candidates).await;
            return;
        }
        let mut new = self.new_round(NewRound::one(REQUEST_KEY, request.clone()), &candidates);
        new.suggestion_of = late.others.first().map(|round| round.round_id);
        let opened = match self.desk.open(new, None).await {
            Ok(opened) => opened,
            Err(error) => {
                let (code, words) = refusal(&error);
                let data = coded(error.code().as_str());
                self.upstream.send(jsonrpc::error(upstream_id, code, &words, Some(&data))).await;
                return;
            }
        };
        let Some(fence) = opened.fence else { return };
        let execution = opened.round.execution_id;
        let own_execution = match candidates.as_slice() {
            [only] => {
                if let Some(call) = self.call(*only) {
                    call.execution = Some(execution);
                }
                None
            }
            _ => Some(execution),
        };
        let ask = Ask {
            asker: Asker::Upstream(upstream_id.to_owned()),
            round: opened.round.round_id,
            fence: Some(fence),
            request,
            candidates,
            own_execution,
            answered: false,
        };
        // A desk that had to repeat itself may find the round answered already: then nothing more happens to it.
        let seen_rev = if opened.round.status == Status::Pending { opened.round.rev } else { 0 };
        self.open_ask(ask, seen_rev).await;
        self.supersede(late.others).await;
    }

    /// Waits for a person, and pauses the calls that may have asked.
    pub(super) async fn open_ask(&mut self, ask: Ask, rev: u32) {
        let number = self.next_ask;
        self.next_ask += 1;
        self.watch(number, &ask, rev);
        if let Some(id) = ask.request.elicitation_id.clone() {
            self.stored.keep_url(id, ask.round);
        }
        let candidates = ask.candidates.clone();
        self.asks.insert(number, ask);
        for call in candidates {
            self.paused(call).await;
        }
    }

    /// The calls that may have asked: those at the upstream that are not waiting for a person already. A question on
    /// stdio names no call.
    fn candidates(&self) -> Vec<u64> {
        let is_surely_waiting = |number: u64| self.asks.values().any(|ask| !ask.answered && ask.candidates == [number]);
        let is_sent = |pending: &Pending| matches!(pending, Pending::Call(call) if call.stage == Stage::Sent);
        let in_flight = self.requests.iter().filter(|(_, pending)| is_sent(pending));
        in_flight.map(|(number, _)| *number).filter(|number| !is_surely_waiting(*number)).collect()
    }

    /// The round of what these calls may have asked.
    pub(super) fn new_round(&mut self, mut new: NewRound, candidates: &[u64]) -> NewRound {
        new.server = Some(self.options.name.clone());
        new.delivery = Some(Delivery::Live);
        let calls: Vec<_> =
            candidates.iter().filter_map(|number| self.call(*number).map(|call| call.shown())).collect();
        if let [only] = candidates
            && let Some(call) = self.call(*only)
        {
            new.execution_id = call.execution;
            new.operation_kind = Some(call.kind);
            new.operation_name = Some(call.name.clone());
        } else {
            let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
            new.operation_name = Some(if names.is_empty() { "session".to_owned() } else { names.join(" or ") });
        }
        new.calls = calls;
        new
    }

    /// Waits in the background until the round is no longer pending.
    fn watch(&self, number: u64, ask: &Ask, rev: u32) {
        let (desk, events, round) = (self.desk.clone(), self.events.clone(), ask.round);
        // A call's verdict is taken once somebody waits for its result, and a late round is claimed first.
        let fence = ask.fence.clone().filter(|_| ask.approval().is_none());
        tokio::spawn(async move {
            let mut rev = rev;
            let mut pause = tokio::time::interval(Duration::from_secs(1));
            pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while !events.is_closed() {
                let come = match &fence {
                    Some(fence) => receive(desk.as_ref(), number, round, fence.clone()).await,
                    None => desk.wait(round, rev, WAIT).await.map(|found| {
                        rev = found.rev;
                        (found.status != Status::Pending).then(|| Event::Changed(number, Box::new(found)))
                    }),
                };
                match come {
                    Ok(Some(event)) => {
                        // A session that is gone has failed its rounds itself.
                        let _ = events.send(event).await;
                        return;
                    }
                    Ok(None) => {}
                    // The store is away for a moment; the round is still there.
                    Err(_) => drop(pause.tick().await),
                }
            }
        });
    }

    /// A call begins to wait for a person: whoever waits for it hears so, and is let go if it was held long enough.
    async fn paused(&mut self, number: u64) {
        self.timers.at(tokio::time::Instant::now() + HEARTBEAT, Due::Heartbeat { call: number });
        let Some(waiter) = self.call(number).and_then(|call| call.waiter.clone()) else { return };
        if waiter.hold_until <= tokio::time::Instant::now() {
            self.hold_over(&waiter.client_id).await;
        }
    }

    /// A round has been answered or has ended. `start_delivery` is stored before a byte goes to the upstream.
    pub(super) async fn round_changed(&mut self, number: u64, round: &sayso::wire::Round) {
        let Some(ask) = self.asks.get(&number).filter(|ask| !ask.answered) else { return };
        if let Asker::Gate(_) = ask.asker {
            return self.verdict_came(number, round).await;
        }
        if let Some(failure) = &round.failure {
            return self.unanswered(number, failure).await;
        }
        let (round_id, fence) = (ask.round, ask.fence.clone());
        let started = match fence {
            Some(fence) => self.desk.start(round_id, fence).await,
            None => self.claim_and_start(number, round_id).await,
        };
        self.started(number, started).await;
    }

    /// Nobody can answer any more.
    async fn unanswered(&mut self, number: u64, failure: &Failure) {
        let Some(ask) = self.asks.get(&number) else { return };
        let Asker::Upstream(upstream_id) = &ask.asker else { return self.agent_unanswered(number, failure).await };
        // Only a person's own decline or cancel goes upstream as such.
        let data = coded(&failure.code);
        let line = jsonrpc::error(upstream_id, INTERNAL_ERROR, &words::ended(failure), Some(&data));
        self.upstream.send(line).await;
        self.drop_ask(number).await;
    }

    /// The answer is being handed over, which is stored; or it cannot be.
    pub(super) async fn started(&mut self, number: u64, started: Result<Handed, Error>) {
        let Some(ask) = self.asks.get(&number).filter(|ask| !ask.answered) else { return };
        let upstream_id = match &ask.asker {
            Asker::Upstream(upstream_id) => upstream_id.clone(),
            Asker::Agent(_) => return self.agent_answered(number, started).await,
            // What a gate asked is started by whoever waits for its call.
            Asker::Gate(_) => return,
        };
        match started {
            Ok(handed) => {
                self.upstream
                    .send(jsonrpc::result(&upstream_id, &elicit_result(handed.responses.get(REQUEST_KEY))))
                    .await;
                if let Some(ask) = self.asks.get_mut(&number) {
                    ask.answered = true;
                    if ask.own_execution.is_some() {
                        self.ask_for_receipt(number).await;
                    }
                }
            }
            Err(error @ (Error::Conflict { .. } | Error::State { .. })) => {
                // Somebody took this process for dead and ended the round; nothing was handed over.
                let data = coded(error.code().as_str());
                let line = jsonrpc::error(&upstream_id, INTERNAL_ERROR, &error.to_string(), Some(&data));
                self.upstream.send(line).await;
                self.drop_ask(number).await;
            }
            // The store is away for a moment: the answer is there, and is looked for again.
            Err(_) => self.timers.at(tokio::time::Instant::now() + TRY_AGAIN, Due::HandOver { ask: number }),
        }
    }

    /// Time to look again for an answer that could not be handed over.
    pub(super) async fn hand_over_again(&mut self, number: u64) {
        let Some(round) = self.asks.get(&number).map(|ask| ask.round) else { return };
        match self.desk.wait(round, 0, Duration::ZERO).await {
            Ok(found) => self.round_changed(number, &found).await,
            Err(_) => self.timers.at(tokio::time::Instant::now() + TRY_AGAIN, Due::HandOver { ask: number }),
        }
    }

    /// Where no call's result will prove it, a ping's answer does: the upstream reads in order.
    async fn ask_for_receipt(&mut self, ask: u64) {
        let number = self.number();
        self.requests.insert(number, Pending::Receipt { ask });
        self.upstream.send(jsonrpc::request(&number.to_string(), "ping", "{}")).await;
    }

    /// The upstream has read the answer of an ask that no single call made.
    pub(super) async fn receipt(&mut self, number: u64) {
        let Some(ask) = self.asks.remove(&number) else { return };
        let own = ask.own_execution.map(|own| Step::Finished(own, Outcome::Completed, None));
        let steps = ask.arrived().into_iter().chain(own).collect();
        self.settle(steps).await;
    }

    /// Call `number` has gone on: the answers that were written for it have arrived.
    pub(super) async fn went_on(&mut self, number: u64) {
        let steps = self.take_answered(number, |ask| ask.approval().is_none());
        self.settle(steps).await;
    }

    /// Takes those answered asks of call `number` out that are meant, with the steps that store their receipt. That of an
    /// approval is the call's result, and nothing before.
    pub(super) fn take_answered(&mut self, number: u64, is_meant: impl Fn(&Ask) -> bool) -> Vec<Step> {
        let is_its =
            |ask: &Ask| ask.answered && ask.own_execution.is_none() && ask.candidates == [number] && is_meant(ask);
        let arrived: Vec<_> = self.asks.iter().filter(|(_, ask)| is_its(ask)).map(|(ask, _)| *ask).collect();
        arrived.iter().filter_map(|ask| self.asks.remove(ask)).flat_map(Ask::arrived).collect()
    }

    /// Stores what became known, in one transaction; where a part of it is refused, because a round has ended
    /// meanwhile, each part for itself. What cannot be stored now is for the sweeper: it will say that nobody can tell.
    pub(super) async fn settle(&self, steps: Vec<Step>) {
        if steps.is_empty() {
            return;
        }
        let refused = matches!(
            self.desk.settle(steps.clone()).await,
            Err(Error::Conflict { .. } | Error::State { .. } | Error::NotFound(_))
        );
        if refused && steps.len() > 1 {
            for step in steps {
                let _ = self.desk.settle(vec![step]).await;
            }
        }
    }

    /// Forgets an ask that has ended, with its own execution.
    pub(super) async fn drop_ask(&mut self, number: u64) {
        if let Some(ask) = self.asks.remove(&number)
            && let Some(own) = ask.own_execution
        {
            self.settle(vec![Step::Finished(own, Outcome::Cancelled, None)]).await;
        }
    }

    /// A question ends without an answer. A person who answers now is told so; a late round stays as it is.
    pub(super) async fn dropped(&mut self, number: u64, why: &str) {
        let Some(ask) = self.asks.get(&number) else { return };
        if ask.fence.is_some() {
            let failure = Failure::new(Failure::WITHDRAWN, why);
            self.settle(vec![Step::Failed(ask.round, ask.fence.clone(), failure)]).await;
        }
        self.drop_ask(number).await;
    }

    /// The asker says that the visit to a URL is complete; unknown ids are ignored, as MCP has it.
    pub(super) async fn url_completed(&mut self, message: &Message) {
        let Some(id) = message.string_param("elicitationId") else { return };
        let known = self.stored.url_round(&id).map(Step::UrlCompleted).into_iter().collect();
        self.settle(known).await;
    }
}

/// An error's data: the stable code, as every other surface says it.
fn coded(code: &str) -> String {
    serde_json::json!({"code": code}).to_string()
}

fn refusal(error: &Error) -> (i64, String) {
    match error {
        Error::Validation { .. } | Error::Limit(_) => (INVALID_PARAMS, error.to_string()),
        Error::RoundLimit(_) => (INTERNAL_ERROR, error.to_string()),
        _ => (INTERNAL_ERROR, words::QUESTION_UNAVAILABLE.to_owned()),
    }
}

/// What the ask is told of its round's answer, which begins to be handed over; nothing where the wait alone is over.
async fn receive(desk: &dyn Desk, number: u64, round: RoundId, fence: Fence) -> Result<Option<Event>, Error> {
    match desk.receive(round, fence, WAIT).await {
        Ok(Received::Handed(handed)) => Ok(Some(Event::Started(number, Ok(handed)))),
        Ok(Received::Failed(ended)) => Ok(Some(Event::Changed(number, ended))),
        Err(Error::Timeout) => Ok(None),
        Err(refused @ (Error::Conflict { .. } | Error::State { .. })) => Ok(Some(Event::Started(number, Err(refused)))),
        Err(away) => Err(away),
    }
}
