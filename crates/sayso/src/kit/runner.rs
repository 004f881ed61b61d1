use std::sync::Arc;

use async_trait::async_trait;
use sayso_core::error::Error;
use sayso_core::execution::Outcome;
use sayso_core::id::ExecutionId;
use sayso_core::json::Json;
use tokio::sync::watch;

use super::spec::{HumanInput, Spec};
use crate::desk::Desk;
use crate::step::Step;

/// Runs what is submitted: knows harnesses, servers and their dialects. A kit has one or more.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Whether this one runs it. Of the runners of a kit the first that does is taken.
    fn runs(&self, spec: &Spec) -> bool;
    /// What it cannot run about the spec, beside what is wrong with any such spec: an [`Error::Model`].
    fn check(&self, spec: &Spec, human_input: HumanInput) -> Result<(), Error>;
    /// Runs it to its end. When the task is told to stop it ends what it has started and returns.
    async fn run(&self, task: Task) -> Ended;
}

/// One execution on its way.
pub struct Task {
    /// Its id.
    pub execution: ExecutionId,
    /// What is to be run; it has been checked.
    pub spec: Spec,
    /// What happens when a server asks.
    pub human_input: HumanInput,
    /// Where questions are stored; managed input always has it.
    pub rounds: Option<Arc<dyn Desk>>,
    /// Says when to stop.
    pub stop: Stop,
}

/// Says when an execution was cancelled or ended by somebody else.
#[derive(Clone)]
pub struct Stop(pub(super) watch::Receiver<bool>);

impl Stop {
    /// Returns once the execution is to stop.
    pub async fn told(&mut self) {
        // A kit that is gone without a word has ended with its process; nobody is left to tell.
        if self.0.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the execution is to stop.
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }
}

/// How an execution ended.
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// What it answered.
    pub result: Option<Json>,
    /// What became known of deliveries, to be stored in the same transaction.
    pub steps: Vec<Step>,
}
