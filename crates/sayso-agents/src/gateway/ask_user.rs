//! A tool of the gateway's own by which the agent asks a person itself.

use sayso::wire::{self, ChoiceOption, Keyed, RequestKind};
use sayso::{Ask as NewRound, Error, Failure, Json, Outcome, Request, Response, Status, Step, words};
use sayso_core::limits;
use sayso_core::response::Action;
use sayso_core::round::OperationKind;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::call::{Ask, Asker, Call, CallKey, Open, Pending, Stage};
use super::session::Session;
use super::timers::{Due, TRY_AGAIN};
use crate::jsonrpc::{self, Message};

/// The tool as the client lists it, under a name that is free.
pub(super) fn definition(name: &str) -> String {
    let option = json!({"type": "object", "required": ["label"], "properties": {
        "label": {"type": "string"}, "description": {"type": "string", "description": "What choosing it means"}}});
    let question = json!({"type": "object", "required": ["question"], "properties": {
        "question": {"type": "string", "description": "The whole question"},
        "header": {"type": "string", "description": "A word or two that say what it is about"},
        "multiSelect": {"type": "boolean", "description": "Whether several options may be taken"},
        "options": {"type": "array", "items": option, "description": "Leave out to be answered in free text"}}});
    json!({
        "name": name,
        "title": "Ask a person",
        "description": "Ask a person one or more questions and wait for the answers. Use it where only a person can know \
            or decide. The call may return before there is an answer; then go on waiting as its text says.",
        "inputSchema": {
            "type": "object",
            "properties": {"questions": {"type": "array", "minItems": 1, "items": question}},
            "required": ["questions"]
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false}
    })
    .to_string()
}

/// The questions of a call, each as it was asked and as a round holds it. Members that we do not know are let be. The
/// error is a sentence for the agent.
fn read_questions(arguments: Option<&Json>) -> Result<Vec<(String, Request)>, String> {
    let arguments = arguments.map(Json::value).unwrap_or_default();
    let questions = arguments.get("questions").and_then(Value::as_array).filter(|questions| !questions.is_empty());
    let questions = questions.ok_or("questions must be an array with at least one question")?;
    questions.iter().enumerate().map(|(at, question)| read_question(at, question)).collect()
}

fn read_question(at: usize, question: &Value) -> Result<(String, Request), String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let asked = text(question, "question").ok_or_else(|| format!("questions[{at}].question must be a text"))?;
    let shown = match text(question, "header") {
        Some(header) => format!("{header}: {asked}"),
        None => asked.clone(),
    };
    let shown = Some(shown);
    let options = match question.get("options") {
        None | Some(Value::Null) => {
            return Ok((asked, Request { question: shown, ..Request::empty(RequestKind::Text) }));
        }
        Some(options) => options.as_array().ok_or_else(|| format!("questions[{at}].options must be an array"))?,
    };
    let option = |option: &Value| {
        // Some agents write an option as its label alone.
        let label = option.as_str().map(str::to_owned).or_else(|| text(option, "label"));
        let label = label.ok_or_else(|| format!("questions[{at}].options must have a label each"))?;
        Ok::<_, String>(ChoiceOption { label, description: text(option, "description") })
    };
    let options = options.iter().map(option).collect::<Result<Vec<_>, _>>()?;
    let multi_select = question.get("multiSelect").and_then(Value::as_bool);
    let choice =
        Request { question: shown, options: Some(options), multi_select, ..Request::empty(RequestKind::Choice) };
    Ok((asked, choice))
}

/// What a person answered to one question, for the agent: as data, and as a line.
fn answered(question: &str, response: Option<&Response>) -> (Value, String) {
    let content = response.and_then(|response| response.content.as_ref()).map(Json::value);
    let answers = content.as_ref().and_then(|content| content.get("answer")).cloned().unwrap_or_else(|| json!([]));
    match response.map(|response| response.action) {
        Some(Action::Accept) => {
            let said: Vec<_> = answers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let line = format!("{question}\n{}", said.join(", "));
            (json!({"question": question, "answer": answers}), line)
        }
        Some(Action::Decline) => {
            let reason = response.and_then(|response| response.reason.as_deref());
            let because = reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
            let line = format!("{question}\nA person declined to answer.{because}");
            (json!({"question": question, "declined": true, "reason": reason}), line)
        }
        Some(Action::Cancel) | None => {
            let line = format!("{question}\nThe question was dismissed without an answer. Nobody refused.");
            (json!({"question": question, "dismissed": true}), line)
        }
    }
}

impl Session {
    /// `ask_user {questions}`.
    pub(super) async fn ask_user_called(&mut self, message: &Message, id: &str) {
        let arguments = message.param("arguments").and_then(|text| Json::parse(text).ok());
        let questions = match read_questions(arguments.as_ref()) {
            Ok(questions) => questions,
            Err(why) => return self.client.send(super::handles::tool_error(id, &why)).await,
        };
        let name = self.lists.ask_tool();
        let canonical = arguments.as_ref().map(Json::canonical).unwrap_or_default();
        let key = CallKey { method: "tools/call".to_owned(), name: name.clone(), arguments: canonical };
        let waiter = self.waiter(message, id, false);
        if self.join(&key, &waiter).await {
            return;
        }
        if self.asks.len() >= limits::OPEN_QUESTIONS_MAX {
            let words = format!("{} questions are open already; ask again later", limits::OPEN_QUESTIONS_MAX);
            return self.client.send(super::handles::tool_error(id, &words)).await;
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
        let requests = Keyed(requests.into_iter().enumerate().map(|(at, request)| (key_of(at), request)).collect());
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

    /// A person has answered the agent, or nobody can any more. The answer is the call's result, whoever reads it.
    pub(super) async fn agent_answered(&mut self, number: u64, round: &wire::Round) {
        let Some(ask) = self.asks.get(&number) else { return };
        let ([call], Some(fence)) = (ask.candidates.as_slice(), ask.fence.clone()) else { return };
        let (call, round_id) = (*call, ask.round);
        if let Some(failure) = &round.failure {
            self.asks.remove(&number);
            return self.end_held(call, Vec::new(), Outcome::Failed(failure.clone()), &words::ended(failure)).await;
        }
        match self.desk.start(round_id, fence).await {
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
        let answers = questions.iter().enumerate();
        let (data, lines): (Vec<_>, Vec<_>) =
            answers.map(|(at, question)| answered(question, responses.get(&key_of(at)))).unzip();
        let result = json!({
            "content": [{"type": "text", "text": lines.join("\n\n")}],
            "structuredContent": {"answers": data},
            "isError": false
        });
        let mut steps = ask.arrived();
        let stored = Json::from_value(&json!({"result": result}));
        steps.extend(call.execution.map(|execution| Step::Finished(execution, Outcome::Completed, Some(stored))));
        self.hand_back(*call, steps, |client_id| jsonrpc::result(client_id, &result.to_string())).await;
    }
}

fn key_of(at: usize) -> String {
    format!("q{at}")
}
