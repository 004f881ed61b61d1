//! One operation as it is documented.

use sayso_core::error::ErrorCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Writes the schema of a body.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`.
pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Whom an operation is for. The credential decides; nothing in a body says who somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// No credential is needed.
    Anyone,
    /// Any credential; an agent sees only what is its own.
    Caller,
    /// An agent's or a service's credential.
    Agent,
    /// A person's credential.
    Person,
    /// The owner of the data folder.
    Admin,
    /// A person's browser, by its session.
    Browser,
}

impl Who {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Anyone => "For anyone.",
            Self::Caller => "For persons; for agents and services, where it is their own.",
            Self::Agent => "For agents and services.",
            Self::Person => "For persons.",
            Self::Admin => "For the owner of the data folder.",
            Self::Browser => "A page for a person's browser.",
        }
    }
}

/// Whether an `Idempotency-Key` is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    No,
    Optional,
    Required,
}

/// A parameter of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
}

/// What an operation answers with when it is done.
#[derive(Clone, Copy)]
pub(super) enum Body {
    Nothing,
    Json(Shape),
    /// JSON of one shape or another, by what was asked for.
    Either(Shape, Shape),
    Text(&'static str),
}

/// An operation. Built by chaining in a constant.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) who: Who,
    pub(super) about: &'static str,
    pub(super) query: &'static [Parameter],
    pub(super) key: Key,
    pub(super) last_event_id: bool,
    pub(super) takes: Option<Shape>,
    pub(super) status: u16,
    pub(super) gives: Body,
    pub(super) problems: &'static [ErrorCode],
}

impl Operation {
    const fn new(method: &'static str, path: &'static str, id: &'static str, who: Who, about: &'static str) -> Self {
        Self {
            method,
            path,
            id,
            who,
            about,
            query: &[],
            key: Key::No,
            last_event_id: false,
            takes: None,
            status: 200,
            gives: Body::Nothing,
            problems: &[],
        }
    }

    pub(super) const fn get(path: &'static str, id: &'static str, who: Who, about: &'static str) -> Self {
        Self::new("get", path, id, who, about)
    }

    pub(super) const fn post(path: &'static str, id: &'static str, who: Who, about: &'static str) -> Self {
        Self::new("post", path, id, who, about)
    }

    pub(super) const fn delete(path: &'static str, id: &'static str, who: Who, about: &'static str) -> Self {
        Self::new("delete", path, id, who, about)
    }

    pub(super) const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    pub(super) const fn key(self, key: Key) -> Self {
        Self { key, ..self }
    }

    pub(super) const fn last_event_id(self) -> Self {
        Self { last_event_id: true, ..self }
    }

    pub(super) const fn takes(self, shape: Shape) -> Self {
        Self { takes: Some(shape), ..self }
    }

    pub(super) const fn gives(self, status: u16, gives: Body) -> Self {
        Self { status, gives, ..self }
    }

    pub(super) const fn problems(self, problems: &'static [ErrorCode]) -> Self {
        Self { problems, ..self }
    }
}
