//! What may be answered: the three actions, the checks that an answer passes, and the mapping of plain text.

mod check;
mod content;
mod mapping;

pub use check::{CheckedResponses, check};
pub use content::Content;
pub use mapping::text_answer;

use crate::json::Json;

/// What a person did with one request. Never rewritten on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Here is the data, the choice, the consent, the approval.
    Accept,
    /// No, explicitly.
    Decline,
    /// Dismissed without a decision.
    Cancel,
}

impl Action {
    /// The word used on the wire and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
    /// The action that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Accept, Self::Decline, Self::Cancel].into_iter().find(|action| action.as_str() == word)
    }
}

/// One answer (`ElicitationResponse`), as submitted. `content: null` has become `None`.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// What was done.
    pub action: Action,
    /// The data, on `accept` only.
    pub content: Option<Json>,
    /// Why, on `decline` only.
    pub reason: Option<String>,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("action", &self.action).finish_non_exhaustive()
    }
}

/// A map of answers under their request keys, in any order, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Responses(pub Vec<(String, Response)>);

impl Responses {
    /// The answer under `key`.
    pub fn get(&self, key: &str) -> Option<&Response> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, response)| response)
    }
    /// The one action all answers share, if they do.
    pub fn action(&self) -> Option<Action> {
        let mut actions = self.0.iter().map(|(_, response)| response.action);
        let first = actions.next()?;
        actions.all(|action| action == first).then_some(first)
    }
}
