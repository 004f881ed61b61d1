use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Answered;
use crate::error::{Error, ErrorCode, FieldError};
use crate::id::RoundId;
use crate::limits;
use crate::round::{self, Failure, Status};

/// Who won the race.
pub type Winner = Answered;

/// An error as callers receive it (RFC 9457), with the same code everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The page of the error, relative to the documentation.
    #[serde(rename = "type")]
    pub kind: String,
    /// What kind of error it is.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// What happened here.
    pub detail: String,
    /// The round concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundId>,
    /// Who won, where a race was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<Winner>,
    /// Which fields are wrong, by JSON pointer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
    /// The state that forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_status: Option<Status>,
    /// Why the round failed, where that is what forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Problem {
    /// The problem that `error` is.
    pub fn new(error: &Error, round: Option<RoundId>) -> Self {
        let code = error.code();
        let (status, title) = described(code);
        Self {
            kind: format!("https://sayso.dev/errors/{}", code.as_str()),
            title: title.to_owned(),
            status,
            code: code.as_str().to_owned(),
            detail: error.to_string(),
            round,
            winner: match error {
                Error::Conflict { winner, .. } => winner.as_ref().map(Winner::from),
                _ => None,
            },
            fields: match error {
                Error::Validation { fields, .. } => fields.clone(),
                _ => Vec::new(),
            },
            round_status: match error {
                Error::State { status, .. } => Some(*status),
                _ => None,
            },
            failure: match error {
                Error::State { failure, .. } => failure.clone(),
                _ => None,
            },
        }
    }

    /// The HTTP status of a code.
    pub fn status_of(code: ErrorCode) -> u16 {
        described(code).0
    }

    /// The error that this problem was made from; none for a code that is not known here. Where an error's words are
    /// fixed, the words are ours and not the sender's.
    pub fn error(&self) -> Option<Error> {
        let code = ErrorCode::ALL.iter().find(|code| code.as_str() == self.code)?;
        let detail = self.detail.clone();
        Some(match code {
            ErrorCode::ManagedInputInvalid => Error::Validation { detail, fields: self.fields.clone() },
            ErrorCode::ManagedInputConflict => {
                let winner = self.winner.clone().map(|Answered { principal, channel, at, action }| round::Answered {
                    principal,
                    channel,
                    at,
                    action,
                });
                Error::Conflict { detail, winner }
            }
            ErrorCode::ManagedInputState => {
                let status = self.round_status.unwrap_or(Status::Failed);
                Error::State { detail, status, failure: self.failure.clone() }
            }
            ErrorCode::ManagedInputStale => Error::Stale,
            ErrorCode::ManagedInputRecoveryUnavailable => Error::Recovery(detail),
            ErrorCode::CorruptSuspendedState => Error::Corrupt("record"),
            ErrorCode::ModelValidation => Error::Model(detail),
            ErrorCode::ElicitationRoundLimit => {
                let digits = detail.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok());
                Error::RoundLimit(digits.unwrap_or(limits::ROUND_LIMIT_DEFAULT))
            }
            ErrorCode::OperationTimeout => Error::Timeout,
            ErrorCode::Unauthenticated => Error::Unauthenticated("the token is unknown, revoked or too old"),
            ErrorCode::Forbidden => Error::Forbidden("this token, or this host name, does not allow it"),
            ErrorCode::NotFound => {
                let known = ["round", "execution", "token"].into_iter().find(|thing| detail.ends_with(thing));
                Error::NotFound(known.unwrap_or("thing"))
            }
            ErrorCode::LimitExceeded => Error::Limit(detail),
            ErrorCode::Unavailable => Error::Unavailable(detail),
        })
    }
}

fn described(code: ErrorCode) -> (u16, &'static str) {
    match code {
        ErrorCode::ManagedInputInvalid => (422, "The request is not valid"),
        ErrorCode::ManagedInputConflict => (409, "Somebody else was first"),
        ErrorCode::ManagedInputState => (409, "The round's state does not allow this"),
        ErrorCode::ManagedInputStale => (409, "What was shown is not what is pending"),
        ErrorCode::ManagedInputRecoveryUnavailable => (410, "It cannot be resumed"),
        ErrorCode::CorruptSuspendedState => (500, "Stored state cannot be read"),
        ErrorCode::ModelValidation => (422, "It cannot be run as submitted"),
        ErrorCode::ElicitationRoundLimit => (409, "The operation asked too often"),
        ErrorCode::OperationTimeout => (408, "The wait ended first"),
        ErrorCode::Unauthenticated => (401, "A credential is needed"),
        ErrorCode::Forbidden => (403, "This credential does not allow it"),
        ErrorCode::NotFound => (404, "There is no such thing"),
        ErrorCode::LimitExceeded => (413, "A limit was exceeded"),
        ErrorCode::Unavailable => (503, "The store is not available"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::{Channel, Principal};
    use crate::response::Action;
    use crate::time::UnixMs;

    #[test]
    fn a_problem_reads_back_as_the_error_it_was_made_from() {
        let winner = round::Answered {
            principal: Principal::person("ada"),
            channel: Channel::Inbox,
            at: UnixMs(1),
            action: Some(Action::Accept),
        };
        let errors = [
            Error::field("/a", "is required"),
            Error::Conflict { detail: "somebody else has answered already".to_owned(), winner: Some(winner) },
            Error::conflict("the lease is held"),
            Error::State {
                detail: "not answered".to_owned(),
                status: Status::Failed,
                failure: Some(Failure::new(Failure::EXPIRED, "nobody answered in time")),
            },
            Error::Stale,
            Error::Recovery("without evidence it is not repeated".to_owned()),
            Error::Model("there is no server shipping".to_owned()),
            Error::RoundLimit(7),
            Error::Timeout,
            Error::NotFound("execution"),
            Error::Limit("a round may have at most 5 bytes".to_owned()),
            Error::Unavailable("the disk is full".to_owned()),
        ];
        for error in errors {
            let text = serde_json::to_string(&Problem::new(&error, None)).unwrap();
            let read: Problem = serde_json::from_str(&text).unwrap();
            assert_eq!(read.error(), Some(error), "{text}");
        }
        for fixed in [Error::Corrupt("answer"), Error::Unauthenticated("who"), Error::Forbidden("no")] {
            let read = Problem::new(&fixed, None).error().unwrap();
            assert_eq!(read.code(), fixed.code());
        }
        let unknown = Problem { code: "of_the_future".to_owned(), ..Problem::new(&Error::Timeout, None) };
        assert_eq!(unknown.error(), None);
    }
}
