//! The agent's verbs on an embedded store.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::{ExecutionId, GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::policy::ToolName;
use sayso_core::principal::{Channel, Principal};
use sayso_core::round::{Claim, Delivery, Digest, Failure, FailureRequest, Fence, FenceToken, Round, SECOND_PERSON};
use sayso_core::time::UnixMs;
use sayso_core::wire::{self, Keyed, Response};
use sayso_store::{LATE_PREFIX, RoundFilter};

use crate::desk::{ClaimOf, Claimed, Desk, Handed, Opened, Received};
use crate::open::Sayso;
use crate::owner::Owner;
use crate::question::Question;
use crate::step::{Step, Subject};
use crate::{Ask, ids};

/// The agent's verbs on an embedded store.
#[derive(Clone)]
pub struct LocalDesk {
    pub(crate) sayso: Sayso,
    pub(crate) caller: Principal,
    pub(crate) owner: Arc<Owner>,
}

impl LocalDesk {
    /// The name under which this worker holds rounds.
    pub fn owner_id(&self) -> &str {
        self.owner.name()
    }

    /// Extends the lease of everything this worker holds. Until when.
    pub async fn renew_all(&self) -> Result<UnixMs, Error> {
        let now = self.sayso.store().now().await?;
        self.one(Command::RenewOwner { owner: self.owner.name().to_owned() }).await?;
        Ok(now.plus_ms(limits::LEASE_MS))
    }

    /// Stores a question that anybody may deliver; see [`Desk::open`].
    pub async fn ask(&self, ask: Ask, key: Option<String>) -> Result<wire::Round, Error> {
        Ok(self.open(ask, key).await?.round)
    }

    pub(crate) fn check_may_collect(&self) -> Result<(), Error> {
        if self.caller.may_collect() {
            return Ok(());
        }
        Err(Error::Forbidden("only an agent's or service's credential asks, delivers and collects"))
    }

    pub(crate) async fn one(&self, command: Command) -> Result<Reply, Error> {
        let replies = self.sayso.store().commit(vec![command]).await?;
        replies.into_iter().next().ok_or_else(|| Error::Unavailable("the store gave no answer".to_owned()))
    }

    /// The round, if it is the caller's own. Whose it is never changes, so it may be checked before a commit.
    pub(crate) async fn own(&self, round: RoundId) -> Result<Arc<Question>, Error> {
        self.check_may_collect()?;
        self.sayso.question(&self.caller, round).await
    }

    /// The row of the caller's own round.
    pub(crate) async fn own_row(&self, round: RoundId) -> Result<Round, Error> {
        self.check_may_collect()?;
        Ok(self.sayso.seen_round(&self.caller, round).await?.0)
    }

    /// Whether every step is stored as it says: a repeat after a lost acknowledgement.
    async fn is_stored(&self, steps: &[Step]) -> Result<bool, Error> {
        for step in steps {
            let is_stored = match step.subject() {
                Subject::Round(round) => step.is_in_round(&self.own_row(round).await?),
                Subject::Execution(id) => {
                    let found = self.sayso.store().execution(id).await?;
                    let result = self.sayso.store().result(id).await?;
                    found.is_some_and(|(row, _)| step.is_in_execution(&row, result.as_ref()))
                }
                // It was stored with the others, or none of them was.
                Subject::Call => true,
            };
            if !is_stored {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What ends the round of this worker's whose place `ask` takes, in the same execution.
    async fn supersede(&self, ask: &mut Ask) -> Result<Option<Command>, Error> {
        let Some(wire::Superseded { round_id, lease_token }) = ask.supersedes.clone() else { return Ok(None) };
        let execution = self.own_row(round_id).await?.execution_id;
        if *ask.execution_id.get_or_insert(execution) != execution {
            return Err(Error::field("/execution_id", "must be that of the round whose place this one takes"));
        }
        let fence = Fence { owner: self.owner.name().to_owned(), token: lease_token.0 };
        let failure = Failure::new(Failure::SUPERSEDED, "the call was judged again before it ran, and is asked anew");
        let principal = self.caller.clone();
        let request = FailureRequest { fence: Some(fence), principal, failure, only_pending: false };
        Ok(Some(Command::Fail { round: round_id, request }))
    }

    /// The late round of this operation that took the place of `round`: a withdrawal is being repeated.
    async fn successor(&self, round: RoundId, operation: Option<&str>) -> Result<Option<wire::Round>, Error> {
        let Some(operation) = operation.filter(|operation| operation.starts_with(LATE_PREFIX)) else { return Ok(None) };
        let late = self.late(operation).await?;
        Ok(late.into_iter().find(|late| late.suggestion_of == Some(round)))
    }
}

pub(crate) fn check_key(key: &str) -> Result<(), Error> {
    if (1..=limits::NAME_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    Err(Error::field("/idempotency_key", format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX)))
}

/// The answer as stored, in wire form.
pub(crate) fn responses_of(stored: &Json) -> Result<Keyed<Response>, Error> {
    serde_json::from_str(stored.as_str()).map_err(|_| Error::Corrupt("answer"))
}

#[async_trait]
impl Desk for LocalDesk {
    async fn open(&self, mut ask: Ask, key: Option<String>) -> Result<Opened, Error> {
        self.check_may_collect()?;
        let superseded = self.supersede(&mut ask).await?;
        let (new, question) = self.prepare(ask, key).await?;
        let fence = new.fence.clone();
        if fence.is_some() {
            self.owner.keep_alive(Arc::downgrade(&self.sayso.inner));
        }
        let unit = superseded.into_iter().chain([Command::CreateRound(Box::new(new))]).collect();
        let reply = self.sayso.store().commit(unit).await?.pop();
        match reply.ok_or_else(|| Error::Unavailable("the store gave no answer".to_owned()))? {
            // Once it is stored nothing may fail any more, or the caller would think that it never asked.
            Reply::Created { round: row, is_new: true } => {
                Ok(Opened { round: self.sayso.inner.questions.keep(row.id, question).shown(&row), fence })
            }
            Reply::Created { round: row, is_new: false } => {
                // Only a live round is held by whoever opened it, and only the same worker may have lost its token.
                let is_ours = |held: &Fence| row.delivery == Delivery::Live && held.owner == self.owner.name();
                let fence = row.fence.clone().filter(is_ours);
                if fence.is_some() {
                    self.renew_all().await?;
                }
                Ok(Opened { round: self.sayso.round(&self.caller, row.id).await?, fence })
            }
            _ => Err(Error::Corrupt("round")),
        }
    }

    async fn begin_as(&self, kind: ExecutionKind) -> Result<ExecutionId, Error> {
        self.check_may_collect()?;
        self.owner.keep_alive(Arc::downgrade(&self.sayso.inner));
        let now = self.sayso.store().now().await?;
        let command = Command::StartExecution {
            execution: ids::new_id(now, ExecutionId::from_parts)?,
            kind,
            started_by: self.caller.clone(),
            owner: self.owner.name().to_owned(),
        };
        match self.one(command).await? {
            Reply::Execution(execution) => Ok(execution.id),
            _ => Err(Error::Corrupt("execution")),
        }
    }

    async fn claim(&self, round: RoundId, claim: ClaimOf, key: Option<String>) -> Result<Claimed, Error> {
        let question = self.own(round).await?;
        let fence = match key {
            Some(key) => {
                check_key(&key)?;
                self.owner.fence_for(round, &key)
            }
            None => self.owner.fence()?,
        };
        self.owner.keep_alive(Arc::downgrade(&self.sayso.inner));
        let claim = Claim { fence: fence.clone(), expected: claim.expected, evidence: claim.evidence };
        match self.one(Command::Claim { round, claim }).await? {
            Reply::Round(row) => {
                let round = question.shown(&row);
                Ok(Claimed { round, fence })
            }
            _ => Err(Error::Corrupt("round")),
        }
    }

    async fn renew(&self, round: RoundId, fence: Fence) -> Result<UnixMs, Error> {
        // Whoever takes over between this and the write has another lease: this one says only that its owner lives.
        self.own_row(round).await?.renew(&fence)?;
        let now = self.sayso.store().now().await?;
        self.one(Command::RenewOwner { owner: fence.owner }).await?;
        Ok(now.plus_ms(limits::LEASE_MS))
    }

    async fn fail_recovery(&self, round: RoundId, expected: FenceToken) -> Result<wire::Round, Error> {
        let question = self.own(round).await?;
        match self.one(Command::FailRecovery { round, expected }).await? {
            Reply::Round(row) => Ok(question.shown(&row)),
            _ => Err(Error::Corrupt("round")),
        }
    }

    // Written out as `async_trait` would have it: a future around this one would keep the arguments again.
    fn wait<'desk, 'async_trait>(
        &'desk self,
        round: RoundId,
        after: u32,
        wait: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<wire::Round, Error>> + Send + 'async_trait>>
    where
        'desk: 'async_trait,
    {
        Box::pin(self.sayso.round_after(&self.caller, round, after, wait))
    }

    async fn start(&self, round: RoundId, fence: Fence) -> Result<Handed, Error> {
        let question = self.own(round).await?;
        self.started(&question, Command::StartDelivery { round, fence }).await
    }

    async fn receive(&self, round: RoundId, fence: Fence, wait: Duration) -> Result<Received, Error> {
        self.received(round, fence, wait).await
    }

    async fn late(&self, prefix: &str) -> Result<Vec<wire::Round>, Error> {
        self.check_may_collect()?;
        let filter = RoundFilter { unfinished_late: Some(prefix.to_owned()), ..RoundFilter::default() };
        Ok(self.sayso.rounds(&self.caller, filter).await?.rounds)
    }

    async fn withdraw(&self, round: RoundId, fence: Fence, successor: Ask) -> Result<wire::Round, Error> {
        self.own(round).await?;
        let operation = successor.logical_operation_id.clone();
        let (new, question) = self.prepare(successor, None).await?;
        let message = format!(
            "the server that asked gave up waiting; the question goes on as {}, and its answer is used when the call \
             is made again",
            new.id
        );
        let failure = Failure::new(Failure::WITHDRAWN, message);
        let principal = self.caller.clone();
        let request = FailureRequest { fence: Some(fence), principal, failure, only_pending: false };
        let unit = vec![Command::Fail { round, request }, Command::CreateRound(Box::new(new))];
        match self.sayso.store().commit(unit).await.map(|mut replies| replies.pop()) {
            Ok(Some(Reply::Created { round: row, .. })) => {
                Ok(self.sayso.inner.questions.keep(row.id, question).shown(&row))
            }
            Ok(_) => Err(Error::Corrupt("round")),
            Err(refused @ (Error::Conflict { .. } | Error::State { .. })) => {
                self.successor(round, operation.as_deref()).await?.ok_or(refused)
            }
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, steps: Vec<Step>) -> Result<(), Error> {
        self.check_may_collect()?;
        if steps.len() > limits::COMMIT_COMMANDS_MAX {
            return Err(Error::Limit(format!("at most {} steps are stored at once", limits::COMMIT_COMMANDS_MAX)));
        }
        for step in &steps {
            step.check()?;
            match step.subject() {
                Subject::Round(round) => drop(self.own(round).await?),
                Subject::Execution(execution) => drop(self.sayso.execution(&self.caller, execution).await?),
                Subject::Call => {}
            }
        }
        let commands = steps.iter().map(|step| step.command(&self.caller)).collect();
        match self.sayso.store().commit(commands).await {
            Ok(_) => {
                steps.iter().filter_map(Step::ended).for_each(|round| self.sayso.inner.questions.forget(round));
                Ok(())
            }
            Err(refused @ (Error::Conflict { .. } | Error::State { .. })) => {
                if self.is_stored(&steps).await? {
                    Ok(())
                } else {
                    Err(refused)
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn collect(&self, round: RoundId, key: &str, wait: Duration) -> Result<wire::Collected, Error> {
        self.collected(round, key, wait).await
    }

    async fn result(&self, execution: ExecutionId, wait: Duration) -> Result<wire::ExecutionResult, Error> {
        self.sayso.execution_result(&self.caller, execution, wait).await
    }

    async fn execution(&self, execution: ExecutionId) -> Result<wire::Execution, Error> {
        self.sayso.execution(&self.caller, execution).await
    }

    async fn rounds_of(&self, execution: ExecutionId) -> Result<Vec<wire::Round>, Error> {
        self.check_may_collect()?;
        self.sayso.execution(&self.caller, execution).await?;
        let filter = RoundFilter { execution: Some(execution), ..RoundFilter::default() };
        let mut rounds = self.sayso.rounds(&self.caller, filter).await?.rounds;
        rounds.reverse();
        Ok(rounds)
    }

    async fn use_grant(&self, call: &wire::GrantUse) -> Result<Option<GrantId>, Error> {
        self.check_may_collect()?;
        let also = self.beside_its_use(call).await?;
        self.used_grant(call, also).await
    }

    async fn reviewed(&self, tool: &str) -> Result<Option<Digest>, Error> {
        self.check_may_collect()?;
        ToolName::parse(tool).map_err(|error| Error::field("/tool", error.message))?;
        self.sayso.store().reviewed(&self.caller, tool).await
    }

    async fn relay(&self, round: RoundId, answer: wire::Answer, key: &str) -> Result<wire::Round, Error> {
        if !self.sayso.inner.trusts_relay {
            return Err(Error::Forbidden("an agent's word is not taken for a person's here; a person answers"));
        }
        let question = self.own(round).await?;
        if question.requests.0.iter().any(|(_, request)| request.require_second_person == Some(true)) {
            return Err(Error::Forbidden(SECOND_PERSON));
        }
        self.sayso.people_as(self.caller.clone(), Channel::Relay).submit(round, answer, key).await
    }

    async fn leave(&self) -> Result<(), Error> {
        self.one(self.owner.release()).await.map(drop)
    }
}
