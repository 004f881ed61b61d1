//! What can be asked of a person: five kinds of request, and the keyed map of them that one round holds.

mod approval;
mod choice;
mod form;
mod url;

pub use approval::Approval;
pub use choice::{Choice, ChoiceOption};
pub use form::Form;
pub use url::{ConsentUrl, UrlConsent, UrlWarning};

use crate::error::{Error, FieldError};
use crate::limits;

/// One thing asked. Valid by construction: what cannot be checked later is refused here.
#[derive(Debug, Clone)]
pub enum Request {
    /// Data described by a JSON Schema.
    Form(Form),
    /// Consent to open a URL; nothing is ever fetched.
    Url(UrlConsent),
    /// May this call run?
    Approval(Box<Approval>),
    /// A question with options; free text is always legal.
    Choice(Choice),
    /// A question answered in free text.
    Text(TextQuestion),
}

/// A question answered in free text.
#[derive(Debug, Clone)]
pub struct TextQuestion {
    /// The question.
    pub question: String,
}

impl Request {
    /// The word for this kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Form(_) => "form",
            Self::Url(_) => "url",
            Self::Approval(_) => "approval",
            Self::Choice(_) => "choice",
            Self::Text(_) => "text",
        }
    }

    /// The sentence a person reads first.
    pub fn headline(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
            Self::Approval(approval) => &approval.tool,
            Self::Choice(choice) => &choice.question,
            Self::Text(text) => &text.question,
        }
    }
}

/// The requests of one round under their keys, in the asker's order; never empty.
#[derive(Debug, Clone)]
pub struct Requests(Vec<(String, Request)>);

impl Requests {
    /// Checks number and keys; the requests themselves are valid already.
    pub fn new(requests: Vec<(String, Request)>) -> Result<Self, Error> {
        if requests.is_empty() {
            return Err(Error::field("/requests", "must hold at least one request"));
        }
        if requests.len() > limits::REQUESTS_MAX {
            return Err(Error::field("/requests", format!("must hold at most {} requests", limits::REQUESTS_MAX)));
        }
        let mut seen = std::collections::HashSet::new();
        for (key, _) in &requests {
            if key.is_empty() || key.len() > limits::NAME_BYTES_MAX {
                let message = format!("request keys must have 1 to {} bytes", limits::NAME_BYTES_MAX);
                return Err(Error::field("/requests", message));
            }
            if !seen.insert(key.as_str()) {
                return Err(Error::field("/requests", "must not repeat a request key"));
            }
        }
        Ok(Self(requests))
    }

    /// Every request with its key, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Request)> {
        self.0.iter().map(|(key, request)| (key.as_str(), request))
    }

    /// The request under `key`.
    pub fn get(&self, key: &str) -> Option<&Request> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, request)| request)
    }

    /// How many requests there are; at least one.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true; here because `len` is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call waits for a verdict here.
    pub fn has_approval(&self) -> bool {
        self.0.iter().any(|(_, request)| matches!(request, Request::Approval(_)))
    }
}

/// Checks the length of a text that a person is shown. `pointer` names the member.
pub(crate) fn check_text(pointer: &str, text: &str, bytes_max: usize) -> Result<(), FieldError> {
    if text.len() > bytes_max {
        let message = format!("must be at most {bytes_max} bytes");
        return Err(FieldError { pointer: pointer.to_owned(), message });
    }
    Ok(())
}
