use sayso_core::error::Error;
use sayso_core::json::{Json, pointer_to};
use sayso_core::round::OperationKind;
use sayso_core::wire::{self, Keyed, RequestKind};

use super::details::RequestDetails;

/// One answer: `accept` with content, `decline` with an optional reason, `cancel`.
pub use sayso_core::wire::Response as ElicitationResponse;

/// Data described by a JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormElicitationRequest {
    /// Its key in the round.
    pub request_key: String,
    /// What is said to the person.
    pub message: String,
    /// The schema, kept as written.
    pub requested_schema: Json,
    /// The asker's own members.
    pub meta: Option<Json>,
    /// The asker's task.
    pub task: Option<Json>,
    /// The server that asks, where it is told.
    pub server: Option<String>,
    /// Tool, prompt or resource, where it is told.
    pub operation_kind: Option<OperationKind>,
    /// The operation's name, where it is told.
    pub operation_name: Option<String>,
}

/// Consent to open a URL. Nothing is ever fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlElicitationRequest {
    /// Its key in the round.
    pub request_key: String,
    /// What is said to the person.
    pub message: String,
    /// Where the person would go.
    pub url: String,
    /// The asker's id for the visit.
    pub elicitation_id: Option<String>,
    /// The asker's own members.
    pub meta: Option<Json>,
    /// The asker's task.
    pub task: Option<Json>,
    /// The server that asks, where it is told.
    pub server: Option<String>,
    /// Tool, prompt or resource, where it is told.
    pub operation_kind: Option<OperationKind>,
    /// The operation's name, where it is told.
    pub operation_name: Option<String>,
}

/// One thing asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationRequest {
    /// Data described by a JSON Schema.
    Form(FormElicitationRequest),
    /// Consent to open a URL.
    Url(UrlElicitationRequest),
    /// What MCP does not ask: an approval, a choice, a text.
    Other(wire::Request),
}

impl ElicitationRequest {
    /// A form without anything that may be left out.
    pub fn form(request_key: impl Into<String>, message: impl Into<String>, requested_schema: Json) -> Self {
        Self::Form(FormElicitationRequest {
            request_key: request_key.into(),
            message: message.into(),
            requested_schema,
            meta: None,
            task: None,
            server: None,
            operation_kind: None,
            operation_name: None,
        })
    }

    /// A URL without anything that may be left out.
    pub fn url(request_key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(UrlElicitationRequest {
            request_key: request_key.into(),
            message: message.into(),
            url: url.into(),
            elicitation_id: None,
            meta: None,
            task: None,
            server: None,
            operation_kind: None,
            operation_name: None,
        })
    }

    /// `form`, `url`, or the kind of something that MCP does not ask.
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Form(_) => "form",
            Self::Url(_) => "url",
            Self::Other(request) => match request.kind {
                RequestKind::Form => "form",
                RequestKind::Url => "url",
                RequestKind::Approval => "approval",
                RequestKind::Choice => "choice",
                RequestKind::Text => "text",
            },
        }
    }

    /// The key that the request itself names, which must be the one it stands under.
    fn own_key(&self) -> Option<&str> {
        match self {
            Self::Form(form) => Some(&form.request_key),
            Self::Url(url) => Some(&url.request_key),
            Self::Other(_) => None,
        }
    }

    fn to_wire(&self) -> (wire::Request, RequestDetails) {
        match self.clone() {
            Self::Form(form) => {
                let request =
                    wire::Request { meta: form.meta, ..wire::Request::form(form.message, form.requested_schema) };
                let details = RequestDetails {
                    meta: None,
                    task: form.task,
                    server: form.server,
                    operation_kind: form.operation_kind,
                    operation_name: form.operation_name,
                };
                (request, details)
            }
            Self::Url(url) => {
                let request = wire::Request {
                    message: Some(url.message),
                    url: Some(url.url),
                    elicitation_id: url.elicitation_id,
                    ..wire::Request::empty(RequestKind::Url)
                };
                let details = RequestDetails {
                    meta: url.meta,
                    task: url.task,
                    server: url.server,
                    operation_kind: url.operation_kind,
                    operation_name: url.operation_name,
                };
                (request, details)
            }
            Self::Other(request) => (request, RequestDetails::default()),
        }
    }

    /// A stored request with what was kept beside it.
    pub(super) fn from_wire(key: &str, request: wire::Request, details: Option<RequestDetails>) -> Self {
        let RequestDetails { meta, task, server, operation_kind, operation_name } = details.unwrap_or_default();
        let request_key = key.to_owned();
        match (request.kind, request.message.clone(), request.schema.clone(), request.url.clone()) {
            (RequestKind::Form, Some(message), Some(requested_schema), _) => Self::Form(FormElicitationRequest {
                request_key,
                message,
                requested_schema,
                meta: request.meta,
                task,
                server,
                operation_kind,
                operation_name,
            }),
            (RequestKind::Url, Some(message), _, Some(url)) => Self::Url(UrlElicitationRequest {
                request_key,
                message,
                url,
                elicitation_id: request.elicitation_id,
                meta,
                task,
                server,
                operation_kind,
                operation_name,
            }),
            _ => Self::Other(request),
        }
    }
}

/// The requests as they are stored, and what is kept beside them.
pub(super) fn to_wire(
    requests: &Keyed<ElicitationRequest>,
) -> Result<(Keyed<wire::Request>, Keyed<RequestDetails>), Error> {
    let (mut wire, mut details) = (Keyed::default(), Keyed::default());
    for (key, request) in &requests.0 {
        if request.own_key().is_some_and(|own| own != key) {
            let pointer = format!("{}/request_key", pointer_to("/requests", key));
            return Err(Error::field(pointer, "must be the key that the request stands under"));
        }
        let (stored, beside) = request.to_wire();
        wire.0.push((key.clone(), stored));
        if beside != RequestDetails::default() {
            details.0.push((key.clone(), beside));
        }
    }
    Ok((wire, details))
}

/// The requests of a stored round.
pub(super) fn from_wire(requests: Keyed<wire::Request>, details: &Keyed<RequestDetails>) -> Keyed<ElicitationRequest> {
    let read = |(key, request): (String, wire::Request)| {
        let read = ElicitationRequest::from_wire(&key, request, details.get(&key).cloned());
        (key, read)
    };
    Keyed(requests.0.into_iter().map(read).collect())
}
