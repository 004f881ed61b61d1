use crate::error::Error;
use crate::limits;

/// A question with options. Free text ("Other") is always legal beside them.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The question.
    pub question: String,
    /// Whether several options may be taken.
    pub multi_select: bool,
    /// The options in the asker's order; labels are unique.
    pub options: Vec<ChoiceOption>,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// What the answer will say.
    pub label: String,
    /// What choosing it means.
    pub description: Option<String>,
}

impl Choice {
    /// Checks that labels are present and unique, exactly. `pointer` is where the request stands.
    pub fn new(pointer: &str, question: String, multi_select: bool, options: Vec<ChoiceOption>) -> Result<Self, Error> {
        let at_options = format!("{pointer}/options");
        if options.is_empty() || options.len() > limits::OPTIONS_MAX {
            let message = format!("must list 1 to {} options", limits::OPTIONS_MAX);
            return Err(Error::field(at_options, message));
        }
        let mut seen = std::collections::HashSet::new();
        for (at, option) in options.iter().enumerate() {
            if option.label.is_empty() || option.label.len() > limits::NAME_BYTES_MAX {
                let message = format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX);
                return Err(Error::field(format!("{at_options}/{at}/label"), message));
            }
            if !seen.insert(option.label.as_str()) {
                return Err(Error::field(format!("{at_options}/{at}/label"), "must not repeat an earlier label"));
            }
        }
        Ok(Self { question, multi_select, options })
    }
}
