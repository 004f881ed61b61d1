use std::borrow::Cow;
use std::time::Duration;

use sayso::ErrorCode;
use sayso::plan::PlanError;
use sayso_core::json::visible;

use crate::jsonrpc::HttpFault;

/// Characters of a server's own words that a sentence quotes.
const SHOWN_CHARS_MAX: usize = 300;

/// The code of an answer that was not as expected.
pub const ANSWER_EXPECTATION_FAILED: &str = "answer_expectation_failed";

/// Why an operation did not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperateError {
    /// The server's program cannot be started.
    #[error("the server cannot be started: {0}")]
    Start(String),
    /// The server did not take the connection.
    #[error("the server refused to initialize: {}", shown(.0))]
    Refused(String),
    /// It speaks another version of MCP.
    #[error("the server speaks MCP {}, and this speaks 2025-11-25 and 2025-06-18", shown(.0))]
    Version(String),
    /// It has no such tool.
    #[error("the server has no tool {name}; it has {}", tools(known))]
    NoSuchTool {
        /// The name asked for.
        name: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// The plan did not hold.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A question could not be asked, or came to no answer that could be handed over.
    #[error("{0}")]
    Round(sayso::Error),
    /// A question that is none.
    #[error("the server's elicitation cannot be read: {0}")]
    Unreadable(String),
    /// The server ended before it answered.
    #[error("the server ended before it answered: {0}")]
    Ended(String),
    /// The server sent a line that is too long.
    #[error("the server sent a line of more than 16 MiB")]
    TooLong,
    /// The conversation over HTTP cannot go on.
    #[error("{0}")]
    Http(HttpFault),
    /// The time was up. With what the plan would have expected next, where it was not at its end.
    #[error("no answer within {} s{}", limit.as_secs_f64(), still(expected.as_ref()))]
    TimedOut {
        /// The time it had.
        limit: Duration,
        /// The plan's own complaint.
        expected: Option<PlanError>,
    },
    /// The answer was an error.
    #[error("it answered an error: {}", shown(came))]
    AnsweredError {
        /// Its text.
        came: String,
    },
    /// The answer was no error.
    #[error("an error was expected, and it answered: {}", shown(came))]
    NoError {
        /// Its text.
        came: String,
    },
    /// The answer lacks the expected text.
    #[error("\"{expected}\" was expected in the answer, which was: {}", shown(came))]
    OtherText {
        /// The expected text.
        expected: String,
        /// The answer's text.
        came: String,
    },
}

impl OperateError {
    /// The stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Plan(error) => error.code(),
            Self::Round(error) => error.code().as_str(),
            Self::Unreadable(_) => ErrorCode::ManagedInputInvalid.as_str(),
            Self::NoSuchTool { .. } => ErrorCode::NotFound.as_str(),
            Self::TimedOut { .. } => ErrorCode::OperationTimeout.as_str(),
            Self::Start(_) | Self::Refused(_) | Self::Version(_) | Self::Ended(_) | Self::TooLong | Self::Http(_) => {
                ErrorCode::Unavailable.as_str()
            }
            Self::AnsweredError { .. } | Self::NoError { .. } | Self::OtherText { .. } => ANSWER_EXPECTATION_FAILED,
        }
    }
}

/// A server's words, shortened, with invisible characters made visible.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None if text.is_empty() => "nothing".into(),
        None => visible(text),
        Some((end, _)) => format!("{} …", visible(text.get(..end).unwrap_or_default())).into(),
    }
}

fn tools(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { shown(&known.join(", ")).into_owned() }
}

fn still(expected: Option<&PlanError>) -> String {
    expected.map(|error| format!("; {error}")).unwrap_or_default()
}
