//! Checking an effective answer against its schema.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde::{Deserialize, Serialize};

use crate::json::{Json, pointer_segments, pointer_to};

use super::fields::{Field, FieldKind};
use super::form::FormSchema;
use super::messages::message;
use crate::limits::{FIELD_ERRORS_MAX, SCHEMA_BRANCH_DEPTH_MAX};

/// What is wrong with one field of an answer. It never holds a value that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, thiserror::Error)]
#[error("{pointer} {message}")]
pub struct FieldError {
    /// JSON pointer to the field in the content; of a missing field, where it should be.
    pub pointer: String,
    /// What is wrong; reads on from the field's name.
    pub message: String,
}

impl FieldError {
    pub(super) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl FormSchema {
    /// Checks a content, defaults filled in. At most [`FIELD_ERRORS_MAX`] errors, in the schema's order.
    pub fn validate(&self, effective: &Json) -> Result<(), Vec<FieldError>> {
        if !effective.is_object() {
            return Err(vec![FieldError::new("", "must be an object")]);
        }
        let value = effective.value();
        let mut found = Vec::new();
        for error in self.validator().iter_errors(&value) {
            self.report(&error, 0, &mut found);
            if found.len() >= FIELD_ERRORS_MAX {
                break;
            }
        }
        found.truncate(FIELD_ERRORS_MAX);
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    fn report(&self, error: &ValidationError<'_>, depth: usize, found: &mut Vec<FieldError>) {
        let at = error.instance_path().as_str();
        let mut add = |pointer: String, message: String| {
            let error = FieldError { pointer, message };
            if found.len() < FIELD_ERRORS_MAX && !found.contains(&error) {
                found.push(error);
            }
        };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                add(pointer_to(at, name), message(error.kind()));
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for name in unexpected.iter().take(FIELD_ERRORS_MAX) {
                    add(pointer_to(at, name), message(error.kind()));
                }
            }
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } if self.is_choice(at) => {
                add(at.to_owned(), "must be one of the listed options".to_owned());
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                match meant(context) {
                    Some(branch) if depth < SCHEMA_BRANCH_DEPTH_MAX => {
                        for error in branch {
                            self.report(error, depth + 1, found);
                        }
                    }
                    _ => add(at.to_owned(), message(error.kind())),
                }
            }
            kind => add(at.to_owned(), message(kind)),
        }
    }

    /// Whether a pointer names a choice or a place in a list of choices.
    fn is_choice(&self, pointer: &str) -> bool {
        let segments = pointer_segments(pointer).unwrap_or_default();
        let found = Field::find(self.fields(), &segments);
        let rest = found.map_or(0, |(_, depth)| segments.len().saturating_sub(depth));
        match found.map(|(field, _)| &field.kind) {
            Some(FieldKind::Choice { .. }) => rest == 0,
            Some(FieldKind::MultiChoice { .. }) => rest == 1,
            _ => false,
        }
    }
}

/// The one branch that the value has the type of, if there is exactly one: its complaints are the useful ones.
fn meant<'e>(branches: &'e [Vec<ValidationError<'static>>]) -> Option<&'e [ValidationError<'static>]> {
    let is_other_type = |branch: &&Vec<ValidationError<'static>>| {
        branch.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Type { .. }))
    };
    let mut fitting = branches.iter().filter(|branch| !is_other_type(branch));
    let only = fitting.next()?;
    fitting.next().is_none().then_some(only.as_slice())
}
