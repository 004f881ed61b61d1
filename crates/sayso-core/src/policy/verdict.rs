//! What a policy says of a call.

use serde::{Deserialize, Serialize};

use super::grant::{Grant, GrantNeeds, GrantedCall};
use super::layers::Layer;
use super::rule::{DEFINITION, Decision};
use crate::id::GrantId;
use crate::round::Digest;
use crate::time::UnixMs;

/// A rule by its stable name, and what it permitted when it decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleRef {
    /// The layer it is in.
    pub layer: Layer,
    /// Its id; `default` for what holds without a rule, `definition` for a tool that is another than was reviewed.
    pub id: String,
    /// The digest of what it says, or of that definition.
    pub digest: Digest,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The rules that the verdict names.
    Rules,
    /// The mode `autonomous`, which allows what the rules would have asked. Recorded as the policy's word.
    Mode,
    /// A grant, where the rules would have asked.
    Grant(GrantId),
    /// The call could not be judged, for this reason; so it is denied.
    Error(String),
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What becomes of it.
    pub decision: Decision,
    /// What that rests on.
    pub basis: Basis,
    /// The rules that decided so, the operator's first; those that asked, where a mode or a grant allowed.
    pub rules: Vec<RuleRef>,
    /// It is asked because a denying rule could not be ruled out. Neither a mode nor a grant stands in for a person then.
    pub is_unsure: bool,
    /// Whoever started the execution cannot approve.
    pub require_second_person: bool,
    /// How long a person has, in milliseconds.
    pub deadline_ms: Option<i64>,
    /// The first of those rules' reasons.
    pub reason: Option<String>,
}

/// What becomes of an approved call when it is about to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// It runs: it is allowed by now, or nobody asks who had not asked.
    Go,
    /// Another rule asks, or the same one says something else: a person is asked again.
    AskAgain,
    /// It is denied by now.
    Refuse,
}

impl Verdict {
    /// The denial of a call that could not be judged.
    pub fn error(reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Deny,
            basis: Basis::Error(reason.into()),
            rules: Vec::new(),
            is_unsure: false,
            require_second_person: false,
            deadline_ms: None,
            reason: None,
        }
    }

    /// The rule that stands for this verdict in the audit trail, by its layer and name; `error` where the call could not
    /// be judged.
    pub fn decided_by(&self) -> String {
        match self.rules.first() {
            Some(rule) => format!("{} {}", rule.layer.as_str(), rule.id),
            None => "error".to_owned(),
        }
    }

    /// Compares this verdict, made when an approved call is about to run, with the rules that had asked. An edit
    /// elsewhere in the policy changes nothing.
    pub fn recheck(&self, asked_by: &[RuleRef]) -> Recheck {
        match self.decision {
            Decision::Deny => Recheck::Refuse,
            Decision::Allow => Recheck::Go,
            Decision::Ask if self.rules.iter().all(|rule| asked_by.contains(rule)) => Recheck::Go,
            Decision::Ask => Recheck::AskAgain,
        }
    }

    /// The verdict with what people have granted: `ask` becomes `allow` where a grant covers the call; the first that
    /// does is named. `deny` and `allow` stay. A tool that is another than was reviewed needs a grant that knows it. The grant's use must be stored before the call runs.
    #[must_use]
    pub fn with_grants<'g>(
        self,
        call: &GrantedCall<'_>,
        grants: impl IntoIterator<Item = &'g Grant>,
        now: UnixMs,
    ) -> Self {
        if self.decision != Decision::Ask || self.is_unsure {
            return self;
        }
        let needs = GrantNeeds {
            second_person: self.require_second_person,
            changed_definition: self.rules.iter().any(|rule| rule.id == DEFINITION),
        };
        let granted = call.grant_among(grants, needs, now);
        match granted {
            Some(grant) => Self { decision: Decision::Allow, basis: Basis::Grant(grant.id), ..self },
            None => self,
        }
    }
}
