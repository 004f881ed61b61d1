//! The gate: every call is judged before it reaches the upstream, by what the gateway itself has read of the tools.

use sayso::gate::definition_of;
use sayso::policy::{
    Annotations, Basis, Context, DEFAULT_RULE, Decision, Effects, PROMPT_PREFIX, RESOURCE_PREFIX, ToolName, Verdict,
};
use sayso::wire::{self, GrantUse};
use sayso::{Digest, Error, ExecutionId, Failure, Json, Outcome, PolicyRuling, Step, words};
use sayso_core::round::OperationKind;
use serde_json::json;

use super::call::{Ask, Call, Open, Pending, Stage};
use super::lists::Reading;
use super::options::Gate;
use super::passage;
use super::reviewed::unavailable_words;
use super::session::Session;
use crate::jsonrpc::{INTERNAL_ERROR, Message};

/// Everything that a verdict on a call rests on.
pub(super) struct Subject {
    pub kind: OperationKind,
    pub tool: ToolName,
    pub arguments: Json,
    pub annotations: Annotations,
    /// The tool's definition, where it is listed.
    pub definition: Option<Digest>,
    /// The definition, where it is another than was last reviewed.
    pub changed_definition: Option<Digest>,
    /// The definition that is stored as reviewed once a call under it may run.
    pub unreviewed: Option<Digest>,
}

/// A verdict, and what a person is told of the call.
pub(super) struct Judgement {
    pub verdict: Verdict,
    pub effects: Effects,
    /// Pointer to the argument that is a shell command.
    pub command_at: Option<String>,
}

impl Subject {
    /// What is to be judged of an operation with these arguments; of prompts and resources there are none but what names
    /// them. The error says why it cannot be judged.
    fn new(server: &str, kind: OperationKind, name: &str, arguments: Json) -> Result<Self, String> {
        let is_taken = [PROMPT_PREFIX, RESOURCE_PREFIX].iter().any(|prefix| name.starts_with(prefix));
        if kind == OperationKind::Tool && is_taken {
            return Err("the tool has a name that rules use for prompts and resources".to_owned());
        }
        let arguments = match kind {
            OperationKind::Tool | OperationKind::Prompt => arguments,
            OperationKind::Resource => Json::from_value(&json!({"uri": name})),
        };
        let tool = ToolName::of_operation(server, kind, name).map_err(|error| error.to_string())?;
        // Prompts and resources read by nature.
        let read_only = (kind != OperationKind::Tool).then_some(true);
        let annotations = Annotations { read_only, ..Annotations::default() };
        Ok(Self { kind, tool, arguments, annotations, definition: None, changed_definition: None, unreviewed: None })
    }
}

/// The arguments that an operation names; none are an empty object. An error where they cannot be read.
fn arguments_of(message: &Message) -> Result<Json, String> {
    let written = message.param("arguments").filter(|text| *text != "null").unwrap_or("{}");
    Json::parse(written).map_err(|_| "the arguments cannot be read".to_owned())
}

impl Session {
    /// A call arrives at the gate.
    pub(super) async fn admit(&mut self, call: Call, client_id: &str) {
        let number = self.number();
        self.requests.insert(number, Pending::Call(Box::new(call)));
        self.open.insert(client_id.to_owned(), Open::Forwarded(number));
        self.go_on(number).await;
    }

    /// Goes on with a call that is held, as far as that is possible now.
    pub(super) async fn go_on(&mut self, number: u64) {
        if self.call(number).is_none_or(|call| call.stage != Stage::Held) {
            return;
        }
        match self.asks.iter().find(|(_, ask)| ask.candidates == [number]).map(|(ask, _)| *ask) {
            Some(ask)
                if self.asks.get(&ask).is_some_and(|ask| ask.approval().is_some_and(|asked| asked.is_answered)) =>
            {
                self.hand_over_again(ask).await;
            }
            Some(ask) => self.granted_meanwhile(ask, number).await,
            None if self.knows_tools(number).await => self.judge_first(number).await,
            None => {}
        }
    }

    /// The tools have been read: the calls that waited for that go on.
    pub(super) async fn held_calls_go_on(&mut self) {
        let is_held = |pending: &Pending| matches!(pending, Pending::Call(call) if call.stage == Stage::Held);
        let held: Vec<_> =
            self.requests.iter().filter(|(_, pending)| is_held(pending)).map(|(number, _)| *number).collect();
        for number in held {
            self.go_on(number).await;
        }
    }

    /// Whether the tools are known as they are now; where not, the call goes on once they are.
    pub(super) async fn knows_tools(&mut self, number: u64) -> bool {
        if self.call(number).is_none_or(|call| call.kind != OperationKind::Tool) || self.lists.state == Reading::Read {
            return true;
        }
        if self.lists.state == Reading::Stale
            && !self.upstream.is_running()
            && let Err(why) = self.start_again().await
        {
            self.not_sent(number, &why).await;
        }
        false
    }

    async fn judge_first(&mut self, number: u64) {
        let mut subject = match self.subject(number, None) {
            Ok(subject) => subject,
            Err(why) => return self.deny(number, &Verdict::error(why)).await,
        };
        let judged = match self.judge_with_grants(&mut subject).await {
            Ok(judged) => judged,
            Err(error) => return self.not_asked(number, None, &unavailable_words(&error)).await,
        };
        let stored = match judged.verdict.decision {
            Decision::Allow => self.store_before_running(&mut subject, &judged.verdict).await,
            Decision::Ask => self.store_before_asking(&mut subject).await,
            Decision::Deny => {
                // The denial stands whether or not its event could be stored.
                drop(self.desk.settle(vec![Step::Ruled(Self::ruling(&subject, &judged.verdict))]).await);
                return self.deny(number, &judged.verdict).await;
            }
        };
        match (stored, judged.verdict.decision) {
            (Err(error), _) => self.not_asked(number, None, &unavailable_words(&error)).await,
            (Ok(()), Decision::Allow) => self.dispatch(number, None).await,
            (Ok(()), _) => self.ask_approval(number, &subject, &judged, None).await,
        }
    }

    /// What is to be judged of call `number`, with other arguments than its own where a person has changed them.
    pub(super) fn subject(&mut self, number: u64, edited: Option<&Json>) -> Result<Subject, String> {
        let call = self.call(number).ok_or("the call is gone")?;
        let arguments = edited.cloned().map_or_else(|| arguments_of(&call.message), Ok)?;
        let (kind, name) = (call.kind, call.name.clone());
        self.subject_of(kind, &name, arguments)
    }

    fn subject_of(&self, kind: OperationKind, name: &str, arguments: Json) -> Result<Subject, String> {
        let mut subject = Subject::new(&self.options.name, kind, name, arguments)?;
        if kind == OperationKind::Tool {
            let known = self.lists.definition(name);
            subject.annotations = known.map(|known| known.annotations).unwrap_or_default();
            subject.definition = known.map(|known| known.digest);
        }
        Ok(subject)
    }

    /// What is said of a call now: by the policy, and by the default for prompts and resources, which are judged only
    /// where a rule is about them. This is the one place where calls are judged, both before a person is asked and before
    /// an approved call runs; what people have granted is looked at after it, by [`Session::judge_with_grants`].
    pub(super) fn judge(&self, subject: &Subject) -> Judgement {
        let Some(Gate { policy, mode, .. }) = &self.options.gate else {
            // Nothing gets here without a gate; if it did, it would not run.
            let verdict = Verdict::error("there is no policy");
            return Judgement { verdict, effects: Effects::ALL, command_at: None };
        };
        let policy = policy.current();
        let context = Context {
            annotations: subject.annotations,
            mode: *mode,
            changed_definition: subject.changed_definition,
            work_folder: None,
        };
        let mut verdict = policy.evaluate(&subject.tool, &subject.arguments, &context);
        let is_unnamed = verdict.rules.iter().all(|rule| rule.id == DEFAULT_RULE);
        if subject.kind != OperationKind::Tool && verdict.decision == Decision::Ask && is_unnamed {
            verdict.decision = Decision::Allow;
        }
        let facts = policy.facts(&subject.tool, subject.annotations);
        let command_at = policy.command_at(&subject.tool, &facts).map(str::to_owned);
        Judgement { verdict, effects: facts.effects, command_at }
    }

    /// As [`Session::judge_reviewed`], with what people have granted in the place of a question.
    pub(super) async fn judge_with_grants(&mut self, subject: &mut Subject) -> Result<Judgement, Error> {
        let judged = self.judge_reviewed(subject).await?;
        Ok(self.with_grants(subject, judged, None).await)
    }

    /// A judgement that asks allows where somebody has granted the call. The grant's use is stored by then, together with
    /// what must be there before the call runs, and with the end of a question about it, `instead_of`, which nobody has
    /// answered. Where that cannot be done, nothing is used and the question stands.
    pub(super) async fn with_grants(
        &mut self,
        subject: &mut Subject,
        judged: Judgement,
        instead_of: Option<wire::Superseded>,
    ) -> Judgement {
        let Judgement { verdict, effects, command_at } = &judged;
        let Some(gate) = &self.options.gate else { return judged };
        if verdict.decision != Decision::Ask || verdict.is_unsure {
            return judged;
        }
        let wanted = GrantUse {
            session_id: gate.session.clone(),
            tool: subject.tool.to_string(),
            arguments: subject.arguments.clone(),
            definition: subject.definition.unwrap_or_else(|| definition_of(&subject.tool, subject.annotations)),
            effects: effects.iter().collect(),
            command_at: command_at.clone(),
            digest: self.asked_digest(subject, &judged),
            require_second_person: verdict.require_second_person,
            changed_definition: subject.changed_definition.is_some(),
            reviewed: subject.unreviewed,
            instead_of,
        };
        let Ok(Some(grant)) = self.desk.use_grant(&wanted).await else { return judged };
        let stored = subject.unreviewed.take();
        self.remember(subject, stored);
        let verdict = Verdict { decision: Decision::Allow, basis: Basis::Grant(grant), ..judged.verdict };
        Judgement { verdict, ..judged }
    }

    /// Whether a call may run that the gateway makes again by itself. Nobody is asked for that.
    pub(super) async fn is_allowed_again(&mut self, kind: OperationKind, name: &str, message: &Message) -> bool {
        let is_known = kind != OperationKind::Tool || self.lists.state == Reading::Read;
        let subject = arguments_of(message).and_then(|arguments| self.subject_of(kind, name, arguments));
        let (Ok(mut subject), true) = (subject, is_known) else { return false };
        let Ok(Judgement { verdict, .. }) = self.judge_reviewed(&mut subject).await else { return false };
        verdict.decision == Decision::Allow && self.store_before_running(&mut subject, &verdict).await.is_ok()
    }

    /// What the policy decided in a person's place.
    pub(super) fn ruling(subject: &Subject, verdict: &Verdict) -> PolicyRuling {
        // An address may hold a secret; events hold none.
        let tool = match subject.kind {
            OperationKind::Resource => format!("{}:resource", subject.tool.server()),
            OperationKind::Tool | OperationKind::Prompt => subject.tool.to_string(),
        };
        let approved = verdict.decision == Decision::Allow;
        PolicyRuling { tool, approved, rule: verdict.decided_by() }
    }

    /// Writes a call to the upstream, with other arguments where a person has changed them.
    pub(super) async fn dispatch(&mut self, number: u64, edited: Option<Json>) {
        let Some(call) = self.call(number) else { return };
        if let Some(arguments) = edited {
            let line = passage::with_param(&call.message, "arguments", arguments.as_str());
            let Ok(message) = Message::parse(&line) else {
                self.not_sent(number, "The call could not be written with the changed arguments").await;
                return;
            };
            call.message = message;
            call.ran_with = Some(arguments);
        }
        call.stage = Stage::Sent;
        let line = passage::forwarded(&call.message, number, Some(&number.to_string()));
        if let Err(why) = self.send_upstream(line).await {
            self.not_sent(number, &why).await;
        }
    }

    async fn deny(&mut self, number: u64, verdict: &Verdict) {
        self.end_held(number, Vec::new(), Outcome::Completed, &words::denied(verdict)).await;
    }

    /// The call cannot be written to the upstream.
    pub(super) async fn not_sent(&mut self, number: u64, why: &str) {
        let failure = Failure::new("upstream_exited", format!("{why}; the call was not run"));
        let steps = self.fail_approvals(number, &failure);
        let text = format!("{why}. The call was not run.");
        self.end_held(number, steps, Outcome::Failed(failure), &text).await;
    }

    /// Takes the approvals of a call out, with the steps that end them so.
    pub(super) fn fail_approvals(&mut self, number: u64, failure: &Failure) -> Vec<Step> {
        let is_its = |ask: &Ask| ask.approval().is_some() && ask.candidates == [number];
        let its: Vec<_> = self.asks.iter().filter(|(_, ask)| is_its(ask)).map(|(ask, _)| *ask).collect();
        let taken = its.iter().filter_map(|ask| self.asks.remove(ask));
        taken.map(|ask| Step::Failed(ask.round, ask.fence, failure.clone())).collect()
    }

    /// Ends a call that never ran with words for the agent, which are its stored result where a person was asked.
    pub(super) async fn end_held(&mut self, number: u64, mut steps: Vec<Step>, outcome: Outcome, text: &str) {
        let Some(Pending::Call(call)) = self.requests.remove(&number) else { return };
        let answer = not_run(call.kind, call.execution, text);
        if let Some(execution) = call.execution {
            let stored = format!(r#"{{"{}":{}}}"#, answer.member, answer.text);
            steps.push(Step::Finished(execution, outcome, Json::parse(&stored).ok()));
        }
        self.hand_back(*call, steps, |client_id| answer.line(client_id)).await;
    }
}

/// An answer of the gateway's own in the place of the upstream's.
struct OwnAnswer {
    member: &'static str,
    text: String,
}

impl OwnAnswer {
    fn line(&self, client_id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{client_id},"{}":{}}}"#, self.member, self.text)
    }
}

/// Of a tool the agent reads it as the tool's own words; of a prompt or resource its program reads an error.
fn not_run(kind: OperationKind, execution: Option<ExecutionId>, text: &str) -> OwnAnswer {
    if kind == OperationKind::Tool {
        let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
        return OwnAnswer { member: "result", text: result.to_string() };
    }
    let data = execution.map(|execution| json!({"execution_id": execution.to_string()}));
    OwnAnswer { member: "error", text: json!({"code": INTERNAL_ERROR, "message": text, "data": data}).to_string() }
}
