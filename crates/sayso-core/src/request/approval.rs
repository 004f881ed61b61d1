use crate::error::FieldError;
use crate::json::Json;
use crate::limits;
use crate::policy::Effect;
use crate::response::Content;
use crate::round::Digest;
use crate::schema::{FormSchema, InputSchema};

/// May this call run? Shown with its exact arguments (`docs/approvals.md`).
#[derive(Debug, Clone)]
pub struct Approval {
    /// The tool, `server:name` or a path of the asker's.
    pub tool: String,
    /// What the tool says of itself.
    pub description: Option<String>,
    /// The arguments exactly as they would run.
    pub arguments: Json,
    /// A few lines that say what would happen.
    pub preview: Vec<String>,
    /// What the call may do, as far as it is known.
    pub effects: Vec<Effect>,
    /// Digest of the tool's definition.
    pub definition: Option<Digest>,
    /// The rule that asked.
    pub rule: Option<String>,
    /// The session that a grant for it would be for.
    pub session: Option<String>,
    /// What edited arguments must fit; without it they cannot be edited.
    pub edits: Option<FormSchema>,
    /// What the person adds to the call; without it, nothing.
    pub input: Option<InputSchema>,
    /// Whether whoever started the execution may not approve it.
    pub require_second_person: bool,
}

impl Approval {
    /// Checks what an approving person sent and fills in defaults: `arguments` where they may be edited, `input` exactly
    /// where the tool takes it. Pointers start at the content.
    pub(crate) fn effective(&self, content: Option<&Json>) -> Result<Option<Json>, Vec<FieldError>> {
        let fault = |pointer: &str, message: &str| {
            vec![FieldError { pointer: pointer.to_owned(), message: message.to_owned() }]
        };
        let Some(given) = content.map_or(Some(Content::default()), Content::read) else {
            return Err(fault("", "may have the members arguments and input, each an object, and no others"));
        };
        if let Some(arguments) = &given.arguments {
            let edits = self.edits.as_ref();
            let edits = edits.ok_or_else(|| fault("/arguments", "cannot be edited: this call runs as it is or not"))?;
            if arguments.as_str().len() > limits::JSON_BYTES_MAX {
                return Err(fault("/arguments", "is too long"));
            }
            edits.validate(arguments).map_err(|faults| under("/arguments", faults))?;
        }
        let input = match (&self.input, &given.input) {
            (None, None) => None,
            (None, Some(_)) => return Err(fault("/input", "is not taken by this tool")),
            (Some(_), None) => return Err(fault("/input", "is required: the tool cannot run without it")),
            (Some(schema), Some(input)) => Some(schema.effective(input).map_err(|faults| under("/input", faults))?),
        };
        Ok(Content { arguments: given.arguments, input }.written())
    }
}

fn under(place: &str, faults: Vec<FieldError>) -> Vec<FieldError> {
    faults.into_iter().map(|fault| FieldError { pointer: format!("{place}{}", fault.pointer), ..fault }).collect()
}
