//! A call that waits for a person's word: asked, judged again once there is one, and run exactly once or not at all.

use std::time::Duration;

use sayso::gate::definition_of;
use sayso::policy::{Basis, Decision, Recheck, Verdict};
use sayso::wire::{self, RequestKind};
use sayso::{Ask as NewRound, Digest, Error, Failure, Fence, Json, Outcome, Request, Response, Status, Step, words};
use sayso_core::limits;
use sayso_core::response::{Action, Content};
use sayso_core::round::OperationKind;
use sayso_core::schema::FormSchema;
use tokio::time::Instant;

use super::call::{Approval, Ask, Asker};
use super::gate::{Judgement, Subject};
use super::reviewed::unavailable_words;
use super::session::Session;
use super::timers::{Due, TRY_AGAIN};

/// The key of the one request in an approval of ours.
const CALL_KEY: &str = "call";
/// What follows a description that was too long to be shown whole.
const CUT: &str = " […]";

impl Session {
    /// Asks a person whether a call may run; in the place of an earlier question `instead_of`, where there is one. The
    /// question is stored before anybody sees it; if it cannot be, the call does not run.
    pub(super) async fn ask_approval(
        &mut self,
        number: u64,
        subject: &Subject,
        judged: &Judgement,
        instead_of: Option<Ask>,
    ) {
        let earlier = instead_of.as_ref().and_then(|ask| Some((ask.round, ask.fence.clone()?)));
        if self.asks.len() >= limits::OPEN_QUESTIONS_MAX {
            let text = format!("{} {} questions are open.", words::APPROVAL_UNAVAILABLE, limits::OPEN_QUESTIONS_MAX);
            return self.not_asked(number, earlier, &text).await;
        }
        let request = self.approval_request(subject, judged);
        let mut new = self.new_round(NewRound::one(CALL_KEY, request.clone()), &[number]);
        new.calls = Vec::new();
        new.deadline_in_ms = judged.verdict.deadline_ms;
        new.supersedes = instead_of.as_ref().and_then(Ask::held);
        let opened = match self.desk.open(new, None).await {
            Ok(opened) => opened,
            Err(error) => return self.not_asked(number, earlier, &not_asked_words(&error)).await,
        };
        let Some(fence) = opened.fence else { return };
        if let Some(call) = self.call(number) {
            call.execution = Some(opened.round.execution_id);
        }
        let approval =
            Approval { rules: judged.verdict.rules.clone(), arguments: subject.arguments.clone(), is_answered: false };
        let ask = Ask {
            asker: Asker::Gate(Box::new(approval)),
            round: opened.round.round_id,
            fence: Some(fence),
            request,
            candidates: vec![number],
            own_execution: None,
            answered: false,
        };
        // A desk that had to repeat itself may find the round answered already: then nothing more happens to it.
        let seen_rev = if opened.round.status == Status::Pending { opened.round.rev } else { 0 };
        self.open_ask(ask, seen_rev).await;
    }

    /// What is asked about a call: everything that an approval is bound to.
    fn approval_request(&self, subject: &Subject, judged: &Judgement) -> Request {
        let Subject { kind, tool, arguments, annotations, .. } = subject;
        // Of prompts and resources the name is all that there is; a tool that is not listed has no definition.
        let by_name = (*kind != OperationKind::Tool).then(|| definition_of(tool, *annotations));
        let known = Some(tool.name()).filter(|_| *kind == OperationKind::Tool);
        let known = known.and_then(|name| self.lists.definition(name));
        let schema = known.and_then(|known| known.input_schema.clone());
        let verdict = &judged.verdict;
        Request {
            tool: Some(tool.to_string()),
            message: known.and_then(|known| known.description.as_deref()).map(shown),
            arguments: Some(arguments.canonical()).and_then(|text| sayso::Json::parse(&text).ok()),
            effects: Some(judged.effects.iter().collect()),
            definition: subject.definition.or(by_name),
            rule: Some(shown(&asking(verdict))),
            session: self.options.gate.as_ref().map(|gate| gate.session.clone()),
            // A schema that an answer could not be checked by allows no changes.
            arguments_schema: schema.filter(|schema| FormSchema::open(schema).is_ok()),
            require_second_person: verdict.require_second_person.then_some(true),
            ..Request::empty(RequestKind::Approval)
        }
    }

    /// The digest of the round in which a person would be asked about a call.
    pub(super) fn asked_digest(&self, subject: &Subject, judged: &Judgement) -> Option<Digest> {
        let requests = wire::Keyed(vec![(CALL_KEY.to_owned(), self.approval_request(subject, judged))]);
        let text = serde_json::to_string(&requests).ok()?;
        let json = Json::parse_within(&text, limits::ROUND_BYTES_MAX, limits::JSON_DEPTH_CEILING).ok()?;
        Some(Digest::of_requests(&json))
    }

    /// Somebody waits again for a call that a person is being asked about. Where it has been granted meanwhile, it runs,
    /// and its question ends.
    pub(super) async fn granted_meanwhile(&mut self, number: u64, call: u64) {
        let Some(asked) = self.asks.get(&number).and_then(Ask::approval).map(|asked| asked.arguments.canonical())
        else {
            return;
        };
        if self.call(call).is_none_or(|call| call.waiter.is_none()) || !self.knows_tools(call).await {
            return;
        }
        // What a person has changed is for a person to decide.
        let Ok(mut subject) = self.subject(call, None) else { return };
        if subject.arguments.canonical() != asked {
            return;
        }
        if !self.is_undecided(number).await {
            return;
        }
        let Ok(judged) = self.judge_reviewed(&mut subject).await else { return };
        let question = self.asks.get(&number).and_then(Ask::held);
        let Judgement { verdict, .. } = self.with_grants(&mut subject, judged, question).await;
        if matches!(verdict.basis, Basis::Grant(_)) {
            self.asks.remove(&number);
            return self.dispatch(call, None).await;
        }
        // Where the question goes on, it goes on about a tool that is known.
        if verdict.decision == Decision::Allow
            && self.store_before_running(&mut subject, &verdict).await.is_ok()
            && self.question_dropped(number, call).await
        {
            self.dispatch(call, None).await;
        }
    }

    /// Whether nobody has decided, by the store.
    async fn is_undecided(&self, number: u64) -> bool {
        let Some(round) = self.asks.get(&number).map(|ask| ask.round) else { return false };
        self.desk.wait(round, 0, Duration::ZERO).await.is_ok_and(|found| found.status == Status::Pending)
    }

    /// Ends the question about a call that runs without an answer. One that a person has answered at the same moment is
    /// left to what follows from that; where it could only be seen afterwards, what was not approved does not run.
    async fn question_dropped(&mut self, number: u64, call: u64) -> bool {
        let Some((round, fence)) = self.asks.get(&number).map(|ask| (ask.round, ask.fence.clone())) else {
            return false;
        };
        if !self.is_undecided(number).await {
            return false;
        }
        let failure = Failure::new(Failure::WITHDRAWN, words::ALLOWED_MEANWHILE);
        if self.desk.settle(vec![Step::Failed(round, fence, failure.clone())]).await.is_err() {
            return false;
        }
        self.asks.remove(&number);
        let ended = self.desk.wait(round, 0, Duration::ZERO).await;
        let is_free = ended.is_ok_and(|ended| ended.answered.is_none_or(|by| by.action == Some(Action::Accept)));
        if !is_free {
            self.end_held(call, Vec::new(), Outcome::Failed(failure), words::DISMISSED).await;
        }
        is_free
    }

    /// Nobody could be asked. An earlier question that this one was to replace ends with the call.
    pub(super) async fn not_asked(&mut self, number: u64, earlier: Option<(sayso::RoundId, Fence)>, text: &str) {
        const SUSPEND_FAILED: &str = "suspend_failed";
        let failure = Failure::new(SUSPEND_FAILED, "the next question could not be stored; the call was not run");
        let step = |(round, fence)| {
            let superseded = Failure::new(Failure::SUPERSEDED, "the call was judged again before it ran");
            Step::Failed(round, Some(fence), superseded)
        };
        self.end_held(number, earlier.map(step).into_iter().collect(), Outcome::Failed(failure), text).await;
    }

    /// A person has decided about a call, or nobody can any more. What was approved is started, which is stored before
    /// it runs, once somebody waits for its result.
    pub(super) async fn verdict_came(&mut self, number: u64, round: &wire::Round) {
        let Some(ask) = self.asks.get_mut(&number) else { return };
        let ([call], Asker::Gate(approval)) = (ask.candidates.as_slice(), &mut ask.asker) else { return };
        let (call, round_id, fence) = (*call, ask.round, ask.fence.clone());
        approval.is_answered = true;
        if let Some(failure) = &round.failure {
            self.asks.remove(&number);
            let outcome = Outcome::Failed(failure.clone());
            return self.end_held(call, Vec::new(), outcome, &words::approval_ended(failure)).await;
        }
        let is_approved = round.answered.as_ref().is_none_or(|answered| answered.action == Some(Action::Accept));
        if is_approved {
            let has_waiter = self.call(call).is_some_and(|call| call.waiter.is_some());
            if !has_waiter || !self.knows_tools(call).await {
                return;
            }
        }
        let Some(fence) = fence else { return };
        match self.desk.start(round_id, fence).await {
            Ok(handed) => self.decided(number, call, handed.responses.get(CALL_KEY)).await,
            Err(error @ (Error::Conflict { .. } | Error::State { .. })) => {
                // Somebody took this process for dead and ended the round; the call never ran.
                self.asks.remove(&number);
                let failure = Failure::new(error.code().as_str(), error.to_string());
                let text = format!("{error}. The call was not run.");
                self.end_held(call, Vec::new(), Outcome::Failed(failure), &text).await;
            }
            // The store is away for a moment: the answer is there, and is looked for again.
            Err(_) => self.timers.at(Instant::now() + TRY_AGAIN, Due::HandOver { ask: number }),
        }
    }

    async fn decided(&mut self, number: u64, call: u64, response: Option<&Response>) {
        let text = match response.map(|response| response.action) {
            Some(Action::Accept) => {
                return self.approved(number, call, response.and_then(|response| response.content.as_ref())).await;
            }
            Some(Action::Decline) => words::declined(response.and_then(|response| response.reason.as_deref())),
            Some(Action::Cancel) | None => words::DISMISSED.to_owned(),
        };
        let steps = self.asks.remove(&number).map(Ask::arrived).unwrap_or_default();
        self.end_held(call, steps, Outcome::Completed, &text).await;
    }

    /// The policy has the last word, on the arguments that would run now.
    async fn approved(&mut self, number: u64, call: u64, content: Option<&sayso::Json>) {
        let Some(ask) = self.asks.get(&number) else { return };
        let Some(asked) = ask.approval() else { return };
        let (rules, shown) = (asked.rules.clone(), ask.request.definition);
        let edited = content.and_then(Content::read).and_then(|content| content.arguments);
        let edited = edited.filter(|arguments| arguments.canonical() != asked.arguments.canonical());
        // What was shown may itself be what a person had changed before.
        let arguments = edited.unwrap_or_else(|| asked.arguments.clone());
        let mut subject = match self.subject(call, Some(&arguments)) {
            Ok(subject) => subject,
            Err(why) => return self.refused(number, call, &Verdict::error(why)).await,
        };
        let mut judged = match self.judge_reviewed(&mut subject).await {
            Ok(judged) => judged,
            Err(error) => return self.not_run_yet(number, call, &error).await,
        };
        let mut recheck = judged.verdict.recheck(&rules);
        // Another tool than the one that was shown, also where somebody has reviewed it elsewhere meanwhile.
        if recheck == Recheck::Go && subject.kind == OperationKind::Tool && subject.definition != shown {
            recheck = Recheck::AskAgain;
        }
        if recheck == Recheck::AskAgain {
            judged = self.with_grants(&mut subject, judged, None).await;
            if matches!(judged.verdict.basis, Basis::Grant(_)) {
                recheck = judged.verdict.recheck(&rules);
            }
        }
        match recheck {
            Recheck::Go => {
                if let Err(error) = self.store_reviewed(&mut subject).await {
                    return self.not_run_yet(number, call, &error).await;
                }
                if let Some(ask) = self.asks.get_mut(&number) {
                    ask.answered = true;
                }
                let own = self.subject(call, None).map(|subject| subject.arguments.canonical());
                let is_changed = own.is_ok_and(|own| own != arguments.canonical());
                self.dispatch(call, is_changed.then_some(arguments)).await;
            }
            Recheck::Refuse => self.refused(number, call, &judged.verdict).await,
            Recheck::AskAgain => {
                if let Err(error) = self.store_before_asking(&mut subject).await {
                    return self.not_run_yet(number, call, &error).await;
                }
                let earlier = self.asks.remove(&number);
                self.ask_approval(call, &subject, &judged, earlier).await;
            }
        }
    }

    /// What was reviewed of an approved call's tool could not be read or stored. Where the store is away for a moment, the
    /// answer is there, and is looked for again; everything else ends the call.
    async fn not_run_yet(&mut self, number: u64, call: u64, error: &Error) {
        if matches!(error, Error::Unavailable(_)) {
            return self.timers.at(Instant::now() + TRY_AGAIN, Due::HandOver { ask: number });
        }
        let earlier = self.asks.remove(&number).and_then(|ask| Some((ask.round, ask.fence?)));
        self.not_asked(call, earlier, &unavailable_words(error)).await;
    }

    /// The policy denies by now what a person has approved.
    async fn refused(&mut self, number: u64, call: u64, verdict: &Verdict) {
        debug_assert_eq!(verdict.decision, Decision::Deny);
        let Some(ask) = self.asks.remove(&number) else { return };
        let failure = Failure::new(Failure::SUPERSEDED, "the policy denied the call before it ran");
        let steps = vec![Step::Failed(ask.round, ask.fence, failure)];
        let text = format!("A person approved this call, but then: {}", words::denied(verdict));
        self.end_held(call, steps, Outcome::Completed, &text).await;
    }
}

/// Who asks and why, for the person.
fn asking(verdict: &Verdict) -> String {
    let rules: Vec<_> = verdict.rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id)).collect();
    match &verdict.reason {
        Some(reason) => format!("{}: {reason}", rules.join(", ")),
        None => rules.join(", "),
    }
}

/// A text of others as far as a round can hold it.
fn shown(text: &str) -> String {
    if text.len() <= limits::MESSAGE_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limits::MESSAGE_BYTES_MAX - CUT.len());
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

/// What the agent reads where a call could not be put before a person.
fn not_asked_words(error: &Error) -> String {
    match error {
        Error::Validation { .. } | Error::Limit(_) => {
            format!("Approval unavailable: the call cannot be shown to a person ({error}). It was not run.")
        }
        Error::RoundLimit(_) => format!("Approval unavailable: {error}. It was not run."),
        _ => words::APPROVAL_UNAVAILABLE.to_owned(),
    }
}
