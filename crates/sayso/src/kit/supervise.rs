//! One execution from its start to its stored end.

use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::execution::{Lifecycle, Outcome};
use sayso_core::id::ExecutionId;
use sayso_core::limits::{LEASE_MS, WAIT_MS_MAX};
use sayso_core::round::Failure;
use sayso_core::wire::{ExecutionOutcome, ExecutionResult};
use sayso_store::clock::{Clock, SystemClock};
use tokio::time::{MissedTickBehavior, interval};

use super::handle::Live;
use super::runner::{Ended, Runner, Task};
use super::store::KitStore;
use crate::desk::Desk;
use crate::step::Step;

/// The pause between two attempts at a store that is away.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Runs the task in the background, and stores what it came to.
pub(super) fn start(runner: Arc<dyn Runner>, task: Task, live: Arc<Live>, store: Option<KitStore>) {
    let execution = task.execution;
    tokio::spawn(async move {
        let work = tokio::spawn(async move { runner.run(task).await });
        let watch = async {
            match &store {
                Some(store) => ended_elsewhere(store.desk.as_ref(), execution).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(work);
        let ended = tokio::select! {
            ended = &mut work => ended,
            () = watch => {
                live.stop.send_replace(true);
                work.await
            }
        };
        let ended = ended.unwrap_or_else(|_| Ended {
            outcome: Outcome::Failed(Failure::new(Failure::UNAVAILABLE, "what ran the execution broke")),
            result: None,
            steps: Vec::new(),
        });
        if let Some(store) = &store {
            keep(store.desk.as_ref(), execution, &ended).await;
        }
        live.state.send_modify(|state| finish(state, ended));
    });
}

/// Returns once somebody else has ended the execution.
async fn ended_elsewhere(desk: &dyn Desk, execution: ExecutionId) {
    let mut pause = interval(TRY_AGAIN);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        match desk.result(execution, Duration::from_millis(WAIT_MS_MAX)).await {
            Ok(_) => return,
            Err(Error::Timeout) => {}
            // The store is away for a moment.
            Err(_) => drop(pause.tick().await),
        }
    }
}

/// Stores the end with what became known of deliveries, in one transaction; where a part is refused, because somebody
/// ended the execution or a round meanwhile, each part for itself.
async fn keep(desk: &dyn Desk, execution: ExecutionId, ended: &Ended) {
    let mut steps = ended.steps.clone();
    steps.push(Step::Finished(execution, ended.outcome.clone(), ended.result.clone()));
    let mut pause = interval(TRY_AGAIN);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // After that much time without a store the worker's lease has run out, and a sweeper says how it ended.
    for _ in 0..LEASE_MS / 1000 {
        match desk.settle(steps.clone()).await {
            Ok(()) => return,
            Err(Error::Unavailable(_)) => drop(pause.tick().await),
            Err(_) if steps.len() > 1 => {
                for step in steps {
                    // What is refused alone has another end already.
                    let _ = desk.settle(vec![step]).await;
                }
                return;
            }
            Err(_) => return,
        }
    }
}

fn finish(state: &mut ExecutionResult, ended: Ended) {
    state.execution.lifecycle = Lifecycle::Finished;
    state.execution.outcome = Some(ExecutionOutcome::from(&ended.outcome));
    state.execution.finished_at = Some(SystemClock.now());
    state.result = ended.result;
}
