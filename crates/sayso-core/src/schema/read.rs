//! From what a person typed, on the command line or in a page's form, to JSON of the field's type.

use std::collections::BTreeMap;

use crate::json::{Json, pointer_to, quoted, visible};

use super::fields::{ChoiceOption, Field, FieldKind};
use super::form::FormSchema;
use super::validate::FieldError;
use crate::limits::FIELD_ERRORS_MAX;

const ONE_OF_OPTIONS: &str = "must be one of the listed options";

impl FormSchema {
    /// The content that several typed values make, as name and text pairs, in the schema's order. Names may repeat
    /// where a field takes several values. The content is not validated yet; errors are at most
    /// [`FIELD_ERRORS_MAX`].
    pub fn read(&self, raw: &[(String, String)]) -> Result<Json, Vec<FieldError>> {
        let mut typed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, text) in raw {
            typed.entry(name).or_default().push(text.clone());
        }
        let mut errors = Vec::new();
        let mut members = Vec::new();
        for field in self.fields() {
            match field.read(&typed.remove(field.name.as_str()).unwrap_or_default()) {
                Ok(Some(value)) => members.push(format!("{}:{}", quoted(&field.name), value.as_str())),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        errors.extend(typed.keys().map(|name| FieldError::new(pointer_to("", name), self.unknown())));
        errors.truncate(FIELD_ERRORS_MAX);
        if !errors.is_empty() {
            return Err(errors);
        }
        let text = format!("{{{}}}", members.join(","));
        Json::parse(&text).map_err(|error| vec![FieldError::new("", format!("cannot be read: {error}"))])
    }

    fn unknown(&self) -> String {
        let names: Vec<_> = self.fields().iter().map(|field| visible(&field.name)).collect();
        if names.is_empty() {
            return "is not asked for; this form has no fields".to_owned();
        }
        format!("is not asked for; the fields are: {}", names.join(", "))
    }
}

impl Field {
    /// The field's JSON from what was typed: nothing, one text, or for a list of choices several. None means that the
    /// field is left out: nothing or only empty text was given and the field is optional or has a default.
    pub fn read(&self, raw: &[String]) -> Result<Option<Json>, FieldError> {
        if let FieldKind::MultiChoice { options, .. } = &self.kind {
            return self.read_several(options, raw);
        }
        let text = match raw {
            [] => "",
            [one] => one.as_str(),
            _ => return Err(self.error("takes one value, not several")),
        };
        let blank = match self.kind {
            FieldKind::Text { .. } | FieldKind::Choice { .. } => text.is_empty(),
            _ => text.trim().is_empty(),
        };
        let typed = !raw.is_empty();
        match &self.kind {
            FieldKind::Choice { options } if typed && blank => match find(options, text) {
                // An empty text may be an option of its own.
                Found::One(option) => Ok(Some(option.value.clone())),
                _ => self.absent(typed),
            },
            _ if blank => self.absent(typed),
            FieldKind::Text { .. } => Ok(Some(Json::from_text(text))),
            FieldKind::Number { integer, .. } => self.read_number(text.trim(), *integer).map(Some),
            FieldKind::Boolean => self.read_boolean(text.trim()).map(Some),
            FieldKind::Choice { options } => self.choose(options, text).map(|option| Some(option.value.clone())),
            FieldKind::MultiChoice { .. } | FieldKind::Group { .. } | FieldKind::Rows { .. } | FieldKind::Json => {
                Json::parse(text).map(Some).map_err(|error| self.error(format!("must be JSON: {error}")))
            }
        }
    }

    /// What leaving the field out comes to: nothing, `null` where that is all it can be, or an error. `typed` says
    /// whether there was a place to fill it in.
    pub fn absent(&self, typed: bool) -> Result<Option<Json>, FieldError> {
        match (self.required, &self.default) {
            (false, _) | (true, Some(_)) => Ok(None),
            (true, None) if typed && self.nullable => Ok(Some(Json::from_value(&serde_json::Value::Null))),
            (true, None) => Err(self.error("is required")),
        }
    }

    fn read_number(&self, text: &str, integer: bool) -> Result<Json, FieldError> {
        let wanted = if integer { "must be a whole number" } else { "must be a number" };
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = Json::parse(text).ok().filter(|_| is_number).ok_or_else(|| self.error(wanted))?;
        if integer && !is_whole(text) {
            return Err(self.error(wanted));
        }
        Ok(number)
    }

    fn read_boolean(&self, text: &str) -> Result<Json, FieldError> {
        let truth = match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            _ => return Err(self.error("must be yes or no")),
        };
        Ok(Json::from_value(&serde_json::Value::Bool(truth)))
    }

    fn read_several(&self, options: &[ChoiceOption], raw: &[String]) -> Result<Option<Json>, FieldError> {
        let mut chosen: Vec<&ChoiceOption> = Vec::new();
        let mut take = |option| {
            if !chosen.contains(&option) {
                chosen.push(option);
            }
        };
        match raw {
            // One text may be a label with commas in it before it is a list.
            [one] if matches!(find(options, one), Found::None) && one.contains(',') => {
                for part in one.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                    take(self.choose(options, part)?);
                }
            }
            _ => {
                for text in raw {
                    match find(options, text) {
                        Found::None if text.is_empty() => {}
                        _ => take(self.choose(options, text)?),
                    }
                }
            }
        }
        if chosen.is_empty() {
            // An empty choice that was posted is an answer where one is demanded; the schema says whether it will do.
            let empty = Json::from_value(&serde_json::Value::Array(Vec::new()));
            let posted = self.required && self.default.is_none() && !raw.is_empty();
            return if posted { Ok(Some(empty)) } else { self.absent(false) };
        }
        let items: Vec<_> = chosen.iter().map(|option| option.value.as_str()).collect();
        let list = Json::parse(&format!("[{}]", items.join(",")));
        list.map(Some).map_err(|_| self.error(ONE_OF_OPTIONS))
    }

    fn choose<'o>(&self, options: &'o [ChoiceOption], text: &str) -> Result<&'o ChoiceOption, FieldError> {
        match find(options, text) {
            Found::One(option) => Ok(option),
            Found::None => Err(self.error(ONE_OF_OPTIONS)),
            Found::Several => Err(self.error("names more than one option: give the option's value instead")),
        }
    }

    fn error(&self, message: impl Into<String>) -> FieldError {
        FieldError::new(pointer_to("", &self.name), message)
    }
}

enum Found<'o> {
    None,
    One(&'o ChoiceOption),
    Several,
}

/// The option that a text names: by its value first, else by its label if no other has the same.
fn find<'o>(options: &'o [ChoiceOption], text: &str) -> Found<'o> {
    if let Some(option) = options.iter().find(|option| option.value_text() == text) {
        return Found::One(option);
    }
    let mut labelled = options.iter().filter(|option| option.label == text);
    match (labelled.next(), labelled.next()) {
        (None, _) => Found::None,
        (Some(option), None) => Found::One(option),
        (Some(_), Some(_)) => Found::Several,
    }
}

/// Whether a JSON number stands for a whole one: `5`, `5.0`, `5e2` and thirty digits do, `5.5` does not.
fn is_whole(literal: &str) -> bool {
    literal.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        || literal.parse::<f64>().is_ok_and(|number| number.fract() == 0.0)
}
