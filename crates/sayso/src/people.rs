//! The person's verbs. [`People::answer`] is the only door through which an answer enters, for every surface.

use std::sync::Arc;

use async_trait::async_trait;
use sayso_core::command::{Command, Reply, Verdict};
use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::json::{Json, REDACTED, redacted};
use sayso_core::limits;
use sayso_core::principal::{Channel, Principal, PrincipalKind};
use sayso_core::request::{Request, Requests};
use sayso_core::response::{Action, CheckedResponses, Responses, check};
use sayso_core::round::{Digest, Round, Submission};
use sayso_core::wire::{self, Answer, Keyed, Response, ResponseRecord, responses_from_wire, responses_to_wire};
use sayso_store::RoundFilter;

use crate::local_desk::responses_of;
use crate::open::Sayso;
use crate::question::Question;

/// The person's verbs, bound to an authenticated caller on one surface.
#[async_trait]
pub trait People: Send + Sync {
    /// Answers a round (`submit_responses`). Checked in this order: idempotency key, state, digest, key set, content;
    /// on any fault nothing changes. The same key with the same answer returns the same record.
    async fn answer(&self, round: RoundId, answer: Answer, key: &str) -> Result<wire::Round, Error>;
    /// A round.
    async fn show(&self, round: RoundId) -> Result<wire::Round, Error>;
    /// One page of rounds, newest first.
    async fn list(&self, filter: RoundFilter) -> Result<wire::RoundPage, Error>;
    /// What a round was answered with; `None` before. Persons see values, services a
    /// redacted projection, agents only what was done: they take an answer with [`crate::Desk::start`] or
    /// [`crate::Desk::collect`].
    async fn responses(&self, round: RoundId) -> Result<Option<ResponseRecord>, Error>;
    /// Cancels an execution; its pending rounds fail as `cancelled`. Idempotent.
    async fn cancel(&self, execution: ExecutionId) -> Result<wire::Execution, Error>;
}

/// The person's verbs on an embedded store.
#[derive(Clone)]
pub struct LocalPeople {
    pub(crate) sayso: Sayso,
    pub(crate) caller: Principal,
    pub(crate) channel: Channel,
}

/// An answer that has been checked, on its way into the transaction that accepts it.
pub(crate) struct Submitting {
    pub(crate) question: Arc<Question>,
    pub(crate) command: Command,
}

impl LocalPeople {
    /// Checks an answer, of a caller who may give one, as far as that is possible before the transaction. A payload that
    /// does not fit leaves its event.
    pub(crate) async fn submitting(&self, round: RoundId, answer: &Answer, key: &str) -> Result<Submitting, Error> {
        if key.is_empty() || key.len() > limits::NAME_BYTES_MAX {
            let message = format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX);
            return Err(Error::field("/idempotency_key", message));
        }
        let question = self.sayso.question(&self.caller, round).await?;
        let compiled = self.sayso.inner.questions.checked(&question)?;
        let checked = match check(&compiled.requests, &responses_from_wire(&answer.responses)) {
            Ok(checked) => checked,
            Err(error) => {
                let submission = self.submission(answer, None, key);
                return Err(self.refuse(round, Box::new(submission), error).await);
            }
        };
        let verdicts = verdicts(&compiled.requests, &checked.submitted);
        let mut submission = self.submission(answer, Some(&checked), key);
        submission.approves = verdicts.iter().any(|verdict| verdict.is_approval && verdict.accepted);
        submission.needs_second_person = needs_second_person(&compiled.requests, &verdicts);
        let command = Command::Submit {
            round,
            submission: Box::new(submission),
            verdicts,
            submitted: stored_form(&checked.submitted)?,
            effective: stored_form(&checked.effective)?,
        };
        Ok(Submitting { question, command })
    }

    /// Whether this caller may answer at all: persons may.
    pub fn may_answer(&self) -> bool {
        self.caller.may_answer()
    }

    /// Refuses a payload for `error`. It is only reported where key, state and digest allow an answer at all, which the
    /// transaction that leaves the event says.
    pub(crate) async fn refuse(&self, round: RoundId, submission: Box<Submission>, error: Error) -> Error {
        let code = error.code().as_str();
        let refusal = Command::RecordRefusal { round, submission, code };
        match self.sayso.store().commit(vec![refusal]).await {
            // The refusal stands whether or not its event could be stored.
            Ok(_) | Err(Error::Unavailable(_)) => error,
            Err(earlier) => earlier,
        }
    }

    /// Checks and submits an answer, of a caller who may give one.
    pub(crate) async fn submit(&self, round: RoundId, answer: Answer, key: &str) -> Result<wire::Round, Error> {
        let Submitting { question, command } = self.submitting(round, &answer, key).await?;
        if let Some(row) = self.submitted_and_taken(round, &command).await? {
            return Ok(question.shown(&row));
        }
        match self.sayso.store().commit(vec![command]).await?.into_iter().next() {
            Some(Reply::Round(row)) => Ok(question.shown(&row)),
            _ => Err(Error::Corrupt("round")),
        }
    }

    /// Where its asker waits in this process for the answer, stores it and takes it for them in one transaction. None where
    /// nobody does, or where not both can be stored: then nothing was changed.
    async fn submitted_and_taken(&self, round: RoundId, submit: &Command) -> Result<Option<Arc<Round>>, Error> {
        let Some(taker) = self.sayso.inner.hub.take_up(round) else { return Ok(None) };
        let unit = vec![submit.clone(), taker.command(round)];
        let mut replies = match self.sayso.store().commit(unit).await {
            Ok(replies) => replies.into_iter(),
            Err(error @ Error::Unavailable(_)) => return Err(error),
            // What refuses the two may allow the answer alone. A refused answer leaves its event only when alone.
            Err(_) => return Ok(None),
        };
        match (replies.next(), replies.next()) {
            (Some(Reply::Round(answered)), Some(Reply::Handed { round, content })) => {
                taker.hand_over(round, content);
                // The waiter goes on first: an agent is behind it.
                tokio::task::yield_now().await;
                Ok(Some(answered))
            }
            _ => Err(Error::Corrupt("round")),
        }
    }

    fn submission(&self, answer: &Answer, checked: Option<&CheckedResponses>, key: &str) -> Submission {
        let given = responses_from_wire(&answer.responses);
        let canonical = checked.map(CheckedResponses::canonical).unwrap_or_default();
        Submission {
            key: key.to_owned(),
            answer_hash: Digest::of_text(&canonical).to_bytes(),
            principal: self.caller.clone(),
            channel: self.channel,
            digest: answer.digest,
            action: given.action(),
            approves: false,
            needs_second_person: false,
        }
    }
}

fn verdicts(requests: &Requests, answers: &Responses) -> Vec<Verdict> {
    requests
        .iter()
        .map(|(key, request)| Verdict {
            request_key: key.to_owned(),
            is_approval: matches!(request, Request::Approval(_)),
            accepted: answers.get(key).is_some_and(|response| response.action == Action::Accept),
        })
        .collect()
}

/// Whether a call is approved that whoever started the execution may not approve.
fn needs_second_person(requests: &Requests, verdicts: &[Verdict]) -> bool {
    verdicts.iter().filter(|verdict| verdict.accepted).any(|verdict| {
        let asked = requests.get(&verdict.request_key);
        matches!(asked, Some(Request::Approval(approval)) if approval.require_second_person)
    })
}

fn stored_form(responses: &Responses) -> Result<Json, Error> {
    Json::written(&responses_to_wire(responses)).ok_or(Error::Corrupt("answer"))
}

/// The answer as an agent sees it before it takes it: what was done, and no value at all.
fn hide(stored: &Keyed<Response>) -> Keyed<Response> {
    let hidden = |(key, response): &(String, Response)| {
        let content = response.content.as_ref().map(|_| Json::from_text(REDACTED));
        let reason = response.reason.as_ref().map(|_| REDACTED.to_owned());
        (key.clone(), Response { action: response.action, content, reason })
    };
    Keyed(stored.0.iter().map(hidden).collect())
}

/// The diagnostic projection of an answer: secrets go by name, by schema and inside URLs.
pub(crate) fn redact(stored: &Keyed<Response>, requests: &Keyed<wire::Request>) -> Keyed<Response> {
    let hide = |(key, response): &(String, Response)| {
        let schema = requests.get(key).and_then(|request| request.schema.as_ref());
        let content = response.content.as_ref().map(|content| redacted(content, schema));
        let reason = response.reason.as_ref().map(|_| REDACTED.to_owned());
        (key.clone(), Response { action: response.action, content, reason })
    };
    Keyed(stored.0.iter().map(hide).collect())
}

#[async_trait]
impl People for LocalPeople {
    async fn answer(&self, round: RoundId, answer: Answer, key: &str) -> Result<wire::Round, Error> {
        if !self.caller.may_answer() {
            return Err(Error::Forbidden("an agent's credential cannot answer; a person does"));
        }
        self.submit(round, answer, key).await
    }

    async fn show(&self, round: RoundId) -> Result<wire::Round, Error> {
        self.sayso.round(&self.caller, round).await
    }

    async fn list(&self, filter: RoundFilter) -> Result<wire::RoundPage, Error> {
        self.sayso.rounds(&self.caller, filter).await
    }

    async fn responses(&self, round: RoundId) -> Result<Option<ResponseRecord>, Error> {
        let question = self.sayso.question(&self.caller, round).await?;
        let Some(stored) = self.sayso.store().answer(round).await? else { return Ok(None) };
        let record = ResponseRecord {
            redacted: self.caller.kind != PrincipalKind::Person,
            submitted: responses_of(&stored.submitted)?,
            effective: responses_of(&stored.effective)?,
        };
        if !record.redacted {
            return Ok(Some(record));
        }
        if self.caller.kind == PrincipalKind::Agent {
            let (submitted, effective) = (hide(&record.submitted), hide(&record.effective));
            return Ok(Some(ResponseRecord { submitted, effective, ..record }));
        }
        let requests = &question.requests;
        let (submitted, effective) = (redact(&record.submitted, requests), redact(&record.effective, requests));
        Ok(Some(ResponseRecord { submitted, effective, ..record }))
    }

    async fn cancel(&self, execution: ExecutionId) -> Result<wire::Execution, Error> {
        self.sayso.execution(&self.caller, execution).await?;
        let command = Command::Cancel { execution, principal: self.caller.clone() };
        self.sayso.store().commit(vec![command]).await?;
        self.sayso.execution(&self.caller, execution).await
    }
}
