//! The one list of things that can go wrong, each with a stable code and a page under `docs/errors/`.

use crate::round::{Answered, Failure, Status};
pub use crate::schema::FieldError;

/// The stable word for an error: the same in HTTP problems, CLI output and MCP error data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// Malformed ids, key set, action or content; the fields say where.
    ManagedInputInvalid,
    /// Lost the race, stale owner or token, or an idempotency key reused.
    ManagedInputConflict,
    /// The state of the round does not allow it.
    ManagedInputState,
    /// The digest is not what is pending now.
    ManagedInputStale,
    /// Claiming or delivering what cannot be resumed.
    ManagedInputRecoveryUnavailable,
    /// Stored state cannot be read; nothing was consumed.
    CorruptSuspendedState,
    /// What was submitted cannot be run; nothing was started.
    ModelValidation,
    /// The operation asked too often.
    ElicitationRoundLimit,
    /// The wait ended first; the round goes on.
    OperationTimeout,
    /// No credential, or one that is unknown or revoked.
    Unauthenticated,
    /// The credential does not allow this.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// Larger or more than a limit allows.
    LimitExceeded,
    /// The store cannot be reached or written; nothing was asked and nothing was answered.
    Unavailable,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: &[Self] = &[
        Self::ManagedInputInvalid,
        Self::ManagedInputConflict,
        Self::ManagedInputState,
        Self::ManagedInputStale,
        Self::ManagedInputRecoveryUnavailable,
        Self::CorruptSuspendedState,
        Self::ModelValidation,
        Self::ElicitationRoundLimit,
        Self::OperationTimeout,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::LimitExceeded,
        Self::Unavailable,
    ];

    /// The code as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ManagedInputInvalid => "managed_input_invalid",
            Self::ManagedInputConflict => "managed_input_conflict",
            Self::ManagedInputState => "managed_input_state",
            Self::ManagedInputStale => "managed_input_stale",
            Self::ManagedInputRecoveryUnavailable => "managed_input_recovery_unavailable",
            Self::CorruptSuspendedState => "corrupt_suspended_state",
            Self::ModelValidation => "model_validation",
            Self::ElicitationRoundLimit => "elicitation_round_limit",
            Self::OperationTimeout => "operation_timeout",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::LimitExceeded => "limit_exceeded",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What a caller is told. No variant ever carries a value that somebody typed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A malformed request or answer (`ManagedInputValidationError`).
    #[doc(alias = "ManagedInputValidationError")]
    #[error("{detail}")]
    Validation {
        /// One sentence for all of it.
        detail: String,
        /// Where, by JSON pointer, and why.
        fields: Vec<FieldError>,
    },
    /// Somebody else was first, or owns it (`ManagedInputConflict`).
    #[doc(alias = "ManagedInputConflict")]
    #[error("{detail}")]
    Conflict {
        /// What the conflict is.
        detail: String,
        /// Who won, through which channel, and when.
        winner: Option<Answered>,
    },
    /// The round's state does not allow it (`ManagedInputStateError`).
    #[doc(alias = "ManagedInputStateError")]
    #[error("{detail}")]
    State {
        /// What the state forbids.
        detail: String,
        /// The state it is in.
        status: Status,
        /// Why it failed, if it did.
        failure: Option<Failure>,
    },
    /// The digest sent is not the digest of what is pending.
    #[error("what was shown is not what is pending now; read the round again")]
    Stale,
    /// It cannot be resumed or claimed safely (`ManagedInputRecoveryError`).
    #[doc(alias = "ManagedInputRecoveryError")]
    #[error("{0}")]
    Recovery(String),
    /// What is stored cannot be read; nothing was consumed.
    #[error("the stored {0} cannot be read; nothing was consumed")]
    Corrupt(&'static str),
    /// As [`Error::Corrupt`], of a state that is sealed, with what would open it.
    #[error("{0}; nothing was consumed")]
    Sealed(String),
    /// What was submitted cannot be run, and nothing was started (`ModelValidationError`).
    #[doc(alias = "ModelValidationError")]
    #[error("{0}")]
    Model(String),
    /// One operation asked more often than its limit allows.
    #[error("the operation reached its limit of {0} rounds")]
    RoundLimit(u32),
    /// The wait ended before the thing waited for (`OperationTimeout`).
    #[doc(alias = "OperationTimeout")]
    #[error("the wait ended; the round goes on")]
    Timeout,
    /// No usable credential.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The credential does not allow this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// There is no such thing, or the caller may not know of it.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Over a limit.
    #[error("{0}")]
    Limit(String),
    /// The store cannot do it now.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// A validation error about one field.
    pub fn field(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::fields(vec![FieldError { pointer: pointer.into(), message: message.into() }])
    }

    /// A validation error about several fields; the sentence names the first.
    pub fn fields(fields: Vec<FieldError>) -> Self {
        let detail = match fields.as_slice() {
            [] => "the request is not valid".to_owned(),
            [only] => format!("{} {}", place(&only.pointer), only.message),
            [first, rest @ ..] => {
                format!("{} {} (and {} more)", place(&first.pointer), first.message, rest.len())
            }
        };
        Self::Validation { detail, fields }
    }

    /// A conflict without a winner.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::Conflict { detail: detail.into(), winner: None }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Validation { .. } => ErrorCode::ManagedInputInvalid,
            Self::Conflict { .. } => ErrorCode::ManagedInputConflict,
            Self::State { .. } => ErrorCode::ManagedInputState,
            Self::Stale => ErrorCode::ManagedInputStale,
            Self::Recovery(_) => ErrorCode::ManagedInputRecoveryUnavailable,
            Self::Corrupt(_) | Self::Sealed(_) => ErrorCode::CorruptSuspendedState,
            Self::Model(_) => ErrorCode::ModelValidation,
            Self::RoundLimit(_) => ErrorCode::ElicitationRoundLimit,
            Self::Timeout => ErrorCode::OperationTimeout,
            Self::Unauthenticated(_) => ErrorCode::Unauthenticated,
            Self::Forbidden(_) => ErrorCode::Forbidden,
            Self::NotFound(_) => ErrorCode::NotFound,
            Self::Limit(_) => ErrorCode::LimitExceeded,
            Self::Unavailable(_) => ErrorCode::Unavailable,
        }
    }
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the value" } else { pointer }
}
