//! The tools, called.

use std::sync::Arc;
use std::time::Duration;

use sayso::wire::Round;
use sayso::{Ask, Desk, Error, ExecutionId, Json, Request, RoundId, Status, words};
use sayso_core::json::ObjectView;
use sayso_core::limits::REQUEST_STATE_BYTES_MAX;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::McpServer;
use super::sessions::{Held, Session};
use crate::jsonrpc::INVALID_PARAMS;
use crate::tools::{
    ASK_TOOL, ASKED, RESUME_TOOL, Report, Resume, WAIT_TOOL, ask_definition, is_gates, read_questions,
    resume_definition, stored_answer, under_keys, wait_definition,
};

/// How long one look at the store lasts before it is begun again.
const LOOK: Duration = Duration::from_secs(45);

/// What a request is answered with.
pub(super) enum Reply {
    /// The text of a result.
    Result(String),
    /// The code and words of an error.
    Error(i64, String),
}

/// A reply, and what it hands over, which counts as taken once the client has it.
type Told = (Reply, Option<Held>);

impl McpServer {
    /// The tools, as a client lists them.
    pub(super) fn tools(&self) -> String {
        let resume = resume_definition(RESUME_TOOL, self.inner.options.trust_agent_relay);
        format!(r#"{{"tools":[{},{},{resume}]}}"#, ask_definition(ASK_TOOL), wait_definition(WAIT_TOOL))
    }

    /// Calls a tool. A call that waits answers within the session's hold.
    pub(super) async fn call(&self, session: &Arc<Session>, name: &str, arguments: Option<&str>) -> Told {
        let until = Instant::now() + session.hold;
        match name {
            ASK_TOOL => self.ask_user(session, arguments, until).await,
            WAIT_TOOL => self.wait(session, arguments, until).await,
            RESUME_TOOL => (self.resume(session, arguments).await, None),
            _ => (Reply::Error(INVALID_PARAMS, "there is no tool of this name".to_owned()), None),
        }
    }

    async fn ask_user(&self, session: &Arc<Session>, arguments: Option<&str>, until: Instant) -> Told {
        let arguments = arguments.and_then(|text| Json::parse(text).ok());
        let questions = match read_questions(arguments.as_ref()) {
            Ok(questions) => questions,
            Err(why) => return (error(&why), None),
        };
        let text = arguments.as_ref().map(Json::canonical).unwrap_or_default();
        let held = session.retried(&text).unwrap_or_else(|| session.noted(text));
        let asked = match held.asked() {
            Some(asked) => asked,
            None => match put(session, held.key(), questions).await {
                Ok(round) => held.put((round.round_id, round.execution_id)),
                Err(why) => return (error(&why), None),
            },
        };
        self.answer_of(session, asked, Some(held), until).await
    }

    /// Waits for what a person decides, and takes the answer to the agent's own questions. What ends the call without it lets go of `held`.
    async fn answer_of(
        &self,
        session: &Session,
        (round, execution): (RoundId, ExecutionId),
        held: Option<Held>,
        until: Instant,
    ) -> Told {
        let mut seen = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(LOOK);
            let found = match self.unless_stopping(session.desk.wait(round, seen, left)).await {
                Some(Ok(found)) => found,
                Some(Err(why)) => return (error(&why.to_string()), None),
                None => return (self.pending(session, execution).await, None),
            };
            if found.status != Status::Pending {
                let report = self.report().of(&session.desk, execution, Duration::ZERO).await;
                return (Reply::Result(report), held);
            }
            if Instant::now() >= until {
                return (Reply::Result(self.waiting(&found)), None);
            }
            seen = found.rev;
        }
    }

    async fn wait(&self, session: &Arc<Session>, arguments: Option<&str>, until: Instant) -> Told {
        let given = arguments.and_then(ObjectView::read);
        let execution = given.and_then(|given| serde_json::from_str(given.get("execution_id")?).ok());
        let Some(execution) = execution else {
            let words = "arguments.execution_id must be the handle that a paused call returned, exe_…";
            return (Reply::Error(INVALID_PARAMS, words.to_owned()), None);
        };
        let rounds = match session.desk.rounds_of(execution).await {
            Ok(rounds) => rounds,
            Err(Error::NotFound(_)) => return (error("There is no call with this execution_id."), None),
            Err(why) => return (error(&why.to_string()), None),
        };
        // Nothing runs after these: once a person has decided, there is nothing more to wait for.
        let is_all = |round: &&Round| round.logical_operation_id == ASKED || is_gates(round);
        if let Some(asked) = rounds.iter().rfind(is_all) {
            let held = session.hold_again(asked.round_id);
            return self.answer_of(session, (asked.round_id, execution), held, until).await;
        }
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(LOOK);
            match self.unless_stopping(session.desk.result(execution, left)).await {
                Some(Ok(found)) => return (self.stored(session, &found).await, None),
                Some(Err(Error::Timeout)) if Instant::now() < until => {}
                Some(Err(Error::Timeout)) | None => return (self.pending(session, execution).await, None),
                Some(Err(why)) => return (error(&why.to_string()), None),
            }
        }
    }

    /// What a call has answered; of one that ran elsewhere, what was decided.
    async fn stored(&self, session: &Session, found: &sayso::wire::ExecutionResult) -> Reply {
        if let Some(("result", result)) = stored_answer(found) {
            return Reply::Result(result.to_owned());
        }
        Reply::Result(self.report().of(&session.desk, found.execution.execution_id, Duration::ZERO).await)
    }

    async fn resume(&self, session: &Session, arguments: Option<&str>) -> Reply {
        let given = match Resume::read(arguments) {
            Ok(given) => given,
            Err(why) => return Reply::Error(INVALID_PARAMS, why),
        };
        if self.inner.options.trust_agent_relay
            && let Err(error) = given.relay(&session.desk).await
        {
            return Reply::Result(Report::refused(&error));
        }
        let report = self.report();
        let decided = report.of(&session.desk, given.execution, session.hold);
        match self.unless_stopping(decided).await {
            Some(result) => Reply::Result(result),
            None => Reply::Result(report.of(&session.desk, given.execution, Duration::ZERO).await),
        }
    }

    fn report(&self) -> Report {
        Report { wait_tool: WAIT_TOOL.to_owned(), inbox: self.inner.options.inbox.clone() }
    }

    /// The pending result of a call: it still waits for a person, or runs.
    async fn pending(&self, session: &Session, execution: ExecutionId) -> Reply {
        let rounds = session.desk.rounds_of(execution).await.unwrap_or_default();
        if let Some(round) = rounds.iter().find(|round| round.status == Status::Pending) {
            return Reply::Result(self.waiting(round));
        }
        let text = words::still_running(execution, WAIT_TOOL);
        let data = json!({"paused": {"execution_id": execution.to_string()}});
        let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": false});
        Reply::Result(result.to_string())
    }

    fn waiting(&self, round: &Round) -> String {
        self.report().pending(round)
    }

    /// The outcome of a wait; none where the server stops first.
    async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        let Some(mut stopping) = self.inner.options.stopping.clone() else { return Some(wait.await) };
        let stopped = async {
            if stopping.wait_for(|stopping| *stopping).await.is_err() {
                // Whoever could have said so is gone: nobody will.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            outcome = wait => Some(outcome),
            () = stopped => None,
        }
    }
}

/// Stores the questions; a repeat under its key finds the same round. The error is a sentence for the agent.
async fn put(session: &Session, key: String, questions: Vec<(String, Request)>) -> Result<Round, String> {
    let (asked, requests): (Vec<_>, Vec<_>) = questions.into_iter().unzip();
    let state = Value::from(asked).to_string();
    let ask = Ask {
        logical_operation_id: Some(ASKED.to_owned()),
        operation_name: Some(ASK_TOOL.to_owned()),
        // Without it the agent reads its questions as they were shown.
        request_state: Some(state).filter(|state| state.len() <= REQUEST_STATE_BYTES_MAX),
        requests: under_keys(requests),
        ..Ask::default()
    };
    session.desk.ask(ask, Some(key)).await.map_err(|why| match why {
        Error::Validation { .. } | Error::Limit(_) | Error::Forbidden(_) => {
            format!("The question cannot be asked: {why}")
        }
        _ => words::QUESTION_UNAVAILABLE.to_owned(),
    })
}

/// An error that the agent reads as the tool's own words.
fn error(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}], "isError": true}).to_string())
}
