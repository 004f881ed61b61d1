//! Typed input for a tool: the one predicate on its schemas, and the overlay of a person's values over an agent's.

use std::fmt;

use crate::json::{Json, JsonError, Kind, ObjectView};

use super::form::{FormSchema, SchemaError};
use super::validate::FieldError;

/// The schema of a tool's typed input: what a person adds to a call that the agent proposed. `Debug` shows only how many
/// keys it declares.
#[derive(Clone)]
pub struct InputSchema {
    form: FormSchema,
    declared: Vec<String>,
}

/// Keywords that could declare keys elsewhere than in `properties`, so that the person's keys would not be known.
const UNDECLARED: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "unevaluatedProperties", "$ref"];

/// Why the arguments of a call cannot be used. The call is refused then, not repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// The strict reader does not take them; repeated members are one reason.
    #[error("the arguments cannot be read: {0}")]
    Unreadable(JsonError),
    /// They are no object.
    #[error("the arguments are no JSON object")]
    NoObject,
}

impl InputSchema {
    /// Whether a schema names the keys a person fills in (`docs/rounds.md`, "Responses and validation"): `type` is `object`,
    /// `properties` is an object with members, every `required` is one of them, and nothing at the top declares others.
    pub fn is_usable(schema: &Json) -> bool {
        let tree = schema.tree();
        let Some(properties) = tree.get("properties") else {
            return false;
        };
        let requires_only_declared = match tree.get("required").map(|required| &required.kind) {
            None => true,
            Some(Kind::Array(names)) => {
                names.iter().all(|name| name.text().is_some_and(|name| properties.get(name).is_some()))
            }
            Some(_) => false,
        };
        tree.get("type").and_then(|kind| kind.text()) == Some("object")
            && !properties.members().is_empty()
            && requires_only_declared
            && UNDECLARED.iter().all(|keyword| tree.get(keyword).is_none())
    }

    /// Opens a usable schema. The same at capture and when read back: what is refused here was never asked, or is corrupt.
    pub fn open(schema: &Json) -> Result<Self, SchemaError> {
        if !Self::is_usable(schema) {
            let message = "does not name the keys a person fills in: an object with properties, and nothing beside them \
                           that could declare more";
            return Err(SchemaError::new("", message));
        }
        let form = FormSchema::open(schema)?;
        let tree = schema.tree();
        let properties = tree.get("properties").map(|properties| properties.members()).unwrap_or_default();
        Ok(Self { form, declared: properties.iter().map(|(name, _)| name.to_string()).collect() })
    }

    /// The keys that are the person's alone, in the schema's order.
    pub fn declared(&self) -> &[String] {
        &self.declared
    }

    /// The form to show.
    pub fn form(&self) -> &FormSchema {
        &self.form
    }

    /// A person's content with defaults filled in, checked.
    pub fn effective(&self, content: &Json) -> Result<Json, Vec<FieldError>> {
        let effective = self.form.fill_defaults(content);
        self.form.validate(&effective).map(|()| effective)
    }

    /// The arguments to run with: the proposed or edited ones without the declared keys, then the effective content's
    /// declared keys and nothing else of it. Every value stays as it was written.
    pub fn overlay(&self, arguments: &Json, effective: &Json) -> Result<Json, ArgumentsError> {
        let (Some(proposed), Some(given)) = (arguments.object(), effective.object()) else {
            return Err(ArgumentsError::NoObject);
        };
        let is_declared = |name: &String| self.declared.contains(name);
        let mut members = texts(arguments, &proposed, |name| !is_declared(name));
        members.extend(texts(effective, &given, is_declared));
        Json::parse(&format!("{{{}}}", members.join(","))).map_err(ArgumentsError::Unreadable)
    }
}

/// The members whose names are wanted, as written.
fn texts<'a>(object: &'a Json, view: &ObjectView<'_>, is_wanted: impl Fn(&String) -> bool) -> Vec<&'a str> {
    let wanted = view.members.iter().filter(|member| is_wanted(&member.name));
    wanted.filter_map(|member| object.as_str().get(member.name_range.start..member.value_range.end)).collect()
}

/// Reads a call's arguments from the text a model wrote. No text at all means no arguments; everything else that is no
/// JSON object, or that two readers could read differently, refuses the call.
pub fn read_arguments(text: &str) -> Result<Json, ArgumentsError> {
    let text = if text.trim_ascii().is_empty() { "{}" } else { text };
    let arguments = Json::parse(text).map_err(ArgumentsError::Unreadable)?;
    if arguments.is_object() { Ok(arguments) } else { Err(ArgumentsError::NoObject) }
}

/// Why a tool cannot be registered as it is marked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// More than one marker.
    #[error("a tool has one marker: one that needs approval and input says so with a marker of its own")]
    Several,
    /// The schema of its input cannot be asked with.
    #[error("the input schema cannot be used: {0}")]
    Schema(SchemaError),
}

/// What a tool of ours needs before it runs (`docs/policy.md`, "Typed input").
#[derive(Debug, Clone)]
pub enum Needs {
    /// Nothing but what the policy says.
    Nothing,
    /// A person's approval, whatever the policy allows.
    Approval,
    /// A person's values.
    Input(InputSchema),
    /// Both, on one card.
    ApprovedInput(InputSchema),
}

impl Needs {
    /// What the markers on a tool mean: approval, input with its schema, both at once with its schema.
    pub fn of(approval: bool, input: Option<&Json>, approved_input: Option<&Json>) -> Result<Self, MarkerError> {
        let open = |schema: &Json| InputSchema::open(schema).map_err(MarkerError::Schema);
        match (approval, input, approved_input) {
            (false, None, None) => Ok(Self::Nothing),
            (true, None, None) => Ok(Self::Approval),
            (false, Some(schema), None) => open(schema).map(Self::Input),
            (false, None, Some(schema)) => open(schema).map(Self::ApprovedInput),
            _ => Err(MarkerError::Several),
        }
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputSchema({} keys)", self.declared.len())
    }
}
