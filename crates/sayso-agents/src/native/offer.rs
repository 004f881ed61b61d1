//! What a run is offered right now: the program's own tools and those of its servers, each under a name that a model
//! takes.

use std::collections::BTreeSet;
use std::time::Duration;

use sayso::gate::Call;
use sayso::kit::Server;
use sayso::policy::{Annotations, ToolName};
use sayso::{Digest, ExecutionId, Json};
use sayso_core::limits::FUNCTION_NAME_BYTES_MAX;
use sayso_core::schema::{FormSchema, Needs};

use super::servers::{ServerTool, Servers};
use super::tool::{Registered, Toolbox};
use crate::operate::OperateError;

/// A tool as it is offered.
pub(super) struct Offered {
    /// The name that the model calls.
    pub function: String,
    pub name: ToolName,
    pub parameters: Json,
    pub definition: Digest,
    pub runs: Runs,
    description: Option<String>,
    annotations: Annotations,
}

/// What runs it.
pub(super) enum Runs {
    /// This process.
    Here(Box<Registered>),
    /// Its server.
    Server,
}

/// Everything that is offered, and the way to the servers.
pub(super) struct Offer {
    pub tools: Vec<Offered>,
    pub servers: Servers,
}

impl Offered {
    /// What the tool says of itself.
    pub fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    fn here(registered: &Registered) -> Self {
        Self {
            function: registered.name.name().to_owned(),
            name: registered.name.clone(),
            parameters: registered.parameters.clone(),
            definition: registered.definition,
            description: Some(registered.tool.description().to_owned()),
            annotations: Annotations::default(),
            runs: Runs::Here(Box::new(registered.clone())),
        }
    }

    fn of_server(function: String, tool: ServerTool) -> Self {
        Self {
            function,
            name: tool.name,
            parameters: tool.parameters,
            definition: tool.definition,
            description: tool.description,
            annotations: tool.annotations,
            runs: Runs::Server,
        }
    }

    /// The program's own tool that it is.
    pub fn own(&self) -> Option<&Registered> {
        match &self.runs {
            Runs::Here(registered) => Some(registered),
            Runs::Server => None,
        }
    }

    /// Whether it asks for approval by itself, whatever the policy says.
    pub fn is_marked(&self) -> bool {
        self.own().is_some_and(|own| matches!(own.needs, Needs::Approval | Needs::ApprovedInput(_)))
    }

    /// A call of it, as it is judged and shown. A session's grants are the run's.
    pub fn call(&self, execution: ExecutionId, arguments: Json) -> Call {
        let preview = self.own().map(|own| own.tool.preview(&arguments)).unwrap_or_default();
        // A schema that an answer could not be checked by allows no changes.
        let arguments_schema = Some(self.parameters.clone()).filter(|schema| FormSchema::open(schema).is_ok());
        Call {
            annotations: self.annotations,
            description: self.description.clone().filter(|text| !text.is_empty()),
            definition: Some(self.definition),
            arguments_schema,
            preview,
            is_harmless: self.own().is_some_and(|own| own.tool.is_harmless()),
            ..Call::new(execution.to_string(), self.name.clone(), arguments)
        }
    }
}

impl Offer {
    /// Looks at everything afresh: reaches the servers, reads their tools, and keeps those of `allowed` (`server:name`),
    /// or all where that is empty. The program's own tools are always among them.
    pub async fn gather(
        toolbox: &Toolbox,
        servers: &[Server],
        allowed: &[String],
        limit: Duration,
    ) -> Result<Self, OperateError> {
        let mut tools: Vec<_> = toolbox.tools().iter().map(Offered::here).collect();
        let mut taken: BTreeSet<String> = tools.iter().map(|tool| tool.function.clone()).collect();
        let (servers, listed) = Servers::reach(servers, limit).await?;
        let is_allowed = |name: &ToolName| allowed.is_empty() || allowed.iter().any(|tool| *tool == name.to_string());
        for tool in listed.into_iter().filter(|tool| is_allowed(&tool.name)) {
            let function = function_name(&tool.name, &taken);
            taken.insert(function.clone());
            tools.push(Offered::of_server(function, tool));
        }
        Ok(Self { tools, servers })
    }

    /// The tool that a model calls by this name.
    pub fn by_function(&self, function: &str) -> Option<&Offered> {
        self.tools.iter().find(|tool| tool.function == function)
    }

    /// The tool of this name.
    pub fn by_name(&self, name: &ToolName) -> Option<&Offered> {
        self.tools.iter().find(|tool| tool.name == *name)
    }

    /// The names of all.
    pub fn names(&self) -> Vec<ToolName> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }
}

/// `server__name` in the characters that models' endpoints take, told apart from those that are taken.
fn function_name(tool: &ToolName, taken: &BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let whole: String = format!("{}__{}", tool.server(), tool.name()).chars().map(plain).collect();
    let cut = |room: usize| whole.get(..whole.len().min(room)).unwrap_or_default().to_owned();
    let first = cut(FUNCTION_NAME_BYTES_MAX);
    if !taken.contains(&first) {
        return first;
    }
    let numbered = |n: usize| {
        let end = format!("_{n}");
        format!("{}{end}", cut(FUNCTION_NAME_BYTES_MAX - end.len()))
    };
    (2..).map(numbered).find(|name| !taken.contains(name)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_name_of_its_own_that_models_take() {
        let mut taken = BTreeSet::new();
        for (server, name, function) in [
            ("files", "write_file", "files__write_file"),
            ("files", "write file", "files__write_file_2"),
            ("b\u{fc}ro", "a.b", "b_ro__a_b"),
        ] {
            let found = function_name(&ToolName::new(server, name).unwrap(), &taken);
            assert_eq!(found, function);
            taken.insert(found);
        }
        let long = function_name(&ToolName::new("s", "x".repeat(200)).unwrap(), &taken);
        taken.insert(long.clone());
        let next = function_name(&ToolName::new("s", "x".repeat(201)).unwrap(), &taken);
        assert!(long.len() == 64 && next.len() == 64 && next.ends_with("_2"), "{long} {next}");
    }
}
