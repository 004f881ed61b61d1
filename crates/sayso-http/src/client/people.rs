//! The person's verbs, each one request.

use std::sync::Arc;

use async_trait::async_trait;
use sayso::wire::{Execution, ResponseRecord, Round, RoundPage};
use sayso::{Answer, ExecutionId, People, RoundFilter, RoundId};
use sayso_core::error::Error;

use super::call::Call;
use super::{ClientOptions, Link};

/// A person at a server. Cheap to clone.
#[derive(Clone)]
pub struct PeopleClient {
    link: Arc<Link>,
}

impl PeopleClient {
    /// Reaches the server with a person's token. Nothing is sent before something is asked for.
    pub fn new(options: &ClientOptions) -> Result<Self, Error> {
        Ok(Self { link: Arc::new(Link::to(options)?) })
    }
}

/// What a server's list takes of a filter; the rest is for surfaces that sit on a store.
fn query(filter: &RoundFilter) -> Result<String, Error> {
    if filter.finished_or_answered || filter.asked_by.is_some() || filter.unfinished_gated.is_some() {
        return Err(Error::field("/filter", "is not one that a server's list takes"));
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(status) = filter.status {
        query.append_pair("status", status.as_str());
    }
    if let Some(execution) = filter.execution {
        query.append_pair("execution", &execution.to_string());
    }
    if let Some(late) = &filter.unfinished_late {
        query.append_pair("late", late);
    }
    if let Some(before) = filter.before {
        query.append_pair("cursor", &before.to_string());
    }
    if filter.limit > 0 {
        query.append_pair("limit", &filter.limit.to_string());
    }
    Ok(query.finish())
}

#[async_trait]
impl People for PeopleClient {
    async fn answer(&self, round: RoundId, answer: Answer, key: &str) -> Result<Round, Error> {
        if key.is_empty() {
            return Err(Error::field("/idempotency_key", "must not be empty"));
        }
        self.link.call(Call::send(format!("/v1/rounds/{round}/responses"), &answer)?.key(key.to_owned())).await
    }

    async fn show(&self, round: RoundId) -> Result<Round, Error> {
        self.link.call(Call::get(format!("/v1/rounds/{round}"))).await
    }

    async fn list(&self, filter: RoundFilter) -> Result<RoundPage, Error> {
        self.link.call(Call::get(format!("/v1/rounds?{}", query(&filter)?))).await
    }

    async fn responses(&self, round: RoundId) -> Result<Option<ResponseRecord>, Error> {
        self.link.call(Call::get(format!("/v1/rounds/{round}/responses"))).await
    }

    async fn cancel(&self, execution: ExecutionId) -> Result<Execution, Error> {
        self.link.call(Call::post(format!("/v1/executions/{execution}/cancel"))).await
    }
}
