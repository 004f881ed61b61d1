//! Filling in the asker's defaults without touching what a person submitted.

use jsonschema::Validator;
use serde_json::Value;

use crate::json::{Json, ObjectView, Tree, pointer_to};

/// The defaults below one `properties`, in the asker's order.
#[derive(Default)]
pub(super) struct Defaults(Vec<Property>);

struct Property {
    name: String,
    default: Option<Json>,
    nested: Defaults,
}

impl Defaults {
    pub(super) fn of(schema: &Tree<'_>, validator: &Validator) -> Self {
        Self::below(schema, &mut Vec::new(), validator)
    }

    /// The default that is filled in for a top-level property.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|property| property.name == name)?.default.as_ref()
    }

    /// The defaults inside a top-level property.
    pub(super) fn nested(&self, name: &str) -> Option<&Defaults> {
        self.0.iter().find(|property| property.name == name).map(|property| &property.nested)
    }

    pub(super) fn fill(&self, content: &Json) -> Json {
        match self.filled(content.as_str()) {
            Some(text) => Json::parse(&text).unwrap_or_else(|_| content.clone()),
            None => content.clone(),
        }
    }

    fn below(schema: &Tree<'_>, path: &mut Vec<String>, validator: &Validator) -> Self {
        let Some(properties) = schema.get("properties") else {
            return Self::default();
        };
        let mut found = Vec::new();
        for (name, property) in properties.members() {
            path.push(name.to_string());
            let default = property.get("default").filter(|default| is_accepted(default, path, validator));
            let default = default.and_then(|default| Json::parse(default.raw).ok());
            let nested = Self::below(property, path, validator);
            path.pop();
            if default.is_some() || !nested.0.is_empty() {
                found.push(Property { name: name.to_string(), default, nested });
            }
        }
        Self(found)
    }

    /// The object's text with what is missing, none if nothing is missing or it is no object.
    fn filled(&self, text: &str) -> Option<String> {
        let view = ObjectView::read(text)?;
        let mut changes: Vec<(&str, String)> = Vec::new();
        for property in &self.0 {
            let present = view.get(&property.name);
            let (before, added) = match (present, &property.default) {
                (Some(value), _) => (value, false),
                (None, Some(default)) => (default.as_str(), true),
                (None, None) => continue,
            };
            match property.nested.filled(before) {
                Some(after) => changes.push((&property.name, after)),
                None if added => changes.push((&property.name, before.to_owned())),
                None => {}
            }
        }
        if changes.is_empty() {
            return None;
        }
        let changes: Vec<_> = changes.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Some(view.setting(&changes))
    }
}

/// Whether the property itself accepts its default: the whole schema is asked about an object that holds nothing
/// else, and complaints about anything but the default do not count.
fn is_accepted(default: &Tree<'_>, path: &[String], validator: &Validator) -> bool {
    let pointer = path.iter().fold(String::new(), |parent, segment| pointer_to(&parent, segment));
    let content = path
        .iter()
        .rev()
        .fold(default.value(), |below, name| Value::Object(std::iter::once((name.clone(), below)).collect()));
    validator.iter_errors(&content).all(|error| {
        let at = error.instance_path().as_str();
        !at.strip_prefix(pointer.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
