//! The agent's verbs, each one request.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use sayso::wire::{
    Collected, Execution, ExecutionResult, ExpectedToken, GrantUse, GrantUsed, Holding, LeaseToken, Leased, NewClaim,
    NewExecution, Renewed, Reviewed, Round, RoundPage, Settled, Settlement, Withdrawal,
};
use sayso::{
    Answer, Ask, ClaimOf, Claimed, Desk, ExecutionId, ExecutionKind, Fence, FenceToken, GrantId, Handed, Opened,
    RoundId, Step, UnixMs,
};
use sayso_core::error::Error;
use sayso_core::limits::WAIT_MS_MAX;
use sayso_core::round::{Delivery, Digest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::Client;
use super::call::{Call, PAUSE_MIN, longer};

/// The least time between two long polls of which the first ended early, as those of a stopping server do.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// A key that nobody has used.
fn new_key() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

impl Client {
    async fn step<T: DeserializeOwned>(&self, round: RoundId, verb: &str, body: &impl Serialize) -> Result<T, Error> {
        self.inner.link.call(Call::send(format!("/v1/rounds/{round}/{verb}"), body)?).await
    }

    /// Long-polls until `is_over` or the wait is. A server that stops ends its polls early: they are begun again, also
    /// while it is away.
    async fn poll<T, F: Future<Output = Result<T, Error>>>(
        &self,
        wait: Duration,
        poll: impl Fn(Duration) -> F,
        is_over: impl Fn(&Result<T, Error>) -> bool,
    ) -> Result<T, Error> {
        let wait = wait.min(Duration::from_millis(WAIT_MS_MAX));
        let begun = Instant::now();
        let (until, away_until) = (begun + wait, begun + wait.max(self.inner.link.repeat_for));
        let mut away = PAUSE_MIN;
        loop {
            let outcome = poll(until.saturating_duration_since(Instant::now())).await;
            let pause = match &outcome {
                Err(Error::Unavailable(_)) if Instant::now() + away < away_until => {
                    let pause = away;
                    away = longer(away);
                    pause
                }
                Err(Error::Unavailable(_)) => return outcome,
                _ if is_over(&outcome) || Instant::now() + POLL_PAUSE >= until => return outcome,
                _ => POLL_PAUSE,
            };
            sleep(pause).await;
        }
    }
}

#[async_trait]
impl Desk for Client {
    async fn open(&self, mut ask: Ask, key: Option<String>) -> Result<Opened, Error> {
        // A lost acknowledgement must not ask a person twice.
        let key = key.map_or_else(new_key, Ok)?;
        if ask.delivery != Some(Delivery::Live) {
            let round = self.inner.link.call(Call::send("/v1/rounds", &ask)?.key(key)).await?;
            return Ok(Opened { round, fence: None });
        }
        ask.owner_id = Some(self.owner_id().to_owned());
        self.keep_alive();
        let Leased { round, lease } = self.inner.link.call(Call::send("/v1/rounds", &ask)?.key(key)).await?;
        Ok(Opened { round, fence: lease.map(|lease| lease.fence()) })
    }

    async fn begin_as(&self, kind: ExecutionKind) -> Result<ExecutionId, Error> {
        self.keep_alive();
        let new = NewExecution { owner_id: self.owner_id().to_owned(), kind: Some(kind) };
        // Of a record whose acknowledgement was lost nobody knows; it ends as lost when this worker leaves.
        let begun: Execution = self.inner.link.call(Call::send("/v1/executions", &new)?.once()).await?;
        Ok(begun.execution_id)
    }

    async fn claim(&self, round: RoundId, claim: ClaimOf, key: Option<String>) -> Result<Claimed, Error> {
        let key = key.map_or_else(new_key, Ok)?;
        self.keep_alive();
        let new = NewClaim {
            owner_id: Some(self.owner_id().to_owned()),
            expected_token: claim.expected.map(LeaseToken),
            evidence: claim.evidence.map(Into::into),
        };
        let call = Call::send(format!("/v1/rounds/{round}/claim"), &new)?.key(key);
        let Leased { round, lease } = self.inner.link.call(call).await?;
        let lease = lease.ok_or_else(|| Error::Unavailable("the server's answer has no lease".to_owned()))?;
        Ok(Claimed { round, fence: lease.fence() })
    }

    async fn renew(&self, round: RoundId, fence: Fence) -> Result<UnixMs, Error> {
        let renewed: Renewed = self.step(round, "renew", &Holding::from(fence)).await?;
        Ok(renewed.expires_at)
    }

    async fn wait(&self, round: RoundId, after: u32, wait: Duration) -> Result<Round, Error> {
        let poll = |left: Duration| {
            let path = format!("/v1/rounds/{round}?wait={}ms&after={after}", left.as_millis());
            self.inner.link.call::<Round>(Call::get(path).held(left))
        };
        self.poll(wait, poll, |outcome| !matches!(outcome, Ok(found) if found.rev <= after)).await
    }

    async fn start(&self, round: RoundId, fence: Fence) -> Result<Handed, Error> {
        let Collected { round, request_state, responses } =
            self.step(round, "start_delivery", &Holding::from(fence)).await?;
        Ok(Handed { round, request_state, responses })
    }

    async fn late(&self, prefix: &str) -> Result<Vec<Round>, Error> {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("late", prefix).finish();
        let page: RoundPage = self.inner.link.call(Call::get(format!("/v1/rounds?{query}"))).await?;
        Ok(page.rounds)
    }

    async fn withdraw(&self, round: RoundId, fence: Fence, successor: Ask) -> Result<Round, Error> {
        let Holding { owner_id, lease_token } = Holding::from(fence);
        self.step(round, "withdraw", &Withdrawal { owner_id, lease_token, successor }).await
    }

    async fn settle(&self, steps: Vec<Step>) -> Result<(), Error> {
        let settlement = Settlement { steps: steps.iter().map(Into::into).collect() };
        self.inner.link.call::<Settled>(Call::send("/v1/settle", &settlement)?).await.map(drop)
    }

    async fn collect(&self, round: RoundId, key: &str, wait: Duration) -> Result<Collected, Error> {
        let poll = |left: Duration| {
            let path = format!("/v1/rounds/{round}/collect?wait={}ms", left.as_millis());
            self.inner.link.call::<Collected>(Call::post(path).key(key.to_owned()).held(left))
        };
        self.poll(wait, poll, |outcome| !matches!(outcome, Err(Error::Timeout))).await
    }

    async fn result(&self, execution: ExecutionId, wait: Duration) -> Result<ExecutionResult, Error> {
        let poll = |left: Duration| {
            let path = format!("/v1/executions/{execution}/result?wait={}ms", left.as_millis());
            self.inner.link.call::<ExecutionResult>(Call::get(path).held(left))
        };
        self.poll(wait, poll, |outcome| !matches!(outcome, Err(Error::Timeout))).await
    }

    async fn execution(&self, execution: ExecutionId) -> Result<Execution, Error> {
        self.inner.link.call(Call::get(format!("/v1/executions/{execution}"))).await
    }

    async fn fail_recovery(&self, round: RoundId, expected: FenceToken) -> Result<Round, Error> {
        self.step(round, "fail_recovery", &ExpectedToken { expected_token: LeaseToken(expected) }).await
    }

    async fn rounds_of(&self, execution: ExecutionId) -> Result<Vec<Round>, Error> {
        let page: RoundPage = self.inner.link.call(Call::get(format!("/v1/rounds?execution={execution}"))).await?;
        let mut rounds = page.rounds;
        rounds.reverse();
        if rounds.is_empty() {
            // A list says nothing of an execution that there is not.
            self.execution(execution).await?;
        }
        Ok(rounds)
    }

    async fn use_grant(&self, call: &GrantUse) -> Result<Option<GrantId>, Error> {
        // A use whose acknowledgement was lost is spent, and not spent twice: a person is asked then.
        let used: GrantUsed = self.inner.link.call(Call::send("/v1/grants/use", call)?.once()).await?;
        Ok(used.grant_id)
    }

    async fn reviewed(&self, tool: &str) -> Result<Option<Digest>, Error> {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("tool", tool).finish();
        let found: Reviewed = self.inner.link.call(Call::get(format!("/v1/reviewed?{query}"))).await?;
        Ok(found.definition)
    }

    async fn relay(&self, round: RoundId, answer: Answer, key: &str) -> Result<Round, Error> {
        let path = format!("/v1/rounds/{round}/relay");
        self.inner.link.call(Call::send(path, &answer)?.key(key.to_owned())).await
    }

    async fn leave(&self) -> Result<(), Error> {
        self.release().await
    }
}
