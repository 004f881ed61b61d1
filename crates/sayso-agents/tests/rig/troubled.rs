//! A desk over a store that lets it down.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso::{
    Answer, Claimed, Desk, Error, ExecutionId, ExecutionKind, Fence, Handed, Json, LocalDesk, Opened, People, Response,
    RoundId, Sayso, Step, wire,
};

/// What a desk can have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing can be stored.
    StoreIsAway,
    /// One question is stored, and none after it.
    StoresOneQuestion,
    /// It must repeat itself to open a round, and a person has answered `Elm` meanwhile.
    AnsweredMeanwhile,
    /// Which definitions were reviewed cannot be read but this often.
    ReadsReviews(usize),
    /// Nor can the next be stored, so often.
    LosesReviews(usize),
    /// A person refuses the call just before a grant is used in the place of the question.
    RefusedBeforeUse,
}

/// A desk that has it.
pub struct Troubled {
    desk: LocalDesk,
    sayso: Sayso,
    trouble: Trouble,
    /// How often reviews were read, or lost.
    reviews: AtomicUsize,
}

impl Troubled {
    pub fn new(desk: LocalDesk, sayso: &Sayso, trouble: Trouble) -> Self {
        Self { desk, sayso: sayso.clone(), trouble, reviews: AtomicUsize::new(0) }
    }

    fn check(&self) -> Result<(), Error> {
        match self.trouble {
            Trouble::StoreIsAway => Err(Error::Unavailable("the disk is full; nothing was changed".to_owned())),
            _ => Ok(()),
        }
    }

    fn check_review(&self) -> Result<(), Error> {
        match self.trouble {
            Trouble::LosesReviews(times) if self.reviews.fetch_add(1, Ordering::SeqCst) < times => Self::away(),
            _ => Ok(()),
        }
    }

    fn away<T>() -> Result<T, Error> {
        Err(Error::Unavailable("away".to_owned()))
    }
}

#[async_trait::async_trait]
impl Desk for Troubled {
    async fn open(&self, ask: sayso::Ask, key: Option<String>) -> Result<Opened, Error> {
        self.check()?;
        if self.trouble == Trouble::StoresOneQuestion && ask.supersedes.is_some() {
            return Self::away();
        }
        let opened = self.desk.open(ask, key).await?;
        if self.trouble != Trouble::AnsweredMeanwhile {
            return Ok(opened);
        }
        let content = Json::parse(r#"{"street":"Elm"}"#).unwrap();
        let answer = Answer::one("elicitation", Response::accept(content));
        let round = self.sayso.people().answer(opened.round.round_id, answer, "key").await?;
        Ok(Opened { round, ..opened })
    }
    async fn begin_as(&self, kind: ExecutionKind) -> Result<ExecutionId, Error> {
        self.check()?;
        self.desk.begin_as(kind).await
    }
    async fn wait(&self, round: RoundId, after: u32, wait: Duration) -> Result<wire::Round, Error> {
        self.desk.wait(round, after, wait).await
    }
    async fn claim(&self, round: RoundId, claim: sayso::ClaimOf, key: Option<String>) -> Result<Claimed, Error> {
        self.desk.claim(round, claim, key).await
    }
    async fn renew(&self, round: RoundId, fence: Fence) -> Result<sayso::UnixMs, Error> {
        self.desk.renew(round, fence).await
    }
    async fn fail_recovery(&self, round: RoundId, expected: sayso::FenceToken) -> Result<wire::Round, Error> {
        self.desk.fail_recovery(round, expected).await
    }
    async fn start(&self, round: RoundId, fence: Fence) -> Result<Handed, Error> {
        self.desk.start(round, fence).await
    }
    async fn late(&self, prefix: &str) -> Result<Vec<wire::Round>, Error> {
        self.desk.late(prefix).await
    }
    async fn withdraw(&self, round: RoundId, fence: Fence, successor: sayso::Ask) -> Result<wire::Round, Error> {
        self.desk.withdraw(round, fence, successor).await
    }
    async fn settle(&self, steps: Vec<Step>) -> Result<(), Error> {
        if steps.iter().any(|step| matches!(step, Step::Ruled(_))) {
            self.check()?;
        }
        if steps.iter().any(|step| matches!(step, Step::Reviewed { .. })) {
            self.check_review()?;
        }
        self.desk.settle(steps).await
    }
    async fn collect(&self, round: RoundId, key: &str, wait: Duration) -> Result<wire::Collected, Error> {
        self.desk.collect(round, key, wait).await
    }
    async fn result(&self, execution: ExecutionId, wait: Duration) -> Result<wire::ExecutionResult, Error> {
        self.desk.result(execution, wait).await
    }
    async fn execution(&self, execution: ExecutionId) -> Result<wire::Execution, Error> {
        self.desk.execution(execution).await
    }
    async fn rounds_of(&self, execution: ExecutionId) -> Result<Vec<wire::Round>, Error> {
        self.desk.rounds_of(execution).await
    }
    async fn use_grant(&self, call: &wire::GrantUse) -> Result<Option<sayso::GrantId>, Error> {
        self.check()?;
        // Where nobody has granted anything, nothing is written.
        let granted = self.sayso.people().grants(sayso::GrantFilter::default()).await?.0;
        if call.reviewed.is_some() && !granted.is_empty() {
            self.check_review()?;
        }
        if let (Trouble::RefusedBeforeUse, Some(question)) = (self.trouble, &call.instead_of) {
            let answer = Answer::one("call", Response::decline(None));
            self.sayso.people().answer(question.round_id, answer, "first").await?;
        }
        self.desk.use_grant(call).await
    }
    async fn reviewed(&self, tool: &str) -> Result<Option<sayso::Digest>, Error> {
        self.check()?;
        if let Trouble::ReadsReviews(times) = self.trouble
            && self.reviews.fetch_add(1, Ordering::SeqCst) >= times
        {
            return Self::away();
        }
        self.desk.reviewed(tool).await
    }
    async fn relay(&self, round: RoundId, answer: Answer, key: &str) -> Result<wire::Round, Error> {
        self.check()?;
        self.desk.relay(round, answer, key).await
    }
    async fn leave(&self) -> Result<(), Error> {
        self.desk.leave().await
    }
}
