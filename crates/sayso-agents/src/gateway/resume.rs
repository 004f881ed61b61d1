//! `resume {execution_id, approved?, data?}`: what a person decided about a call, whatever the agent says; only where that
//! was configured its own word counts, as relayed by it.

use std::time::Duration;

use sayso::{ExecutionId, RoundId, Status};

use super::call::{Ask, Open, Pending, WaitsBy};
use super::session::{Event, Session};
use crate::jsonrpc::{self, INVALID_PARAMS, Message};
use crate::tools::{Report, Resume};

impl Session {
    /// The tool was called. Whoever asks about a call of this process that a person has decided about waits for its
    /// result, so that an approved call runs.
    pub(super) async fn resume_called(&mut self, message: &Message, id: &str) {
        let given = match Resume::read(message.param("arguments")) {
            Ok(given) => given,
            Err(why) => return self.client.send(jsonrpc::error(id, INVALID_PARAMS, &why, None)).await,
        };
        let relays = self.options.trust_agent_relay && given.approved.is_some();
        if relays && let Err(error) = given.relay(self.desk.as_ref()).await {
            let refused = Report::refused(&error);
            return self.client.send(jsonrpc::result(id, &refused)).await;
        }
        let execution = given.execution;
        let is_it = |pending: &Pending| matches!(pending, Pending::Call(call) if call.execution == Some(execution));
        match self.requests.iter().find(|(_, pending)| is_it(pending)).map(|(number, _)| *number) {
            Some(number) => match self.open_question(number) {
                None => self.wait_for_result(message, id, number).await,
                Some((ask, round)) => match self.desk.wait(round, 0, Duration::ZERO).await {
                    // Decided a moment ago, and not heard of here yet.
                    Ok(found) if found.status != Status::Pending => {
                        self.wait_for_result(message, id, number).await;
                        self.round_changed(ask, &found).await;
                    }
                    _ => self.report(id, execution, Duration::ZERO),
                },
            },
            None => self.report(id, execution, self.hold),
        }
    }

    async fn wait_for_result(&mut self, message: &Message, id: &str, number: u64) {
        let waiter = self.waiter(message, id, WaitsBy::Resume);
        self.attach(number, waiter).await;
    }

    /// What a call waits for that nobody has decided yet, as far as is known here.
    fn open_question(&self, number: u64) -> Option<(u64, RoundId)> {
        let is_open = |ask: &Ask| ask.pauses(number) && !ask.approval().is_some_and(|asked| asked.is_answered);
        self.asks.iter().find(|(_, ask)| is_open(ask)).map(|(at, ask)| (*at, ask.round))
    }

    /// Reports in the background, for the client's request of this id. A decided call's result is waited for.
    pub(super) fn report(&mut self, client_id: &str, execution: ExecutionId, wait: Duration) {
        self.open.insert(client_id.to_owned(), Open::Elsewhere);
        let report = Report { wait_tool: self.lists.wait_tool(), inbox: self.options.inbox.clone() };
        let (desk, events, client_id) = (self.desk.clone(), self.events.clone(), client_id.to_owned());
        tokio::spawn(async move {
            let result = report.of(desk.as_ref(), execution, wait).await;
            // A session that is gone has nobody to tell.
            let _ = events.send(Event::Reported { client_id, result }).await;
        });
    }

    pub(super) async fn reported(&mut self, client_id: &str, result: &str) {
        if self.open.remove(client_id).is_some() {
            self.client.send(jsonrpc::result(client_id, result)).await;
        }
    }
}
