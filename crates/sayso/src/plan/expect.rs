//! What a single question must be like, and its answer.

use std::fmt;
use std::marker::PhantomData;

use sayso_core::json::Json;
use sayso_core::response::Action;
use sayso_core::round::OperationKind;
use sayso_core::wire::{RequestKind, Response};

use super::compare::{contains, normalized};
use super::elicitation::{DEFAULT_KEY, Elicitation};
use super::tree::{Node, Plan, answer_fingerprint};

/// Marks an expectation of a form.
#[derive(Debug, Clone)]
pub struct Form;
/// Marks an expectation of consent to a URL.
#[derive(Debug, Clone)]
pub struct Url;

/// What a question must be like to be taken; an answer makes it a [`Plan`]. It matches on mode and key, and on whatever
/// else is added.
#[derive(Debug, Clone)]
pub struct Expectation<Mode> {
    matcher: Matcher,
    is_required: bool,
    mode: PhantomData<Mode>,
}

/// A form under `key` must come.
pub fn expect_form(key: impl Into<String>) -> Expectation<Form> {
    Expectation::new(RequestKind::Form, key.into(), true)
}

/// A form under `key` may come.
pub fn maybe_form(key: impl Into<String>) -> Expectation<Form> {
    Expectation::new(RequestKind::Form, key.into(), false)
}

/// Consent to a URL under `key` must be asked for.
pub fn expect_url(key: impl Into<String>) -> Expectation<Url> {
    Expectation::new(RequestKind::Url, key.into(), true)
}

/// Consent to a URL under `key` may be asked for.
pub fn maybe_url(key: impl Into<String>) -> Expectation<Url> {
    Expectation::new(RequestKind::Url, key.into(), false)
}

impl<Mode> Expectation<Mode> {
    fn new(kind: RequestKind, key: String, is_required: bool) -> Self {
        let matcher = Matcher { kind, key, message: None, schema: None, url: None, server: None, operation: None };
        Self { matcher, is_required, mode: PhantomData }
    }

    /// Only with a message that contains `text`.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.matcher.message = Some(Part::Contains(text.into()));
        self
    }

    /// Only with exactly this message.
    #[must_use]
    pub fn message_is(mut self, text: impl Into<String>) -> Self {
        self.matcher.message = Some(Part::Is(text.into()));
        self
    }

    /// Only from this server.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.matcher.server = Some(name.into());
        self
    }

    /// Only for this operation.
    #[must_use]
    pub fn operation(mut self, kind: OperationKind, name: impl Into<String>) -> Self {
        self.matcher.operation = Some((kind, name.into()));
        self
    }

    /// Answers with a decline, and perhaps its reason.
    pub fn decline<'a>(self, reason: impl Into<Option<&'a str>>) -> Plan {
        self.answered(Response::decline(reason.into().map(str::to_owned)))
    }

    /// Dismisses it without a decision.
    pub fn cancel(self) -> Plan {
        self.answered(Response::cancel())
    }

    fn answered(self, answer: Response) -> Plan {
        Plan(Node::Leaf(Leaf { matcher: self.matcher, is_required: self.is_required, answer }))
    }
}

impl Expectation<Form> {
    /// Only with a schema that has everything `part` has; of objects the members count, at every level.
    #[must_use]
    pub fn schema(mut self, part: Json) -> Self {
        self.matcher.schema = Some(Part::Contains(part));
        self
    }

    /// Only with exactly this schema; members in any order.
    #[must_use]
    pub fn schema_is(mut self, whole: Json) -> Self {
        self.matcher.schema = Some(Part::Is(whole));
        self
    }

    /// Answers with this content; it is checked as any answer is, and the schema's defaults are filled in.
    pub fn accept(self, content: Json) -> Plan {
        self.answered(Response::accept(content))
    }
}

impl Expectation<Url> {
    /// Only with exactly this URL.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.matcher.url = Some(url.into());
        self
    }

    /// Consents; nothing is ever fetched.
    pub fn accept(self) -> Plan {
        self.answered(Response::consent())
    }
}

/// The whole of something, or a part of it.
#[derive(Debug, Clone)]
enum Part<T> {
    Is(T),
    Contains(T),
}

#[derive(Debug, Clone)]
struct Matcher {
    kind: RequestKind,
    key: String,
    message: Option<Part<String>>,
    schema: Option<Part<Json>>,
    url: Option<String>,
    server: Option<String>,
    operation: Option<(OperationKind, String)>,
}

impl Matcher {
    fn takes(&self, came: &Elicitation) -> bool {
        let message = came.request.message.as_deref().unwrap_or_default();
        let fits_message = match &self.message {
            None => true,
            Some(Part::Is(text)) => message == text,
            Some(Part::Contains(text)) => message.contains(text.as_str()),
        };
        let fits_schema = match (&self.schema, &came.request.schema) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(Part::Is(whole)), Some(schema)) => normalized(schema) == normalized(whole),
            (Some(Part::Contains(part)), Some(schema)) => contains(schema, part),
        };
        self.kind == came.request.kind
            && self.key == came.key
            && fits_message
            && fits_schema
            && (self.url.is_none() || self.url == came.request.url)
            && (self.server.is_none() || self.server == came.server)
            && (self.operation.is_none() || self.operation == came.operation)
    }
}

/// One expectation with its answer.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    matcher: Matcher,
    pub is_required: bool,
    pub answer: Response,
}

impl Leaf {
    pub fn key(&self) -> &str {
        &self.matcher.key
    }

    pub fn takes(&self, came: &Elicitation) -> bool {
        self.matcher.takes(came)
    }

    pub fn fingerprint(&self) -> String {
        let Matcher { kind, key, message, schema, url, server, operation } = &self.matcher;
        let schema = schema.as_ref().map(|schema| match schema {
            Part::Is(whole) => Part::Is(normalized(whole)),
            Part::Contains(part) => Part::Contains(normalized(part)),
        });
        let answer = answer_fingerprint(&self.answer);
        let required = self.is_required;
        format!("{required} {kind:?} {key:?} {message:?} {schema:?} {url:?} {server:?} {operation:?} {answer:?}")
    }

    /// What it takes, as a sentence names it.
    pub fn described(&self) -> String {
        self.matcher.to_string()
    }

    /// The answer as a sentence tells it. The values are the plan's own.
    pub fn answer_words(&self) -> String {
        let Response { action, content, reason } = &self.answer;
        let what = content.as_ref().map(Json::as_str).or(reason.as_deref());
        let what = what.map(|what| format!(" {what}")).unwrap_or_default();
        match action {
            Action::Accept => format!("accept{what}"),
            Action::Decline => format!("decline{what}"),
            Action::Cancel => "cancel".to_owned(),
        }
    }
}

/// As a sentence names it.
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, message, schema, url, server, operation } = self;
        f.write_str(if *kind == RequestKind::Url { "consent to a URL" } else { "a form" })?;
        if key != DEFAULT_KEY {
            write!(f, " under the key {key}")?;
        }
        match message {
            Some(Part::Is(text)) => write!(f, " with the message \"{text}\"")?,
            Some(Part::Contains(text)) => write!(f, " whose message contains \"{text}\"")?,
            None => {}
        }
        match schema {
            Some(Part::Is(whole)) => write!(f, " with the schema {}", whole.as_str())?,
            Some(Part::Contains(part)) => write!(f, " whose schema contains {}", part.as_str())?,
            None => {}
        }
        if let Some(url) = url {
            write!(f, " to {url}")?;
        }
        if let Some((kind, name)) = operation {
            write!(f, " for the {} {name}", kind.as_str())?;
        }
        if let Some(server) = server {
            write!(f, " from the server {server}")?;
        }
        Ok(())
    }
}
