use serde::{Deserialize, Serialize};

use super::Answered;
use crate::error::{Error, FieldError};
use crate::id::RoundId;

/// Who won the race.
pub type Winner = Answered;

/// An error as callers receive it (RFC 9457), with the same code everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Problem {
    /// The problem that `error` is.
    pub fn new(error: &Error, round: Option<RoundId>) -> Self {
        let code = error.code();
        let (status, title) = described(error);
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
        }
    }
}

fn described(error: &Error) -> (u16, &'static str) {
    match error {
        Error::Validation { .. } => (422, "The request is not valid"),
        Error::Conflict { .. } => (409, "Somebody else was first"),
        Error::State { .. } => (409, "The round's state does not allow this"),
        Error::Stale => (409, "What was shown is not what is pending"),
        Error::Recovery(_) => (410, "It cannot be resumed"),
        Error::Corrupt(_) => (500, "Stored state cannot be read"),
        Error::RoundLimit(_) => (409, "The operation asked too often"),
        Error::Timeout => (408, "The wait ended first"),
        Error::Unauthenticated(_) => (401, "A credential is needed"),
        Error::Forbidden(_) => (403, "This credential does not allow it"),
        Error::NotFound(_) => (404, "There is no such thing"),
        Error::Limit(_) => (413, "A limit was exceeded"),
        Error::Unavailable(_) => (503, "The store is not available"),
    }
}
