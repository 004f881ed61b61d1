//! The form of one request.

use sayso::Json;
use sayso_core::json::visible;
use sayso_core::request::Form;
use sayso_core::schema::{Field, FieldError};

use super::field;
use super::prompt::{Prompted, menu};
use crate::error::CommandError;
use crate::{output, typed};

/// What has been given so far, in the order of the fields.
#[derive(Default)]
pub(super) struct Given(Vec<(String, Json)>);

impl Given {
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn set(&mut self, name: &str, value: Option<Json>) {
        self.0.retain(|(known, _)| known != name);
        self.0.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// The content, with `value` in place of what stood under `name`.
    pub(super) fn with(&self, name: &str, value: &Json) -> Option<Json> {
        let others = self.0.iter().filter(|(known, _)| known != name).cloned();
        let members: Vec<_> = others.chain([(name.to_owned(), value.clone())]).collect();
        typed::object(&members).ok()
    }
}

/// Asks field by field; none where the person went back. What comes out fits the schema.
pub(super) fn fill(form: &Form) -> Result<Option<Json>, CommandError> {
    let fields = form.schema.fields();
    let mut given = Given::default();
    let mut open: Vec<&Field> = fields.iter().collect();
    loop {
        for field in open {
            match field::ask(field, &form.schema, &given)? {
                Prompted::Given(value) => given.set(&field.name, value),
                Prompted::Back => return Ok(None),
            }
        }
        let content = match typed::object(&given.0) {
            Ok(content) => content,
            Err(message) => {
                output::note(&format!("The answer {message}."));
                open = fields.iter().collect();
                continue;
            }
        };
        match form.schema.validate(&form.schema.fill_defaults(&content)) {
            Ok(()) if fields.is_empty() => return Ok(Some(content)),
            Ok(()) => match menu("Send this answer?", &["Send it", "Go through the fields again"], 0)? {
                Prompted::Given(0) => return Ok(Some(content)),
                Prompted::Given(_) => open = fields.iter().collect(),
                Prompted::Back => return Ok(None),
            },
            Err(faults) => {
                say(&faults);
                if fields.is_empty() {
                    return Ok(None);
                }
                open = concerned(fields, &faults);
            }
        }
    }
}

fn say(faults: &[FieldError]) {
    output::note("The fields do not fit together:");
    for fault in faults {
        output::note(&format!("  {} {}", visible(&fault.pointer), visible(&fault.message)));
    }
}

/// The fields that the faults name; all of them where a fault names none.
fn concerned<'a>(fields: &'a [Field], faults: &[FieldError]) -> Vec<&'a Field> {
    let named: Vec<_> = fields.iter().filter(|field| faults.iter().any(|fault| field::is_at(fault, field))).collect();
    if named.is_empty() { fields.iter().collect() } else { named }
}
