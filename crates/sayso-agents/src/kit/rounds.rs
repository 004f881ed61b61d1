//! What a server asks during one call, stored as live rounds on a desk and handed over under their fences.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sayso::plan::DEFAULT_KEY;
use sayso::{
    Ask, Desk, Error, ExecutionId, Failure, Fence, Handed, Json, OperationKind, Received, RoundId, Step, UnixMs, wire,
    words,
};
use sayso_core::limits::{OPEN_QUESTIONS_MAX, WAIT_MS_MAX};
use sayso_core::round::Delivery;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Message, elicit_result, read_elicitation};
use crate::operate::{Answer, Asked, OperateError};

/// The pause between two attempts at a store that is away.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// One question of the server's.
struct Open {
    upstream_id: String,
    round: RoundId,
    fence: Fence,
    /// Whether the answer has been written.
    is_answered: bool,
    /// Waits for the answer and takes it over.
    waiter: JoinHandle<()>,
}

/// The answer of a round, taken over; or why there is none.
type Taken = (RoundId, Result<Handed, Error>);

/// A call during which a server may ask.
pub(crate) struct AskingCall {
    /// Its rounds are numbered within this operation.
    pub operation: String,
    /// What it was called with.
    pub arguments: Json,
    /// Until when a person may answer.
    pub deadline: Option<UnixMs>,
    /// How many rounds it may ask for.
    pub round_limit: u32,
}

/// The questions of one call.
pub(crate) struct Rounds<'a> {
    pub desk: &'a Arc<dyn Desk>,
    pub execution: ExecutionId,
    call: AskingCall,
    pub server: &'a str,
    pub tool: &'a str,
    open: Vec<Open>,
    taken: (mpsc::Sender<Taken>, mpsc::Receiver<Taken>),
}

impl<'a> Rounds<'a> {
    pub fn new(
        desk: &'a Arc<dyn Desk>,
        execution: ExecutionId,
        call: AskingCall,
        (server, tool): (&'a str, &'a str),
    ) -> Self {
        let taken = mpsc::channel(OPEN_QUESTIONS_MAX);
        Self { desk, execution, call, server, tool, open: Vec::new(), taken }
    }

    fn ask(&self, request: wire::Request) -> Ask {
        Ask {
            execution_id: Some(self.execution),
            logical_operation_id: Some(self.call.operation.clone()),
            server: Some(self.server.to_owned()),
            operation_kind: Some(OperationKind::Tool),
            operation_name: Some(self.tool.to_owned()),
            delivery: Some(Delivery::Live),
            deadline: self.call.deadline,
            round_limit: Some(self.call.round_limit),
            calls: vec![wire::Call { name: self.tool.to_owned(), arguments: Some(self.call.arguments.clone()) }],
            ..Ask::one(DEFAULT_KEY, request)
        }
    }

    /// The server has gone on: what was written to it has arrived.
    fn arrived(&mut self) -> Vec<Step> {
        let (arrived, open) = std::mem::take(&mut self.open).into_iter().partition(|open| open.is_answered);
        self.open = open;
        let steps =
            |Open { round, fence, .. }: Open| [Step::Delivered(round, fence.clone()), Step::Resolved(round, fence)];
        let arrived: Vec<Open> = arrived;
        arrived.into_iter().flat_map(steps).collect()
    }

    /// The call has been answered: what becomes of its rounds.
    pub fn answered(mut self) -> Vec<Step> {
        let mut steps = self.arrived();
        let words = "the server answered the call without waiting for this answer";
        steps.extend(self.dropped(&Failure::new(Failure::WITHDRAWN, words)));
        steps
    }

    /// The call has come to no answer: what was asked ends with `failure`. Nobody can tell of what was written to the
    /// server whether it was read.
    pub fn cut_short(mut self, failure: &Failure) -> Vec<Step> {
        let words = "the call was cut short after its answer was written, and nobody can tell whether it was used";
        let unproven = Failure::new(Failure::RECOVERY_UNAVAILABLE, words);
        let written: Vec<_> = self.open.extract_if(.., |open| open.is_answered).collect();
        let mut steps = self.dropped(failure);
        steps.extend(written.into_iter().map(|open| Step::Failed(open.round, Some(open.fence), unproven.clone())));
        steps
    }

    fn dropped(&mut self, failure: &Failure) -> Vec<Step> {
        let dropped = std::mem::take(&mut self.open).into_iter();
        dropped
            .map(|open| {
                open.waiter.abort();
                Step::Failed(open.round, Some(open.fence), failure.clone())
            })
            .collect()
    }

    /// Stores what became known; where a part is refused each part for itself. What cannot be stored now is for the
    /// sweeper, which will say that nobody can tell.
    async fn settle(&self, steps: Vec<Step>) {
        settle(self.desk.as_ref(), steps).await;
    }

    async fn open_round(&mut self, request: wire::Request, id: &str) -> Result<(), Error> {
        let opened = self.desk.open(self.ask(request), None).await?;
        let round = opened.round.round_id;
        let Some(fence) = opened.fence else { return Err(Error::Corrupt("round")) };
        let waiter = tokio::spawn(take(self.desk.clone(), round, fence.clone(), self.taken.0.clone()));
        self.open.push(Open { upstream_id: id.to_owned(), round, fence, is_answered: false, waiter });
        Ok(())
    }
}

/// As [`Desk::settle`]; where a part is refused, because a round has ended meanwhile, each part for itself.
pub(crate) async fn settle(desk: &dyn Desk, steps: Vec<Step>) {
    if steps.is_empty() || desk.settle(steps.clone()).await.is_ok() {
        return;
    }
    for step in steps {
        let _ = desk.settle(vec![step]).await;
    }
}

/// Waits for a round's answer, which begins its delivery, and passes it on.
async fn take(desk: Arc<dyn Desk>, round: RoundId, fence: Fence, taken: mpsc::Sender<Taken>) {
    let mut pause = interval(TRY_AGAIN);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let answer = loop {
        match desk.receive(round, fence.clone(), Duration::from_millis(WAIT_MS_MAX)).await {
            Ok(Received::Handed(handed)) => break Ok(*handed),
            Ok(Received::Failed(ended)) => {
                break Err(ended.failure.as_ref().map_or(Error::Corrupt("round"), words::waiter_error));
            }
            Err(Error::Timeout) => {}
            // The store is away for a moment; the round is still there. If that was too long, it says so afterwards.
            Err(Error::Unavailable(_)) => drop(pause.tick().await),
            Err(error) => break Err(error),
        }
    };
    // A call that has ended meanwhile has settled its rounds itself.
    let _ = taken.send((round, answer)).await;
}

#[async_trait]
impl Answer for Rounds<'_> {
    async fn asked(&mut self, message: &Message, id: &str) -> Asked {
        // A further question shows that the answers before it were read.
        let arrived = self.arrived();
        self.settle(arrived).await;
        let refused = |code, words: &str| Some(jsonrpc::error(id, code, words, None));
        let request = match read_elicitation(message) {
            Ok(request) => request,
            Err(words) => return Asked { line: refused(INVALID_PARAMS, &words), failure: None },
        };
        if self.open.len() >= OPEN_QUESTIONS_MAX {
            let words = format!("{OPEN_QUESTIONS_MAX} questions are open already; ask again later");
            return Asked { line: refused(INTERNAL_ERROR, &words), failure: None };
        }
        match self.open_round(request, id).await {
            Ok(()) => Asked::default(),
            Err(error @ (Error::Validation { .. } | Error::Limit(_))) => {
                Asked { line: refused(INVALID_PARAMS, &error.to_string()), failure: None }
            }
            Err(error) => {
                let words = match &error {
                    Error::RoundLimit(_) => error.to_string(),
                    _ => words::QUESTION_UNAVAILABLE.to_owned(),
                };
                Asked { line: refused(INTERNAL_ERROR, &words), failure: Some(OperateError::Round(error)) }
            }
        }
    }

    async fn withdrawn(&mut self, id: &str) {
        let Some(at) = self.open.iter().position(|open| open.upstream_id == id && !open.is_answered) else { return };
        let open = self.open.remove(at);
        open.waiter.abort();
        let failure = Failure::new(Failure::WITHDRAWN, "the server that asked took the question back");
        self.settle(vec![Step::Failed(open.round, Some(open.fence), failure)]).await;
    }

    async fn ready(&mut self) -> Asked {
        loop {
            // The sender is ours too, so there is always one.
            let Some((round, started)) = self.taken.1.recv().await else { return std::future::pending().await };
            let Some(open) = self.open.iter_mut().find(|open| open.round == round) else { continue };
            match started {
                Ok(handed) => {
                    open.is_answered = true;
                    let result = elicit_result(handed.responses.get(DEFAULT_KEY));
                    return Asked { line: Some(jsonrpc::result(&open.upstream_id, &result)), failure: None };
                }
                Err(error) => {
                    let line = jsonrpc::error(&open.upstream_id, INTERNAL_ERROR, &error.to_string(), None);
                    return Asked { line: Some(line), failure: Some(OperateError::Round(error)) };
                }
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.open.iter().any(|open| !open.is_answered)
    }
}
