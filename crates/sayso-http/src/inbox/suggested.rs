//! A form filled in with the answer that an earlier question got, for a person to check and send.

use sayso::Json;
use sayso::wire::ResponseRecord;
use sayso_core::json::pretty;
use sayso_core::limits;
use sayso_core::request::{Form, Request, Requests};
use sayso_core::response::Action;
use sayso_core::schema::{Field, FieldKind, TextFormat};

use super::typed::{Part, Typed, child_id, offset_id, part_id, rows_id, split_date_time, top_id};

/// What would have been typed to give the answers of `record` to the forms among `requests`; `None` where nothing of it
/// fits. Fields that the earlier answer did not have get their defaults, as in an empty form.
pub(super) fn typed(requests: &Requests, record: &ResponseRecord) -> Option<Typed> {
    let mut pairs = Vec::new();
    let mut fits = false;
    for (index, (key, request)) in requests.iter().enumerate() {
        let Request::Form(form) = request else { continue };
        let response = record.effective.get(key).filter(|response| response.action == Action::Accept);
        let content = response.and_then(|response| response.content.as_ref());
        fits |= fill(index, form, content, &mut pairs);
    }
    fits.then(|| Typed::new(pairs))
}

/// Whether any field took the earlier answer's value.
fn fill(index: usize, form: &Form, content: Option<&Json>, pairs: &mut Vec<(String, String)>) -> bool {
    let part = part_id(index, Part::Form);
    let before = pairs.len();
    let fields = form.schema.fields();
    if let Some(content) = content {
        pairs.extend(filled(&part, fields, content));
    }
    let fits = pairs.len() > before;
    for (at, field) in fields.iter().enumerate() {
        let id = top_id(&part, at);
        let is_blank = !pairs.iter().any(|(name, _)| is_of(name, &id));
        pairs.extend(field.default.iter().filter(|_| is_blank).flat_map(|value| controls(&id, field, value)));
    }
    fits
}

/// Whether a control belongs to a field, or to something in it.
fn is_of(name: &str, id: &str) -> bool {
    name.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

/// What would have been typed into the fields of a part to give this object.
pub(super) fn filled(part: &str, fields: &[Field], content: &Json) -> Vec<(String, String)> {
    members(&|at| top_id(part, at), fields, content)
}

fn members(id_of: &dyn Fn(usize) -> String, fields: &[Field], content: &Json) -> Vec<(String, String)> {
    let view = content.object();
    let given = |field: &Field| view.as_ref()?.get(&field.name).and_then(|text| Json::parse(text).ok());
    let held = |(at, field): (usize, &Field)| given(field).map(|value| controls(&id_of(at), field, &value));
    fields.iter().enumerate().filter_map(held).flatten().collect()
}

/// What the controls of a field hold for a value; nothing for one that it cannot hold.
fn controls(id: &str, field: &Field, value: &Json) -> Vec<(String, String)> {
    let one = |text: String| vec![(id.to_owned(), text)];
    let plain = value.value();
    match (&field.kind, plain.as_str()) {
        (FieldKind::Boolean, _) => plain.as_bool().map(|is_yes| one(is_yes.to_string())).unwrap_or_default(),
        (FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. }, _) => {
            let wanted = plain.as_array().cloned().unwrap_or_else(|| vec![plain]);
            let is_wanted = |at: &usize| options.get(*at).is_some_and(|option| wanted.contains(&option.value.value()));
            (0..options.len()).filter(is_wanted).map(|at| (id.to_owned(), at.to_string())).collect()
        }
        (FieldKind::Text { format: Some(TextFormat::DateTime), .. }, Some(text)) => match split_date_time(text) {
            Some((local, offset)) => {
                vec![(id.to_owned(), local.to_owned()), (offset_id(id), offset.to_owned())]
            }
            None => Vec::new(),
        },
        (FieldKind::Text { .. }, Some(text)) => one(text.to_owned()),
        (FieldKind::Number { .. }, None) if plain.is_number() => one(value.as_str().to_owned()),
        (FieldKind::Group { fields }, _) => members(&|at| child_id(id, at), fields, value),
        (FieldKind::Rows { fields, .. }, _) => rows(id, fields, value),
        (FieldKind::Json, _) => one(pretty(value)),
        _ => Vec::new(),
    }
}

fn rows(id: &str, fields: &[Field], list: &Json) -> Vec<(String, String)> {
    let items = list.items();
    if items.len() > limits::FORM_ROWS_MAX {
        return Vec::new();
    }
    let mut pairs = vec![(rows_id(id), items.len().to_string())];
    for (row, item) in items.iter().enumerate() {
        let row_id = child_id(id, row);
        pairs.extend(members(&|at| child_id(&row_id, at), fields, item));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::typed::field_id;
    use super::*;
    use sayso::wire::{Keyed, Request as WireRequest, Response};

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "street":{"type":"string"},"n":{"type":"number"},"yes":{"type":"boolean"},
        "city":{"enum":["Pune","Oslo"]},"tags":{"type":"array","items":{"enum":["a","b","c"]}},
        "at":{"type":"string","format":"date-time"},"kept":{"type":"string","default":"as before"}}}"#;

    fn requests() -> Requests {
        Keyed(vec![("form".to_owned(), WireRequest::form("?", Json::parse(SCHEMA).unwrap()))]).check().unwrap()
    }

    fn record(content: &str) -> ResponseRecord {
        let response = Keyed(vec![("form".to_owned(), Response::accept(Json::parse(content).unwrap()))]);
        ResponseRecord { redacted: false, submitted: response.clone(), effective: response }
    }

    #[test]
    fn an_earlier_answer_fills_the_controls_it_fits_and_the_rest_keep_their_defaults() {
        let earlier = record(
            r#"{"street":"1 Main Street","n":0.10,"yes":true,"city":"Oslo","tags":["a","c"],"at":"2026-01-31T09:30:00+02:00","gone":1}"#,
        );
        let typed = typed(&requests(), &earlier).unwrap();
        let held = |field: usize| typed.all(&field_id(0, field)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(held(0), ["1 Main Street"]);
        assert_eq!(held(1), ["0.10"], "a number stays as it was typed");
        assert_eq!((held(2).concat(), held(3).concat(), held(4).concat()), ("true".into(), "1".into(), "02".into()));
        assert_eq!(held(5), ["2026-01-31T09:30:00"]);
        assert_eq!(typed.one(&offset_id(&field_id(0, 5))), Some("+02:00"));
        assert_eq!(held(6), ["as before"]);
    }

    #[test]
    fn an_answer_that_fits_nowhere_suggests_nothing() {
        assert!(typed(&requests(), &record(r#"{"other":1,"city":"Rome","yes":"no"}"#)).is_none());
    }
}
