use sayso_core::error::{ErrorCode, FieldError};

/// What is wrong with a plan before anything is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A combinator with too little in it.
    #[error("{combinator} takes at least {least}")]
    TooFew {
        /// Its name.
        combinator: &'static str,
        /// How many it takes.
        least: usize,
    },
    /// An alternative that also holds where nothing is asked; say `optional(one_of(..))` instead.
    #[error("an alternative of one_of must expect something; put optional around one_of instead")]
    EmptyAlternative,
    /// Two alternatives that are the same.
    #[error("two alternatives of one_of are the same: {0}")]
    SameAlternatives(String),
    /// Something else than a single expectation in a round.
    #[error("round_of takes single expectations")]
    NotSingle,
    /// A `maybe` in a round.
    #[error("round_of takes what must come: expect, not maybe")]
    MaybeInRound,
    /// A key twice in a round.
    #[error("round_of has the key {0} twice")]
    SameKeys(String),
    /// More expectations, or deeper nesting, than a plan may have.
    #[error("a plan may have at most {0}")]
    TooLarge(String),
}

/// Why a plan did not hold. The values in these sentences are those of the plan itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan itself is not valid.
    #[error("the plan is not valid: {0}")]
    Malformed(#[from] Malformed),
    /// Something was asked that nobody expected.
    #[error("nobody expected {came}; {}", expected_words(expected))]
    Unexpected {
        /// What came.
        came: String,
        /// What would have fitted, an entry each; empty if the plan was at its end.
        expected: Vec<String>,
    },
    /// Several expectations take what came, with different answers.
    #[error("the plan is ambiguous: {came} fits {first}, and it fits {second}, which answers differently")]
    Ambiguous {
        /// What came.
        came: String,
        /// One expectation, with its answer.
        first: String,
        /// Another, with its answer.
        second: String,
    },
    /// The plan's answer does not fit what was asked.
    #[error("the plan's answer to {came} does not fit: {}", fields_words(fields))]
    Unfit {
        /// What came.
        came: String,
        /// What does not fit, by JSON pointer into the answer.
        fields: Vec<FieldError>,
    },
    /// What was asked cannot be asked: its schema or URL is not valid.
    #[error("{came} cannot be asked: {detail}")]
    Unaskable {
        /// What came.
        came: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The operation has ended, and the plan has not.
    #[error("{} was expected and did not come", expected.join(" or "))]
    Unfinished {
        /// What would have come next, an entry each.
        expected: Vec<String>,
    },
    /// The operation asked more often than it may.
    #[error("the operation reached its limit of {0} rounds")]
    RoundLimit(u32),
}

/// The code of a plan that did not hold.
pub const EXPECTATION_FAILED: &str = "elicitation_expectation_failed";

impl PlanError {
    /// The stable word: `model_validation`, `managed_input_invalid`, `elicitation_round_limit`, or
    /// `elicitation_expectation_failed`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => ErrorCode::ModelValidation.as_str(),
            Self::Unfit { .. } | Self::Unaskable { .. } => ErrorCode::ManagedInputInvalid.as_str(),
            Self::RoundLimit(_) => ErrorCode::ElicitationRoundLimit.as_str(),
            Self::Unexpected { .. } | Self::Ambiguous { .. } | Self::Unfinished { .. } => EXPECTATION_FAILED,
        }
    }
}

fn expected_words(expected: &[String]) -> String {
    match expected {
        [] => "nothing more was expected".to_owned(),
        expected => format!("expected was {}", expected.join(" or ")),
    }
}

fn fields_words(fields: &[FieldError]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
