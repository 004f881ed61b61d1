//! From the controls of a list of fields to the JSON object that was entered.

use sayso::{FieldError, Json};
use sayso_core::json::pointer_to;
use sayso_core::schema::{ChoiceOption, Field, FieldKind, FormSchema, TextFormat};

use super::controls::rows_at_first;
use super::typed::{Typed, child_id, join_date_time, offset_id, top_id};

/// What was entered into the fields of one object.
struct Entered {
    members: Vec<String>,
    /// Whether anything was entered that would not be there anyway. An optional group that nobody touched is left out.
    is_touched: bool,
    errors: Vec<FieldError>,
}

/// The object that was entered into the fields of a part. Where something cannot be read, what is wrong with the rest is
/// told as well. Pointers start at the object.
pub(super) fn content(part: &str, schema: &FormSchema, typed: &Typed) -> Result<Json, Vec<FieldError>> {
    let Entered { members, mut errors, .. } = object(schema.fields(), &|at| top_id(part, at), typed);
    let content = Json::parse(&written(&members))
        .map_err(|found| vec![FieldError { pointer: String::new(), message: format!("cannot be read: {found}") }])?;
    if errors.is_empty() {
        return Ok(content);
    }
    let others = schema.validate(&schema.fill_defaults(&content)).err().unwrap_or_default();
    let unread: Vec<String> = errors.iter().map(|found| found.pointer.clone()).collect();
    errors.extend(others.into_iter().filter(|other| !unread.contains(&other.pointer)));
    Err(errors)
}

fn written(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

fn object(fields: &[Field], id_of: &dyn Fn(usize) -> String, typed: &Typed) -> Entered {
    let mut entered = Entered { members: Vec::new(), is_touched: false, errors: Vec::new() };
    for (at, field) in fields.iter().enumerate() {
        let id = id_of(at);
        let value = match &field.kind {
            FieldKind::Group { fields } => entered.group(field, object(fields, &|at| child_id(&id, at), typed)),
            FieldKind::Rows { fields, .. } => entered.rows(&id, field, fields, typed),
            _ => entered.plain(field, &id, typed),
        };
        entered.members.extend(value.map(|value| format!("{}:{value}", Json::from_text(&field.name).as_str())));
    }
    entered
}

impl Entered {
    fn plain(&mut self, field: &Field, id: &str, typed: &Typed) -> Option<String> {
        match read(field, id, typed) {
            Ok(value) => {
                let value = value?;
                let is_default = field.default.as_ref().is_some_and(|default| default.canonical() == value.canonical());
                self.is_touched |= !is_default && !value.is_null();
                Some(value.as_str().to_owned())
            }
            Err(error) => {
                self.is_touched |= typed.has_text(id);
                self.errors.push(error);
                None
            }
        }
    }

    fn below(&mut self, pointer: &str, errors: Vec<FieldError>) {
        let placed = |error: FieldError| FieldError { pointer: format!("{pointer}{}", error.pointer), ..error };
        self.errors.extend(errors.into_iter().map(placed));
    }

    fn group(&mut self, field: &Field, inner: Entered) -> Option<String> {
        self.is_touched |= inner.is_touched;
        if !inner.is_touched
            && let Ok(absent) = field.absent(true)
        {
            return absent.map(|value| value.as_str().to_owned());
        }
        self.below(&pointer_to("", &field.name), inner.errors);
        Some(written(&inner.members))
    }

    /// Every row counts, also an empty one: it was added, or demanded, and can be removed.
    fn rows(&mut self, id: &str, field: &Field, fields: &[Field], typed: &Typed) -> Option<String> {
        let count = typed.rows(id).unwrap_or_default();
        let pointer = pointer_to("", &field.name);
        let mut rows = Vec::with_capacity(count);
        let mut is_touched = count > rows_at_first(field);
        for row in 0..count {
            let row_id = child_id(id, row);
            let inner = object(fields, &|at| child_id(&row_id, at), typed);
            is_touched |= inner.is_touched;
            self.below(&pointer_to(&pointer, &row.to_string()), inner.errors);
            rows.push(written(&inner.members));
        }
        self.is_touched |= is_touched;
        let is_left_out = rows.is_empty() && (!field.required || field.default.is_some());
        (!is_left_out).then(|| format!("[{}]", rows.join(",")))
    }
}

fn read(field: &Field, id: &str, typed: &Typed) -> Result<Option<Json>, FieldError> {
    let text = typed.one(id).unwrap_or_default();
    match &field.kind {
        FieldKind::Choice { options } => match text {
            "" => left_out(field, options),
            index => option(field, options, index).map(Some),
        },
        FieldKind::MultiChoice { options, .. } => {
            let marked = typed.all(id).filter(|index| !index.is_empty());
            let values: Vec<Json> = marked.map(|index| option(field, options, index)).collect::<Result<_, _>>()?;
            if values.is_empty() {
                return left_out(field, options);
            }
            let items: Vec<&str> = values.iter().map(Json::as_str).collect();
            Json::parse(&format!("[{}]", items.join(","))).map(Some).map_err(|_| not_listed(field))
        }
        FieldKind::Text { format: Some(TextFormat::DateTime), .. } => {
            let offset = typed.one(&offset_id(id)).unwrap_or_default().to_owned();
            field.read(&[join_date_time(text, &offset)])
        }
        _ => field.read(&[text.to_owned()]),
    }
}

/// Options are posted by their number: two of them may have the same text.
fn option(field: &Field, options: &[ChoiceOption], index: &str) -> Result<Json, FieldError> {
    let found = index.parse().ok().and_then(|at: usize| options.get(at));
    found.map(|option| option.value.clone()).ok_or_else(|| not_listed(field))
}

fn not_listed(field: &Field) -> FieldError {
    FieldError { pointer: pointer_to("", &field.name), message: "must be one of the listed options".to_owned() }
}

/// Nothing was chosen: as a blank text, unless a blank text is itself an option.
fn left_out(field: &Field, options: &[ChoiceOption]) -> Result<Option<Json>, FieldError> {
    let blank_is_an_option = options.iter().any(|option| option.value_text().is_empty());
    if blank_is_an_option { field.read(&[]) } else { field.read(&[String::new()]) }
}
