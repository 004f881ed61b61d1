//! A tool of the gateway's own by which the agent asks a person itself.

use sayso::wire::Keyed;
use sayso::{Ask as NewRound, Error, Failure, Handed, Json, Outcome, Request, Response, Status, Step, words};
use sayso_core::limits;
use sayso_core::round::OperationKind;
use serde_json::json;
use tokio::time::Instant;

use super::call::{Ask, Asker, Call, CallKey, Open, Pending, Stage, WaitsBy};
use super::session::Session;
use super::timers::{Due, TRY_AGAIN};
use crate::jsonrpc::{self, Message};
use crate::tools::{answers, read_questions, tool_error, under_keys};

impl Session {
    /// `ask_user {questions}`.
    pub(super) async fn ask_user_called(&mut self, message: &Message, id: &str) {
        let arguments = message.param("arguments").and_then(|text| Json::parse(text).ok());
        let questions = match read_questions(arguments.as_ref()) {
            Ok(questions) => questions,
            Err(why) => return self.client.send(tool_error(id, &why)).await,
        };
        let name = self.lists.ask_tool();
        let canonical = arguments.as_ref().map(Json::canonical).unwrap_or_default();
        let key = CallKey { method: "tools/call".to_owned(), name: name.clone(), arguments: canonical };
        let waiter = self.waiter(message, id, WaitsBy::Call);
        if self.join(&key, &waiter).await {
            return;
        }
        if self.asks.len() >= limits::OPEN_QUESTIONS_MAX {
            let words = format!("{} questions are open already; ask again later", limits::OPEN_QUESTIONS_MAX);
            return self.client.send(tool_error(id, &words)).await;
        }
        self.timers.at(waiter.hold_until, Due::HoldOver { client_id: id.to_owned() });
        let call = Call {
            kind: OperationKind::Tool,
            name,
            arguments,
            key,
            waiter: Some(waiter),
            execution: None,
            was_parked: false,
            goes_on_late: false,
            stage: Stage::Held,
            ran_with: None,
            progress: f64::NEG_INFINITY,
            message: message.clone(),
        };
        let number = self.number();
        self.requests.insert(number, Pending::Call(Box::new(call)));
        self.open.insert(id.to_owned(), Open::Forwarded(number));
        self.ask_for_agent(number, questions).await;
    }

    async fn ask_for_agent(&mut self, number: u64, questions: Vec<(String, Request)>) {
        let Some((_, first)) = questions.first().cloned() else { return };
        let (asked, requests): (Vec<_>, Vec<_>) = questions.into_iter().unzip();
        let requests = under_keys(requests);
        let mut new = self.new_round(NewRound { requests, ..NewRound::default() }, &[number]);
        new.calls = Vec::new();
        let opened = match self.desk.open(new, None).await {
            Ok(opened) => opened,
            Err(error) => {
                let text = match &error {
                    Error::Validation { .. } | Error::Limit(_) => format!("The question cannot be asked: {error}"),
                    _ => words::QUESTION_UNAVAILABLE.to_owned(),
                };
                return self.end_held(number, Vec::new(), Outcome::Completed, &text).await;
            }
        };
        if let Some(call) = self.call(number) {
            call.execution = Some(opened.round.execution_id);
        }
        let ask = Ask {
            asker: Asker::Agent(asked),
            round: opened.round.round_id,
            fence: opened.fence,
            request: first,
            candidates: vec![number],
            own_execution: None,
            answered: false,
        };
        // A desk that had to repeat itself may find the round answered already.
        let seen_rev = if opened.round.status == Status::Pending { opened.round.rev } else { 0 };
        self.open_ask(ask, seen_rev).await;
    }

    /// Nobody can answer the agent any more.
    pub(super) async fn agent_unanswered(&mut self, number: u64, failure: &Failure) {
        let Some(call) = self.asks.get(&number).and_then(|ask| ask.candidates.first().copied()) else { return };
        self.asks.remove(&number);
        self.end_held(call, Vec::new(), Outcome::Failed(failure.clone()), &words::ended(failure)).await;
    }

    /// A person has answered the agent. The answer is the call's result, whoever reads it.
    pub(super) async fn agent_answered(&mut self, number: u64, started: Result<Handed, Error>) {
        let Some(call) = self.asks.get(&number).and_then(|ask| ask.candidates.first().copied()) else { return };
        match started {
            Ok(handed) => self.answer_agent(number, call, &handed.responses).await,
            Err(error @ (Error::Conflict { .. } | Error::State { .. })) => {
                self.asks.remove(&number);
                let failure = Failure::new(error.code().as_str(), error.to_string());
                self.end_held(call, Vec::new(), Outcome::Failed(failure), &error.to_string()).await;
            }
            // The store is away for a moment: the answer is there, and is looked for again.
            Err(_) => self.timers.at(Instant::now() + TRY_AGAIN, Due::HandOver { ask: number }),
        }
    }

    async fn answer_agent(&mut self, number: u64, call: u64, responses: &Keyed<Response>) {
        let Some(ask) = self.asks.remove(&number) else { return };
        let Some(Pending::Call(call)) = self.requests.remove(&call) else { return };
        let questions = match &ask.asker {
            Asker::Agent(questions) => questions.clone(),
            Asker::Upstream(_) | Asker::Gate(_) => Vec::new(),
        };
        let result = answers(&questions, responses);
        let mut steps = ask.arrived();
        let stored = Json::from_value(&json!({"result": result}));
        steps.extend(call.execution.map(|execution| Step::Finished(execution, Outcome::Completed, Some(stored))));
        self.hand_back(*call, steps, |client_id| jsonrpc::result(client_id, &result.to_string())).await;
    }
}
