use sayso_core::json::visible;
use sayso_core::limits::{HTTP_EVENT_ID_BYTES_MAX, HTTP_STREAM_EVENTS_MAX};

/// Characters of a media type that are repeated.
const MEDIA_TYPE_CHARS_MAX: usize = 100;

/// Why a conversation over HTTP cannot go on. No variant carries a header that was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    /// Nobody takes the connection.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        reason: String,
    },
    /// The connection was lost, and nobody can tell what the server has done.
    #[error("the connection to {0} was lost before the server answered")]
    Interrupted(String),
    /// A message was not taken in time.
    #[error("the server did not take a message within {0} s")]
    Stalled(u64),
    /// The server knows the session no more.
    #[error("the server's session is gone (it answered 404): it has ended the session or was restarted")]
    SessionGone,
    /// What the server names its session cannot be sent back.
    #[error("the server gave its session an id that is none")]
    SessionId,
    /// The server sends us elsewhere, where what is sent to it may not belong.
    #[error("the server redirects ({0}), and redirects are not followed; use the URL that it leads to")]
    Redirected(u16),
    /// A status that is no answer.
    #[error("the server answered {status}{}", told(words))]
    Status {
        /// The status.
        status: u16,
        /// What it said, if it may be repeated.
        words: String,
    },
    /// The answer is neither of the two kinds there are.
    #[error("the server answered with {}, which is neither application/json nor text/event-stream", visible(.0))]
    ContentType(String),
    /// A request was taken, and what came is no answer to it.
    #[error("the server took a request, and what it answered is no answer to it")]
    NoAnswer,
    /// A message over the limit.
    #[error("the server sent a message of more than 16 MiB")]
    TooLong,
    /// The id of an event over the limit.
    #[error("the server gave an event an id of more than {HTTP_EVENT_ID_BYTES_MAX} bytes")]
    EventId,
    /// A stream over the limit.
    #[error("the server sent more than {HTTP_STREAM_EVENTS_MAX} events in one stream")]
    TooManyEvents,
    /// A stream that ended too early.
    #[error("the server's stream ended before its answer, and nothing says from where to go on")]
    StreamEnded,
}

impl HttpFault {
    /// For a media type that is none of ours, shortened.
    pub(super) fn content_type(media_type: &str) -> Self {
        let told: String = media_type.chars().take(MEDIA_TYPE_CHARS_MAX).collect();
        Self::ContentType(if told.is_empty() { "no content type".to_owned() } else { told })
    }
}

fn told(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {}", visible(words)) }
}
