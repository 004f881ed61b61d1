//! One field of a form: asked by its kind, and again until its own part of the schema has nothing to say.

use sayso::Json;
use sayso_core::json::visible;
use sayso_core::schema::{ChoiceOption, Field, FieldError, FieldKind, FormSchema, TextFormat};
use serde_json::Value;

use super::form::Place;
use super::prompt::{Prompted, line, pick, pick_many, secret};
use crate::error::CommandError;
use crate::render::{self, option_label};
use crate::typed;

const LEFT_OUT: &str = "(leave it out)";

/// Asks for one field; `None` inside where it is left out.
pub(super) fn ask(
    field: &Field,
    schema: &FormSchema,
    place: &Place<'_>,
) -> Result<Prompted<Option<Json>>, CommandError> {
    let asked = Asked { field, schema, place };
    match &field.kind {
        // Groups and lists are asked for field by field; whole, they are JSON.
        FieldKind::Text { .. }
        | FieldKind::Number { .. }
        | FieldKind::Group { .. }
        | FieldKind::Rows { .. }
        | FieldKind::Json => asked.typed(),
        FieldKind::Boolean => asked.truth(),
        FieldKind::Choice { options } => asked.one_of(options),
        FieldKind::MultiChoice { options, .. } => asked.any_of(options),
    }
}

/// Whether a fault is about what stands at this pointer or something in it.
pub(super) fn is_at(fault: &FieldError, at: &str) -> bool {
    fault.pointer.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `Title (name)`, with all the names that lead to it.
pub(super) fn heading(field: &Field, place: &Place<'_>) -> String {
    let name = visible(&field.name);
    let title = field.title.as_deref().map(visible).filter(|title| *title != name);
    let path = format!("{}{name}", place.path());
    title.map_or_else(|| path.clone(), |title| format!("{title} ({path})"))
}

struct Asked<'a> {
    field: &'a Field,
    schema: &'a FormSchema,
    place: &'a Place<'a>,
}

impl Asked<'_> {
    /// `Title (name)`, with the default that Enter takes.
    fn message(&self) -> String {
        let mut text = heading(self.field, self.place);
        if let Some(default) = &self.field.default {
            text.push_str(&format!(" [{}]", visible(&plain(default))));
        }
        text
    }

    fn help(&self) -> String {
        let described = render::describe(self.field);
        match &self.field.description {
            Some(description) => format!("{} ({described})", visible(description)),
            None => described,
        }
    }

    /// What is wrong with a value, as far as this field alone is concerned.
    fn fault(&self, value: &Json) -> Option<String> {
        let Some((content, at)) = self.place.with(&self.field.name, value) else {
            return Some("is too large or too deep".to_owned());
        };
        let faults = self.schema.validate(&content).err()?;
        let own = faults.into_iter().find(|fault| is_at(fault, &at))?;
        Some(visible(&own.message).into_owned())
    }

    fn may_be_left_out(&self) -> bool {
        !self.field.required || self.field.default.is_some()
    }

    /// Text, a number or JSON: a line, where an empty one leaves the field out or takes its default.
    fn typed(&self) -> Result<Prompted<Option<Json>>, CommandError> {
        let check = |text: &str| {
            if text.is_empty() {
                return (!self.may_be_left_out()).then(|| "is required".to_owned());
            }
            self.fault(&typed::value(self.field, text))
        };
        let (message, help) = (self.message(), self.help());
        let is_password = matches!(self.field.kind, FieldKind::Text { format: Some(TextFormat::Password), .. });
        let given = if is_password {
            secret(&message, &help, &check)?
        } else {
            let before = self.place.given.get(&self.field.name).map(plain).unwrap_or_default();
            line(&message, &help, &before, &check)?
        };
        Ok(given.map(|text| (!text.is_empty()).then(|| typed::value(self.field, &text))))
    }

    fn truth(&self) -> Result<Prompted<Option<Json>>, CommandError> {
        let options = [("yes", true), ("no", false)].map(|(label, truth)| (label.to_owned(), Value::Bool(truth)));
        self.pick(options.into_iter().map(|(label, value)| (label, Json::from_value(&value))).collect())
    }

    fn one_of(&self, options: &[ChoiceOption]) -> Result<Prompted<Option<Json>>, CommandError> {
        self.pick(options.iter().map(|each| (option_label(each), each.value.clone())).collect())
    }

    /// One of several values. The cursor starts at what was given before, else at the default.
    fn pick(&self, options: Vec<(String, Json)>) -> Result<Prompted<Option<Json>>, CommandError> {
        let before = self.place.given.get(&self.field.name).or(self.field.default.as_ref());
        let start = before.and_then(|before| options.iter().position(|(_, value)| same(value, before)));
        let mut labels: Vec<String> = options.iter().map(|(label, _)| label.clone()).collect();
        if !self.field.required && self.field.default.is_none() {
            labels.push(LEFT_OUT.to_owned());
        }
        let picked = pick(&self.message(), labels, start.unwrap_or_default(), &self.help())?;
        Ok(picked.map(|at| options.get(at).map(|(_, value)| value.clone())))
    }

    fn any_of(&self, options: &[ChoiceOption]) -> Result<Prompted<Option<Json>>, CommandError> {
        let before = self.place.given.get(&self.field.name).or(self.field.default.as_ref());
        let chosen = before.map(|list| places(options, list)).unwrap_or_default();
        let is_left_out = |picked: &[usize]| picked.is_empty() && !self.field.required && self.field.default.is_none();
        let check = |picked: &[usize]| {
            if is_left_out(picked) { None } else { self.fault(&list_of(options, picked)) }
        };
        let labels = options.iter().map(option_label).collect();
        let picked = pick_many(&self.message(), labels, &chosen, &self.help(), &check)?;
        Ok(picked.map(|picked| (!is_left_out(&picked)).then(|| list_of(options, &picked))))
    }
}

/// A value as a person types it: a text without its quotes.
fn plain(value: &Json) -> String {
    match value.value() {
        Value::String(text) => text,
        _ => value.as_str().to_owned(),
    }
}

fn same(left: &Json, right: &Json) -> bool {
    left.canonical() == right.canonical()
}

fn list_of(options: &[ChoiceOption], picked: &[usize]) -> Json {
    let values: Vec<&str> = picked.iter().filter_map(|at| options.get(*at)).map(|each| each.value.as_str()).collect();
    typed::list(&values).unwrap_or_else(|| Json::from_value(&Value::Array(Vec::new())))
}

/// Where the items of a list stand among the options.
fn places(options: &[ChoiceOption], list: &Json) -> Vec<usize> {
    let items = match list.value() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    items.iter().filter_map(|item| options.iter().position(|each| each.value.value() == *item)).collect()
}
