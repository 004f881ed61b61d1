use std::fmt;

use sayso_core::json::visible;
use sayso_core::round::OperationKind;
use sayso_core::wire::{Request, RequestKind};

/// The key of a question that comes without one: before its version of 2026-07-28, MCP asks one at a time and names none.
pub const DEFAULT_KEY: &str = "elicitation";

/// One thing that was asked, as a plan looks at it.
#[derive(Debug, Clone)]
pub struct Elicitation {
    /// The key in its round.
    pub key: String,
    /// What is asked.
    pub request: Request,
    /// The server that asks, if it is known.
    pub server: Option<String>,
    /// The operation it asks for, if it is known.
    pub operation: Option<(OperationKind, String)>,
}

impl Elicitation {
    /// Asked by nobody in particular.
    pub fn new(key: impl Into<String>, request: Request) -> Self {
        Self { key: key.into(), request, server: None, operation: None }
    }
}

/// As a sentence names it. What a server wrote is made visible.
impl fmt::Display for Elicitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.request.kind {
            RequestKind::Form => "a form",
            RequestKind::Url => "consent to a URL",
            RequestKind::Approval => "an approval",
            RequestKind::Choice => "a choice",
            RequestKind::Text => "a question",
        };
        f.write_str(what)?;
        if let Some(words) = self.request.message.as_ref().or(self.request.question.as_ref()) {
            write!(f, " \"{}\"", visible(words))?;
        }
        if let Some(url) = &self.request.url {
            write!(f, " ({})", visible(url))?;
        }
        if self.key != DEFAULT_KEY {
            write!(f, " under the key {}", visible(&self.key))?;
        }
        Ok(())
    }
}

/// Several of them, as one round.
pub(super) fn named(round: &[Elicitation]) -> String {
    match round {
        [] => "a round without a question".to_owned(),
        [only] => only.to_string(),
        several => {
            let names: Vec<_> = several.iter().map(ToString::to_string).collect();
            format!("a round of {}", names.join(" and "))
        }
    }
}
