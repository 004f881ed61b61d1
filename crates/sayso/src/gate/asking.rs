//! Finding, opening and awaiting the round of a call.

use sayso_core::command::{Command, NewRound, Reply, RoundExecution};
use sayso_core::error::Error;
use sayso_core::execution::ExecutionKind;
use sayso_core::id::RoundId;
use sayso_core::json::Json;
use sayso_core::policy::Decision;
use sayso_core::round::{Failure, Round, Status};
use sayso_core::time::UnixMs;
use sayso_core::wire;
use sayso_store::RoundFilter;
use tokio::time::Instant;

use super::held::Hold;
use super::reviewed::Judged;
use super::state::State;
use super::{By, Call, Gate, Ruling, TRIES_MAX};
use crate::question::Question;
use crate::{Ask, words};

/// How long a wait looks away at most: a deadline that passes is noticed within this even by nobody else.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// A ruling, and the hold on the round where one is asked and was wanted.
pub(super) type Ruled = (Ruling, Option<Hold>);

impl Gate {
    /// Judges a call: deny, an answer that was given, what permits it, and else a round, in this order.
    pub(super) async fn rule(&self, call: &Call, holds: bool) -> Result<Ruled, Error> {
        self.desk.check_may_collect()?;
        call.check()?;
        let mut passed_over = Vec::new();
        for _ in 0..TRIES_MAX {
            let judged = self.evaluate(call, &call.arguments).await?;
            if judged.verdict.decision == Decision::Deny {
                return Ok((Ruling::Deny(self.denied(call, judged.verdict).await), None));
            }
            let found = self.unfinished(&call.operation(), &passed_over).await?;
            let Some(found) = found else {
                return match self.permit(call, &judged, None).await? {
                    Some(allowed) => Ok((Ruling::Allow(allowed), None)),
                    None => self.open(call, &judged, holds).await,
                };
            };
            let id = found.round_id;
            if found.status == Status::Pending {
                if let Some(allowed) = self.permit(call, &judged, Some(id)).await? {
                    if !matches!(allowed.by, By::Grant(_)) {
                        self.drop_question(id).await?;
                    }
                    return Ok((Ruling::Allow(allowed), None));
                }
                if !holds {
                    return Ok((Ruling::Ask(Box::new(found)), None));
                }
                match self.held.take(id) {
                    Some(hold) => return Ok((Ruling::Ask(Box::new(found)), Some(hold))),
                    None => passed_over.push(id),
                }
                continue;
            }
            let row = self.desk.sayso.store().row(id).await?.ok_or(Error::NotFound("round"))?;
            match self.dispatch(call, &row, holds).await? {
                Some(ruled) => return Ok(ruled),
                None => passed_over.push(id),
            }
        }
        Err(Error::conflict("the same call is made elsewhere again and again; ask again later"))
    }

    /// The newest unfinished round of this operation that nobody here waits for.
    pub(crate) async fn unfinished(&self, operation: &str, but: &[RoundId]) -> Result<Option<wire::Round>, Error> {
        let filter = RoundFilter { unfinished_gated: Some(operation.to_owned()), ..RoundFilter::default() };
        let found = self.desk.sayso.rounds(&self.desk.caller, filter).await?;
        let is_free = |round: &wire::Round| {
            round.status != Status::Delivered && !but.contains(&round.round_id) && !self.held.has(round.round_id)
        };
        Ok(found.rounds.into_iter().find(is_free))
    }

    /// The round of a call with these arguments, in a new execution.
    pub(super) async fn prepare(
        &self,
        call: &Call,
        arguments: &Json,
        Judged { policy, verdict, .. }: &Judged,
    ) -> Result<(NewRound, Question), Error> {
        let deadline = match verdict.deadline_ms {
            Some(ms) => Some(self.desk.sayso.store().now().await?.plus_ms(ms)),
            None => None,
        };
        let ask = Ask {
            server: Some(call.tool.server().to_owned()),
            operation_name: Some(call.tool.name().to_owned()),
            deadline,
            request_state: Some(State::written(&verdict.rules)?),
            requests: call.requests(arguments, policy, verdict),
            ..Ask::default()
        };
        self.gated(ask, call.operation()).await
    }

    /// A round of a gate's own operation, in a new execution that is one.
    pub(crate) async fn gated(&self, ask: Ask, operation: String) -> Result<(NewRound, Question), Error> {
        let (mut new, question) = self.desk.prepare(ask, None).await?;
        new.logical_operation_id = operation;
        if let RoundExecution::New { kind, .. } = &mut new.execution {
            *kind = ExecutionKind::Gate;
        }
        Ok((new, question))
    }

    async fn open(&self, call: &Call, judged: &Judged, holds: bool) -> Result<Ruled, Error> {
        let prepared = self.prepare(call, &call.arguments, judged).await.map_err(words::approval_unavailable)?;
        let also = judged.before_asking(&self.desk.caller, call);
        let (round, hold) = self.store_new(prepared, also, holds).await.map_err(words::approval_unavailable)?;
        Ok((Ruling::Ask(Box::new(round)), hold))
    }

    /// Stores a new round, which is held before anybody can find it, and what belongs to it.
    pub(crate) async fn store_new(
        &self,
        (new, question): (NewRound, Question),
        also: Option<Command>,
        holds: bool,
    ) -> Result<(wire::Round, Option<Hold>), Error> {
        let hold = if holds { self.held.take(new.id) } else { None };
        let unit = [Command::CreateRound(Box::new(new))].into_iter().chain(also).collect();
        let replies = self.desk.sayso.store().commit(unit).await?;
        match replies.into_iter().next() {
            Some(Reply::Created { round: row, .. }) => {
                Ok((self.desk.sayso.inner.questions.keep(row.id, question).shown(&row), hold))
            }
            _ => Err(Error::Corrupt("round")),
        }
    }

    /// Ends a question whose call has been allowed meanwhile. An answer that comes at the same moment is spent with it:
    /// it was for this call, and must not run another.
    async fn drop_question(&self, round: RoundId) -> Result<(), Error> {
        match self.desk.sayso.store().commit(vec![self.desk.question_dropped(round, None)]).await {
            Ok(_) => return Ok(()),
            Err(Error::Conflict { .. } | Error::State { .. }) => {}
            Err(error) => return Err(error),
        }
        let row = self.desk.sayso.store().row(round).await?.ok_or(Error::NotFound("round"))?;
        if let Some((fence, _)) = self.take(&row).await? {
            let failure = Failure::new(Failure::SUPERSEDED, words::ALLOWED_MEANWHILE);
            self.commit(vec![self.failing(&row, &fence, failure)]).await?;
        }
        Ok(())
    }

    /// Waits for the answer; none where `until` is over before. A round that ended without one is an error.
    pub(crate) async fn answered(&self, round: RoundId, until: Option<Instant>) -> Result<Option<Round>, Error> {
        let sayso = &self.desk.sayso;
        let mut seen = 0;
        loop {
            let look = Instant::now() + LOOK_EVERY;
            let row = sayso.row_after(round, seen, until.map_or(look, |until| until.min(look))).await?;
            match (&row.failure, row.status) {
                (Some(failure), _) => return Err(words::undecided(failure)),
                (None, Status::Pending) => {}
                (None, _) => return Ok(Some(row)),
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            self.expire(&row, sayso.store().now().await?).await?;
            seen = row.rev;
        }
    }

    /// Ends a round whose deadline has passed, where nobody sweeps.
    async fn expire(&self, row: &Round, now: UnixMs) -> Result<(), Error> {
        if row.is_overdue(now) {
            self.desk.sayso.store().commit(vec![Command::Expire { round: row.id }]).await?;
        }
        Ok(())
    }
}
