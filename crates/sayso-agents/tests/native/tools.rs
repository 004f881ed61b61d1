//! Tools of every kind, which write down when they run, and with what.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sayso::Json;
use sayso_agents::native::{RequiresApproval, RequiresApprovedInput, RequiresInput, Tool};
use tokio::sync::Semaphore;

use crate::scene::json;

pub const CITY: &str = r#"{"type":"object","properties":{"city":{"type":"string","minLength":2}},"required":["city"]}"#;

/// What ran, in order: the tool's name and its arguments.
pub type Ran = Arc<Mutex<Vec<(String, String)>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Changes nothing.
    Harmless,
    /// Of which nothing is said.
    Plain,
    Approval,
    /// Changes nothing, and takes a person's values.
    Input,
    ApprovedInput,
    /// Marked for approval and for input, which is refused.
    Both,
}

#[derive(Clone)]
pub struct TestTool {
    pub name: &'static str,
    pub kind: Kind,
    pub schema: String,
    pub description: &'static str,
    pub fails: bool,
    pub ran: Ran,
    /// Where it stops once it has written down that it runs, if it does.
    pub gate: Option<Arc<Semaphore>>,
}

impl TestTool {
    pub fn new(name: &'static str, kind: Kind, ran: &Ran) -> Self {
        let (schema, description) = (CITY.to_owned(), "A tool of the test.");
        Self { name, kind, schema, description, fails: false, ran: ran.clone(), gate: None }
    }

    fn is(&self, kinds: &[Kind]) -> bool {
        kinds.contains(&self.kind)
    }
}

#[async_trait]
impl Tool for TestTool {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn parameters(&self) -> Json {
        json(r#"{"type":"object","properties":{"amount":{"type":"integer"}}}"#)
    }

    fn is_harmless(&self) -> bool {
        self.is(&[Kind::Harmless, Kind::Input])
    }

    fn requires_approval(&self) -> Option<&dyn RequiresApproval> {
        self.is(&[Kind::Approval, Kind::Both]).then_some(self)
    }

    fn requires_input(&self) -> Option<&dyn RequiresInput> {
        self.is(&[Kind::Input, Kind::Both]).then_some(self)
    }

    fn requires_approved_input(&self) -> Option<&dyn RequiresApprovedInput> {
        self.is(&[Kind::ApprovedInput]).then_some(self)
    }

    async fn call(&self, arguments: &Json) -> Result<String, String> {
        self.ran.lock().unwrap().push((self.name.to_owned(), arguments.as_str().to_owned()));
        if let Some(gate) = &self.gate {
            drop(gate.acquire().await);
        }
        if self.fails { Err("it broke".to_owned()) } else { Ok(format!("{} is done", self.name)) }
    }
}

impl RequiresApproval for TestTool {}

impl RequiresInput for TestTool {
    fn input_schema(&self) -> Json {
        json(&self.schema)
    }
}

impl RequiresApprovedInput for TestTool {
    fn input_schema(&self) -> Json {
        json(&self.schema)
    }
}
