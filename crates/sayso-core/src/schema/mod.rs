//! Schemas of what is asked: gated, compiled, taken apart into fields, and answers checked against them
//! (`docs/rounds.md`, "Responses and validation").
//!
//! [`FormSchema::open`] refuses whatever could not be checked later, so that a person is never asked for an answer
//! that nobody can accept. JSON Schema 2020-12, formats asserted, a regular expression engine of linear time.

mod defaults;
mod expansion;
mod fields;
mod form;
mod gate;
mod input;
mod messages;
mod read;
mod validate;

pub use fields::{ChoiceOption, Field, FieldKind, TextFormat};
pub use form::{FormSchema, SchemaError};
pub use input::{ArgumentsError, InputSchema, MarkerError, Needs, read_arguments};
pub use validate::FieldError;
