use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Keyed;
use crate::error::Error;
use crate::json::{Json, pointer_to};
use crate::limits;
use crate::policy::Effect;
use crate::request::{self, Approval, Choice, Form, Requests, TextQuestion, UrlConsent};
use crate::round::Digest;
use crate::schema::{FormSchema, InputSchema, SchemaError};

/// Which kind of request a flat [`Request`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Data described by a JSON Schema: `message`, `schema`, `meta?`.
    Form,
    /// Consent to open a URL: `message`, `url`, `elicitation_id?`.
    Url,
    /// May this call run: `tool`, `arguments`, and what is said of it: `message?`, `preview?`, `effects?`, `definition?`,
    /// `rule?`, `session?`, `arguments_schema?`, `schema?`, `require_second_person?`.
    Approval,
    /// A question with options: `question`, `options`, `multi_select?`.
    Choice,
    /// A question answered in free text: `question`.
    Text,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoiceOption {
    /// What the answer will say.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One thing asked, flat: `kind` says which members it has. A member that its kind does not have is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Which kind it is.
    pub kind: RequestKind,
    /// Form and URL: what the asker says to the person. Approval: what the tool says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Form: the JSON Schema, kept as written. Approval: that of what the person adds to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// Form: the asker's own members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
    /// URL: where the person would go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// URL: the asker's id for the visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Approval: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Approval: its arguments, kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Approval: a few lines that say what would happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Vec<String>>,
    /// Approval: what the call may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// Approval: digest of the tool's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Approval: the rule that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Approval: the session that a grant for it would be for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Approval: the JSON Schema that edited arguments must fit; without it they cannot be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_schema: Option<Json>,
    /// Approval: whether whoever started the execution may not approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_second_person: Option<bool>,
    /// Choice and text: the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Choice: whether several options may be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_select: Option<bool>,
    /// Choice: the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<ChoiceOption>>,
}

impl Request {
    /// A request of `kind` without any of its members.
    pub fn empty(kind: RequestKind) -> Self {
        Self {
            kind,
            message: None,
            schema: None,
            meta: None,
            url: None,
            elicitation_id: None,
            tool: None,
            arguments: None,
            preview: None,
            effects: None,
            definition: None,
            rule: None,
            session: None,
            arguments_schema: None,
            require_second_person: None,
            question: None,
            multi_select: None,
            options: None,
        }
    }

    /// A form.
    pub fn form(message: impl Into<String>, schema: Json) -> Self {
        Self { message: Some(message.into()), schema: Some(schema), ..Self::empty(RequestKind::Form) }
    }

    /// The members that are present, by name.
    fn present(&self) -> Vec<&'static str> {
        [
            ("message", self.message.is_some()),
            ("schema", self.schema.is_some()),
            ("meta", self.meta.is_some()),
            ("url", self.url.is_some()),
            ("elicitation_id", self.elicitation_id.is_some()),
            ("tool", self.tool.is_some()),
            ("arguments", self.arguments.is_some()),
            ("preview", self.preview.is_some()),
            ("effects", self.effects.is_some()),
            ("definition", self.definition.is_some()),
            ("rule", self.rule.is_some()),
            ("session", self.session.is_some()),
            ("arguments_schema", self.arguments_schema.is_some()),
            ("require_second_person", self.require_second_person.is_some()),
            ("question", self.question.is_some()),
            ("multi_select", self.multi_select.is_some()),
            ("options", self.options.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_present)| is_present.then_some(name))
        .collect()
    }

    /// Checks the flat form into the domain's. `pointer` is where the request stands.
    pub fn check(&self, pointer: &str) -> Result<request::Request, Error> {
        let allowed: &[&str] = match self.kind {
            RequestKind::Form => &["message", "schema", "meta"],
            RequestKind::Url => &["message", "url", "elicitation_id"],
            RequestKind::Approval => &[
                "tool",
                "arguments",
                "message",
                "preview",
                "effects",
                "definition",
                "rule",
                "session",
                "arguments_schema",
                "schema",
                "require_second_person",
            ],
            RequestKind::Choice => &["question", "multi_select", "options"],
            RequestKind::Text => &["question"],
        };
        if let Some(extra) = self.present().into_iter().find(|name| !allowed.contains(name)) {
            return Err(Error::field(format!("{pointer}/{extra}"), "does not belong to this kind of request"));
        }
        match self.kind {
            RequestKind::Form => {
                let message = needed(pointer, "message", self.message.clone())?;
                let schema = needed(pointer, "schema", self.schema.clone())?;
                Ok(request::Request::Form(Form::new(pointer, message, schema, self.meta.clone())?))
            }
            RequestKind::Url => {
                let message = needed(pointer, "message", self.message.clone())?;
                let url = needed(pointer, "url", self.url.clone())?;
                let consent = UrlConsent::new(pointer, message, &url, self.elicitation_id.clone())?;
                Ok(request::Request::Url(consent))
            }
            RequestKind::Approval => self.check_approval(pointer),
            RequestKind::Choice => {
                let options = needed(pointer, "options", self.options.clone())?;
                let options = options
                    .into_iter()
                    .map(|ChoiceOption { label, description }| request::ChoiceOption { label, description });
                let question = self.question(pointer)?;
                let multi_select = self.multi_select.unwrap_or(false);
                Ok(request::Request::Choice(Choice::new(pointer, question, multi_select, options.collect())?))
            }
            RequestKind::Text => Ok(request::Request::Text(TextQuestion { question: self.question(pointer)? })),
        }
    }

    fn check_approval(&self, pointer: &str) -> Result<request::Request, Error> {
        let tool = needed(pointer, "tool", self.tool.clone())?;
        if tool.is_empty() || tool.len() > limits::NAME_BYTES_MAX {
            let message = format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX);
            return Err(Error::field(format!("{pointer}/tool"), message));
        }
        let arguments = needed(pointer, "arguments", self.arguments.clone())?;
        if !arguments.is_object() {
            return Err(Error::field(format!("{pointer}/arguments"), "must be an object"));
        }
        let texts = [("message", &self.message), ("rule", &self.rule), ("session", &self.session)];
        for (name, text) in texts {
            if let Some(text) = text {
                request::check_text(&format!("{pointer}/{name}"), text, limits::MESSAGE_BYTES_MAX)
                    .map_err(|field| Error::fields(vec![field]))?;
            }
        }
        let schema =
            |name: &str, error: SchemaError| Error::field(format!("{pointer}/{name}{}", error.pointer), error.message);
        let edits = self.arguments_schema.as_ref().map(FormSchema::open).transpose();
        let input = self.schema.as_ref().map(InputSchema::open).transpose();
        Ok(request::Request::Approval(Box::new(Approval {
            tool,
            description: self.message.clone(),
            arguments,
            preview: self.preview.clone().unwrap_or_default(),
            effects: self.effects.clone().unwrap_or_default(),
            definition: self.definition,
            rule: self.rule.clone(),
            session: self.session.clone(),
            edits: edits.map_err(|error| schema("arguments_schema", error))?,
            input: input.map_err(|error| schema("schema", error))?,
            require_second_person: self.require_second_person.unwrap_or_default(),
        })))
    }

    fn question(&self, pointer: &str) -> Result<String, Error> {
        let question = needed(pointer, "question", self.question.clone())?;
        request::check_text(&format!("{pointer}/question"), &question, limits::MESSAGE_BYTES_MAX)
            .map_err(|field| Error::fields(vec![field]))?;
        Ok(question)
    }
}

fn needed<T>(pointer: &str, name: &str, member: Option<T>) -> Result<T, Error> {
    member.ok_or_else(|| Error::field(format!("{pointer}/{name}"), "is required"))
}

impl Keyed<Request> {
    /// Checks every request and the whole.
    pub fn check(&self) -> Result<Requests, Error> {
        let checked =
            self.0.iter().map(|(key, request)| Ok((key.clone(), request.check(&pointer_to("/requests", key))?)));
        Requests::new(checked.collect::<Result<_, Error>>()?)
    }
}
