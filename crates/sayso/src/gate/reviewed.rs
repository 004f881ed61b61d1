//! Which definition of a tool was last reviewed, for one agent and in whatever process: read for each call that is judged
//! and kept nowhere else, so that what another process has stored counts at once.

use std::sync::Arc;

use sayso_core::command::Command;
use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::policy::{Context, Decision, Policy, Verdict};
use sayso_core::principal::Principal;
use sayso_core::round::Digest;

use super::{Call, Gate};
use crate::words;

/// What the policy says of a call, and what is known of its tool's definition.
pub(super) struct Judged {
    pub(super) policy: Arc<Policy>,
    pub(super) verdict: Verdict,
    definition: Definition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Definition {
    /// It is the one that was last reviewed; or the call is denied, whatever it is.
    Settled,
    /// The agent has never called the tool: the first is taken as it is.
    First,
    /// It is another than was last reviewed.
    Changed,
}

impl Judged {
    /// What is stored before the call is asked about.
    pub(super) fn before_asking(&self, by: &Principal, call: &Call) -> Option<Command> {
        (self.definition == Definition::First).then(|| reviewing(by, call))
    }

    /// What is stored before the call runs, now that the rules, a grant or a person allow it.
    pub(super) fn before_running(&self, by: &Principal, call: &Call) -> Option<Command> {
        (self.definition != Definition::Settled).then(|| reviewing(by, call))
    }
}

fn reviewing(by: &Principal, call: &Call) -> Command {
    Command::RecordReview { by: by.clone(), tool: call.tool.to_string(), definition: call.definition() }
}

impl Gate {
    /// What the policy says of the call with these arguments, as it is now. What was reviewed can only add a question: a
    /// denial stands whether or not that can be read, and nothing else does.
    pub(super) async fn evaluate(&self, call: &Call, arguments: &Json) -> Result<Judged, Error> {
        let policy = self.policy.current();
        self.check_mode(&policy)?;
        let judge = |changed_definition| {
            let context =
                Context { annotations: call.annotations, mode: self.mode, changed_definition, ..Context::default() };
            policy.evaluate(&call.tool, arguments, &context)
        };
        let verdict = judge(None);
        if verdict.decision == Decision::Deny {
            return Ok(Judged { policy, verdict, definition: Definition::Settled });
        }
        let reviewed = self.last_reviewed(call).await.map_err(words::approval_unavailable)?;
        let now = call.definition();
        Ok(match reviewed {
            Some(reviewed) if reviewed == now => Judged { policy, verdict, definition: Definition::Settled },
            None => Judged { policy, verdict, definition: Definition::First },
            Some(_) => {
                let verdict = judge(Some(now));
                Judged { policy, verdict, definition: Definition::Changed }
            }
        })
    }

    async fn last_reviewed(&self, call: &Call) -> Result<Option<Digest>, Error> {
        self.desk.sayso.store().reviewed(&self.desk.caller, &call.tool.to_string()).await
    }

    /// Stores what must be there before a call goes on; nothing is no write.
    pub(super) async fn store_before(&self, unit: Vec<Command>) -> Result<(), Error> {
        if unit.is_empty() {
            return Ok(());
        }
        self.commit(unit).await.map_err(words::approval_unavailable)
    }
}
