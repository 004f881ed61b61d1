//! A form filled in with the answer that an earlier question got, for a person to check and send.

use sayso::Json;
use sayso::wire::ResponseRecord;
use sayso_core::request::{Form, Request, Requests};
use sayso_core::response::Action;
use sayso_core::schema::{Field, FieldKind, TextFormat};

use super::typed::{Typed, field_id, offset_id, split_date_time};
use super::words;

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
    let view = content.and_then(Json::object);
    let mut fits = false;
    for (at, field) in form.schema.fields().iter().enumerate() {
        let given = view.as_ref().and_then(|view| view.get(&field.name)).and_then(|text| Json::parse(text).ok());
        let id = field_id(index, at);
        let typed = given.as_ref().map(|value| controls(&id, field, value)).filter(|typed| !typed.is_empty());
        fits |= typed.is_some();
        let typed = typed.or_else(|| field.default.as_ref().map(|value| controls(&id, field, value)));
        pairs.extend(typed.unwrap_or_default());
    }
    fits
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
        (FieldKind::Json, _) => one(words::pretty(value)),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
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
