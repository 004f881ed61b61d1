//! What rounds ask never changes once it is stored. So what was asked lately is kept in memory, read and compiled, and
//! only what moves is read from the store.

use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_core::error::Error;
use sayso_core::id::RoundId;
use sayso_core::json::Json;
use sayso_core::principal::Principal;
use sayso_core::request::Requests;
use sayso_core::round::{Delivery, Digest, Round};
use sayso_core::wire::{self, Keyed};
use sayso_store::{Recent, StoredRound};

use crate::new_round::to_json;

/// Questions that are kept; of those that are not, each is read.
const QUESTIONS_MAX: usize = 4_096;
/// A longer question is not kept: the memory this takes is bounded, too.
const QUESTION_BYTES_MAX: usize = 4_096;
/// Sets of requests that are kept compiled. Agents ask the same over and over.
const COMPILED_MAX: usize = 256;

/// What a round asks, as its wire form, and whose it is.
pub(crate) struct Question {
    pub(crate) asked_by: Principal,
    pub(crate) delivery: Delivery,
    pub(crate) requests: Keyed<wire::Request>,
    text: Json,
    calls: Vec<wire::Call>,
    suggestion_of: Option<RoundId>,
}

impl Question {
    /// One that has just been stored.
    pub(crate) fn new(
        (asked_by, delivery): (Principal, Delivery),
        (requests, text): (Keyed<wire::Request>, Json),
        calls: Vec<wire::Call>,
        suggestion_of: Option<RoundId>,
    ) -> Self {
        Self { asked_by, delivery, requests, text, calls, suggestion_of }
    }

    /// One that was read.
    pub(crate) fn read(stored: &StoredRound) -> Result<Self, Error> {
        let corrupt = |_| Error::Corrupt("request");
        Ok(Self {
            asked_by: stored.row.asked_by.clone(),
            delivery: stored.row.delivery,
            requests: serde_json::from_str(stored.requests.as_str()).map_err(corrupt)?,
            text: stored.requests.clone(),
            calls: serde_json::from_str(stored.calls.as_str()).map_err(corrupt)?,
            suggestion_of: stored.suggestion_of,
        })
    }

    /// The round as others see it.
    pub(crate) fn shown(&self, row: &Round) -> wire::Round {
        let round = wire::Round::new(row, self.requests.clone(), self.calls.clone());
        wire::Round { suggestion_of: self.suggestion_of, ..round }
    }
}

/// Requests that were found valid, and their digest.
pub(crate) struct Compiled {
    pub(crate) requests: Requests,
    pub(crate) digest: Digest,
}

/// What was asked lately.
#[derive(Default)]
pub(crate) struct Questions {
    asked: Kept<RoundId, Question, QUESTIONS_MAX>,
    compiled: Kept<Json, Compiled, COMPILED_MAX>,
}

struct Kept<K, V, const MOST: usize>(Mutex<Recent<K, Arc<V>, MOST>>);

impl<K, V, const MOST: usize> Default for Kept<K, V, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V, const MOST: usize> Kept<K, V, MOST> {
    fn lock(&self) -> MutexGuard<'_, Recent<K, Arc<V>, MOST>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn get(&self, key: &K) -> Option<Arc<V>> {
        self.lock().get(key).cloned()
    }
    fn put(&self, key: K, value: Arc<V>) {
        self.lock().put(key, value);
    }
    fn remove(&self, key: &K) -> Option<Arc<V>> {
        self.lock().remove(key)
    }
}

impl Questions {
    /// What the round asks, if it is known.
    pub(crate) fn known(&self, round: RoundId) -> Option<Arc<Question>> {
        self.asked.get(&round)
    }

    /// Keeps what a stored round asks.
    pub(crate) fn keep(&self, round: RoundId, question: Question) -> Arc<Question> {
        let question = Arc::new(question);
        if question.text.as_str().len() <= QUESTION_BYTES_MAX && question.calls.is_empty() {
            self.asked.put(round, question.clone());
        }
        question
    }

    /// The round is over: what it asked is hardly ever looked at again, and its memory serves the next one.
    pub(crate) fn forget(&self, round: RoundId) {
        drop(self.asked.remove(&round));
    }

    /// Checks what somebody asks, or remembers that it did; with its text.
    pub(crate) fn check(&self, requests: &Keyed<wire::Request>) -> Result<(Json, Arc<Compiled>), Error> {
        // The very text was read before, if it is known.
        if let Some(text) = Json::written(requests)
            && let Some(compiled) = self.compiled.get(&text)
        {
            return Ok((text, compiled));
        }
        let text = to_json(requests)?;
        let compiled = self.compile(requests, &text)?;
        Ok((text, compiled))
    }

    fn compile(&self, requests: &Keyed<wire::Request>, text: &Json) -> Result<Arc<Compiled>, Error> {
        let compiled = Arc::new(Compiled { requests: requests.check()?, digest: Digest::of_requests(text) });
        if text.as_str().len() <= QUESTION_BYTES_MAX {
            self.compiled.put(text.clone(), compiled.clone());
        }
        Ok(compiled)
    }

    /// The checked requests of a stored round.
    pub(crate) fn checked(&self, question: &Question) -> Result<Arc<Compiled>, Error> {
        if let Some(compiled) = self.compiled.get(&question.text) {
            return Ok(compiled);
        }
        self.compile(&question.requests, &question.text).map_err(|_| Error::Corrupt("request"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Answer, Ask, Desk, Options, People, Request, Response, Sayso, Step};

    fn ask(delivery: Delivery) -> Ask {
        let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#).unwrap();
        Ask { delivery: Some(delivery), ..Ask::one("city", Request::form("Where to?", schema)) }
    }

    #[tokio::test]
    async fn what_a_round_asked_is_kept_until_it_is_over_and_read_after_that() {
        let folder = tempfile::tempdir().unwrap();
        let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
        let desk = sayso.desk(Principal::agent("booking"));
        let kept = |round| sayso.inner.questions.known(round).is_some();
        for delivery in [Delivery::Live, Delivery::Resumable] {
            let opened = desk.open(ask(delivery), None).await.unwrap();
            let round = opened.round.round_id;
            let answer = Answer::one("city", Response::accept(Json::parse(r#"{"city":"Pune"}"#).unwrap()));
            sayso.people().answer(round, answer, "first").await.unwrap();
            match opened.fence {
                Some(fence) => {
                    desk.start(round, fence.clone()).await.unwrap();
                    desk.settle(vec![Step::Delivered(round, fence.clone())]).await.unwrap();
                    assert!(kept(round));
                    desk.settle(vec![Step::Resolved(round, fence)]).await.unwrap();
                }
                None => {
                    assert!(kept(round));
                    desk.collect(round, "collected", Duration::ZERO).await.unwrap();
                }
            }
            assert!(!kept(round), "{delivery:?}");
            let shown = sayso.people().show(round).await.unwrap();
            assert!(shown.requests.get("city").is_some());
        }
    }

    #[tokio::test]
    async fn a_question_that_failed_is_kept_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
        let desk = sayso.desk(Principal::agent("booking"));
        let round = desk.open(ask(Delivery::Resumable), None).await.unwrap().round.round_id;
        let failure = sayso_core::round::Failure::new(sayso_core::round::Failure::WITHDRAWN, "never mind");
        desk.settle(vec![Step::Failed(round, None, failure)]).await.unwrap();
        assert!(sayso.inner.questions.known(round).is_none());
    }
}
