//! From an answer to what becomes of the call: taken under a lease, judged again by the policy as it is now, and only
//! then handed out. Whatever is handed out has been stored before.

use sayso_core::command::{Command, DeliveryContent, Reply, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::Outcome;
use sayso_core::json::Json;
use sayso_core::limits::JSON_DEPTH_CEILING;
use sayso_core::policy::Recheck;
use sayso_core::response::{Action, Content};
use sayso_core::round::{Claim, Evidence, Failure, FailureRequest, Fence, Round, Status};
use sayso_core::schema::InputSchema;
use sayso_core::wire::Request;

use super::asking::Ruled;
use super::reviewed::Judged;
use super::state::State;
use super::{Allowed, By, CALL_KEY, Call, Denied, Gate, Ruling};
use crate::local_desk::responses_of;
use crate::words;

/// The failure of an approval that the policy has overtaken.
const DENIED_BY_POLICY: &str = "denied_by_policy";
/// How an execution ends whose next question could not be stored.
const SUSPEND_FAILED: &str = "suspend_failed";

/// An approved call, as it would run.
struct Approved {
    /// What the next round would show, were it asked again.
    shown: Json,
    /// What it runs with.
    effective: Json,
    is_changed: bool,
}

impl Gate {
    /// Takes the answer of a round and says what becomes of the call; none where somebody else has taken it.
    pub(super) async fn dispatch(&self, call: &Call, row: &Round, holds: bool) -> Result<Option<Ruled>, Error> {
        let Some((fence, content)) = self.take(row).await? else { return Ok(None) };
        let question = self.desk.sayso.question(&self.desk.caller, row.id).await?;
        let compiled = self.desk.sayso.inner.questions.checked(&question)?;
        let request = question.requests.get(CALL_KEY).ok_or(Error::Corrupt("request"))?;
        if compiled.digest != row.digest {
            return Err(Error::Corrupt("request"));
        }
        let responses = responses_of(&content.responses)?;
        let response = responses.get(CALL_KEY).ok_or(Error::Corrupt("answer"))?;
        let state = State::read(content.request_state.as_deref())?;
        match response.action {
            Action::Decline => {
                let reason = response.reason.clone();
                self.commit(settling(row, &fence, result_of("deny", None)?)).await?;
                Ok(Some((Ruling::Deny(Denied { reason, round: Some(row.id), rules: state.rules }), None)))
            }
            Action::Cancel => {
                self.commit(settling(row, &fence, result_of("dismissed", None)?)).await?;
                Err(words::dismissed())
            }
            Action::Accept => {
                let approved = approved(request, response.content.as_ref())?;
                self.run_approved(call, (row, request), &fence, approved, state, holds).await.map(Some)
            }
        }
    }

    /// Claims a round and begins to hand its answer over.
    pub(super) async fn take(&self, row: &Round) -> Result<Option<(Fence, DeliveryContent)>, Error> {
        let fence = self.desk.owner.fence()?;
        // What was started here and not settled was never handed out: that comes after, and says so in the store.
        let evidence = (row.status == Status::DeliveryStarted).then_some(Evidence::NotDelivered { idempotent: true });
        let claim = Claim { fence: fence.clone(), expected: None, evidence };
        let start = Command::StartDelivery { round: row.id, fence: fence.clone() };
        let unit = vec![Command::Claim { round: row.id, claim }, start];
        match self.desk.sayso.store().commit(unit).await {
            Ok(replies) => match replies.into_iter().next_back() {
                Some(Reply::Handed { content, .. }) => Ok(Some((fence, content))),
                _ => Err(Error::Corrupt("round")),
            },
            Err(Error::Conflict { .. } | Error::State { .. } | Error::Recovery(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn run_approved(
        &self,
        call: &Call,
        (row, request): (&Round, &Request),
        fence: &Fence,
        approved: Approved,
        state: State,
        holds: bool,
    ) -> Result<Ruled, Error> {
        let judged = self.evaluate(call, &approved.effective).await?;
        let is_same_tool = request.definition == Some(call.definition());
        match judged.verdict.recheck(&state.rules) {
            Recheck::Refuse => {
                let message = "approved, and denied by the policy before it ran";
                let failure = Failure::new(DENIED_BY_POLICY, message);
                self.commit(vec![self.failing(row, fence, failure)]).await?;
                Ok((Ruling::Deny(Denied::by_policy(judged.verdict)), None))
            }
            Recheck::Go if is_same_tool => {
                let mut unit = settling(row, fence, result_of("allow", Some(&approved.effective))?);
                unit.extend(judged.before_running(&self.desk.caller, call));
                self.commit(unit).await?;
                let Approved { effective: arguments, is_changed, .. } = approved;
                let by = By::Person(row.id);
                Ok((Ruling::Allow(Allowed { arguments, is_changed, by, rules: state.rules }), None))
            }
            Recheck::Go | Recheck::AskAgain => {
                self.supersede(call, (row, fence), &approved.shown, &judged, holds).await
            }
        }
    }

    /// The approval does not hold any more: its round ends and the next one opens in the same transaction.
    async fn supersede(
        &self,
        call: &Call,
        (row, fence): (&Round, &Fence),
        arguments: &Json,
        judged: &Judged,
        holds: bool,
    ) -> Result<Ruled, Error> {
        let message = "the rules or the tool changed after it was approved; it is asked again";
        let superseded = || self.failing(row, fence, Failure::new(Failure::SUPERSEDED, message));
        let asked = async {
            let (mut new, question) = self.prepare(call, arguments, judged).await?;
            new.execution = RoundExecution::Existing(row.execution_id);
            let hold = if holds { self.held.take(new.id) } else { None };
            let mut unit = vec![Command::CreateRound(Box::new(new)), superseded()];
            unit.extend(judged.before_asking(&self.desk.caller, call));
            match self.desk.sayso.store().commit(unit).await?.into_iter().next() {
                Some(Reply::Created { round: row, .. }) => {
                    Ok((self.desk.sayso.inner.questions.keep(row.id, question).shown(&row), hold))
                }
                _ => Err(Error::Corrupt("round")),
            }
        };
        match asked.await {
            Ok((round, hold)) => Ok((Ruling::Ask(Box::new(round)), hold)),
            Err(error) => {
                let outcome = Outcome::Failed(Failure::new(SUSPEND_FAILED, "the next question could not be stored"));
                let finish = Command::Finish { execution: row.execution_id, outcome, result: None };
                // Where even this cannot be stored, the claim runs out and the same call takes the answer up again.
                drop(self.commit(vec![finish, superseded()]).await);
                Err(words::approval_unavailable(error))
            }
        }
    }

    pub(super) async fn commit(&self, unit: Vec<Command>) -> Result<(), Error> {
        self.desk.sayso.store().commit(unit).await.map(drop)
    }

    pub(super) fn failing(&self, row: &Round, fence: &Fence, failure: Failure) -> Command {
        let (fence, principal) = (Some(fence.clone()), self.desk.caller.clone());
        let request = FailureRequest { fence, principal, failure, only_pending: false };
        Command::Fail { round: row.id, request }
    }
}

/// The execution's end, the receipt and the round's end, for one transaction; only after it anything is handed out.
fn settling(row: &Round, fence: &Fence, result: Json) -> Vec<Command> {
    let (round, execution) = (row.id, row.execution_id);
    vec![
        Command::Finish { execution, outcome: Outcome::Completed, result: Some(result) },
        Command::MarkDelivered { round, fence: fence.clone() },
        Command::Resolve { round, fence: fence.clone() },
    ]
}

/// What is stored of a gated call's end: what became of it, and what it ran with.
fn result_of(verdict: &str, arguments: Option<&Json>) -> Result<Json, Error> {
    let arguments = arguments.map(|arguments| format!(",\"arguments\":{}", arguments.as_str())).unwrap_or_default();
    let text = format!("{{\"verdict\":\"{verdict}\"{arguments}}}");
    Json::parse_within(&text, usize::MAX, JSON_DEPTH_CEILING).map_err(|_| Error::Corrupt("request"))
}

/// The call as a person approved it: with the arguments that were shown or edited, and the person's values over them.
/// A call that takes input never runs without it.
fn approved(request: &Request, content: Option<&Json>) -> Result<Approved, Error> {
    let corrupt = Error::Corrupt("answer");
    let content = content.map_or(Some(Content::default()), Content::read).ok_or(corrupt)?;
    let proposed = request.arguments.clone().ok_or(Error::Corrupt("request"))?;
    let is_edited = content.arguments.is_some();
    let shown = content.arguments.unwrap_or(proposed);
    let effective = match (&request.schema, &content.input) {
        (None, _) => shown.clone(),
        (Some(schema), Some(input)) => {
            let schema = InputSchema::open(schema).map_err(|_| Error::Corrupt("request"))?;
            schema.overlay(&shown, input).map_err(|_| Error::Corrupt("request"))?
        }
        (Some(_), None) => return Err(Error::Corrupt("answer")),
    };
    let is_changed = is_edited || request.schema.is_some();
    Ok(Approved { shown, effective, is_changed })
}
