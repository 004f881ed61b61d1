//! The fields of one object: of a form, of a call's input, of a group in either, of a row in a list.

use sayso::Json;
use sayso_core::json::{pointer_to, visible};
use sayso_core::limits;
use sayso_core::schema::{Field, FieldError, FieldKind, FormSchema};

use super::field::{self, heading};
use super::prompt::{Prompted, menu};
use crate::error::CommandError;
use crate::{output, typed};

/// What has been given so far, in the order of the fields.
#[derive(Default)]
pub(super) struct Given(Vec<(String, Json)>);

impl Given {
    /// What a value that was given before holds.
    fn of(value: Option<&Json>) -> Self {
        let view = value.and_then(Json::object);
        let members = view.iter().flat_map(|view| {
            let member = |name: &str| Some((name.to_owned(), Json::parse(view.get(name)?).ok()?));
            view.members.iter().filter_map(move |found| member(&found.name)).collect::<Vec<_>>()
        });
        Self(members.collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn set(&mut self, name: &str, value: Option<Json>) {
        self.0.retain(|(known, _)| known != name);
        self.0.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// The content, with `value` in place of what stood under `name`.
    fn with(&self, name: &str, value: &Json) -> Option<Json> {
        let others = self.0.iter().filter(|(known, _)| known != name).cloned();
        let members: Vec<_> = others.chain([(name.to_owned(), value.clone())]).collect();
        typed::object(&members).ok()
    }
}

/// An object that is being filled in, and where it stands in the whole.
pub(super) struct Place<'a> {
    pub(super) given: &'a Given,
    around: Option<(&'a Place<'a>, Inside<'a>)>,
}

/// How an object stands in the one around it.
#[derive(Clone, Copy)]
enum Inside<'a> {
    Group(&'a str),
    /// After these rows of the list.
    Row(&'a str, &'a [Json]),
}

impl Place<'_> {
    /// The whole content with `value` at `name`, and the pointer to it.
    pub(super) fn with(&self, name: &str, value: &Json) -> Option<(Json, String)> {
        let own = self.given.with(name, value)?;
        let Some((around, inside)) = &self.around else { return Some((own, pointer_to("", name))) };
        let (content, pointer) = match inside {
            Inside::Group(group) => around.with(group, &own)?,
            Inside::Row(list, before) => {
                let texts: Vec<&str> = before.iter().chain([&own]).map(Json::as_str).collect();
                let (content, at) = around.with(list, &typed::list(&texts)?)?;
                (content, pointer_to(&at, &before.len().to_string()))
            }
        };
        Some((content, pointer_to(&pointer, name)))
    }

    /// The names that lead here, as `--field` takes them.
    pub(super) fn path(&self) -> String {
        match &self.around {
            None => String::new(),
            Some((around, Inside::Group(name))) => format!("{}{}.", around.path(), visible(name)),
            Some((around, Inside::Row(name, before))) => {
                format!("{}{}.{}.", around.path(), visible(name), before.len())
            }
        }
    }
}

/// Asks field by field; none where the person went back. What comes out fits the schema.
pub(super) fn fill(schema: &FormSchema) -> Result<Option<Json>, CommandError> {
    let fields = schema.fields();
    let mut given = Given::default();
    let mut open: Vec<&Field> = fields.iter().collect();
    loop {
        if ask_all(&open, schema, &mut given, None)?.is_none() {
            return Ok(None);
        }
        let content = match typed::object(&given.0) {
            Ok(content) => content,
            Err(message) => {
                output::note(&format!("The answer {message}."));
                open = fields.iter().collect();
                continue;
            }
        };
        match schema.validate(&schema.fill_defaults(&content)) {
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

/// Asks for each of these fields; none where the person went back.
fn ask_all(
    open: &[&Field],
    schema: &FormSchema,
    given: &mut Given,
    around: Option<(&Place<'_>, Inside<'_>)>,
) -> Result<Option<()>, CommandError> {
    for field in open {
        let place = Place { given, around };
        let asked = match &field.kind {
            FieldKind::Group { fields } => group(field, fields, schema, &place)?,
            FieldKind::Rows { fields, max_items, .. } => rows(field, fields, *max_items, schema, &place)?,
            _ => field::ask(field, schema, &place)?,
        };
        match asked {
            Prompted::Given(value) => given.set(&field.name, value),
            Prompted::Back => return Ok(None),
        }
    }
    Ok(Some(()))
}

/// A group, field by field; an optional one only where the person wants it.
fn group(
    field: &Field,
    fields: &[Field],
    schema: &FormSchema,
    place: &Place<'_>,
) -> Result<Prompted<Option<Json>>, CommandError> {
    let name = heading(field, place);
    if !field.required || field.default.is_some() {
        let before = usize::from(place.given.get(&field.name).is_none());
        match menu(&format!("{name}: fill it in?"), &["Fill it in", "Leave it out"], before)? {
            Prompted::Given(0) => {}
            Prompted::Given(_) => return Ok(Prompted::Given(None)),
            Prompted::Back => return Ok(Prompted::Back),
        }
    } else {
        output::note(&format!("{name}:"));
    }
    let inner = Given::of(place.given.get(&field.name));
    object(fields, inner, schema, (place, Inside::Group(&field.name)))
}

/// A list, row by row, until the person has no more.
fn rows(
    field: &Field,
    fields: &[Field],
    max_items: Option<u64>,
    schema: &FormSchema,
    place: &Place<'_>,
) -> Result<Prompted<Option<Json>>, CommandError> {
    let most = max_items.and_then(|most| usize::try_from(most).ok()).unwrap_or(limits::FORM_ROWS_MAX);
    let mut rows: Vec<Json> = Vec::new();
    while rows.len() < most.min(limits::FORM_ROWS_MAX) {
        let message = format!("{}: add row {}?", heading(field, place), rows.len() + 1);
        let start = usize::from(!(field.required && rows.is_empty()));
        match menu(&message, &["Add one", "No more"], start)? {
            Prompted::Given(0) => {}
            Prompted::Given(_) => break,
            Prompted::Back => return Ok(Prompted::Back),
        }
        match object(fields, Given::default(), schema, (place, Inside::Row(&field.name, &rows)))? {
            Prompted::Given(Some(row)) => rows.push(row),
            Prompted::Given(None) => {}
            Prompted::Back => return Ok(Prompted::Back),
        }
    }
    if rows.is_empty() && (!field.required || field.default.is_some()) {
        return Ok(Prompted::Given(None));
    }
    let texts: Vec<&str> = rows.iter().map(Json::as_str).collect();
    Ok(Prompted::Given(typed::list(&texts)))
}

fn object(
    fields: &[Field],
    mut given: Given,
    schema: &FormSchema,
    around: (&Place<'_>, Inside<'_>),
) -> Result<Prompted<Option<Json>>, CommandError> {
    let open: Vec<&Field> = fields.iter().collect();
    if ask_all(&open, schema, &mut given, Some(around))?.is_none() {
        return Ok(Prompted::Back);
    }
    Ok(Prompted::Given(typed::object(&given.0).ok()))
}

fn say(faults: &[FieldError]) {
    output::note("The fields do not fit together:");
    for fault in faults {
        output::note(&format!("  {} {}", visible(&fault.pointer), visible(&fault.message)));
    }
}

/// The fields that the faults name; all of them where a fault names none.
fn concerned<'a>(fields: &'a [Field], faults: &[FieldError]) -> Vec<&'a Field> {
    let is_named = |field: &&Field| faults.iter().any(|fault| field::is_at(fault, &pointer_to("", &field.name)));
    let named: Vec<_> = fields.iter().filter(is_named).collect();
    if named.is_empty() { fields.iter().collect() } else { named }
}
