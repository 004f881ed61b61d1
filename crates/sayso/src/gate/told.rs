//! A ruling as the wire says it, the same over HTTP and on the command line.

use sayso_core::policy::RuleRef;
use sayso_core::wire::{Gated, Paused, Round};

use super::{By, CALL_KEY, Ruling};
use crate::words;

impl From<Ruling> for Gated {
    fn from(ruling: Ruling) -> Self {
        let verdict = ruling.decision();
        let bare = |rule, message| Self {
            verdict,
            rule,
            reason: None,
            message,
            arguments: None,
            grant_id: None,
            round: None,
            paused: None,
        };
        match ruling {
            Ruling::Allow(allowed) => {
                let grant_id = match allowed.by {
                    By::Grant(grant) => Some(grant),
                    _ => None,
                };
                let message = allowed.words();
                Self { arguments: Some(allowed.arguments), grant_id, ..bare(names(&allowed.rules), message) }
            }
            Ruling::Deny(denied) => {
                let message = denied.words();
                Self { reason: denied.reason, ..bare(names(&denied.rules), message) }
            }
            Ruling::Ask(round) => {
                let rule = round.requests.get(CALL_KEY).and_then(|request| request.rule.clone());
                let paused = paused(&round);
                Self { paused, round: Some(*round), ..bare(rule, words::ASKED.to_owned()) }
            }
        }
    }
}

fn names(rules: &[RuleRef]) -> Option<String> {
    let names: Vec<_> = rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The call that waits in a round.
fn paused(round: &Round) -> Option<Paused> {
    let request = round.requests.get(CALL_KEY)?;
    Some(Paused {
        execution_id: round.execution_id,
        tool_path: request.tool.clone()?,
        message: request.message.clone().unwrap_or_default(),
        args: request.arguments.clone()?,
    })
}
