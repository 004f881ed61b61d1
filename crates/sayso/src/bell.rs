//! What one waiter listens to. Up to a million of them wait at once, so a bell is small.

use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use sayso_core::command::{Command, DeliveryContent};
use sayso_core::id::RoundId;
use sayso_core::round::{Fence, Round};

/// What a waiter listens to, and what it was told.
#[derive(Default)]
pub(crate) struct Bell(Mutex<State>);

#[derive(Default)]
struct State {
    rung: bool,
    /// The newest row that it was told of.
    row: Option<Arc<Round>>,
    waker: Option<Waker>,
    taking: Option<Box<Taking>>,
}

/// How far it is with an answer that this waiter takes as soon as there is one.
enum Taking {
    /// Whoever answers may take it for the waiter, in the same transaction.
    Offered(Take),
    /// An answer is being stored and taken.
    UnderWay,
    /// It is stored and taken.
    Taken(Arc<Round>, DeliveryContent),
}

/// How a waiter takes an answer.
#[derive(Clone)]
pub(crate) enum Take {
    /// Its delivery begins (`start_delivery`): of a live round, by its holder.
    Start { fence: Fence },
    /// It is collected, under this key.
    Collect { key: String, fence: Fence },
}

impl Take {
    /// What takes the answer of this round.
    pub(crate) fn command(&self, round: RoundId) -> Command {
        match self.clone() {
            Self::Start { fence } => Command::StartDelivery { round, fence },
            Self::Collect { key, fence } => Command::Collect { round, key, fence },
        }
    }
}

impl State {
    fn ring(&mut self) {
        self.rung = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn is_under_way(&self) -> bool {
        self.taking.as_deref().is_some_and(|taking| matches!(taking, Taking::UnderWay))
    }
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row may have changed: to this one, where it is known.
    pub(crate) fn tell(&self, row: Option<&Arc<Round>>) {
        let mut state = self.state();
        if let Some(row) = row
            && state.row.as_ref().is_none_or(|known| known.rev < row.rev)
        {
            state.row = Some(row.clone());
        }
        // Whoever takes the answer for this waiter says more in a moment.
        if !state.is_under_way() {
            state.ring();
        }
    }

    /// Ready when it was rung since the last time; with the newest row that it was told of.
    pub(crate) fn poll_rung(&self, context: &mut Context<'_>) -> Poll<Option<Arc<Round>>> {
        let mut state = self.state();
        if replace(&mut state.rung, false) {
            return Poll::Ready(state.row.take());
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Lets whoever answers take the answer for this waiter.
    pub(crate) fn offer(&self, take: &Take) {
        let mut state = self.state();
        if state.taking.is_none() {
            state.taking = Some(Box::new(Taking::Offered(take.clone())));
        }
    }

    /// Takes the offer back. False where it was taken up and it is not yet known how that ended: then the bell rings.
    pub(crate) fn withdraw_offer(&self) -> bool {
        let mut state = self.state();
        if state.taking.as_deref().is_some_and(|taking| matches!(taking, Taking::Offered(_))) {
            state.taking = None;
        }
        !state.is_under_way()
    }

    /// What was taken for this waiter.
    pub(crate) fn taken(&self) -> Option<(Arc<Round>, DeliveryContent)> {
        let mut state = self.state();
        match state.taking.take().map(|taking| *taking) {
            Some(Taking::Taken(round, content)) => Some((round, content)),
            other => {
                state.taking = other.map(Box::new);
                None
            }
        }
    }

    /// Takes the waiter's offer up, where there is one.
    pub(crate) fn take_up(self: &Arc<Self>) -> Option<Taker> {
        let mut state = self.state();
        let taking = state.taking.as_deref_mut()?;
        match replace(taking, Taking::UnderWay) {
            Taking::Offered(take) => Some(Taker { bell: self.clone(), take }),
            other => {
                *taking = other;
                None
            }
        }
    }
}

/// Takes an answer for a waiter. The waiter goes on by itself where this is dropped before.
pub(crate) struct Taker {
    bell: Arc<Bell>,
    take: Take,
}

impl Taker {
    /// What takes the answer.
    pub(crate) fn command(&self, round: RoundId) -> Command {
        self.take.command(round)
    }

    /// Hands the waiter what is stored as taken.
    pub(crate) fn hand_over(self, round: Arc<Round>, content: DeliveryContent) {
        self.bell.state().taking = Some(Box::new(Taking::Taken(round, content)));
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let mut state = self.bell.state();
        if state.is_under_way() {
            state.taking = None;
        }
        state.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_core::round::FenceToken;

    fn start() -> Take {
        Take::Start { fence: Fence { owner: "own_a".to_owned(), token: FenceToken(1) } }
    }

    fn rung(bell: &Bell) -> bool {
        bell.poll_rung(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_waiter_is_woken_once_for_all_that_it_was_told() {
        let bell = Bell::default();
        assert!(!rung(&bell));
        bell.tell(None);
        bell.tell(None);
        assert!(rung(&bell) && !rung(&bell));
    }

    #[test]
    fn an_offer_is_taken_up_once_and_its_waiter_sleeps_until_it_is_known_how_that_ended() {
        let bell = Arc::new(Bell::default());
        assert!(bell.take_up().is_none());
        bell.offer(&start());
        let taker = bell.take_up().expect("offered");
        assert!(bell.take_up().is_none());
        bell.tell(None);
        assert!(!rung(&bell) && !bell.withdraw_offer());
        bell.offer(&start());
        assert!(bell.take_up().is_none(), "nothing is offered while something is under way");
        drop(taker);
        assert!(rung(&bell) && bell.taken().is_none());
        bell.offer(&start());
        assert!(bell.withdraw_offer() && bell.take_up().is_none());
    }

    #[test]
    fn a_bell_is_small() {
        assert!(size_of::<Bell>() <= 48);
    }
}
