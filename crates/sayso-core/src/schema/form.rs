//! A form's schema, opened once and then used for every answer to it.

use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::json::{Json, Tree, pointer_segments};

use super::defaults::Defaults;
use super::fields::{self, Field};
use super::gate;
use super::messages::message;
use crate::limits::PATTERN_COMPILED_BYTES_MAX;

/// Why a schema cannot be asked with. It quotes the asker's schema at most, never an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("schema{}{pointer} {message}", if pointer.is_empty() { "" } else { " at " })]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// What is wrong there; reads on from the pointer.
    pub message: String,
}

impl SchemaError {
    pub(super) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

/// A schema that passed the gate and is compiled. Cheap to clone; `Debug` shows only how many fields it has.
#[derive(Clone)]
pub struct FormSchema(Arc<Inner>);

struct Inner {
    validator: Validator,
    fields: Vec<Field>,
    defaults: Defaults,
}

impl FormSchema {
    /// Opens a schema whose answers are objects: `$schema` absent, 2020-12 or draft-07 (both read as 2020-12), local
    /// references only, within the limits of the gate. What could not be checked later is refused here, with the
    /// pointer to it; unknown keywords and formats are ignored.
    pub fn open(schema: &Json) -> Result<Self, SchemaError> {
        let tree = schema.tree();
        gate::check(schema, &tree)?;
        let validator = compile(&tree)?;
        let defaults = Defaults::of(&tree, &validator);
        let fields = fields::of(&tree, &defaults);
        Ok(Self(Arc::new(Inner { validator, fields, defaults })))
    }

    /// The top-level properties in the asker's order.
    pub fn fields(&self) -> &[Field] {
        &self.0.fields
    }

    /// The content with the asker's defaults for what is absent, at the top and in nested objects that are present,
    /// never through `$ref`, `anyOf` or `oneOf`. What was submitted stays byte for byte. A default that its own
    /// property would refuse is not filled in: nobody could answer then.
    pub fn fill_defaults(&self, content: &Json) -> Json {
        self.0.defaults.fill(content)
    }

    pub(super) fn validator(&self) -> &Validator {
        &self.0.validator
    }
}

impl fmt::Debug for FormSchema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FormSchema({} fields)", self.0.fields.len())
    }
}

fn compile(tree: &Tree<'_>) -> Result<Validator, SchemaError> {
    let mut value = tree.value();
    if let Value::Object(members) = &mut value {
        // The gate has allowed the dialect and only references from the root, and an identifier would move that root.
        members.shift_remove("$schema");
        members.shift_remove("$id");
    }
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_COMPILED_BYTES_MAX))
        .build(&value)
        .map_err(|error| refused(tree, &error))
}

fn refused(tree: &Tree<'_>, error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().as_str();
    let segments = pointer_segments(pointer).unwrap_or_default();
    let ends_in =
        |keyword: &str, back: usize| segments.iter().rev().nth(back).is_some_and(|segment| segment == keyword);
    let message = if ends_in("pattern", 0) || ends_in("patternProperties", 1) {
        "is not a regular expression that can be checked in linear time".to_owned()
    } else {
        message(error.kind())
    };
    SchemaError::new(if tree.at(&segments).is_some() { pointer } else { "" }, message)
}
