//! The tools that a program registers in its own process, and what they need before they run.

use std::sync::Arc;

use async_trait::async_trait;
use sayso::policy::ToolName;
use sayso::{Digest, Error, Json};
use sayso_core::limits::FUNCTION_NAME_BYTES_MAX;
use sayso_core::schema::Needs;

/// The name of the server that stands for the program's own tools, in policies and on cards.
pub const OWN_SERVER: &str = "native";

/// A tool of the program's own.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name towards the model: letters, digits, `_` and `-`, at most 64.
    fn name(&self) -> &str;
    /// What it does, for the model and for whoever is asked.
    fn description(&self) -> &str;
    /// The JSON Schema of its arguments, an object.
    fn parameters(&self) -> Json;
    /// Whether it changes nothing. Then it runs unasked where no rule is about it; any other tool asks.
    fn is_harmless(&self) -> bool {
        false
    }
    /// A few lines that say what this call would do, for whoever is asked.
    fn preview(&self, _arguments: &Json) -> Vec<String> {
        Vec::new()
    }
    /// The marker of a tool that a person approves, whatever a policy allows.
    fn requires_approval(&self) -> Option<&dyn RequiresApproval> {
        None
    }
    /// The marker of a tool that takes typed values from a person.
    fn requires_input(&self) -> Option<&dyn RequiresInput> {
        None
    }
    /// The marker of a tool that needs both, on one card.
    fn requires_approved_input(&self) -> Option<&dyn RequiresApprovedInput> {
        None
    }
    /// Runs it. The error is what the model reads; the run goes on.
    async fn call(&self, arguments: &Json) -> Result<String, String>;
}

/// A tool that a person approves before each call.
pub trait RequiresApproval: Tool {}

/// A tool that takes typed values from a person. What the model puts in their place is never used.
pub trait RequiresInput: Tool {
    /// The JSON Schema of those values: an object whose properties are the keys that are the person's alone.
    fn input_schema(&self) -> Json;
}

/// A tool that a person approves and gives typed values for, at once.
pub trait RequiresApprovedInput: Tool {
    /// As [`RequiresInput::input_schema`].
    fn input_schema(&self) -> Json;
}

/// A registered tool.
#[derive(Clone)]
pub(super) struct Registered {
    pub tool: Arc<dyn Tool>,
    pub name: ToolName,
    pub parameters: Json,
    pub needs: Needs,
    /// The schema of the person's values as the tool wrote it.
    pub input_schema: Option<Json>,
    /// Digest of all that it says of itself.
    pub definition: Digest,
}

/// The tools of a program. What is wrong with one is said when it is registered, not when it is called.
#[derive(Clone, Default)]
pub struct Toolbox(Vec<Registered>);

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tool| tool.name.name())).finish()
    }
}

fn refuse<T>(name: &str, words: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::Model(format!("the tool {name}: {words}")))
}

impl Toolbox {
    /// A box without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more tool. One that is marked twice, whose input schema does not name the person's keys, or
    /// whose name is taken is refused ([`Error::Model`]).
    pub fn with(mut self, tool: impl Tool + 'static) -> Result<Self, Error> {
        let name = tool.name().to_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > FUNCTION_NAME_BYTES_MAX || !name.chars().all(is_plain) {
            return refuse(&name, format!("its name must have 1 to {FUNCTION_NAME_BYTES_MAX} of a-z A-Z 0-9 _ -"));
        }
        if self.0.iter().any(|known| known.name.name() == name) {
            return refuse(&name, "its name is taken");
        }
        let parameters = tool.parameters();
        if !parameters.is_object() {
            return refuse(&name, "its parameters must be a JSON Schema that is an object");
        }
        let input = tool.requires_input().map(RequiresInput::input_schema);
        let both = tool.requires_approved_input().map(RequiresApprovedInput::input_schema);
        let needs = match Needs::of(tool.requires_approval().is_some(), input.as_ref(), both.as_ref()) {
            Ok(needs) => needs,
            Err(error) => return refuse(&name, error),
        };
        let marker = match &needs {
            Needs::Nothing => "nothing",
            Needs::Approval => "approval",
            Needs::Input(_) => "input",
            Needs::ApprovedInput(_) => "approved_input",
        };
        let input_schema = input.or(both);
        let schema = input_schema.as_ref().map(Json::canonical).unwrap_or_default();
        let said = [&name, tool.description(), &parameters.canonical(), marker, &schema].map(Json::from_text);
        let definition = Digest::of_text(&said.map(|text| text.as_str().to_owned()).join(","));
        let full = ToolName::new(OWN_SERVER, &name).or_else(|error| refuse(&name, error.message))?;
        self.0.push(Registered { tool: Arc::new(tool), name: full, parameters, needs, input_schema, definition });
        Ok(self)
    }

    pub(super) fn tools(&self) -> &[Registered] {
        &self.0
    }
}
