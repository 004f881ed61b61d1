use crate::error::Error;
use crate::json::Json;
use crate::limits;
use crate::schema::FormSchema;

/// Data described by a JSON Schema, asked for in one message.
#[derive(Debug, Clone)]
pub struct Form {
    /// What the asker says to the person.
    pub message: String,
    /// The schema, checked and compiled.
    pub schema: FormSchema,
    /// The schema's text as it was received.
    pub schema_text: Json,
    /// The asker's own members, relayed as they came.
    pub meta: Option<Json>,
}

impl Form {
    /// Checks the message and opens the schema. `pointer` is where the request stands.
    pub fn new(pointer: &str, message: String, schema: Json, meta: Option<Json>) -> Result<Self, Error> {
        super::check_text(&format!("{pointer}/message"), &message, limits::MESSAGE_BYTES_MAX)
            .map_err(|field| Error::fields(vec![field]))?;
        let opened = FormSchema::open(&schema)
            .map_err(|error| Error::field(format!("{pointer}/schema{}", error.pointer), error.message))?;
        Ok(Self { message, schema: opened, schema_text: schema, meta })
    }
}
